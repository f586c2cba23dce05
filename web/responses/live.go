package responses

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
)

// Bounds of a response's log of events.
const (
	maxFrames  = 8 << 20          // bytes; above it the older half is dropped, and streams that have not read it end
	replayable = 10 * time.Minute // how long after the end of a response its stream can be read again
	abandoned  = 5 * time.Second  // how long a response that is not in the background goes on without a reader
)

// A document is a response as it is stored.
type document struct {
	Response response          `json:"response"`
	Input    []json.RawMessage `json:"input"`
	Run      handoff.RunID     `json:"run"`
	Part     int               `json:"part"`           // the number of the response among those of its run, from 1
	Seq      uint64            `json:"seq"`            // the last event of the run that was followed
	Life     string            `json:"life,omitempty"` // [API.life] of the process in whose log Seq counts
	Server   string            `json:"server"`
	Project  string            `json:"project,omitempty"`
	Thread   string            `json:"thread,omitempty"`
	Turn     handoff.TurnID    `json:"turn,omitempty"`
	Asked    []string          `json:"asked,omitempty"` // ids of the approval requests that it ended with
	Shown    []string          `json:"shown,omitempty"` // ids of the agent's items that responses of the run have
	Streamed bool              `json:"streamed,omitempty"`
	Exact    bool              `json:"exact,omitempty"`
}

// A liveResponse is a response with its events in memory. Only [liveResponse.drive] follows its run.
type liveResponse struct {
	api      *API          // Set once
	grant    handoff.Grant // Set once
	id       string        // Set once
	after    uint64        // Set once: the last event of the run that an earlier response followed
	kept     bool          // Set once: the response is stored
	unfollow func()        // Set once: called once when nobody reads the outcome of the run any more; may be nil

	isPlaced func() // Set once: closes placed

	applying sync.Mutex // held while events are made and an end is stored; locked before mu

	mu         sync.Mutex
	emit       *emitter         // Guarded by mu
	doc        document         // Guarded by mu; without Response, which emit has
	frames     [][]byte         // Guarded by mu: the newest events
	base       int              // Guarded by mu: the number of the first of frames
	bytes      int              // Guarded by mu: the size of frames
	changed    chan struct{}    // Guarded by mu: closed at the next event
	shown      bool             // Guarded by mu: the end of the response is in frames
	ended      time.Time        // Guarded by mu: when the end was added to frames
	placed     chan struct{}    // closed when the run is in the ledger, or has ended
	startFault *handoff.Error   // Guarded by mu: why the run ended before it was in the ledger
	outcome    bool             // Guarded by mu: the end of the response tells the outcome of the run
	driven     bool             // Guarded by mu: the run is not followed any more
	expected   bool             // Guarded by mu: the request that began the response is about to read it
	told       bool             // Guarded by mu: the end of the response was written to a client
	heard      bool             // Guarded by mu: the outcome was reported as heard
	readers    int              // Guarded by mu
	request    *handoff.Request // Guarded by mu: of the run, until its turn has begun; nil: it is not begun again
	handedOver bool             // Guarded by mu: see [liveResponse.handOver]
	idle       *time.Timer      // Guarded by mu: stops the run when it has no reader for too long; nil: not started
	settled    func(told bool)  // Guarded by mu: called when who asked has an answer, or has given up; nil: nothing
}

func (a *API) newLive(g handoff.Grant, doc document, kept bool) *liveResponse {
	shown := map[string]bool{}
	for _, id := range doc.Shown {
		shown[id] = true
	}
	e := &emitter{
		resp: doc.Response, label: doc.Server, exact: doc.Exact,
		canAsk: kept && g.May(handoff.ActAllow) == nil, now: time.Now, shown: shown,
	}
	doc.Response = response{}
	l := &liveResponse{
		api: a, grant: g, id: e.resp.ID, kept: kept, emit: e, doc: doc, after: doc.Seq,
		changed: make(chan struct{}), placed: make(chan struct{}),
	}
	l.isPlaced = sync.OnceFunc(func() { close(l.placed) })
	return l
}

// drive follows the run until the response has ended. Its end never affects the run.
func (l *liveResponse) drive(ctx context.Context) {
	defer l.settle(func() { l.driven = true })
	defer l.isPlaced()
	for {
		last, err := l.follow(ctx)
		switch {
		case err != nil:
			l.lost(ctx, err)
			return
		case l.waits(): // another response continues the run after the answer
			return
		case l.beginAgain(ctx, last):
			continue
		}
		// This changes nothing unless the end of the run was missing in the log.
		l.apply(func(m *emitter) []event { return m.take(handoff.RunEnded{}, last) })
		l.settle(func() { l.outcome = !l.handedOver })
		return
	}
}

// follow follows the run until its end, or until the response ends with questions. It returns the last record.
func (l *liveResponse) follow(ctx context.Context) (last handoff.Record, err error) {
	for e, err := range l.api.cfg.Runs.Follow(ctx, l.grant, l.run(), l.after) {
		if err != nil {
			return last, err
		}
		if last = e.Record; l.unbegun(e) {
			return last, nil
		}
		if l.took(e); l.waits() {
			return last, nil
		}
	}
	return last, nil
}

// run returns the run that the response follows.
func (l *liveResponse) run() handoff.RunID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.doc.Run
}

// A run that was promised may end before it began because the store hesitates at that moment. Clients of a stream would
// take that for the end, so such a run is begun again.
const (
	maxBegins   = 5
	beginsAfter = 200 * time.Millisecond // before the second try; each pause is twice the one before
)

// unbegun reports whether an event is the end of a promised run that is begun again.
func (l *liveResponse) unbegun(e handoff.RunEvent) bool {
	_, over := e.Kind.(handoff.RunEnded)
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Record.TurnID != "" {
		l.request = nil
	}
	return over && e.Noted && l.request != nil && len(l.emit.resp.Output) == 0 && e.Record.Fault != nil &&
		e.Record.Fault.Code == handoff.CodeStoreDown
}

// beginAgain begins the run again under its key, if it ended before it began.
func (l *liveResponse) beginAgain(ctx context.Context, last handoff.Record) bool {
	l.mu.Lock()
	req, was := l.request, l.doc.Run
	l.mu.Unlock()
	if req == nil || last.Fault == nil || last.Fault.Code != handoff.CodeStoreDown {
		return false
	}
	again := *req
	again.Again = true
	for try := range maxBegins {
		select {
		case <-time.After(beginsAfter << try):
		case <-ctx.Done():
			return false
		}
		id, err := l.api.cfg.Runs.Start(ctx, l.grant, again)
		if err != nil {
			continue
		}
		l.mu.Lock()
		l.doc.Run = id
		if try == maxBegins-1 {
			l.request = nil
		}
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

// lost ends a response whose run cannot be followed any more. At the end of the process, a response in the background
// does not end: its run goes on, and a later process follows it.
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

// handOver hands the response over: it ends here while its run goes on. Its end is shown but not stored, so that a
// later process, or another instance that becomes the caller's home, follows the run.
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
	return l.shown && l.handedOver
}

// continuesElsewhere reports whether an event says that the run goes on in another process or instance.
func continuesElsewhere(e handoff.RunEvent) bool {
	switch e.Kind.(type) {
	case handoff.RunYielded:
		return true
	case handoff.RunEnded:
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
	heard := l.outcome && l.told && !l.heard
	l.heard = l.heard || heard
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

// hear reports the outcome of a run as heard.
func (l *liveResponse) hear(run handoff.RunID) {
	if err := l.api.cfg.Runs.Heard(context.Background(), l.grant, run); err != nil {
		l.api.cfg.Log.Debug("an outcome is not known any more", zap.Error(err))
	}
}

// wasTold notes that the end of the response was written to a client. The end of one that was handed over is not the
// answer.
func (l *liveResponse) wasTold() {
	if l.wasHandedOver() {
		return
	}
	l.settle(func() { l.told = true })
	l.close(true)
}

// wasAnswered notes that who asked has an answer: the whole response, or the id of one in the background.
func (l *liveResponse) wasAnswered() { l.close(true) }

// close tells the request that made the response that who asked has an answer (told), or has given up.
func (l *liveResponse) close(told bool) {
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
		if l.readers--; l.readers > 0 || l.shown || l.emit.resp.Background {
			return
		}
		l.idle = time.AfterFunc(abandoned, func() {
			l.close(false)
			l.stop()
		})
	})
}

// stop stops the run: nobody reads it any more, or a grant that may stop it asked for that.
func (l *liveResponse) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), storeWithin)
	defer cancel()
	if err := l.api.cfg.Work.Stop(ctx, handoff.Grant{Caller: l.grant.Caller}, string(l.run())); err != nil {
		l.api.cfg.Log.Debug("a run is not stopped", zap.Error(err))
	}
}

// cancel ends the response and stops its run. Later events of the run are ignored.
func (l *liveResponse) cancel() {
	l.apply((*emitter).cancel)
	l.stop()
}

// took takes an event of the run.
func (l *liveResponse) took(e handoff.RunEvent) {
	_, over := e.Kind.(handoff.RunEnded)
	if continuesElsewhere(e) {
		l.handOver()
	}
	l.mu.Lock()
	if !l.shown {
		l.doc.Seq, l.doc.Thread, l.doc.Turn = e.Seq, e.Record.ThreadID, e.Record.TurnID
		l.doc.Server, l.doc.Project = e.Record.Server, e.Record.Project
	}
	if over && !e.Noted && e.Record.Fault != nil && len(l.emit.resp.Output) == 0 {
		l.startFault = e.Record.Fault
	}
	l.mu.Unlock()
	if fresh := e.Record.Why == handoff.WhyNew || e.Record.Why == handoff.WhyCopy; fresh && l.kept &&
		e.Record.ThreadID != "" {
		l.api.makesSession(l.grant.Caller, e.Record.Server, e.Record.ThreadID)
	}
	l.apply(func(m *emitter) []event { return m.take(e.Kind, e.Record) })
	if _, jumped := e.Kind.(handoff.RunSnapshot); jumped {
		l.ask()
	}
	ending := e.Record.Outcome != "" && !over // the event with the end follows at once
	if over || !ending && (e.Noted || e.Record.TurnID != "") {
		l.isPlaced()
	}
}

// ask ends the response with the questions of the run that are open already.
func (l *liveResponse) ask() {
	run := l.run()
	open := slices.DeleteFunc(
		l.api.cfg.Questions.Questions(l.grant),
		func(q handoff.RecordQuestion) bool { return q.Handoff != string(run) || !answerable(q) },
	)
	l.apply(func(m *emitter) []event {
		if len(open) == 0 || !m.canAsk || m.over() {
			return nil
		}
		m.ask(open...)
		return m.take(nil, handoff.Record{})
	})
}

// waits reports whether the response has ended with questions.
func (l *liveResponse) waits() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shown && len(l.emit.asked) > 0
}

// apply makes a step and adds its events to the log. The end of a response is stored before it is shown, unless the
// response was handed over.
func (l *liveResponse) apply(step func(*emitter) []event) {
	l.applying.Lock()
	defer l.applying.Unlock()
	l.mu.Lock()
	events := step(l.emit)
	over := l.emit.over() && !l.shown
	stored := over && !l.handedOver
	if over && l.handedOver && l.emit.resp.Background { // it has not failed: its client gets it from who goes on with it
		events = nil
	}
	doc := l.documentLocked()
	l.mu.Unlock()
	if stored {
		l.api.storeEnd(l, doc)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		f := frame(e)
		l.frames = append(l.frames, f)
		l.bytes += len(f)
	}
	if over {
		l.shown, l.ended = true, time.Now()
	}
	for l.bytes > maxFrames && len(l.frames) > 1 {
		half := len(l.frames) / 2
		for _, f := range l.frames[:half] {
			l.bytes -= len(f)
		}
		l.frames = append([][]byte(nil), l.frames[half:]...)
		l.base += half
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
	doc.Asked = l.emit.asked
	doc.Shown = nil
	if len(doc.Asked) > 0 { // another response will continue the run
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

// overFor reports whether the end of the response has been in the log for some time.
func (l *liveResponse) overFor(d time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shown && time.Since(l.ended) > d
}

// over reports whether the end of the response is in the log.
func (l *liveResponse) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shown
}

// read returns the events from a number on, whether the response has ended with them, and a channel that is closed at
// the next event. ok is false if events from that number on were dropped.
func (l *liveResponse) read(from int) (frames [][]byte, over bool, changed <-chan struct{}, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if from < l.base {
		return nil, l.shown, l.changed, false
	}
	if i := from - l.base; i < len(l.frames) {
		frames = l.frames[i:len(l.frames):len(l.frames)]
	}
	return frames, l.shown, l.changed, true
}
