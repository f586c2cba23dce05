package realtime

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/floor"
	"switchboard/realtime/mask"
	"switchboard/realtime/recall"
)

const (
	// sayQueue bounds utterances that wait for the model's session to begin. Beyond it an answer would be lost, so the
	// call ends.
	sayQueue = 256
	// beginLimit bounds the time from the connection to the model's session.created: it comes at once.
	beginLimit = 15 * time.Second
	// serveGrace is how long the router may take to leave a call that has ended before its context ends.
	serveGrace = 5 * time.Second
	// guardStep is how often it is asked whether what let a call in still does.
	guardStep = 15 * time.Second
)

// A Call is one live voice call. It implements [handoff.Voice].
//
// Its state has five owners: legs (the two ends), saying (what the model is made to say), hearing (what the caller
// hears and says), session (how the client's session begins, is set, and goes on when the client comes back) and
// renewal (how the call goes on when the model's session ends). Each uses those before it, and saying tells hearing
// what was given. All are guarded by mu, which is never held while anybody waits. An event is handled where it was
// read, and an utterance where it was said, with [Call.do]; the loop handles what comes from neither. What needs all
// owners is a method of the call.
type Call struct {
	core                        // Guarded by mu; run's alone once the call has ended
	made    time.Time           // Set once
	grant   handoff.Grant       // Set once
	events  chan handoff.Event  // closed by run
	again   chan struct{}       // holds one token while the loop should look again
	stop    chan *handoff.Error // takes the first reason to end; nil: somebody hung up
	over    atomic.Bool         // nothing is said any more
	past    chan struct{}       // closed when the loop has ended; cause is set then
	pass    *admission          // Set once, by serve
	running *sync.WaitGroup     // Set once, by serve: its legs and what looks for it
	model   string              // the voice model's name, as it was told last; Guarded by mu
	besides int                 // sockets beside the client; Guarded by the registry's mu
	wished  bool                // Owned by run: somebody hung up, and did not vanish
	atEnd   func()              // Set once, by serve: keeps how the call ended, before its client knows; or nil

	mu      sync.Mutex
	awaits  awaits // Guarded by mu, as all below; run's alone once the call has ended
	mask    *mask.Mask
	legs    legs
	saying  saying
	hearing hearing
	session session
	renewal renewal
	earlier []handoff.SaidLine // what was said before the socket of this attached call, while it had others
}

// A core is what the owners of a call's state share.
type core struct {
	logs    *zap.Logger   // Set once: the front's
	id      string        // Set once: the call's
	ids     *events.Names // of our events
	alarms  [alarmKinds]alarm
	pending reports // for the router
	counts  counts
	ended   bool
	cause   *handoff.Error
	parting parting
	ticked  *ticked // nil: no tick log is kept
}

// log returns a logger that names the call. It is not kept: a call writes few lines, and a logger takes 2 KB.
func (k *core) log() *zap.Logger { return k.logs.WithLazy(zap.String("call", k.id)) }

// end ends the call; the first cause counts.
func (k *core) end(cause *handoff.Error) {
	if !k.ended {
		k.ended, k.cause = true, cause
	}
}

// counts is what the log tells about a call at its end.
type counts struct {
	requests, asks, leaked, hints, unheard, unsure, unanswerable, swallowed int

	unreadable int // events of the model that nest too deep or are no JSON
	refused    int // events of the client that found too much waiting
	made       int // events of the model that we made in its place
	holds      int // times that the client vanished and the call waited for it
	rejoins    int // times that it came back
	renewals   int // times that another session took the place of the model's
}

// add adds those of another call.
func (n *counts) add(o counts) {
	n.requests += o.requests
	n.asks += o.asks
	n.leaked += o.leaked
	n.hints += o.hints
	n.unheard += o.unheard
	n.unsure += o.unsure
	n.unanswerable += o.unanswerable
	n.swallowed += o.swallowed
	n.unreadable += o.unreadable
	n.refused += o.refused
	n.made += o.made
	n.holds += o.holds
	n.rejoins += o.rejoins
	n.renewals += o.renewals
}

// awaits is what the loop waits for, beside the end of the call.
type awaits struct {
	alarm         time.Time     // when its timer rings; zero: it does not
	client, model leg           // whose ends it waits for; nil: nobody's yet
	first         handoff.Event // what the router gets next, and pending no longer holds; nil: nothing
}

func newCall(
	grant handoff.Grant,
	tools func(handoff.Grant) ([]handoff.Tool, handoff.Guide),
	id string,
	client, model leg,
	log *zap.Logger,
) *Call {
	own, guide := tools(grant)
	c := &Call{
		core: core{logs: log, id: id, ids: events.NewNames()},
		made: time.Now(), grant: grant, events: make(chan handoff.Event), again: make(chan struct{}, 1),
		past: make(chan struct{}), stop: make(chan *handoff.Error, 1),
	}
	c.mask = mask.New(c.ids, own, guide)
	c.legs.init(&c.core, client, model)
	c.renewal = renewal{
		core: &c.core, legs: &c.legs, saying: &c.saying, hearing: &c.hearing, session: &c.session, mask: c.mask, call: c,
		recall: recall.New(), given: map[string]string{}, told: map[string]bool{},
	}
	c.saying = saying{
		core: &c.core, legs: &c.legs, mask: c.mask, hearing: &c.hearing, recall: c.renewal.recall, floor: floor.New(),
		asks: map[string]clientAsk{}, sent: map[string]sent{}, requests: map[string]*request{},
		utterances: map[string]*utterance{}, hints: map[string]*hint{}, naming: itemPrefix,
	}
	c.hearing = hearing{
		core: &c.core, legs: &c.legs, saying: &c.saying, settings: newSettings(), inForce: newSettings(), rate: pcmRate,
		playback: newPlayback(c.legs.performs), speeches: newSpeeches(), muted: map[string]bool{}, lost: map[string]bool{},
	}
	c.session = session{core: &c.core, legs: &c.legs, saying: &c.saying, hearing: &c.hearing, mask: c.mask}
	return c
}

// Events implements [handoff.Voice].
func (c *Call) Events() <-chan handoff.Event { return c.events }

// Say implements [handoff.Voice].
func (c *Call) Say(u handoff.Utterance) {
	c.do(func() {
		if len(c.saying.says) >= sayQueue {
			c.end(handoff.Fault(handoff.CodeOverloaded, "the call", "utterances"))
			return
		}
		c.saying.says = append(c.saying.says, u)
	})
}

// hangUp ends the call as a person would.
func (c *Call) hangUp() { c.halt(nil) }

func (c *Call) halt(why *handoff.Error) {
	select {
	case c.stop <- why:
	default: // it ends already
	}
}

// run carries the call until it ends, and returns after the router has left it. It closes both legs. The
// error is nil when somebody hung up.
func (c *Call) run(ctx context.Context, r Router) error {
	began := time.Now()
	serving, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	var served sync.WaitGroup
	defer served.Wait()
	left := make(chan struct{})
	served.Go(func() {
		defer close(left)
		c.routed(r.Serve(serving, &c.grant, c))
	})
	c.log().Debug("call began")
	c.loop(ctx, left)
	close(c.past)
	c.session.begun(cmp.Or(c.cause, handoff.Fault(handoff.CodeNotFound, "such call", "it was hung up")))
	c.hearing.signs(time.Now())
	c.over.Store(true)
	c.sum(time.Since(began))
	c.leaveModel()
	var closing sync.WaitGroup
	defer closing.Wait()
	closing.Go(func() { c.legs.model.Close(nil) })
	closing.Go(func() {
		if c.atEnd != nil {
			c.atEnd()
		}
		c.legs.leaveClient()
	})
	if heir := c.renewal.heir; heir != nil {
		closing.Go(func() { heir.Close(nil) })
	}
	c.handOver(left)
	grace := time.AfterFunc(serveGrace, func() { cancel(handoff.Fault(handoff.CodeShutdown, "", "the call has ended")) })
	defer grace.Stop()
	served.Wait()
	if c.cause == nil {
		return nil
	}
	return c.cause
}

// routed logs why the router left the call, if that was no end.
func (k *core) routed(err error) {
	if err != nil {
		k.log().Error("router left the call", zap.String("detail", err.Error()))
	}
}

// sum logs how the call ended. It is not part of run, whose stack would hold the fields for as long as the call.
func (k *core) sum(took time.Duration) {
	code := ""
	if k.cause != nil {
		code = string(k.cause.Code)
	}
	k.log().Info("call ended", zap.Duration("took", took), zap.String("code", code),
		zap.Int("requests", k.counts.requests), zap.Int("asks", k.counts.asks), zap.Int("leaked", k.counts.leaked),
		zap.Int("hints_dropped", k.counts.hints), zap.Int("unheard", k.counts.unheard),
		zap.Int("unsure", k.counts.unsure), zap.Int("unanswerable", k.counts.unanswerable),
		zap.Int("swallowed", k.counts.swallowed), zap.Int("unreadable", k.counts.unreadable),
		zap.Int("refused", k.counts.refused), zap.Int("made", k.counts.made), zap.Int("holds", k.counts.holds),
		zap.Int("rejoins", k.counts.rejoins), zap.Int("renewals", k.counts.renewals))
}

// takeFrom handles the events of a leg, as long as the call has it.
func (c *Call) takeFrom(l leg) func(event []byte) {
	return func(event []byte) {
		c.do(func() {
			switch l {
			case c.legs.client:
				c.fromClient(event)
			case c.legs.model.leg:
				c.fromModel(event)
			case c.renewal.heir:
				c.renewal.fromHeir(event)
			}
		})
	}
}

// do lets act use the call's state, gives the router what it takes at once, and lets legs write what came of it. An
// event of a far end goes this way in the goroutine that read it. Once the call has ended nothing is done.
func (c *Call) do(act func()) {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return
	}
	act()
	if len(c.saying.says) > 0 && c.mask.Begun() { // before, the model has no conversation
		for _, u := range c.saying.says {
			c.saying.say(u)
		}
		c.saying.says = nil
	}
	passed := c.passOn()
	stale, client, model, others := c.stale(), c.legs.client, c.legs.model.leg, c.legs.others
	c.mu.Unlock()
	if stale {
		select {
		case c.again <- struct{}{}:
		default: // it will look
		}
	}
	flush(client)
	flush(model)
	for _, l := range others {
		flush(l)
	}
	if passed {
		runtime.Gosched() // the router goes on here, at once: until another CPU has woken for it takes 0.1 ms
	}
}

func flush(l leg) {
	if f, ok := l.(flusher); ok {
		f.Flush()
	}
}

// passOn gives the router what it takes at once, in order, and reports whether that was anything. The loop waits with
// what is left. The caller holds mu.
func (c *Call) passOn() (passed bool) {
	for c.awaits.first == nil && len(c.pending) > 0 {
		select {
		case c.events <- c.pending[0]:
			c.pending, passed = c.pending[1:], true
		default: // it is busy
			return passed
		}
	}
	return passed
}

// stale reports whether the loop should wait for something that it does not. An alarm that is later than its timer is
// looked for when that rings. The caller holds mu.
func (c *Call) stale() bool {
	next := c.nextAlarm()
	return c.ended || c.awaits.first == nil && len(c.pending) > 0 ||
		c.awaits.client != c.legs.client || c.awaits.model != c.legs.model.leg ||
		!next.IsZero() && (c.awaits.alarm.IsZero() || next.Before(c.awaits.alarm))
}

// look returns what to wait for from now on; false: the call has ended.
func (c *Call) look() (awaits, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &c.awaits
	if w.first == nil && len(c.pending) > 0 {
		w.first, c.pending = c.pending[0], c.pending[1:]
	}
	if next := c.nextAlarm(); !next.IsZero() && (w.alarm.IsZero() || next.Before(w.alarm)) {
		w.alarm = next
	}
	w.client, w.model = c.legs.client, c.legs.model.leg
	return *w, !c.ended
}

// begin does what comes before any event of a far end. Whoever has a call calls it before the legs run.
func (c *Call) begin() {
	c.do(func() {
		c.alarms[alarmBegin].at = time.Now().Add(beginLimit)
		if c.grant.Revoked != nil {
			c.alarms[alarmGuard].at = time.Now().Add(guardStep)
		}
		if c.session.opening != nil {
			c.session.opens(c.session.opening)
		}
		if c.hearing.attached != nil {
			c.legs.toModel(c.mask.Join())
		}
	})
}

// guard ends the call if the key or login that let it in was taken away, as [handoff.Grant.Revoked] tells. It may wait
// for a store.
func (c *Call) guard() {
	if err := c.grant.Revoked(); err != nil {
		c.halt(handoff.AsError(err))
	}
}

// loop does what no far end brings, until the call has ended: it rings alarms, and gives the router the events that it
// could not take at once. It never waits for anything but the next of them.
func (c *Call) loop(ctx context.Context, left <-chan struct{}) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	end := func(why *handoff.Error) { c.do(func() { c.end(why) }) }
	var set time.Time
	for w, goesOn := c.look(); goesOn; w, goesOn = c.look() {
		if w.alarm != set {
			set = w.alarm
			timer.Reset(time.Until(set))
		}
		var events chan<- handoff.Event
		if w.first != nil {
			events = c.events
		}
		select {
		case <-c.again:
		case events <- w.first:
			c.mu.Lock() // not do: also when the call has just ended the router has it
			c.awaits.first = nil
			c.mu.Unlock()
		case <-timer.C:
			c.do(func() {
				c.awaits.alarm = time.Time{}
				c.ring(time.Now())
			})
			set = time.Time{}
		case <-w.client.Ending():
			c.do(func() { c.departed(w.client) })
		case <-w.model.Ending():
			c.do(func() { c.departed(w.model) })
		case why := <-c.stop:
			c.wished = why == nil
			end(why)
		case <-left:
			end(handoff.Fault(handoff.CodeInternal, "", "the router left the call"))
		case <-ctx.Done():
			end(handoff.Fault(handoff.CodeShutdown, "", ""))
		}
	}
}

// leaveModel leaves nothing open at the model: every request has an output.
func (c *Call) leaveModel() {
	state, output := c.hearing.attached, `{"status":"the call has ended"}`
	if state != nil && state.lasts.hasMoved() {
		output = lostOutput
	}
	for callID, r := range c.saying.requests {
		if !r.answered {
			c.legs.model.Send(events.Output(c.ids.Next(), c.ids.Next(), callID, output))
		}
	}
	if state != nil && c.mask.Begun() { // what the model asked for before another instance is in the call would be lost
		c.legs.model.Send(c.mask.Leave())
	}
}

// leaveClient tells the client why the call has ended, and closes its leg.
func (l *legs) leaveClient() {
	if l.cause != nil && l.cause.Code != handoff.CodeSlowClient {
		l.client.Send(events.Error(l.ids.Next(), events.Fault{
			Kind: "server_error", Code: string(l.cause.Code), Message: l.cause.Spoken(),
		}))
	}
	l.client.Close(l.cause)
}

// handOver gives the router what it has not taken yet, and the end of the call.
func (c *Call) handOver(left <-chan struct{}) {
	defer close(c.events)
	var cause error
	if c.cause != nil {
		cause = c.cause
	}
	all := append(c.pending, handoff.CallEnded{Cause: cause})
	if c.awaits.first != nil {
		all = slices.Insert(all, 0, c.awaits.first)
	}
	for _, e := range all {
		select {
		case c.events <- e:
		case <-left:
			return
		}
	}
}
