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
	run      handoff.RunID // Set once
	after    uint64        // Set once: the last event of the run that an earlier response followed
	kept     bool          // Set once: the response is stored
	unfollow func()        // Set once: called when the run is no longer followed; may be nil

	isPlaced func() // Set once: closes placed

	applying sync.Mutex // held while events are made and an end is stored; locked before mu

	mu           sync.Mutex
	emit         *emitter       // Guarded by mu
	doc          document       // Guarded by mu; without Response, which emit has
	frames       [][]byte       // Guarded by mu: the newest events
	base         int            // Guarded by mu: the number of the first of frames
	bytes        int            // Guarded by mu: the size of frames
	changed      chan struct{}  // Guarded by mu: closed at the next event
	shown        bool           // Guarded by mu: the end of the response is in frames
	ended        time.Time      // Guarded by mu: when the end was added to frames
	placed       chan struct{}  // closed when the run is in the ledger, or has ended
	startFault   *handoff.Error // Guarded by mu: why the run ended before it was in the ledger
	reportsHeard bool           // Guarded by mu: a reader of the response gets the outcome, so no call needs to tell it
	readers      int            // Guarded by mu
	handedOver   bool           // Guarded by mu: see [liveResponse.handOver]
	idle         *time.Timer    // Guarded by mu: stops the run when it has no reader for too long; nil: not started
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
		api: a, grant: g, id: e.resp.ID, run: doc.Run, kept: kept, emit: e, doc: doc, after: doc.Seq,
		changed: make(chan struct{}), placed: make(chan struct{}),
	}
	l.isPlaced = sync.OnceFunc(func() { close(l.placed) })
	return l
}

// drive follows the run until the response has ended, and reports the outcome as heard. Its end never affects the run.
func (l *liveResponse) drive(ctx context.Context) {
	defer l.isPlaced()
	if l.unfollow != nil {
		defer l.unfollow()
	}
	var last handoff.Record
	for e, err := range l.api.cfg.Runs.Follow(ctx, l.grant, l.run, l.after) {
		if err != nil {
			l.lost(ctx, err)
			return
		}
		last = e.Record
		l.took(e)
		if l.waits() { // another response continues the run after the answer
			return
		}
	}
	// This changes nothing unless the end of the run was missing in the log.
	l.apply(func(m *emitter) []event { return m.take(handoff.RunEnded{}, last) })
	l.finished()
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

// finished reports the outcome as heard, if a reader of the response gets it.
func (l *liveResponse) finished() {
	l.mu.Lock()
	reports := l.reportsHeard
	l.mu.Unlock()
	if !reports {
		return
	}
	if err := l.api.cfg.Runs.Heard(context.Background(), l.grant, l.run); err != nil {
		l.api.cfg.Log.Debug("an outcome is not known any more", zap.Error(err))
	}
}

// enter counts a reader of the response.
func (l *liveResponse) enter() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.readers++
	if l.idle != nil {
		l.idle.Stop()
		l.idle = nil
	}
}

// exit stops counting a reader. A response that is not in the background is stopped soon after its last reader has
// left; the delay is for SDKs that repeat a request whose connection broke.
func (l *liveResponse) exit() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.readers--; l.readers > 0 || l.shown || l.emit.resp.Background {
		return
	}
	l.idle = time.AfterFunc(abandoned, l.stop)
}

// stop stops the run: nobody reads it any more, or a grant that may stop it asked for that.
func (l *liveResponse) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), storeWithin)
	defer cancel()
	if err := l.api.cfg.Work.Stop(ctx, handoff.Grant{Caller: l.grant.Caller}, string(l.run)); err != nil {
		l.api.cfg.Log.Debug("a run is not stopped", zap.Error(err))
	}
}

// cancel ends the response and stops its run. Later events of the run are ignored.
func (l *liveResponse) cancel() {
	l.mu.Lock()
	l.reportsHeard = true
	l.mu.Unlock()
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
	open := slices.DeleteFunc(
		l.api.cfg.Questions.Questions(l.grant),
		func(q handoff.RecordQuestion) bool { return q.Handoff != string(l.run) },
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
	if len(events) > 0 {
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
