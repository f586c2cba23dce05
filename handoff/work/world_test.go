package work

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// A world is all that is around the states of one caller: their store, a thread of an agent, their calls. Nothing in it
// happens by itself, and it holds after each step what must be true.
type world struct {
	now    time.Time
	store  store
	lives  []*life // the newest is last
	ears   []*ear  // the newest is last
	turns  []turn  // of the thread, oldest first
	flying []Job   // starts whose answer nobody waits for any more
	ids    int

	began    map[string]int    // turns, by the key of the words
	promised map[string]string // keys, by id
	heard    map[string]bool   // by id
	stopped  map[string]bool   // ids of work of which the store has that it was stopped
	lost     bool              // the store has lost something that was not written again
	amnesia  bool              // and then another life opened the caller
	losses   int
	bad      string // what is wrong
}

var owner = handoff.Grant{Caller: handoff.Caller{Principal: "owner"}, Approve: handoff.ApproveAll, Page: true}

var thread = handoff.Target{Server: "s", Thread: "t"}

func newWorld() *world {
	w := &world{
		now: time.Unix(1_000_000, 0).UTC(), store: newStore(), began: map[string]int{}, promised: map[string]string{},
		heard: map[string]bool{}, stopped: map[string]bool{},
	}
	w.life()
	return w
}

func (w *world) wrong(format string, args ...any) {
	if w.bad == "" {
		w.bad = fmt.Sprintf(format, args...)
	}
}

// newest is the life that came last.
func (w *world) newest() *life { return w.lives[len(w.lives)-1] }

// ear is the listener that came last and has not left; nil: nobody listens.
func (w *world) ear() *ear {
	if len(w.ears) == 0 || w.ears[len(w.ears)-1].left {
		return nil
	}
	return w.ears[len(w.ears)-1]
}

// A turn is what the agent made of words.
type turn struct {
	of   string // id of the handoff
	runs bool
}

// words returns the key of a request whose words these are.
func words(prompt string) string { return strings.TrimPrefix(prompt, "do ") }

// arrives is a start, or more words for a turn, that the agent got.
func (w *world) arrives(j Job) handoff.TurnID {
	if w.began[words(handoff.InputText(j.Request.Input))]++; j.Kind == Steer {
		return j.Holder.ID
	}
	w.turns = append(w.turns, turn{j.ID, true})
	return turnID(len(w.turns) - 1)
}

func turnID(n int) handoff.TurnID { return handoff.TurnID("turn " + strconv.Itoa(n)) }

// attached is the thread as it is now.
func (w *world) attached() handoff.Attached {
	at := handoff.Attached{Agent: idle{}, Target: thread}
	for n, turn := range w.turns {
		if at.Newest = turnID(n); turn.runs {
			at.Running = at.Newest
		}
	}
	return at
}

// idle is an agent that is only looked at: the world does what it is asked.
type idle struct {
	handoff.Agent
	handoff.Controls
}

// A life is one life of the state of the caller.
type life struct {
	*State
	w      *world
	n      int
	jobs   map[string]Job // not answered, by handoff
	sent   *ledger.Batch  // on its way; nil: none
	loads  bool           // the store is being read
	came   bool           // it began with what the store has, and has not read it yet
	dead   bool
	event  Event    // the newest
	lately []Effect // that it had

	has     map[string]ledger.Entry // of which it knows that the store has it, by id
	tried   map[string]string       // newest attempt, by id
	former  map[string]bool         // ids that it found in the store
	stopped map[string]bool         // ids
	endings map[string]int          // by id
	outcome map[string]handoff.Outcome
}

// life begins a life. All but the first have the caller only once they have read the store.
func (w *world) life() *life {
	l := &life{
		w: w, n: len(w.lives), came: len(w.lives) > 0, jobs: map[string]Job{}, has: map[string]ledger.Entry{},
		tried: map[string]string{}, stopped: map[string]bool{}, former: map[string]bool{}, endings: map[string]int{},
		outcome: map[string]handoff.Outcome{},
	}
	l.State = New(Config{
		Caller: owner.Caller, Threads: &lines{}, Counter: nothing{}, Pages: new(handoff.Feed), Stored: true, Forks: true,
		NextID:     func() string { w.ids++; return "h" + strconv.Itoa(w.ids) },
		Registered: func(server string) handoff.Registered { return handoff.Registered{Names: []string{server}} },
		Room:       func(handoff.Grant, time.Time) *handoff.Error { return nil },
		Own:        func(handoff.Target) {}, Pause: func(int) time.Duration { return 100 * time.Millisecond },
		Bad:      func(name string) { w.wrong("%s cannot be read", name) },
		Patience: 30 * time.Minute, Silence: 2 * time.Minute, GiveUp: 30 * time.Minute, AskAgain: time.Minute,
	})
	w.lives = append(w.lives, l)
	return l
}

// nothing counts nothing.
type nothing struct{}

func (nothing) Moved(handoff.Status, *handoff.Record, handoff.Span, time.Time) {}
func (nothing) Asked(handoff.QuestionKind)                                     {}
func (nothing) Answered(string)                                                {}

// step has the state take an event, and takes what follows.
func (l *life) step(e Event) {
	l.event = e
	l.lately = l.Step(l.w.now, e)
	for _, f := range l.lately {
		switch f := f.(type) {
		case Begin:
			l.halt(f.Job.ID)
			l.jobs[f.Job.ID] = f.Job
			l.begins(f.Job)
		case Halt:
			l.halt(f.ID)
		case Load:
			l.loads = true
		case Commit:
			if l.sent != nil || l.loads {
				l.w.wrong("two things are asked of the store at once")
			}
			l.sent = &f.Batch
		case Ended:
			if l.endings[f.Last.Record.ID]++; l.endings[f.Last.Record.ID] > 1 {
				l.w.wrong("%s ends twice", f.Last.Record.ID)
			}
		}
	}
	if !l.over && l.stored() && l.n == l.w.store.life && l.keep.version == l.w.store.Version {
		maps.Copy(l.w.stopped, l.stopped)
	}
	l.check()
}

// halt ends a job. A start is not taken back.
func (l *life) halt(id string) {
	if j := l.jobs[id]; j.Kind == Start {
		l.w.flying = append(l.w.flying, j)
	}
	delete(l.jobs, id)
}

// begins holds what must be so when a job begins.
func (l *life) begins(j Job) {
	h := l.find(j.ID)
	switch j.Kind {
	case Start, Steer:
	case Follow:
		stops := slices.ContainsFunc(l.lately, func(f Effect) bool { i, is := f.(Interrupt); return is && i.ID == j.ID })
		if l.stopped[j.ID] && !stops {
			l.w.wrong("%s was stopped, and goes on", j.ID)
		}
		return
	case Create, Copy, Attach:
		if l.former[j.ID] && j.Request.Mode != handoff.ModeWatch {
			l.w.wrong("%s is begun again by another life", j.ID)
		}
		return
	default:
		return
	}
	e := l.has[j.ID]
	switch try := fmt.Sprint(j.ID, " ", e.Attempt, " ", j.Kind, " ", j.Holder.ID); {
	case h.doc.never:
	case e.Status != handoff.StatusDispatching || e.Target != j.Target || e.Attempt != h.attempt.number:
		l.w.wrong("%s starts although the store has %q", j.ID, e.Status)
	case l.former[j.ID]:
		l.w.wrong("%s is started by another life", j.ID)
	case l.over, l.stopped[j.ID], j.Kind == Steer && l.stopped[j.Holder.Holder]:
		l.w.wrong("%s is started although that is over, or was stopped", j.ID)
	case l.tried[j.ID] == try:
		l.w.wrong("%s is started twice in one try", j.ID)
	default:
		l.tried[j.ID] = try
	}
}

// check holds what must be so after each step.
func (l *life) check() {
	for _, h := range l.all {
		_, has := l.has[h.ID]
		if noted := h.state.Noted; noted && !has && !h.doc.never {
			l.w.wrong("%s is promised, and the store does not have it", h.ID)
		} else if noted {
			l.w.promised[h.ID] = h.key
		}
		if was := l.outcome[h.ID]; was != "" && was != h.Outcome {
			l.w.wrong("the outcome of %s changes from %s to %s", h.ID, was, h.Outcome)
		}
		if l.outcome[h.ID] = h.Outcome; h.open != (l.endings[h.ID] == 0) && h.Outcome == "" {
			l.w.wrong("%s is over, and has no outcome", h.ID)
		}
		if h.doc.known && h.Outcome == handoff.OutcomeUnknown && l.tried[h.ID] == "" && !l.former[h.ID] {
			l.w.wrong("it is unknown whether %s ran, which was never sent", h.ID)
		}
		if !h.open && h.Outcome == "" && !h.doc.closed {
			l.w.wrong("%s is over without an outcome", h.ID)
		}
	}
	for key, n := range l.w.began {
		if n > 1 && !l.w.amnesia {
			l.w.wrong("the words of %s ran %d times", key, n)
		}
	}
	for _, e := range l.w.ears {
		for id, n := range e.told {
			if n > 1 {
				l.w.wrong("%s is told %d times", id, n)
			}
		}
	}
}

// done answers the job of a handoff.
func (l *life) done(j Job, d Done) {
	if l.jobs[j.ID].N == j.N {
		delete(l.jobs, j.ID)
	}
	d.ID, d.N = j.ID, j.N
	l.step(&d)
}

// read answers what is read of the store. Reading takes the caller.
func (l *life) read(err error) {
	o := &Opened{Err: err}
	if err == nil {
		l.w.store.life = l.n
		maps.Copy(l.stopped, l.w.stopped)
		o.State, o.Bodies = l.w.store.State, map[string]ledger.Body{}
		for _, e := range ledger.Entries(o.State.Documents, l.Config().Bad) {
			o.Bodies[e.Key] = ledger.BodyOf(l.w.store.Texts[e.Key])
			if h := l.find(l.byKey[e.Key]); h == nil || h.doc.free && !e.Free() {
				l.has[e.ClientID], l.former[e.ClientID] = e, true
			}
		}
		if l.came {
			l.w.amnesia = l.w.amnesia || l.w.lost
			l.w.forgets(l)
		}
		l.came = false
	}
	l.loads = false
	l.step(o)
}

// Config is what the state knows of the world.
func (l *life) Config() Config { return l.cfg }

// How the store answers a batch.
type mood int

const (
	takes  mood = iota
	fails       // it does not take it, and says nothing
	forget      // it takes it, and its answer is lost
)

var errAway = handoff.Fault(handoff.CodeUnreachable, "the store", "")

// commits answers the batch that is on its way.
func (l *life) commits(m mood) {
	b := *l.sent
	l.sent = nil
	c := &Committed{Err: errAway}
	if m != fails {
		c.Result, c.Err = l.w.store.commit(l.n, b)
		if c.Err == nil && c.Result == ledger.Written {
			for _, e := range entriesOf(b) {
				if e.Status == handoff.StatusDelivered { // by its state, which may be that it was begun in other words
					l.w.heard[e.ClientID] = true
				}
				if m == takes {
					l.has[e.ClientID] = e
				}
			}
		}
		if c.Err == nil && c.Result != ledger.Written {
			c.State = l.w.store.State
		}
	}
	if m == forget && c.Err == nil {
		c = &Committed{Err: errAway}
	}
	ended := l.over
	l.step(c)
	if ended && c.Err != nil {
		l.step(&GiveUp{})
	}
	if !l.over && l == l.w.newest() && l.stored() && l.keep.version == l.w.store.Version {
		l.w.lost = false
	}
}

// An ear is a call.
type ear struct {
	*Attendance
	told   map[string]int // outcomes, by id
	events []handoff.Event
	heard  map[string]bool
	left   bool
	of     *life
}

func (e *ear) Hear(event handoff.Event) bool {
	e.events = append(e.events, event)
	if _, ended := event.Kind.(handoff.EventEnded); ended {
		e.told[event.Record.ID]++
		e.of.tells(event.Record)
	}
	return true
}

// tells holds that an outcome is in the store before it is told, unless the store does not answer, or the life ends.
func (l *life) tells(rec handoff.Record) {
	doc := l.find(rec.ID).doc
	switch e := l.event.(type) {
	case *Due, *Ends:
		return
	case *Opened:
		if e.Err != nil {
			return
		}
	case *Committed:
		if e.Err != nil {
			return
		}
	}
	if !doc.clean() && rec.Error == nil {
		l.w.wrong("%s is told before it is written", rec.ID)
	}
}

func (e *ear) Outbox(ended []handoff.Record) bool {
	for _, rec := range ended {
		e.told[rec.ID]++
	}
	return true
}

// calls begins a call.
func (l *life) calls() *ear {
	e := &ear{told: map[string]int{}, heard: map[string]bool{}, of: l}
	e.Attendance = &Attendance{owner, e}
	l.w.ears = append(l.w.ears, e)
	l.step(&Attend{e.Attendance})
	return e
}

// hangsUp ends a call.
func (e *ear) hangsUp() {
	e.left = true
	e.of.step(&Leave{e.Attendance})
}

// hears says that the caller was told an outcome.
func (e *ear) hears(id string) {
	e.heard[id], e.of.w.heard[id] = true, true
	e.of.step(&Heard{Grant: owner, ID: id})
}

// asks gives work for the thread, as a front does: what the past has of its key is looked up first.
func (l *life) asks(key string, mode handoff.Mode) *Asked {
	req := handoff.Request{Key: key, Again: true, Target: thread, Mode: mode, Input: handoff.TextInput("do " + key)}
	if e := l.w.ear(); e != nil && e.of == l {
		req.By, req.Within = e, time.Minute
	}
	return l.asksFor(req)
}

func (l *life) asksFor(req handoff.Request) *Asked {
	a := &Asked{Grant: owner, Request: req, Args: ArgsOf(req), Span: handoff.SpanOf(context.Background())}
	known := &Repeats{Key: KeyOf(owner.Caller, req.Key), Args: a.Args, Print: req.Print}
	set := func(id string, err *handoff.Error) *Asked {
		if a.ID = handoff.ID(id); err != nil {
			a.Err = err
		}
		return a
	}
	if l.step(known); known.ID != "" || known.Err != nil {
		return set(known.ID, known.Err)
	}
	if row, ok := l.w.store.Past[known.Key]; ok {
		e, _ := ledger.DecodeEntry(row.Row)
		if !e.Free() {
			p := &Past{Entry: e, Args: a.Args}
			l.step(p)
			return set(p.ID, p.Err)
		}
		a.Former = &e
	}
	l.step(a)
	return a
}
