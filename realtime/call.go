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
)

const (
	// eventQueue bounds events that the router has not taken yet. When it is full, hints are dropped first,
	// then what the caller said (but not that they spoke: what is missing is known to be); requests and
	// confirmations never are: the call ends instead.
	eventQueue = 256
	// eventBytes bounds the words in them, with the same policy. One event may always wait.
	eventBytes = 4 << 20
	// maxAskBytes bounds the client's asks that wait for their turn, beside their number. What is beyond it is
	// refused: the client is told so. One ask may always wait.
	maxAskBytes = 16 << 20
	// sayQueue bounds utterances that wait for the model's session to begin. Beyond it an answer would be lost, so the
	// call ends.
	sayQueue = 256
	// keptSpokes of those that say that the caller spoke are kept however full it is.
	keptSpokes = 16
	// beginLimit bounds the time from the connection to the model's session.created: it comes at once.
	beginLimit = 15 * time.Second
	// serveGrace is how long the router may take to leave a call that has ended before its context ends.
	serveGrace = 5 * time.Second
)

// A Call is one live voice call. It implements [handoff.Voice].
//
// Its state has one owner at a time: whoever holds mu, which is never held while anybody waits. An event is handled
// where it was read, and an utterance where it was said, with [Call.do]; the loop handles what comes from neither.
type Call struct {
	id       string               // Set once
	made     time.Time            // Set once
	grant    handoff.Grant        // Set once
	at       string               // Set once, before begin: where the model is, for errors
	opening  []byte               // Set once, before begin: a session.update that the client begins with unsaid; or nil
	begins   func(*handoff.Error) // Set once, before begin: called once when the client's session has begun, or was refused; or nil
	model    leg                  // Set once
	log      *zap.Logger          // Set once
	events   chan handoff.Event   // closed by run
	again    chan struct{}        // holds one token while the loop should look again
	stop     chan *handoff.Error  // takes the first reason to end; nil: somebody hung up
	over     atomic.Bool          // nothing is said any more
	past     chan struct{}        // closed when the loop has ended; cause is set then
	pass     *admission           // Set once, by serve
	attached *attached            // Set once, before begin: the provider carries the caller's leg; nil: we do
	hold     time.Duration        // Set once: how long the call waits for a client that vanished; 0: not at all
	held     atomic.Bool          // it waits for its client: as away says, for who has no mu
	besides  int                  // sockets beside the client; Guarded by the front's mu

	// Guarded by mu; run's alone once the call has ended.
	mu         sync.Mutex
	watch      watch
	client     leg             // nobody while the call waits for it; run's alone once the call has ended
	witness    witness         // the client's leg; nil: it does not know
	left       time.Time       // when the client vanished, while the call waits for it
	lost       map[string]bool // responses that began for a client that vanished: the caller gets nothing of them
	floor      *floor.Floor
	mask       *mask.Mask
	dialect    dialect
	settings   settings       // as the client asked for them last
	denied     *handoff.Error // why the model begins no session; nil: it did not say
	opened     bool           // the client said that it can be reached
	listens    bool           // the log tells that the caller's speech is transcribed for us
	waited     bool           // from then on it has its time to set its session up
	inForce    settings       // as the model said last
	ids        *events.Names
	playback   playback
	speeches   speeches
	hints      hints
	muted      map[string]bool      // responses that we cancelled: nothing of them is to be heard
	clock      clock                // of the caller's sound
	asked      time.Time            // the caller's newest sentence was over
	rate       int                  // bytes in a millisecond of the model's sound
	stirred    time.Time            // the newest event of a response
	sounding   bool                 // as the floor was told
	voiced     bool                 // the running response reached the caller
	wrote      bool                 // it did so in writing
	unsaid     string               // the response that ends now and gives its utterances without a word of them
	early      [][]byte             // response.create of the client that came before the model's session existed
	asks       map[string]clientAsk // of the client, not yet on the wire or refused, by tag
	sent       map[string]sent      // our and adopted event ids that may still fail
	outputs    []string             // call ids that the client answered last, oldest first
	items      int                  // that were put into the conversation from this side
	itemOf     int                  // the client's newest of them
	requests   map[string]*request  // by call id
	utterances map[string]*utterance
	said       []saidWords         // what the last responses said, oldest first
	unsure     []handoff.Said      // given to a client that gave no sign, oldest first
	pending    []handoff.Event     // for the router, oldest first
	says       []handoff.Utterance // of the router, until the model's session has begun
	alarms     [alarmKinds]alarm
	asker      leg    // the socket beside the client whose event is handled; nil: the client's, or none
	others     []leg  // sockets beside the client; replaced, never changed
	shown      string // the session as the client saw it last, raw
	ended      bool
	cause      *handoff.Error
	counts     counts
}

// counts is what the log tells about a call at its end.
type counts struct {
	requests, asks, leaked, hints, unheard, unsure, unanswerable, swallowed int

	unreadable int // events of the model that nest too deep or are no JSON
	refused    int // events of the client that found too much waiting
	made       int // events of the model that we made in its place
	holds      int // times that the client vanished and the call waited for it
	rejoins    int // times that it came back
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
}

// A watch is what the loop waits for, beside the end of the call.
type watch struct {
	alarm  time.Time     // when its timer rings; zero: it does not
	client leg           // whose end it waits for; nil: nobody's yet
	first  handoff.Event // what the router gets next, and pending no longer holds; nil: nothing
}

// A request is one function call of the model for a tool of ours.
type request struct {
	response string // that holds it
	answered bool
}

// A clientAsk is a response.create of the client.
type clientAsk struct {
	event    []byte // for the model
	metadata string // of the client, raw
	eventID  string // ours if the client gave none
	adopted  bool   // the client gave none
}

func newCall(grant handoff.Grant, tools func(handoff.Grant) ([]handoff.Tool, string), id string, client, model leg, log *zap.Logger) *Call {
	ids := events.NewNames()
	own, guide := tools(grant)
	_, performs := client.(performer)
	knows, _ := client.(witness)
	return &Call{
		id: id, made: time.Now(), grant: grant, client: client, witness: knows, model: model,
		log:    log.With(zap.String("call", id)),
		events: make(chan handoff.Event), again: make(chan struct{}, 1), past: make(chan struct{}), stop: make(chan *handoff.Error, 1),
		floor: floor.New(), mask: mask.New(ids, own, guide), dialect: newDialect(), settings: newSettings(), inForce: newSettings(), ids: ids, playback: newPlayback(performs), speeches: newSpeeches(), hints: hints{},
		asks: map[string]clientAsk{}, sent: map[string]sent{}, requests: map[string]*request{}, utterances: map[string]*utterance{}, muted: map[string]bool{}, lost: map[string]bool{}, rate: pcmRate,
	}
}

// Events implements [handoff.Voice].
func (c *Call) Events() <-chan handoff.Event { return c.events }

// Say implements [handoff.Voice].
func (c *Call) Say(u handoff.Utterance) {
	c.do(func() {
		if len(c.says) >= sayQueue {
			c.end(handoff.Fault(handoff.CodeOverloaded, "the call", "utterances"))
			return
		}
		c.says = append(c.says, u)
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
		if err := r.Serve(serving, c.grant, c); err != nil {
			c.log.Error("router left the call", zap.String("detail", err.Error()))
		}
	})
	c.log.Debug("call began")
	c.loop(ctx, left)
	close(c.past)
	c.begun(cmp.Or(c.cause, handoff.Fault(handoff.CodeNotFound, "such call", "it was hung up")))
	c.signs(time.Now())
	c.over.Store(true)
	c.log.Info("call ended", zap.Duration("took", time.Since(began)), zap.String("code", code(c.cause)),
		zap.Int("requests", c.counts.requests), zap.Int("asks", c.counts.asks), zap.Int("leaked", c.counts.leaked),
		zap.Int("hints_dropped", c.counts.hints), zap.Int("unheard", c.counts.unheard), zap.Int("unsure", c.counts.unsure), zap.Int("unanswerable", c.counts.unanswerable), zap.Int("swallowed", c.counts.swallowed), zap.Int("unreadable", c.counts.unreadable), zap.Int("refused", c.counts.refused), zap.Int("made", c.counts.made), zap.Int("holds", c.counts.holds), zap.Int("rejoins", c.counts.rejoins))

	c.farewell()
	var closing sync.WaitGroup
	defer closing.Wait()
	closing.Go(func() { c.model.Close(nil) })
	closing.Go(func() { c.client.Close(c.cause) })
	c.handOver(left)
	defer time.AfterFunc(serveGrace, func() { cancel(handoff.Fault(handoff.CodeShutdown, "", "the call has ended")) }).Stop()
	served.Wait()
	if c.cause == nil {
		return nil
	}
	return c.cause
}

func code(e *handoff.Error) string {
	if e == nil {
		return ""
	}
	return string(e.Code)
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
	if len(c.says) > 0 && c.mask.Begun() { // before, the model has no conversation
		for _, u := range c.says {
			c.say(u)
		}
		c.says = nil
	}
	passed := c.passOn()
	stale, client, others := c.stale(), c.client, c.others
	c.mu.Unlock()
	if stale {
		select {
		case c.again <- struct{}{}:
		default: // it will look
		}
	}
	flush(client)
	flush(c.model)
	for _, l := range others {
		flush(l)
	}
	if passed {
		runtime.Gosched() // the router goes on here, at once: until another CPU has woken for it takes 0.1 ms
	}
}

// passOn gives the router what it takes at once, in order, and reports whether that was anything. The loop waits with
// what is left. The caller holds mu.
func (c *Call) passOn() (passed bool) {
	for c.watch.first == nil && len(c.pending) > 0 {
		select {
		case c.events <- c.pending[0]:
			c.pending, passed = c.pending[1:], true
		default: // it is busy
			return passed
		}
	}
	return passed
}

func flush(l leg) {
	if f, ok := l.(flusher); ok {
		f.Flush()
	}
}

// stale reports whether the loop should wait for something that it does not. An alarm that is later than its timer is
// looked for when that rings. The caller holds mu.
func (c *Call) stale() bool {
	next := c.nextAlarm()
	return c.ended || c.watch.first == nil && len(c.pending) > 0 || c.watch.client != c.client ||
		!next.IsZero() && (c.watch.alarm.IsZero() || next.Before(c.watch.alarm))
}

// look returns what to wait for from now on; false: the call has ended.
func (c *Call) look() (watch, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &c.watch
	if w.first == nil && len(c.pending) > 0 {
		w.first, c.pending = c.pending[0], c.pending[1:]
	}
	if next := c.nextAlarm(); !next.IsZero() && (w.alarm.IsZero() || next.Before(w.alarm)) {
		w.alarm = next
	}
	w.client = c.client
	return *w, !c.ended
}

// handed notes that the router has what it was to get next, also when the call has just ended.
func (c *Call) handed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watch.first = nil
}

// begin does what comes before any event of a far end. Whoever has a call calls it before the legs run.
func (c *Call) begin() {
	c.do(func() {
		c.alarms[alarmBegin].at = time.Now().Add(beginLimit)
		if c.opening != nil {
			c.opens(c.opening)
		}
		if c.attached != nil {
			c.toModel(c.mask.Join())
		}
	})
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
			c.handed()
		case <-timer.C:
			c.do(func() {
				c.watch.alarm = time.Time{}
				c.ring(time.Now())
			})
			set = time.Time{}
		case <-w.client.Ending():
			c.do(func() { c.departed(w.client) })
		case <-c.model.Ending():
			c.do(func() { c.end(c.gone("")) })
		case why := <-c.stop:
			end(why)
		case <-left:
			end(handoff.Fault(handoff.CodeInternal, "", "the router left the call"))
		case <-ctx.Done():
			end(handoff.Fault(handoff.CodeShutdown, "", ""))
		}
	}
}

// end ends the loop; the first cause counts.
func (c *Call) end(cause *handoff.Error) {
	if !c.ended {
		c.ended, c.cause = true, cause
	}
}

// farewell leaves nothing open on either side: every request has an output, and the client knows why.
func (c *Call) farewell() {
	for callID, r := range c.requests {
		if !r.answered {
			c.model.Send(events.Output(c.ids.Next(), c.ids.Next(), callID, `{"status":"the call has ended"}`))
		}
	}
	if c.attached != nil && c.mask.Begun() {
		c.model.Send(c.mask.Leave())
	}
	if c.cause != nil && c.cause.Code != handoff.CodeSlowClient {
		c.client.Send(events.Error(c.ids.Next(), events.Fault{Kind: "server_error", Code: string(c.cause.Code), Message: c.cause.Spoken()}))
	}
}

// handOver gives the router what it has not taken yet, and the end of the call.
func (c *Call) handOver(left <-chan struct{}) {
	defer close(c.events)
	var cause error
	if c.cause != nil {
		cause = c.cause
	}
	all := append(c.pending, handoff.CallEnded{Cause: cause})
	if c.watch.first != nil {
		all = slices.Insert(all, 0, c.watch.first)
	}
	for _, e := range all {
		select {
		case c.events <- e:
		case <-left:
			return
		}
	}
}

// parting returns why the client's leg ends; otherwise is for a leg that does not know.
func (c *Call) parting(otherwise *handoff.Error) *handoff.Error {
	if l, ok := c.client.(ender); ok {
		return l.Ended()
	}
	return otherwise
}

// toClient sends the client an event, and the sockets beside it.
func (c *Call) toClient(event []byte) {
	c.toOthers(event)
	c.toLeg(event)
}

// toLeg sends the client's leg an event; a client that does not keep up ends the call. Of one that vanished the loop
// will hear.
func (c *Call) toLeg(event []byte) {
	if !c.client.Send(event) && !c.vanished() {
		c.end(c.parting(handoff.Fault(handoff.CodeSlowClient, "", "")))
	}
}

// toModel sends the model an event.
func (c *Call) toModel(event []byte) {
	if !c.model.Send(event) {
		c.end(c.gone("it does not keep up"))
	}
}
