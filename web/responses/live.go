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
	"switchboard/handoff/tools"
)

// Bounds of a response's log of events.
const (
	maxFrames  = 8 << 20          // bytes; the older half goes, and with it whoever has not read it
	replayable = 10 * time.Minute // how long after its end a stream can be read again
	abandoned  = 5 * time.Second  // how long a response that is not in the background goes on without a reader
)

// A document is what is kept of a response.
type document struct {
	Response response          `json:"response"`
	Input    []json.RawMessage `json:"input"`
	Run      handoff.RunID     `json:"run"`
	Part     int               `json:"part"`           // which response of its run it is, from 1
	Seq      uint64            `json:"seq"`            // how far the run was followed
	Life     string            `json:"life,omitempty"` // of the process in which Seq counts
	Server   string            `json:"server"`
	Project  string            `json:"project,omitempty"`
	Thread   string            `json:"thread,omitempty"`
	Turn     handoff.TurnID    `json:"turn,omitempty"`
	Asked    []string          `json:"asked,omitempty"` // approval requests that it ended with
	Shown    []string          `json:"shown,omitempty"` // the agent's items that were written, in this response or before
	Streamed bool              `json:"streamed,omitempty"`
	Exact    bool              `json:"exact,omitempty"`
}

// A live is a response whose events are in memory. Its run is followed by [live.drive] alone.
type live struct {
	api   *API          // Set once
	grant handoff.Grant // Set once
	id    string        // Set once
	run   handoff.RunID // Set once
	after uint64        // Set once: how far the run was followed before
	kept  bool          // Set once: it is stored
	leave func()        // Set once: called when nobody follows the run any more; may be nil

	isPlaced func() // Set once: closes placed

	writing sync.Mutex // held while an end is stored and shown; before mu

	mu      sync.Mutex
	emit    *emitter       // Guarded by mu
	doc     document       // Guarded by mu; without Response, which emit has
	frames  [][]byte       // Guarded by mu: the newest events
	base    int            // Guarded by mu: number of the first
	bytes   int            // Guarded by mu: of frames
	changed chan struct{}  // Guarded by mu: closed at the next event
	shown   bool           // Guarded by mu: its end is in frames
	ended   time.Time      // Guarded by mu
	placed  chan struct{}  // closed once the run is written down, or over
	early   *handoff.Error // Guarded by mu: the run ended before anything of it was written down
	tells   bool           // Guarded by mu: whoever reads the response is told the outcome
	readers int            // Guarded by mu
	parting bool           // Guarded by mu: it ends here with the process, and its run goes on; see [live.parts]
	idle    *time.Timer    // Guarded by mu: stops the run when nobody reads; nil: it goes on without readers
}

func (a *API) newLive(g handoff.Grant, doc document, kept bool) *live {
	shown := map[string]bool{}
	for _, id := range doc.Shown {
		shown[id] = true
	}
	e := &emitter{
		resp: doc.Response, label: doc.Server, exact: doc.Exact,
		asks: g.Approve == handoff.ApproveAll && kept && g.AllowsTool(tools.AnswerAgent), now: time.Now, shown: shown,
	}
	doc.Response = response{}
	l := &live{
		api: a, grant: g, id: e.resp.ID, run: doc.Run, kept: kept, emit: e, doc: doc, after: doc.Seq,
		changed: make(chan struct{}), placed: make(chan struct{}),
	}
	l.isPlaced = sync.OnceFunc(func() { close(l.placed) })
	return l
}

// drive follows the run until the response is over and its outcome was heard. Leaving it never touches the run.
func (l *live) drive(ctx context.Context) {
	defer l.isPlaced()
	if l.leave != nil {
		defer l.leave()
	}
	var last handoff.Record
	for e, err := range l.api.cfg.Runs.Follow(ctx, l.grant.Caller, l.run, l.after) {
		if err != nil {
			l.lost(ctx, err)
			return
		}
		last = e.Record
		l.took(e)
		if l.waits() { // for an answer, which another response follows
			return
		}
	}
	l.apply(
		func(m *emitter) []event { return m.take(handoff.RunEnded{}, last) },
	) // where its end is not in the log any more
	l.finished()
}

// lost ends a response whose run cannot be followed. One that goes on in the background does so without us.
func (l *live) lost(ctx context.Context, err error) {
	if ctx.Err() != nil && l.background() {
		return
	}
	e := handoff.AsError(err)
	if ctx.Err() != nil {
		e = handoff.Fault(handoff.CodeShutdown, "", "")
	}
	if e.Code == handoff.CodeShutdown {
		l.parts()
	}
	l.apply(func(m *emitter) []event { return m.failed("server_error", e.Spoken()) })
}

// parts notes that the response ends here before its run does: its end is shown and not stored, so that the next life
// of the process, or another home of its caller, follows the run.
func (l *live) parts() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.parting = true
}

// parted reports whether the response has ended here and its run goes on: nobody else reads it from memory.
func (l *live) parted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shown && l.parting
}

// goesOn reports whether a run of which this is the last event goes on elsewhere.
func goesOn(e handoff.RunEvent) bool {
	switch e.Kind.(type) {
	case handoff.RunYielded:
		return true
	case handoff.RunEnded:
		return e.Record.Outcome == handoff.OutcomeUnknown && e.Record.Fault != nil &&
			e.Record.Fault.Code == handoff.CodeShutdown
	}
	return false
}

func (l *live) background() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.emit.resp.Background
}

// finished notes that the outcome was told, if it went to somebody who reads it now.
func (l *live) finished() {
	l.mu.Lock()
	tells := l.tells
	l.mu.Unlock()
	if !tells {
		return
	}
	if err := l.api.cfg.Runs.Heard(context.Background(), l.grant.Caller, l.run); err != nil {
		l.api.cfg.Log.Debug("an outcome is not known any more", zap.Error(err))
	}
}

// enter counts a reader.
func (l *live) enter() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.readers++
	if l.idle != nil {
		l.idle.Stop()
		l.idle = nil
	}
}

// exit counts a reader out. A response that is not in the background ends soon after its last one: an SDK whose
// connection broke asks again at once.
func (l *live) exit() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.readers--; l.readers > 0 || l.shown || l.emit.resp.Background {
		return
	}
	l.idle = time.AfterFunc(abandoned, l.stop)
}

// stop stops the run.
func (l *live) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), storeWithin)
	defer cancel()
	if err := l.api.cfg.Work.Stop(ctx, l.grant, string(l.run)); err != nil {
		l.api.cfg.Log.Debug("a run is not stopped", zap.Error(err))
	}
}

// cancel ends the response and stops its run. What the run reports later is left out.
func (l *live) cancel() {
	l.mu.Lock()
	l.tells = true
	l.mu.Unlock()
	l.apply((*emitter).cancel)
	l.stop()
}

// took takes something that happened to the run.
func (l *live) took(e handoff.RunEvent) {
	_, over := e.Kind.(handoff.RunEnded)
	if goesOn(e) {
		l.parts()
	}
	l.mu.Lock()
	if !l.shown {
		l.doc.Seq, l.doc.Thread, l.doc.Turn = e.Seq, e.Record.ThreadID, e.Record.TurnID
		l.doc.Server, l.doc.Project = e.Record.Server, e.Record.Project
	}
	if over && !e.Noted && e.Record.Fault != nil && len(l.emit.resp.Output) == 0 {
		l.early = e.Record.Fault
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
	ending := e.Record.Outcome != "" && !over // its end follows at once
	if over || !ending && (e.Noted || e.Record.TurnID != "") {
		l.isPlaced()
	}
}

// ask ends the response with the questions that are open already.
func (l *live) ask() {
	open := slices.DeleteFunc(
		l.api.cfg.Questions.Questions(l.grant),
		func(q handoff.RecordQuestion) bool { return q.Handoff != string(l.run) },
	)
	l.apply(func(m *emitter) []event {
		if len(open) == 0 || !m.asks || m.over() {
			return nil
		}
		m.ask(open...)
		return m.take(nil, handoff.Record{})
	})
}

// waits reports whether the response ended with a question.
func (l *live) waits() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shown && len(l.emit.asked) > 0
}

// apply writes events. An end is stored before it is shown, unless the run goes on after it.
func (l *live) apply(step func(*emitter) []event) {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	events := step(l.emit)
	over := l.emit.over() && !l.shown
	stored := over && !l.parting
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

func (l *live) documentLocked() document {
	doc := l.doc
	doc.Response, doc.Life = l.emit.resp, l.api.life
	doc.Response.Output = append([]item{}, l.emit.resp.Output...)
	doc.Asked = l.emit.asked
	doc.Shown = nil
	if len(doc.Asked) > 0 { // else no other response follows the run
		doc.Shown = slices.Collect(maps.Keys(l.emit.shown))
	}
	return doc
}

// now returns the response as it stands.
func (l *live) now() document {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.documentLocked()
}

// over reports whether the end was shown.
func (l *live) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shown
}

// read returns the events from a number on, whether nothing follows them, and what is closed at the next one. False:
// they are not kept any more.
func (l *live) read(from int) (frames [][]byte, over bool, changed <-chan struct{}, ok bool) {
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
