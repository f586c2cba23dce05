package responses

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
)

// Bounds of a response in memory.
const (
	maxFrames  = 8 << 20          // bytes of its log; above it the older half goes, and with it streams that need it
	replayable = 10 * time.Minute // how long after the end of a response its stream can be read again
	abandoned  = 5 * time.Second  // how long a response that is not in the background goes on without a reader
)

// A handoff that was promised may end before it began because the store hesitates at that moment. Clients of a stream
// would take that for the end, so such a handoff is begun again.
const (
	maxBegins   = 5
	beginsAfter = 200 * time.Millisecond // before the second try; each pause is twice the one before
)

// A liveResponse is a response with its events in memory. Only [liveResponse.drive] follows its handoff.
type liveResponse struct {
	api      *API             // Set once
	grant    handoff.Grant    // Set once
	id       string           // Set once
	after    uint64           // Set once: the last event of the handoff that an earlier response followed
	kept     bool             // Set once: the response is stored
	request  *handoff.Request // Set once: of the handoff; nil: it is not begun again
	talk     *conversation    // Set once: a conversation that could not be stored when the response began; nil: none
	unfollow func()           // Set once: called when nobody reads the outcome any more, maybe twice; nil: nothing
	isPlaced func()           // Set once: closes placed
	placed   chan struct{}    // closed when the handoff is in the ledger, or has ended
	over     chan struct{}    // closed when the end of the response is in the log
	made     bool             // Owned by drive: its session was recorded as made by a program

	applying sync.Mutex // held while events are made and an end is stored; locked before mu

	mu         sync.Mutex
	emit       *emitter        // Guarded by mu
	doc        document        // Guarded by mu; without Response, which emit has
	log        frames          // Guarded by mu
	changed    chan struct{}   // Guarded by mu: closed at the next event
	ended      time.Time       // Guarded by mu: when the end was added to the log; zero: it was not
	startFault *handoff.Error  // Guarded by mu: why the handoff ended before it was in the ledger
	outcome    bool            // Guarded by mu: the end tells an outcome that was not reported as heard
	driven     bool            // Guarded by mu: the handoff is not followed any more
	expected   bool            // Guarded by mu: the request that began the response is about to read it
	told       bool            // Guarded by mu: the end of the response was written to a client
	readers    int             // Guarded by mu
	handedOver bool            // Guarded by mu: it ends here while its handoff goes on
	idle       *time.Timer     // Guarded by mu: stops the handoff when it has no reader for too long; nil: not started
	settled    func(told bool) // Guarded by mu: called when who asked has an answer, or has given up; nil: nothing
}

// frames are the newest events of a response, as they are sent.
type frames struct {
	all   [][]byte
	base  int // the number of the first of all
	bytes int
}

func (f *frames) add(frame []byte) {
	f.all, f.bytes = append(f.all, frame), f.bytes+len(frame)
	for f.bytes > maxFrames && len(f.all) > 1 {
		half := len(f.all) / 2
		for _, old := range f.all[:half] {
			f.bytes -= len(old)
		}
		f.all, f.base = slices.Clone(f.all[half:]), f.base+half
	}
}

func (a *API) newLive(g handoff.Grant, doc document, kept bool) *liveResponse {
	e := &emitter{
		resp: doc.Response, label: doc.Server, exact: doc.Exact,
		canAsk: kept && g.May(handoff.ActAllow) == nil, now: time.Now, shown: map[string]bool{},
	}
	for _, id := range doc.Shown {
		e.shown[id] = true
	}
	l := &liveResponse{
		api: a, grant: g, id: e.resp.ID, kept: kept, emit: e, doc: doc, after: doc.Seq,
		changed: make(chan struct{}), placed: make(chan struct{}), over: make(chan struct{}),
	}
	l.doc.Response = response{}
	l.isPlaced = sync.OnceFunc(func() { close(l.placed) })
	return l
}

// drive follows the handoff until the response has ended. Its end never affects the handoff.
func (l *liveResponse) drive(ctx context.Context) {
	defer l.settle(func() { l.driven = true })
	defer l.isPlaced()
	for begins := 1; ; begins++ {
		last, err := l.follow(ctx)
		switch {
		case err != nil:
			l.lost(ctx, err)
			return
		case l.waits(): // another response continues the handoff after the answer
			return
		case begins < maxBegins && l.neverBegan(last) && l.beginAgain(ctx):
			continue
		}
		// This changes nothing unless the end of the handoff was not taken.
		l.apply(func(m *emitter) []event { return m.take(handoff.EventEnded{}, last.Record) })
		l.settle(func() { l.outcome = !l.handedOver })
		return
	}
}

// follow follows the handoff until its end, or until the response ends with questions. It returns the last event.
func (l *liveResponse) follow(ctx context.Context) (last handoff.Event, err error) {
	for e, err := range l.api.cfg.Handoffs.Follow(ctx, l.grant, l.run(), l.after) {
		if last = e; err != nil || l.neverBegan(e) {
			return last, err
		}
		if l.took(e); l.waits() {
			break
		}
	}
	return last, nil
}

// run returns the handoff that the response follows.
func (l *liveResponse) run() handoff.ID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.doc.Run
}

// neverBegan reports whether a promised handoff has ended that is begun again. One that ended before it was promised is
// not: the request that asked for it is refused, and may come again.
func (l *liveResponse) neverBegan(e handoff.Event) bool {
	rec := e.Record
	return l.request != nil && e.Noted && rec.Outcome != "" && rec.TurnID == "" && rec.Fault != nil &&
		rec.Fault.Code == handoff.CodeStoreDown
}

// beginAgain begins the handoff again under its key, and reports whether that was possible.
func (l *liveResponse) beginAgain(ctx context.Context) bool {
	again, was := *l.request, l.run()
	again.Again = true
	for try := range maxBegins {
		select {
		case <-time.After(beginsAfter << try):
		case <-ctx.Done():
			return false
		}
		id, err := l.api.cfg.Handoffs.Start(ctx, l.grant, again)
		if err != nil {
			continue
		}
		l.mu.Lock()
		l.doc.Run = id
		doc := l.documentLocked()
		l.mu.Unlock()
		if l.kept {
			l.api.documents.put(l.grant.Caller, doc)
		}
		l.hear(was) // there is nothing to tell of it
		return true
	}
	return false
}

// lost ends a response whose handoff cannot be followed any more. At the end of the process, a response in the
// background does not end: its handoff goes on, and a later process follows it.
func (l *liveResponse) lost(ctx context.Context, err error) {
	if ctx.Err() != nil && l.background() {
		return
	}
	e := handoff.AsError(err)
	if ctx.Err() != nil {
		e = handoff.Fault(handoff.CodeShutdown, "", "")
	}
	if e.Code == handoff.CodeShutdown {
		l.handOver()
	}
	l.apply(func(m *emitter) []event { return m.failed("server_error", e.Spoken()) })
}

// handOver hands the response over: it ends here while its handoff goes on. Its end is shown but not stored, so that a
// later process, or another instance that becomes the caller's home, follows the handoff.
func (l *liveResponse) handOver() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.handedOver = true
}

// wasHandedOver reports whether the response was handed over and has ended here, so that it must not be read from
// memory.
func (l *liveResponse) wasHandedOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.handedOver && !l.ended.IsZero()
}

// continuesElsewhere reports whether an event says that the handoff goes on in another process or instance.
func continuesElsewhere(e handoff.Event) bool {
	switch e.Kind.(type) {
	case handoff.EventYielded:
		return true
	case handoff.EventEnded:
		return e.Record.Outcome == handoff.OutcomeUnknown && e.Record.Fault != nil &&
			e.Record.Fault.Code == handoff.CodeShutdown
	}
	return false
}

func (l *liveResponse) background() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.emit.resp.Background
}

// settle makes a change, under the lock, and does what follows from it: an outcome that a client was told was heard.
// Once nobody is to read it any more, it is left to calls.
func (l *liveResponse) settle(change func()) {
	l.mu.Lock()
	change()
	heard := l.outcome && l.told
	l.outcome = l.outcome && !heard
	over := l.driven && (l.told || l.readers == 0 && !l.expected)
	run := l.doc.Run
	l.mu.Unlock()
	if heard {
		l.hear(run)
	}
	if over && l.unfollow != nil {
		l.unfollow()
	}
}

// hear reports the outcome of a handoff as heard.
func (l *liveResponse) hear(run handoff.ID) {
	if err := l.api.cfg.Handoffs.Heard(context.Background(), l.grant, run); err != nil {
		l.api.cfg.Log.Debug("an outcome is not known any more", zap.Error(err))
	}
}

// wasTold notes that the end of the response was written to a client. The end of one that was handed over is not the
// answer.
func (l *liveResponse) wasTold() {
	if !l.wasHandedOver() {
		l.settle(func() { l.told = true })
		l.answered(true)
	}
}

// answered tells the request that made the response that who asked has an answer (the whole response, or the id of one
// in the background), or else has given up.
func (l *liveResponse) answered(told bool) {
	l.mu.Lock()
	settled := l.settled
	l.mu.Unlock()
	if settled != nil {
		settled(told)
	}
}

// unread reports whether the response goes on without anybody who reads it or has its id.
func (l *liveResponse) unread() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.readers == 0 && !l.expected && !l.told
}

// attend makes the request that began the response its first reader. leave is called once nobody reads the outcome any
// more.
func (l *liveResponse) attend(leave func()) { l.expected, l.unfollow = true, sync.OnceFunc(leave) }

// enter counts a reader of the response.
func (l *liveResponse) enter() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.readers++
	l.expected = false
	if l.idle != nil {
		l.idle.Stop()
		l.idle = nil
	}
}

// exit stops counting a reader. A response that is not in the background is stopped soon after its last reader has
// left; the delay is for SDKs that repeat a request whose connection broke.
func (l *liveResponse) exit() {
	l.settle(func() {
		if l.readers--; l.readers == 0 && l.ended.IsZero() && !l.emit.resp.Background {
			l.idle = time.AfterFunc(abandoned, func() {
				l.answered(false)
				l.stop()
			})
		}
	})
}

// stop stops the handoff: nobody reads it any more, or a grant that may stop it asked for that.
func (l *liveResponse) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), storeWithin)
	defer cancel()
	if err := l.api.cfg.Work.Stop(ctx, handoff.Grant{Caller: l.grant.Caller}, string(l.run()), handoff.StopOurs); err != nil {
		l.api.cfg.Log.Debug("a handoff is not stopped", zap.Error(err))
	}
}

// took takes an event of the handoff.
func (l *liveResponse) took(e handoff.Event) {
	_, over := e.Kind.(handoff.EventEnded)
	if continuesElsewhere(e) {
		l.handOver()
	}
	l.mu.Lock()
	if l.ended.IsZero() {
		l.doc.Seq, l.doc.Thread, l.doc.Turn = e.Seq, e.Record.ThreadID, e.Record.TurnID
		l.doc.Server, l.doc.Project = e.Record.Server, e.Record.Project
	}
	if over && !e.Noted && e.Record.Fault != nil && len(l.emit.resp.Output) == 0 {
		l.startFault = e.Record.Fault
	}
	l.mu.Unlock()
	if fresh := e.Record.Why == handoff.WhyNew || e.Record.Why == handoff.WhyCopy; fresh && l.kept && !l.made &&
		e.Record.ThreadID != "" {
		l.made = true
		l.api.makesSession(l.grant.Caller, e.Record.Server, e.Record.ThreadID)
	}
	l.apply(func(m *emitter) []event { return m.take(e.Kind, e.Record) })
	if _, jumped := e.Kind.(handoff.EventSnapshot); jumped {
		l.ask()
	}
	ending := e.Record.Outcome != "" && !over // the event with the end follows at once
	if over || !ending && (e.Noted || e.Record.TurnID != "") {
		l.isPlaced()
	}
}

// ask ends the response with the questions of the handoff that are open already.
func (l *liveResponse) ask() {
	run := l.run()
	open := slices.DeleteFunc(l.api.cfg.Questions.Questions(l.grant), func(q handoff.RecordQuestion) bool {
		return q.Handoff != string(run) || !answerable(q)
	})
	l.apply(func(m *emitter) []event {
		if len(open) > 0 && m.canAsk && !m.over() {
			m.ask(open...)
		}
		return m.drain()
	})
}

// waits reports whether the response has ended with questions.
func (l *liveResponse) waits() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.ended.IsZero() && len(l.emit.asked) > 0
}

// apply makes a step and adds its events to the log. The end of a response is stored before it is shown, unless the
// response was handed over.
func (l *liveResponse) apply(step func(*emitter) []event) {
	l.applying.Lock()
	defer l.applying.Unlock()
	l.mu.Lock()
	events := step(l.emit)
	over := l.emit.over() && l.ended.IsZero()
	stored := over && l.kept && !l.handedOver
	if over && l.handedOver && l.emit.resp.Background { // it has not failed: its client gets it from who goes on with it
		events = nil
	}
	doc := l.documentLocked()
	l.mu.Unlock()
	if stored {
		l.api.documents.put(l.grant.Caller, doc)
		if l.talk != nil {
			_ = l.api.putConversation(l.grant.Caller, *l.talk) // it was logged
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		l.log.add(frame(e))
	}
	if over {
		l.ended = time.Now()
		close(l.over)
	}
	if len(events) > 0 || over {
		close(l.changed)
		l.changed = make(chan struct{})
	}
}

func (l *liveResponse) documentLocked() document {
	doc := l.doc
	doc.Response, doc.Life = l.emit.resp, l.api.life
	doc.Response.Output = append([]item{}, l.emit.resp.Output...)
	doc.Asked, doc.Shown = l.emit.asked, nil
	if len(doc.Asked) > 0 { // another response will continue the handoff
		doc.Shown = slices.Collect(maps.Keys(l.emit.shown))
	}
	return doc
}

// now returns the present state of the response.
func (l *liveResponse) now() document {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.documentLocked()
}

// unneeded reports whether the response has ended and its stream can no longer be read again.
func (l *liveResponse) unneeded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	again := l.doc.Streamed && l.emit.resp.Background && time.Since(l.ended) < replayable
	return !l.ended.IsZero() && !again
}

// overFor reports whether the end of the response has been in the log for some time.
func (l *liveResponse) overFor(d time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.ended.IsZero() && time.Since(l.ended) >= d
}

// read returns the events from a number on, whether the response has ended with them, and a channel that is closed at
// the next event. ok is false if events from that number on were dropped.
func (l *liveResponse) read(from int) (events [][]byte, over bool, changed <-chan struct{}, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := from - l.log.base; i >= 0 && i < len(l.log.all) {
		events = l.log.all[i:len(l.log.all):len(l.log.all)]
	}
	return events, !l.ended.IsZero(), l.changed, from >= l.log.base
}
