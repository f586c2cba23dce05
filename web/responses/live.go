package responses

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"switchboard/handoff"
)

// Bounds of a response in memory.
const (
	maxFrames  = 8 << 20          // bytes of its log; above it the older half goes, and with it streams that need it
	replayable = 10 * time.Minute // how long after its end what only memory has of a response can be read again
	abandoned  = 5 * time.Second  // how long a response that is not in the background goes on without a reader
)

// A handoff that was promised may end before it began because the store hesitates at that moment. Clients of a stream
// would take that for the end, so such a handoff is begun again.
const (
	maxBegins   = 5
	beginsAfter = 200 * time.Millisecond // before the second try; each pause is twice the one before
)

// A phase says how the handoff of a response stands.
type phase int

const (
	phaseFollowing  phase = iota
	phaseLeft             // not followed any more: the response has ended with questions, or the handoff was lost
	phaseHandedOver       // the response has ended here, while its handoff goes on in another process or instance
	phaseOutcome          // it has its outcome
	phaseHeard            // the outcome was reported as heard
)

// A liveResponse is a response with its events in memory. Only [liveResponse.drive] follows its handoff.
type liveResponse struct {
	api        *API             // Set once
	grant      handoff.Grant    // Set once
	id         string           // Set once
	after      uint64           // Set once: the last event of the handoff that an earlier response followed
	kept       bool             // Set once: the response is stored
	background bool             // Set once
	request    *handoff.Request // Set once: of the handoff; nil: it is not begun again
	talk       *conversation    // Set once: a conversation that could not be stored when the response began; nil: none
	isPlaced   func()           // Set once: closes placed
	placed     chan struct{}    // closed when the handoff is in the ledger, or has ended
	over       chan struct{}    // closed when the end of the response is in the log
	recorded   bool             // Owned by drive: that a program made its session

	applying sync.Mutex // held while events are made and an end is stored; locked before mu

	mu         sync.Mutex
	emit       *emitter       // Guarded by mu
	doc        document       // Guarded by mu; without Response, which emit has
	log        frames         // Guarded by mu
	changed    chan struct{}  // Guarded by mu: closed at the next event
	phase      phase          // Guarded by mu
	audience   audience       // Guarded by mu
	ended      time.Time      // Guarded by mu: when the end was added to the log; zero: it was not
	stored     bool           // Guarded by mu: the store has the response with its end
	startFault *handoff.Error // Guarded by mu: why the handoff ended before it was in the ledger
	leave      func()         // Guarded by mu: called once nobody reads the outcome any more
}

// frames are the newest events of a response, as they are sent.
type frames struct {
	all   [][]byte
	base  int // the number of the first of all
	bytes int
}

func (f *frames) add(events []event) {
	for _, e := range events {
		frame := frame(e)
		f.all, f.bytes = append(f.all, frame), f.bytes+len(frame)
	}
	for f.bytes > maxFrames && len(f.all) > 1 {
		half := len(f.all) / 2
		for _, old := range f.all[:half] {
			f.bytes -= len(old)
		}
		f.all, f.base = slices.Clone(f.all[half:]), f.base+half
	}
}

// newLive returns a response that has begun, and is not followed.
func (a *API) newLive(g handoff.Grant, doc document, kept bool) *liveResponse {
	e := &emitter{
		resp: doc.Response, label: doc.Server, exact: doc.Exact,
		canAsk: kept && g.May(handoff.ActAllow) == nil, now: time.Now, shown: map[string]bool{},
	}
	for _, id := range doc.Shown {
		e.shown[id] = true
	}
	l := &liveResponse{
		api: a, grant: g, id: e.resp.ID, kept: kept, background: e.resp.Background, emit: e, doc: doc, after: doc.Seq,
		changed: make(chan struct{}), placed: make(chan struct{}), over: make(chan struct{}),
		leave: func() {},
	}
	l.doc.Response = response{}
	l.isPlaced = sync.OnceFunc(func() { close(l.placed) })
	e.begin()
	l.log.add(e.drain())
	return l
}

// drive follows the handoff until the response has ended. Its end never affects the handoff.
func (l *liveResponse) drive(ctx context.Context) {
	defer l.isPlaced()
	for begins := 1; ; begins++ {
		last, err := l.follow(ctx)
		switch {
		case err != nil:
			l.lost(ctx, err)
		case l.in(phaseLeft): // another response continues the handoff after the answer
		case begins < maxBegins && l.neverBegan(last) && l.beginAgain(ctx):
			continue
		default: // This changes nothing unless the end of the handoff was not taken.
			l.apply(cmp.Or(phaseAfter(last), phaseOutcome), func(m *emitter) { m.take(handoff.EventEnded{}, last.Record) })
		}
		return
	}
}

// follow follows the handoff until its end, or until the response ends with questions. It returns the last event.
func (l *liveResponse) follow(ctx context.Context) (last handoff.Event, err error) {
	for e, err := range l.api.cfg.Handoffs.Follow(ctx, l.grant, l.now().Run, l.after) {
		if last = e; err != nil || l.neverBegan(e) {
			return last, err
		}
		if l.took(e); l.in(phaseLeft) {
			break
		}
	}
	return last, nil
}

// neverBegan reports whether a promised handoff has ended that is begun again. One that ended before it was promised is
// not: the request that asked for it is refused, and may come again.
func (l *liveResponse) neverBegan(e handoff.Event) bool {
	rec := e.Record
	return l.request != nil && e.Noted && rec.Outcome != "" && rec.TurnID == "" && rec.Fault != nil &&
		rec.Fault.Code == handoff.CodeStoreDown
}

// wantedLocked reports whether the response goes on: it was neither cancelled, nor given up by its readers.
func (l *liveResponse) wantedLocked() bool { return l.ended.IsZero() && !l.audience.gaveUp }

// beginAgain begins the handoff again under its key, and reports whether that was possible.
func (l *liveResponse) beginAgain(ctx context.Context) bool {
	again, was := *l.request, l.now().Run
	again.Again, again.First, again.Waits = again.Key != "", true, false // it equals no request but itself
	for try := range maxBegins {
		select {
		case <-time.After(beginsAfter << try):
		case <-ctx.Done():
			return false
		}
		l.mu.Lock()
		wanted := l.wantedLocked()
		l.mu.Unlock()
		if !wanted {
			return false
		}
		id, err := l.api.cfg.Handoffs.Start(ctx, l.grant, again)
		if err != nil {
			continue
		}
		l.applying.Lock() // so that who cancels the response now stops this handoff
		l.mu.Lock()
		l.doc.Run, wanted = id, l.wantedLocked()
		doc, answered := l.documentLocked(), l.audience.answered
		l.audience.answered = false
		l.mu.Unlock()
		l.applying.Unlock()
		if !wanted {
			l.stop()
		}
		if answered {
			l.answered(lostFor)
		}
		name := responsePrefix + string(id) // a repetition of the request finds the handoff
		l.api.live.alias(l, name)
		if l.kept {
			l.api.documents.put(l.grant.Caller, doc)
			to := document{Response: response{ID: l.id}, Server: doc.Server}
			_ = l.api.documents.store(l.grant.Caller, name, []byte(handoff.Encode(to)), retriedFor) // it was logged
		}
		l.hear(was) // there is nothing to tell of it
		return true
	}
	return false
}

// lost ends a response whose handoff cannot be followed any more. At the end of the process, a response in the
// background does not end: its handoff goes on, and a later process follows it.
func (l *liveResponse) lost(ctx context.Context, err error) {
	e, to := handoff.AsError(err), phaseLeft
	if ctx.Err() != nil {
		e = handoff.Fault(handoff.CodeShutdown, "", "")
		if l.background {
			return
		}
	}
	if e.Code == handoff.CodeShutdown {
		to = phaseHandedOver
	}
	l.apply(to, func(m *emitter) { m.fail("server_error", e.Spoken()) })
}

// in reports whether the response is in a phase.
func (l *liveResponse) in(p phase) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.phase == p
}

// phaseAfter returns the phase after an event of the handoff.
func phaseAfter(e handoff.Event) phase {
	switch e.Kind.(type) {
	case handoff.EventYielded:
		return phaseHandedOver
	case handoff.EventEnded:
		if f := e.Record.Fault; e.Record.Outcome == handoff.OutcomeUnknown && f != nil && f.Code == handoff.CodeShutdown {
			return phaseHandedOver
		}
		return phaseOutcome
	}
	return phaseFollowing
}

// took takes an event of the handoff.
func (l *liveResponse) took(e handoff.Event) {
	_, over := e.Kind.(handoff.EventEnded)
	if fresh := e.Record.Why == handoff.WhyNew || e.Record.Why == handoff.WhyCopy; fresh && l.kept && !l.recorded &&
		e.Record.ThreadID != "" {
		l.recorded = true
		l.api.makesSession(l.grant.Caller, e.Record.Server, e.Record.ThreadID)
	}
	l.apply(phaseAfter(e), func(m *emitter) {
		l.doc.Seq, l.doc.Thread, l.doc.Turn = e.Seq, e.Record.ThreadID, e.Record.TurnID
		l.doc.Server, l.doc.Project = e.Record.Server, e.Record.Project
		if over && !e.Noted && len(m.resp.Output) == 0 {
			l.startFault = e.Record.Fault
		}
		m.take(e.Kind, e.Record)
	})
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
	run := l.now().Run
	open := slices.DeleteFunc(l.api.cfg.Questions.Questions(l.grant), func(q handoff.RecordQuestion) bool {
		return q.Handoff != string(run) || !answerable(q)
	})
	l.apply(phaseFollowing, func(m *emitter) {
		if len(open) > 0 && m.canAsk {
			m.ask(open...)
		}
	})
}

// apply makes a step, unless the response has ended; to is the phase after it. The end of a response is stored before
// it is shown, unless the response was handed over: then a later process, or another instance, follows the handoff.
func (l *liveResponse) apply(to phase, step func(*emitter)) {
	l.applying.Lock()
	l.applyLocked(to, step)
	l.applying.Unlock()
	l.report()
}

func (l *liveResponse) applyLocked(to phase, step func(*emitter)) {
	events, ends := l.step(to, step)
	l.show(to, events, ends, ends && to != phaseHandedOver && l.kept && l.store())
}

// cancel stops the handoff, and then ends the response at its client's request. The end of the handoff, which may come
// at once, waits until then.
func (l *liveResponse) cancel(ctx context.Context, g handoff.Grant) *fault {
	l.applying.Lock()
	defer l.report()
	defer l.applying.Unlock()
	doc := l.now()
	if ended(doc.Response.Status) {
		return nil
	}
	err := l.api.cfg.Work.Stop(ctx, g, string(doc.Run), handoff.StopOurs)
	if err != nil && handoff.CodeOf(err) != handoff.CodeWorkEnded {
		return faultOf(err)
	}
	l.applyLocked(phaseFollowing, (*emitter).cancel)
	return nil
}

func (l *liveResponse) step(to phase, step func(*emitter)) (events []event, ends bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.emit.over() {
		step(l.emit)
	}
	events, ends = l.emit.drain(), l.emit.over() && l.ended.IsZero()
	if ends && to == phaseHandedOver && l.background { // its client gets the end from who goes on with it
		events = nil
	}
	return events, ends
}

// store stores the response as it ends, and reports whether that was possible.
func (l *liveResponse) store() bool {
	if l.talk != nil {
		_ = l.api.putConversation(l.grant.Caller, *l.talk) // it was logged
	}
	return l.api.documents.put(l.grant.Caller, l.now())
}

// show adds the events of a step to the log. A response that was left or handed over stays so.
func (l *liveResponse) show(to phase, events []event, ends, stored bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.phase != phaseFollowing:
	case ends && len(l.emit.asked) > 0:
		l.phase = phaseLeft
	default:
		l.phase = to
	}
	l.log.add(events)
	if ends {
		l.ended, l.stored = time.Now(), stored
		close(l.over)
	}
	if len(events) > 0 || ends {
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

// refused returns why the handoff ended before it was in the ledger, or nil. Then nothing of the response is stored any
// more.
func (l *liveResponse) refused() *handoff.Error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended.IsZero() {
		return nil
	}
	return l.startFault
}

// needed reports whether the response has to stay in memory: it goes on, or is being read, or may be read again and the
// store does not have what is read then.
func (l *liveResponse) needed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	keep := abandoned
	if !l.stored || l.doc.Streamed && l.background {
		keep = replayable
	}
	return l.ended.IsZero() || l.audience.reads() || time.Since(l.ended) < keep
}

// endedAt returns when the end of the response was added to the log; zero: it was not.
func (l *liveResponse) endedAt() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
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
