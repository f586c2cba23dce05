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
	// waitConnecting is how long a request waits for the attempt that is under way.
	waitConnecting = 3 * time.Second
	// lostRecently is how long after the loss of a connection its server counts as being on its way back:
	// a request then waits for it as long as for an attempt, also when attempts are refused meanwhile.
	lostRecently = 15 * time.Second
	// holdsAfter is how long a connection has to last for its loss to be the first: one that is lost earlier,
	// again and again, counts like an attempt that failed.
	holdsAfter = 10 * time.Second
)

// redials says how long to wait before dialing again after so many failures in a row.
var redials = handoff.Backoff{First: 250 * time.Millisecond, Longest: 30 * time.Second}

// A view is what is known of a server at one time. It is replaced, never changed.
type view struct {
	health   handoff.Health
	trying   bool           // an attempt is under way or due at once
	attempts uint64         // that have ended
	link     *Link          // while up
	version  string         // the last one seen
	note     string         // likewise, what its agents may do
	fault    *handoff.Error // why it is not up; nil before the first attempt has ended
	lost     time.Time      // when the last connection was lost; zero before that
	due      time.Time      // while down: when the next attempt is made unless somebody needs it earlier
	ended    bool           // the connector has stopped: nothing better will come
	next     chan struct{}  // closed when another view has replaced this one
}

// A connector holds one warm connection to a server. Its run owns the connection; everybody else reads the
// view.
type connector struct {
	spec    Spec                 // Set once
	log     *zap.Logger          // Set once
	changed func()               // Set once; never blocks
	news    func(server string)  // Set once; never blocks: see [Link.Changed]
	now     atomic.Pointer[view] // written by run alone
	wake    chan struct{}        // capacity 1: full means that run is awake already
	dials   uint64               // Owned by run: attempts so far
	lost    time.Time            // Owned by run: when the last connection was lost

	held atomic.Pointer[chan struct{}] // closed when nobody holds it any more; nil: nobody does; see [Fleet.Hold]

	removed atomic.Bool             // it is not in the fleet any more: nobody gets its connection
	ended   chan struct{}           // closed when run has returned
	after   <-chan struct{}         // Set once: closed when it may run; nil: at once
	leave   context.CancelCauseFunc // Guarded by Fleet.mu: ends run

	dialed, failed, losses atomic.Uint64 // attempts, those that failed, and connections lost
}

func newConnector(spec Spec, log *zap.Logger, changed func(), news func(server string)) *connector {
	k := &connector{spec: spec, log: log.With(zap.String("server", spec.Name)), changed: changed, news: news,
		wake: make(chan struct{}, 1), ended: make(chan struct{}), leave: func(error) {}}
	k.now.Store(&view{health: handoff.HealthConnecting, trying: true, next: make(chan struct{})})
	return k
}

// publish replaces the view. Only run calls it.
func (k *connector) publish(v view) {
	v.next, v.attempts, v.lost = make(chan struct{}), k.dials, k.lost
	old := k.now.Swap(&v)
	close(old.next)
	if old.health != v.health {
		level, next := zap.InfoLevel, ""
		var problem error
		if v.fault != nil {
			told := k.spec.Explain(v.fault, v.lost)
			problem, next = told, told.NextStep()
			// One that was never up may have to be started by somebody.
			if needsSomebody(told.Reason) || v.health == handoff.HealthDown && k.lost.IsZero() && !v.ended {
				level = zap.WarnLevel
			}
		}
		k.log.Log(level, "server changed", zap.String("health", string(v.health)),
			zap.NamedError("problem", problem), zap.String("next", next))
		k.changed()
	}
}

// needsSomebody reports whether a server stays away until somebody sets something right, there or here.
func needsSomebody(reason handoff.Reason) bool {
	switch reason {
	case handoff.ReasonTokenRefused, handoff.ReasonTokenUnread, handoff.ReasonWorkspace, handoff.ReasonOutdated,
		handoff.ReasonCertificate,
		handoff.ReasonPlaintextRefused, handoff.ReasonNoTLS, handoff.ReasonNotAllowed, handoff.ReasonProgramMissing,
		handoff.ReasonAgentMissing, handoff.ReasonSwitchboardMissing, handoff.ReasonSSHMissing, handoff.ReasonSSHKeyRefused,
		handoff.ReasonHostKeyUnknown, handoff.ReasonHostKeyChanged, handoff.ReasonSSHSettings:
		return true
	}
	return false
}

// run keeps the connection until ctx ends, then closes it and returns when everything it started has
// ended.
func (k *connector) run(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	failures, losses := 0, 0 // in a row
	for {
		link, fault := k.dial(ctx)
		if link != nil {
			up := time.Now()
			k.publish(view{health: handoff.HealthUp, link: link, version: link.Version, note: link.Note})
			if k.watch(ctx, link) {
				fault = &handoff.Error{
					Code: handoff.CodeUnreachable, Subject: k.spec.Name,
					Detail: "the connection was lost", Reason: handoff.ReasonLost,
				}
				k.losses.Add(1)
			}
			k.lost = time.Now()
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
		if ctx.Err() != nil {
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

// watch passes on what a connection tells, until it is lost or ctx ends. It reports whether it was lost. Nobody told
// what changed before it.
func (k *connector) watch(ctx context.Context, link *Link) bool {
	if link.Changed != nil {
		k.news(k.spec.Name)
	}
	for {
		select {
		case <-link.Done:
			return true
		case <-ctx.Done():
			return false
		case <-link.Changed:
			k.news(k.spec.Name)
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

// pause waits before the next attempt. After a lost connection that had held the server counts as connecting
// until an attempt has failed; after that it is down. Somebody who needs it cuts the wait short, though never
// below the first step, so that a refusing server is not hammered.
func (k *connector) pause(ctx context.Context, wait time.Duration, lost bool, fault *handoff.Error) {
	last := k.now.Load()
	if !lost {
		k.publish(view{health: handoff.HealthDown, version: last.version, note: last.note, fault: fault,
			due: time.Now().Add(wait)})
	}
	defer func() {
		if v := *k.now.Load(); !v.trying && ctx.Err() == nil {
			v.trying = true
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

// link returns the connection. While an attempt is under way it waits for it, at most [waitConnecting].
// A server that is down is not waited for unless hurry is set: then an attempt is made at once, and more of
// them within that time when its connection was lost just before, as by a restart. While the server is held it
// waits for the release.
func (k *connector) link(ctx context.Context, hurry bool) (*Link, *handoff.Error) {
	timer := time.NewTimer(waitConnecting)
	defer timer.Stop()
	before := k.now.Load().attempts
	for {
		v := k.now.Load()
		justLost := !v.lost.IsZero() && time.Since(v.lost) < lostRecently
		var released <-chan struct{}
		if held := k.held.Load(); held != nil {
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
		case <-timer.C:
			return nil, k.unreachable(v, "it did not answer in time")
		case <-ctx.Done():
			return nil, k.unreachable(v, "nobody waited for it any longer")
		}
	}
}

// hurry cuts the wait before the next attempt short.
func (k *connector) hurry() {
	select {
	case k.wake <- struct{}{}:
	default: // it is awake already
	}
}

// unreachable names the server and says why it cannot be used. What was noticed when it was dialled last is why; where
// that is nothing, late is, if it did not answer in time.
func (k *connector) unreachable(v *view, late string) *handoff.Error {
	if v.fault == nil {
		return k.spec.Explain(
			&handoff.Error{
				Code: handoff.CodeUnreachable, Subject: k.spec.Name, Detail: late, Reason: handoff.ReasonSilent,
			}, v.lost)
	}
	told := k.spec.Explain(v.fault, v.lost)
	switch {
	case v.ended, told.Code == handoff.CodeUnreachable, told.Code == handoff.CodeTokenRefused,
		told.Code == handoff.CodeOutdated:
	default: // what it said is no reason to refuse the work for good
		told.Code, told.Subject, told.Detail = handoff.CodeUnreachable, k.spec.Name, v.fault.Error()
	}
	if told.Detail == "" {
		told.Detail = late
	}
	return told
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// Metrics yields how the servers are, and what became of connections to them.
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
