package work

import (
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/phase"
)

// Config is what a state knows of the world. Its functions return at once and change nothing of the state.
type Config struct {
	Caller  handoff.Caller
	Threads Threads
	Counter Counter
	Pages   *handoff.Feed

	NextID     func() string                                       // of a new handoff, or of one whose id was never written
	Registered func(server string) handoff.Registered              // the configuration of a server
	Room       func(g handoff.Grant, now time.Time) *handoff.Error // counts a piece of work, if a limit allows it
	Own        func(t handoff.Target)                              // notes that a thread was made for the caller
	Pause      func(try int) time.Duration                         // before try number n (from 0) to reach the store
	Bad        func(name string)                                   // notes a document that cannot be read

	Forks  bool // the fleet can copy sessions
	Stored bool // there is a store; else nothing is kept
	Shared bool // several instances may start turns in a thread

	Patience, Silence, GiveUp, AskAgain time.Duration // see the configuration of the router
}

// Threads lets one handoff of this process at a time use a thread, whoever its caller is. The others wait in order.
type Threads interface {
	// Take gives the queue of a thread to a handoff, unless another has it or waits longer.
	Take(key, id string, c handoff.Caller) bool
	// Leave removes a handoff from all queues but one ("": from all) that it has or waits in.
	Leave(id, but string)
	// Runs sets the turn of a handoff in the queues that it has: others may put their words into it.
	Runs(id string, turn Turn)
}

// Waiting lets handoffs wait for a thread. A [Threads] that is none has no order to change.
type Waiting interface {
	// Look takes the queue, or adds the handoff to the end of the queue, and returns what it sees.
	Look(key, id string, c handoff.Caller) View
	// Behind returns the handoffs that wait for the queues of a handoff, in order.
	Behind(id string) []string
	// Move puts a waiting handoff before another of the same queue, or last: "". Only those of own change places, among
	// themselves. It returns these in their new order, or nil if one of the two does not wait there.
	Move(id, before string, own map[string]bool) []string
}

// A Turn is a running turn into which other handoffs may put their words.
type Turn struct {
	ID      handoff.TurnID   // "" while none runs, or it cannot be reached
	Control handoff.Controls // of its agent
	Target  handoff.Target   // where it runs
	Title   string           // of that thread
}

// A View is a queue as one waiting handoff sees it.
type View struct {
	Mine    bool   // this handoff has the queue now
	Holder  string // the handoff that has it
	Same    bool   // the holder is of the same caller
	Changed <-chan struct{}
	Turn
}

// A Counter counts what happens.
type Counter interface {
	// Moved is called when a record's status changes; span is of the handoff.
	Moved(was handoff.Status, rec *handoff.Record, span handoff.Span, now time.Time)
	Asked(kind handoff.QuestionKind)
	Answered(by string)
}

// A State is all that is known of one caller. It is not safe for concurrent use.
type State struct {
	cfg Config    // Set once
	now time.Time // of the step
	out []Effect  // of the step

	all       []*Handoff                       // oldest first
	byKey     map[string]string                // ids, by key
	recalled  bool                             // all has the newest work of earlier lives
	over      bool                             // the process ends, or the caller has another home: no work is taken
	listeners []*Attendance                    // oldest first
	questions map[handoff.QuestionID]*Question // the open ones
	labels    int                              // number of the last label of a question
	current   map[Place]handoff.Sticky         // the thread in use on each server or project
	chosen    map[Place]time.Time              // when the caller chose it, or to use none
	keep      keeper                           // what the store has
}

// New returns the state of a caller of whom nothing is known.
func New(cfg Config) *State {
	return &State{
		cfg: cfg, byKey: map[string]string{}, questions: map[handoff.QuestionID]*Question{},
		current: map[Place]handoff.Sticky{}, chosen: map[Place]time.Time{}, keep: keeper{places: map[Place]bool{}},
	}
}

// An Event is something that happened, or is asked for. Its fields that are results are set by [State.Step].
type Event interface{ apply(s *State) }

// Step takes an event, and returns what is to be done.
func (s *State) Step(now time.Time, e Event) []Effect {
	s.now, s.out = now, nil
	e.apply(s)
	s.commit()
	return s.out
}

// An Effect is something to be done. It is one of the types below.
type Effect interface{ effect() }

type (
	// Begin begins a job of a handoff, which replaces the one before.
	Begin struct{ Job Job }
	// Halt ends the job of a handoff.
	Halt struct{ ID string }
	// Interrupt stops a turn.
	Interrupt struct {
		ID    string
		Agent handoff.Agent
		Turn  handoff.TurnID
	}
	// Newest closes all attachments of a handoff but the newest.
	Newest struct{ ID string }
	// Free frees the start gate of a thread, with the turn that began under it.
	Free struct {
		ID     string
		Thread handoff.Target
		Last   handoff.TurnID
	}
	// Ended closes what a handoff has used. Its outcome is published.
	Ended struct{ Last Ending }
	// Load reads what the store has of the caller; [Opened] follows.
	Load struct{}
	// Commit writes a batch; [Committed] follows.
	Commit struct{ Batch ledger.Batch }
	// Notice tells the caller something outside of calls.
	Notice struct{ handoff.Notice }
	// Decline declines a question that nobody answered in time.
	Decline struct{ Question *Question }
)

func (Begin) effect()     {}
func (Halt) effect()      {}
func (Interrupt) effect() {}
func (Newest) effect()    {}
func (Free) effect()      {}
func (Ended) effect()     {}
func (Load) effect()      {}
func (Commit) effect()    {}
func (Notice) effect()    {}
func (Decline) effect()   {}

// An Ending is what the log and the trace are told about a handoff that is over.
type Ending struct {
	Record  handoff.Record
	Turn    handoff.TurnID
	Code    handoff.Code
	Yielded bool // somebody else has it, and publishes its outcome
	Span    handoff.Span
}

func (s *State) do(e Effect) { s.out = append(s.out, e) }

// A Kind is what a job does.
type Kind string

// The kinds of jobs.
const (
	Resolve   Kind = "resolve"   // find the target, and read the session with which the request goes on
	Join      Kind = "join"      // wait until the queue of the thread changes, and look again
	Attach    Kind = "attach"    // resume the thread, and take its gate
	Create    Kind = "create"    // make a thread
	Copy      Kind = "copy"      // copy the thread
	Lease     Kind = "lease"     // take the gate of the thread again
	Elsewhere Kind = "elsewhere" // wait for the gate of the thread
	Start     Kind = "start"     // start the turn, in one try
	Steer     Kind = "steer"     // give the words to a running turn, in one try
	Await     Kind = "await"     // watch somebody else's turn until it ends
	Reconcile Kind = "reconcile" // find out what became of a lost start
	Follow    Kind = "follow"    // follow the turn
	Reconnect Kind = "reconnect" // attach again until it succeeds or takes too long
)

// A Job is a slow action. What comes of it is a [Done]; before that, a job that follows a turn posts each [Update], and
// one that joins a queue each [Look].
type Job struct {
	ID   string // of the handoff
	N    int    // of the job; only what comes of the newest counts
	Kind Kind
	Run  // as it is when the job begins
	Span handoff.Span

	Phase phase.Phase
}

// Run is what the jobs of a handoff need to know.
type Run struct {
	Grant   handoff.Grant // zero for work of an earlier life, which resolves no names
	Request handoff.Request
	AskedAt time.Time // also if that was in an earlier life of the process

	Target   handoff.Target    // where its words go
	Attached handoff.Attached  // the newest attachment
	Turn     handoff.TurnID    // its turn
	Before   handoff.TurnID    // the newest turn of the thread before the start
	Gate     GateLease         // of its thread
	Alone    bool              // its thread was made for it, and nobody else knows it before its turn runs
	Holder   View              // the running turn into which its words go
	Extra    []handoff.Context // about the session that the caller goes on with
	Tries    int               // turns of others that were waited for; while reconnecting, tries since the last update
	Lost     time.Time         // when its agent or machine was lost; zero while it is there
}

// A GateLease is the answer to a newest request for the start gate of a thread. The zero lease has not asked.
type GateLease struct {
	Thread    handoff.Target
	Asked     time.Time      // right before the request
	Elsewhere bool           // another instance has the gate
	Last      handoff.TurnID // the newest turn that began under the gate; "": not known
}

const (
	// SendTakes bounds how long a request to an agent takes.
	SendTakes = 30 * time.Second
	// StoreTakes bounds how long a request to the store takes.
	StoreTakes = 5 * time.Second
	// leaseFor is how old a lease may be when a start is sent: the gate is still held when the start arrives.
	leaseFor = ledger.GateFor - SendTakes
	// leaseFresh is how old a lease may be before the start is written to the store.
	leaseFresh = leaseFor - StoreTakes
)

func (l GateLease) valid(thread handoff.Target, now time.Time, age time.Duration) bool {
	return l.Thread == thread && !l.Elsewhere && handoff.Passed(l.Asked, now) < age
}

// Fresh reports whether a start may be written to the store under the lease.
func (l GateLease) Fresh(thread handoff.Target, now time.Time) bool {
	return l.valid(thread, now, leaseFresh)
}

// Valid reports whether a start may be sent under the lease.
func (l GateLease) Valid(thread handoff.Target, now time.Time) bool {
	return l.valid(thread, now, leaseFor)
}

// Missed reports whether the newest turn of the gate is missing in an attachment. It may run.
func (l GateLease) Missed(at handoff.Attached) bool {
	return !l.Elsewhere && l.Last != "" && l.Last != at.Newest && l.Last != at.Running
}

// Done is what came of a job. Fact is a result: what that means for the handoff, for the trace; "": nothing.
type Done struct {
	Fact     string
	ID       string
	N        int
	Target   handoff.Target      // resolve: the canonical names
	Name     string              // resolve: the thread as it was asked for
	IsCopy   bool                // resolve: a copy was asked for
	From     *handoff.Transcript // resolve: the session with which the request goes on
	Attached handoff.Attached    // attach, create, copy, reconnect, reconcile
	Gate     *GateLease          // attach, lease, elsewhere; nil: it was not asked for
	Turn     handoff.TurnID      // start, reconcile
	Err      error
}

func (d *Done) apply(s *State) {
	h := s.find(d.ID)
	if h == nil {
		return
	}
	void := h.job != d.N || !h.open
	if d.Gate != nil {
		h.run.Gate = *d.Gate
		if void && (!h.open || !h.state.Gated()) { // nobody waits for the gate any more
			s.openGate(h)
		}
	}
	if void {
		return
	}
	fact, fault := s.done(h, h.kind, d)
	if fact != phase.FactNothing {
		d.Fact = fact.String()
		s.apply(h, fact, fault)
	}
}

// Look is what a job that joins sees of its queue. Changed is a result: when it is closed, the job looks again; nil:
// the job is over.
type Look struct {
	ID      string
	N       int
	Changed <-chan struct{}
}

func (l *Look) apply(s *State) {
	if h := s.find(l.ID); h != nil && h.job == l.N && h.open {
		l.Changed = s.join(h)
	}
}

// Update is an update of the turn that a job follows. Over and Fact are results: the turn has ended, or the job was
// replaced; Fact is as in [Done].
type Update struct {
	ID     string
	N      int
	Update handoff.Update
	Over   bool
	Fact   string
}

func (u *Update) apply(s *State) {
	h := s.find(u.ID)
	if h == nil || h.job != u.N || !h.open {
		u.Over = true
		return
	}
	fact, fault := s.update(h, u.Update)
	u.Over = fact != phase.FactNothing || h.job != u.N
	if fact != phase.FactNothing && h.job == u.N {
		u.Fact = fact.String()
		s.apply(h, fact, fault)
	}
}
