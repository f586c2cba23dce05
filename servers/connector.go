package servers

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
)

// Times of a warm connection.
const (
	dialTimeout = 10 * time.Second // for connecting and the handshake
	// waitConnecting is how long a request waits for an attempt to connect.
	waitConnecting = 3 * time.Second
	// lostRecently is how long after the loss of a connection the server is expected back: a request then waits up to
	// waitConnecting, also while attempts fail.
	lostRecently = 15 * time.Second
	// holdsAfter is how long a connection has to last for its loss not to count as a failed attempt.
	holdsAfter = 10 * time.Second
)

// redials are the pauses before the next attempt, by the number of failures in a row.
var redials = handoff.Backoff{First: 250 * time.Millisecond, Longest: 30 * time.Second}

// A view is the state of a server at one time. It is replaced, never changed.
type view struct {
	health   handoff.Health
	trying   bool           // an attempt is going on or due at once
	attempts uint64         // that have ended
	link     *Link          // while up
	version  string         // the last one seen
	note     string         // the last one seen, see [Link.Note]
	fault    *handoff.Error // why it is not up; nil before the first attempt has ended
	lost     time.Time      // when the last connection was lost; zero before that
	due      time.Time      // while down: when the next attempt is made, unless a request needs it earlier
	ended    bool           // the connector has stopped: no other view will come
	next     chan struct{}  // closed when another view has replaced this one
}

// A connector keeps one warm connection to a server. Its run owns the connection; others read the view.
type connector struct {
	spec        Spec                 // Set once
	log         *zap.Logger          // Set once
	changed     func()               // Set once; never blocks
	listChanged func(server string)  // Set once; never blocks: see [Link.Changed]
	now         atomic.Pointer[view] // written by run alone
	wake        chan struct{}        // capacity 1: a token shortens the pause of run
	dials       uint64               // Owned by run: attempts so far
	lost        time.Time            // Owned by run: when the last connection was lost
	checked     bool                 // Owned by run: it was found out once whether its agent can work
	ending      bool                 // Owned by run: its end has begun, which is no change of the server

	back atomic.Bool // its machine has just come back: the next attempt is no attempt at what is down

	hold atomic.Pointer[chan struct{}] // closed at the release, see [Fleet.Hold]; nil: it is not held

	removed atomic.Bool             // it is not in the fleet any more: its connection must not be used
	ended   chan struct{}           // closed when run has returned
	after   <-chan struct{}         // Set once: run begins when it is closed; nil: at once
	leave   context.CancelCauseFunc // Guarded by Fleet.mu: ends run

	dialed, failed, losses atomic.Uint64 // attempts, those that failed, and connections lost
}

func newConnector(spec Spec, log *zap.Logger, changed func(), listChanged func(server string)) *connector {
	k := &connector{spec: spec, log: log.With(zap.String("server", spec.Name)), changed: changed, listChanged: listChanged,
		wake: make(chan struct{}, 1), ended: make(chan struct{}), leave: func(error) {}}
	k.now.Store(&view{health: handoff.HealthConnecting, trying: true, next: make(chan struct{})})
	return k
}

// publish replaces the view, and logs a change of health. Only run calls it.
func (k *connector) publish(v view) {
	v.next, v.attempts, v.lost = make(chan struct{}), k.dials, k.lost
	old := k.now.Swap(&v)
	close(old.next)
	if old.health != v.health {
		level, next := zap.InfoLevel, ""
		var problem error
		if v.fault != nil {
			explained := k.spec.Explain(v.fault, v.lost)
			problem, next = explained, explained.NextStep()
			// A server that was never up may have to be started by a person.
			if needsSomebody(explained.Reason) || v.health == handoff.HealthDown && k.lost.IsZero() && !v.ended {
				level = zap.WarnLevel
			}
		}
		if k.ending {
			level = zap.DebugLevel
		}
		k.log.Log(level, "server changed", zap.String("health", string(v.health)),
			zap.NamedError("problem", problem), zap.String("next", next))
		k.changed()
	}
}

// needsSomebody reports whether a server stays down until a person repairs something, there or here.
func needsSomebody(reason handoff.Reason) bool {
	switch reason {
	case handoff.ReasonTokenRefused, handoff.ReasonTokenUnread, handoff.ReasonWorkspace, handoff.ReasonOutdated,
		handoff.ReasonCertificate, handoff.ReasonPlaintextRefused, handoff.ReasonNoTLS, handoff.ReasonNotAllowed, handoff.ReasonProgramMissing,
		handoff.ReasonAgentMissing, handoff.ReasonSwitchboardMissing, handoff.ReasonSSHMissing, handoff.ReasonSSHKeyRefused,
		handoff.ReasonHostKeyUnknown, handoff.ReasonHostKeyChanged, handoff.ReasonSSHSettings:
		return true
	}
	return false
}

// run keeps the connection until ctx ends, then closes it, and returns when all goroutines that it started have ended.
func (k *connector) run(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	failures, losses := 0, 0 // in a row
	for {
		link, fault := k.dial(ctx)
		if link != nil {
			up := time.Now()
			k.publish(view{health: handoff.HealthUp, link: link, version: link.Version, note: link.Note})
			if k.spec.Joined && !k.checked && link.Check != nil { // a person waits beside it for this
				k.checked = true
				work.Go(func() { k.check(ctx, link) })
			}
			if k.watch(ctx, link) {
				fault = &handoff.Error{Code: handoff.CodeUnreachable, Subject: k.spec.Name,
					Detail: "the connection was lost", Reason: handoff.ReasonLost}
				k.losses.Add(1)
			}
			k.lost, k.ending = time.Now(), ctx.Err() != nil
			if k.lost.Sub(up) >= holdsAfter {
				losses = 0
			}
			failures = losses
			losses++
			k.publish(view{health: handoff.HealthConnecting, trying: true, version: link.Version, note: link.Note, fault: fault})
			end := func() {
				if err := link.Conn.Close(); err != nil {
					k.log.Debug("closing a connection failed", zap.Error(err))
				}
			}
			if link.Exclusive {
				end()
			} else {
				work.Go(end)
			}
		}
		if k.ending = ctx.Err() != nil; k.ending {
			stopped := handoff.Fault(handoff.CodeShutdown, k.spec.Name, "")
			if errors.Is(context.Cause(ctx), errRemoved) {
				stopped = handoff.Fault(handoff.CodeUnknownServer, k.spec.Name, "")
			}
			k.publish(view{health: handoff.HealthDown, version: k.now.Load().version, note: k.now.Load().note, fault: stopped,
				ended: true})
			return
		}
		k.pause(ctx, redials.Pause(failures), link != nil && failures == 0, fault)
		failures++
	}
}

// check finds out whether an agent that has just joined can work, and tells of a change.
func (k *connector) check(ctx context.Context, link *Link) {
	ctx, cancel := context.WithTimeout(ctx, waitConnecting+listTimeout)
	defer cancel()
	if err := link.Check(ctx); err != nil {
		k.log.Info("the agent cannot work yet", zap.Error(err))
	}
	if link.Unfit != nil && link.Unfit() != nil {
		k.changed()
	}
}

// watch passes on the changes that a connection reports, until the connection is lost or ctx ends. It reports whether
// the connection was lost. Changes from before the connection were not reported: so it begins with one.
func (k *connector) watch(ctx context.Context, link *Link) bool {
	if link.Changed != nil {
		k.listChanged(k.spec.Name)
	}
	for {
		select {
		case <-link.Done:
			return true
		case <-ctx.Done():
			return false
		case <-link.Changed:
			k.listChanged(k.spec.Name)
		}
	}
}

// dial makes one attempt.
func (k *connector) dial(ctx context.Context) (*Link, *handoff.Error) {
	if ctx.Err() != nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	defer func() { k.dials++ }()
	k.dialed.Add(1)
	link, err := k.spec.Dial(ctx)
	if err == nil {
		return link, nil
	}
	k.failed.Add(1)
	return nil, DialFault(k.spec.Name, err)
}

// pause waits before the next attempt. After the loss of a connection that had lasted, the server counts as connecting
// until an attempt has failed; then it is down. A request that needs the server shortens the wait, but not below the
// first step of redials.
func (k *connector) pause(ctx context.Context, wait time.Duration, lost bool, fault *handoff.Error) {
	last := k.now.Load()
	if !lost {
		k.publish(view{health: handoff.HealthDown, version: last.version, note: last.note, fault: fault,
			due: time.Now().Add(wait)})
	}
	defer func() {
		if v := *k.now.Load(); !v.trying && ctx.Err() == nil {
			if v.trying = true; k.back.Swap(false) {
				v.health, v.fault = handoff.HealthConnecting, nil
			}
			k.publish(v)
		}
	}()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	due := time.Now().Add(wait)
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case <-k.wake:
			if soon := time.Now().Add(redials.First); soon.Before(due) {
				due = soon
				timer.Reset(redials.First)
			}
		}
	}
}

// link returns the connection. It waits for an attempt that is going on, at most [waitConnecting]. It does not wait for
// a server that is down, unless hurry is set: then it causes an attempt at once, and more within waitConnecting if the
// connection was lost recently, as by a restart. While the server is held (see [Fleet.Hold]) it waits for the release.
func (k *connector) link(ctx context.Context, hurry bool) (*Link, *handoff.Error) {
	late := time.After(waitConnecting)
	before := k.now.Load().attempts
	for {
		v := k.now.Load()
		justLost := !v.lost.IsZero() && time.Since(v.lost) < lostRecently
		var released <-chan struct{}
		if held := k.hold.Load(); held != nil {
			released = *held
		}
		switch {
		case released != nil:
		case v.link != nil && !closed(v.link.Done) && !k.removed.Load():
			return v.link, nil
		case v.ended, v.health == handoff.HealthDown && (!hurry || v.attempts > before && !justLost):
			return nil, k.unreachable(v, "")
		case hurry && !v.trying:
			k.hurry()
		}
		select {
		case <-v.next:
		case <-released:
		case <-late:
			return nil, k.unreachable(v, "it did not answer in time")
		case <-ctx.Done():
			return nil, k.unreachable(v, "nobody waited for it any longer")
		}
	}
}

// unfit returns why the server refuses every session though it is connected; nil: it is not known to.
func (k *connector) unfit() *handoff.Error {
	if v := k.now.Load(); v.link != nil && v.link.Unfit != nil {
		return v.link.Unfit()
	}
	return nil
}

// hurry shortens the wait before the next attempt.
func (k *connector) hurry() {
	select {
	case k.wake <- struct{}{}:
	default: // run is awake already
	}
}

// unreachable returns the error for a server that cannot be used. The reason is that of the last attempt; if no
// attempt has ended, the server is silent. late is the detail if there is no other.
func (k *connector) unreachable(v *view, late string) *handoff.Error {
	if v.fault == nil {
		return k.spec.Explain(
			&handoff.Error{
				Code: handoff.CodeUnreachable, Subject: k.spec.Name, Detail: late, Reason: handoff.ReasonSilent,
			}, v.lost)
	}
	explained := k.spec.Explain(v.fault, v.lost)
	switch {
	case v.ended, explained.Code == handoff.CodeUnreachable, explained.Code == handoff.CodeTokenRefused,
		explained.Code == handoff.CodeOutdated:
	default: // other codes would refuse the work for good
		explained.Code, explained.Subject, explained.Detail = handoff.CodeUnreachable, k.spec.Name, v.fault.Error()
	}
	if explained.Detail == "" {
		explained.Detail = late
	}
	return explained
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// Metrics yields the health of the servers, the counts of their connections, and the metrics of their kinds.
func (f *Fleet) Metrics() iter.Seq[handoff.Metric] {
	var all []iter.Seq[handoff.Metric]
	for _, k := range f.now.Load().connectors {
		up := 0
		if k.now.Load().health == handoff.HealthUp {
			up = 1
		}
		all = append(all, slices.Values([]handoff.Metric{
			handoff.NewMetric("switchboard_server_up", "Whether a server is connected.", up, "server", k.spec.Name),
			handoff.NewMetric("switchboard_server_dials_total", "Attempts to connect to a server.", k.dialed.Load(), "server",
				k.spec.Name),
			handoff.NewMetric("switchboard_server_dial_failures_total", "Attempts to connect to a server that failed.",
				k.failed.Load(), "server", k.spec.Name),
			handoff.NewMetric("switchboard_server_connections_lost_total", "Connections to a server that were lost.",
				k.losses.Load(), "server", k.spec.Name),
		}))
		if k.spec.Metrics != nil {
			all = append(all, k.spec.Metrics)
		}
	}
	return handoff.JoinMetrics(all...)
}
