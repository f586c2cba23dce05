package realtime

import (
	"cmp"
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/filter"
	"switchboard/realtime/floor"
	"switchboard/realtime/recall"
)

const (
	// sayQueue bounds the utterances that wait for the model's session to begin. When it is full the call ends:
	// dropping one could lose an answer.
	sayQueue = 256
	// beginLimit bounds the time from the connection to the model's session.created, which normally comes at once.
	beginLimit = 15 * time.Second
	// serveGrace is how long the router may take to leave a call that has ended, once it has taken its events, before
	// the call's context ends.
	serveGrace = 5 * time.Second
)

// A Call is one live voice call. It implements [handoff.Voice].
//
// Its state has five owners: legs, saying, hearing, session and renewal (see the package documentation). All are
// guarded by mu, which is never held while anybody waits. An event is handled by the goroutine that read it, an
// utterance by the one that called [Call.Say], an alarm by that of its timer, all within [Call.do]; the loop handles
// everything else. What needs all owners is a method of the call.
type Call struct {
	core                              // Guarded by mu; owned by run once the call has ended
	createdAt time.Time               // Set once
	grant     handoff.Grant           // Set once
	events    chan handoff.VoiceEvent // closed by run
	again     chan struct{}           // holds one token while the loop should look again
	stop      chan *handoff.Error     // takes the first reason to end; nil: somebody hung up
	over      atomic.Bool             // the loop has ended, and nothing is said any more
	past      chan struct{}           // closed when the loop has ended; cause is set before
	pass      *admission              // Set once, by serve
	model     string                  // Guarded by mu: the voice model's name, as the model said last
	besides   int                     // Guarded by the registry's mu: sockets beside the client
	wished    bool                    // Owned by run: somebody hung up on purpose
	atEnd     func()                  // Set once, by serve: stores how the call ended before its client is told; or nil

	mu      sync.Mutex
	awaits  awaits // Guarded by mu, as all below; owned by run once the call has ended
	filter  *filter.Filter
	legs    legs
	saying  saying
	hearing hearing
	session session
	renewal renewal
	earlier []handoff.SaidLine // of an attached call: what was said over its sockets before this one
}

// A core is what the owners of a call's state share.
type core struct {
	logs    *zap.Logger   // Set once: the front's
	id      string        // Set once: the call's
	ids     *events.Names // makes the ids of our events
	alarms  [alarmKinds]alarm
	pending reports // for the router
	counts  counts
	ended   bool
	cause   *handoff.Error
	parting parting
	tickLog *tickLog // nil: the call has no tick log
}

// log returns a logger that names the call. It is not kept: a call writes few lines, and a logger takes 2 KB.
func (k *core) log() *zap.Logger { return k.logs.WithLazy(zap.String("call", k.id)) }

// end ends the call; the first cause counts.
func (k *core) end(cause *handoff.Error) {
	if !k.ended {
		k.ended, k.cause = true, cause
	}
}

// counts are what happened in a call. They are logged at its end, and added to the metrics.
type counts struct {
	requests     int // function calls of the model for a tool of ours
	asks         int // times that we asked the model for a response
	leaked       int // outputs of the client for a function call of ours
	hints        int // hints dropped because the router did not keep up
	unheard      int // sentences of the caller dropped for the same reason
	unsure       int // utterances that the client gave no sign of having heard
	unanswerable int // answers of the router to a request that was not open
	swallowed    int // events of the model that the client did not see

	unreadable int // events of the model that nest too deep or are not JSON
	refused    int // events of the client refused because too many waited
	made       int // events that we made because the model left them out
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

// awaits are what the loop waits for, beside the end of the call. The loop works with a copy.
type awaits struct {
	alarm         time.Time          // when its timer rings; zero: the timer is off
	client, model leg                // the legs whose ends it waits for; nil: none yet
	first         handoff.VoiceEvent // the next event for the router, taken out of pending; nil: none
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
		core:      core{logs: log, id: id, ids: events.NewNames()},
		createdAt: time.Now(), grant: grant, events: make(chan handoff.VoiceEvent), again: make(chan struct{}, 1),
		past: make(chan struct{}), stop: make(chan *handoff.Error, 1),
	}
	c.filter = filter.New(c.ids, own, guide)
	c.legs.init(&c.core, client, model)
	c.renewal = renewal{
		core: &c.core, legs: &c.legs, saying: &c.saying, hearing: &c.hearing, session: &c.session, filter: c.filter,
		call: c, recall: recall.New(), unconfirmed: map[string]string{}, asText: map[string]bool{},
	}
	c.saying = saying{
		core: &c.core, legs: &c.legs, filter: c.filter, hearing: &c.hearing, recall: c.renewal.recall,
		floor: floor.New(), asks: map[string]clientAsk{}, sent: map[string]sentEvent{}, requests: map[string]*request{},
		utterances: map[string]*utterance{}, hints: map[string]*hint{}, naming: itemPrefix,
	}
	c.hearing = hearing{
		core: &c.core, legs: &c.legs, saying: &c.saying, settings: newSettings(), inForce: newSettings(), rate: pcmRate,
		playback: newPlayback(c.legs.performs), muted: map[string]bool{}, undelivered: map[string]bool{},
	}
	c.session = session{core: &c.core, legs: &c.legs, saying: &c.saying, hearing: &c.hearing, filter: c.filter}
	return c
}

// Events implements [handoff.Voice].
func (c *Call) Events() <-chan handoff.VoiceEvent { return c.events }

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

// hangUp ends the call without an error, as a caller does.
func (c *Call) hangUp() { c.halt(nil) }

func (c *Call) halt(why *handoff.Error) {
	select {
	case c.stop <- why:
	default: // an earlier reason counts
	}
}

// run carries the call until it ends, closes both legs, and returns after the router has left. The error is nil when
// somebody hung up.
func (c *Call) run(ctx context.Context, r Router) error {
	began := time.Now()
	serving, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	var served sync.WaitGroup
	defer served.Wait()
	left := make(chan struct{})
	served.Go(func() {
		defer close(left)
		c.logRouterError(r.Serve(serving, &c.grant, c))
	})
	c.log().Debug("call began")
	c.loop(ctx, left)
	close(c.past)
	c.session.begun(cmp.Or(c.cause, handoff.Fault(handoff.CodeNotFound, "such call", "it was hung up")))
	c.hearing.checkSigns(time.Now())
	c.over.Store(true)
	c.logEnd(time.Since(began))
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
	if next := c.renewal.successor; next != nil {
		closing.Go(func() { next.Close(nil) })
	}
	c.handOver(left)
	grace := time.AfterFunc(serveGrace, func() {
		cancel(handoff.Fault(handoff.CodeShutdown, "", "the call has ended"))
	})
	defer grace.Stop()
	served.Wait()
	if c.cause == nil {
		return nil
	}
	return c.cause
}

// logRouterError logs an error with which the router left the call.
func (k *core) logRouterError(err error) {
	if err != nil {
		k.log().Error("router left the call", zap.String("detail", err.Error()))
	}
}

// logEnd logs how the call ended. It is not part of run, where its fields would stay on the stack for the whole call.
func (k *core) logEnd(took time.Duration) {
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

// takeFrom returns the function that handles the events of a leg, as long as the leg belongs to the call.
func (c *Call) takeFrom(l leg) func(event []byte) {
	return func(event []byte) {
		c.do(func() {
			switch l {
			case c.legs.client:
				c.fromClient(event)
			case c.legs.model.leg:
				c.fromModel(event)
			case c.renewal.successor:
				c.renewal.fromSuccessor(event)
			}
		})
	}
}

// do runs act under the lock, then gives the router the events that it takes at once, and flushes the legs. The
// goroutine that reads an event calls it. Once the call has ended, it does nothing.
func (c *Call) do(act func()) {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return
	}
	act()
	if len(c.saying.says) > 0 && c.filter.Begun() { // before that, the model has no conversation
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
		default: // the loop is told already
		}
	}
	flush(client)
	flush(model)
	for _, l := range others {
		flush(l)
	}
	if passed {
		runtime.Gosched() // lets the router run at once on this CPU: waking another CPU takes 0.1 ms
	}
}

func flush(l leg) {
	if f, ok := l.(flusher); ok {
		f.Flush()
	}
}

// passOn gives the router, in order, the events that it takes without waiting, and reports whether it took any. The
// loop passes on the rest. The caller holds mu.
func (c *Call) passOn() (passed bool) {
	for c.awaits.first == nil && len(c.pending) > 0 {
		select {
		case c.events <- c.pending[0]:
			c.pending, passed = c.pending[1:], true
		default: // the router is busy
			return passed
		}
	}
	return passed
}

// stale reports whether the loop has to be woken because it waits for the wrong things. An alarm later than the loop's
// timer does not wake it: the loop looks again when the timer rings. The caller holds mu.
func (c *Call) stale() bool {
	next := c.nextAlarm()
	return c.ended || c.awaits.first == nil && len(c.pending) > 0 ||
		c.awaits.client != c.legs.client || c.awaits.model != c.legs.model.leg ||
		!next.IsZero() && (c.awaits.alarm.IsZero() || next.Before(c.awaits.alarm))
}

// look returns what the loop has to wait for from now on; false: the call has ended.
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

// begin prepares the call for its first event. It is called before the legs run.
func (c *Call) begin() {
	c.do(func() {
		c.alarms[alarmBegin].at = time.Now().Add(beginLimit)
		if c.session.opening != nil {
			c.session.sendOpening(c.session.opening)
		}
		if c.hearing.attached != nil {
			c.legs.toModel(c.filter.Join())
		}
	})
}

// loop notices the ends of legs, sets the timer of the alarms, and gives the router the events that it could not take
// at once, until the call has ended. The timer rings in a goroutine of its own: what follows from an alarm may need a
// large stack, which this one would keep.
func (c *Call) loop(ctx context.Context, left <-chan struct{}) {
	timer := time.AfterFunc(math.MaxInt64, func() {
		c.do(func() {
			c.awaits.alarm = time.Time{}
			c.ring(time.Now())
		})
	})
	defer timer.Stop()
	end := func(why *handoff.Error) { c.do(func() { c.end(why) }) }
	for w, goesOn := c.look(); goesOn; w, goesOn = c.look() {
		if !w.alarm.IsZero() {
			timer.Reset(time.Until(w.alarm))
		}
		var events chan<- handoff.VoiceEvent
		if w.first != nil {
			events = c.events
		}
		select {
		case <-c.again:
		case events <- w.first:
			c.mu.Lock() // not do, which does nothing once the call has ended
			c.awaits.first = nil
			c.mu.Unlock()
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

// leaveModel answers every open request of the model before the call leaves it.
func (c *Call) leaveModel() {
	state, output := c.hearing.attached, `{"status":"the call has ended"}`
	if state != nil && state.claim.hasMoved() {
		output = lostOutput
	}
	for callID, r := range c.saying.requests {
		if !r.answered {
			c.legs.model.Send(events.Output(c.ids.Next(), c.ids.Next(), callID, output))
		}
	}
	if state != nil && c.filter.Begun() { // also if another instance takes over: until then a request would be lost
		c.legs.model.Send(c.filter.Leave())
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

// handOver gives the router the events that it has not taken yet, and the end of the call.
func (c *Call) handOver(left <-chan struct{}) {
	defer close(c.events)
	var cause error
	if c.cause != nil {
		cause = c.cause
	}
	c.saying.release(time.Now(), true)
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
