package handoff

import (
	"slices"
	"time"
)

// A Status is where a handoff stands in the ledger's words. A record's status only moves forward.
type Status string

// The statuses, in order.
const (
	StatusAccepted    Status = "accepted"    // a request of ours, nothing sent yet
	StatusDispatching Status = "dispatching" // the start is on its way to the agent
	StatusStarted     Status = "started"     // the agent acknowledged the turn
	StatusCompleted   Status = "completed"   // the outcome is known
	StatusDelivered   Status = "delivered"   // the outcome was said, shown or answered
)

// An Outcome is how a handoff ended. Every accepted handoff gets exactly one.
type Outcome string

// The outcomes.
const (
	OutcomeResult      Outcome = "result"
	OutcomeFailed      Outcome = "failed"
	OutcomeInterrupted Outcome = "interrupted"
	OutcomeCancelled   Outcome = "cancelled" // before anything was started
	OutcomeUnknown     Outcome = "unknown"   // it cannot be told whether the work ran
)

// Reasons why a session was used, as records and answers give them.
const (
	WhyNamed     = "named"     // the caller named it
	WhyContinued = "continued" // it is the one they last used there
	WhyNew       = "new"       // it was made for this
	WhyReplaced  = "replaced"  // the one they last used is gone; it was made instead
	WhyCopy      = "copy"      // it is a copy of the one they named
	WhyAdded     = "added"     // earlier work of theirs runs there and took the words
	WhyAside     = "aside"     // a side question, in a thread of which nothing is kept
	WhyMerged    = "merged"    // a turn of somebody else began there at the same moment and took the words
)

// A Record is one handoff as the page and the API show it.
type Record struct {
	ID         string       `json:"id"`
	Server     string       `json:"server"`
	Project    string       `json:"project,omitempty"`
	ThreadID   string       `json:"thread_id,omitempty"`
	TurnID     TurnID       `json:"-"` // once the agent has acknowledged it
	Title      string       `json:"title,omitempty"`
	Why        string       `json:"why,omitempty"`  // named, continued or new
	Into       string       `json:"into,omitempty"` // with [WhyAdded]: the work that took the words
	From       *RecordFrom  `json:"from,omitempty"` // with [WhyNew]: the session elsewhere that goes on in this one
	Prompt     string       `json:"prompt"`
	Client     string       `json:"client,omitempty"` // the program that asked, by its own name; "": a person
	Parent     RunID        `json:"parent,omitempty"` // the work whose agent asked for this; "": none
	Waits      string       `json:"waits,omitempty"`  // not begun: what it comes after, ours or theirs
	Place      int          `json:"place,omitempty"`  // with Waits: its turn, once somebody has moved one; 0: last
	State      Status       `json:"state"`
	Outcome    Outcome      `json:"outcome,omitempty"`
	Text       string       `json:"text,omitempty"`   // the agent's whole answer
	Spoken     string       `json:"spoken,omitempty"` // what is fit to be said of it
	Error      *RecordError `json:"error,omitempty"`
	Fault      *Error       `json:"-"` // what Error tells, for sentences about it
	EndsWithUs bool         `json:"-"` // see [Registered]
	// Undelivered are words that were added to the work and that it never heard, because it was ended.
	Undelivered []string       `json:"undelivered,omitempty"`
	Items       []RecordItem   `json:"items,omitempty"`   // what the agent did, oldest first, the newest 200
	Tested      Tests          `json:"-"`                 // how the tests ended that it ran last; see Tests
	Usage       *Usage         `json:"usage,omitempty"`   // tokens so far; nil: the agent did not say
	Answers     []RecordAnswer `json:"answers,omitempty"` // to its questions, oldest first, the newest 50
	Unkept      bool           `json:"-"`                 // it is forgotten once it was heard
	Paused      bool           `json:"paused,omitempty"`  // it was not begun, and is when the caller says so; see NotBegun
	WentOn      bool           `json:"went_on,omitempty"` // it was paused, and other work was begun in its place
	CreatedAt   time.Time      `json:"created_at"`
	EndedAt     *time.Time     `json:"ended_at,omitempty"`
}

// Shown reports whether a grant may see the record: a machine that it may not use does not exist for it. What
// never came to a machine holds only what was asked.
func (r Record) Shown(g Grant) bool {
	return g.AllowsServer(r.Server) || r.ThreadID == "" && r.Why == ""
}

// Behind reports whether the record is work that waits until other work of its caller has ended in the same session: it
// is paused when that is stopped. What was given before the other had made its session waits without knowing which one
// that is. Work that somebody else began is not stopped.
func (r Record) Behind(first Record) bool {
	same := r.ThreadID == first.ThreadID || r.ThreadID == "" && r.Project == first.Project
	return r.Waits != "" && first.Waits == "" && first.Why != WhyMerged && r.Server == first.Server && same
}

// NotBegun reports whether the record is work that waited when the process was restarted, or when what it waited for
// was stopped: the caller is asked whether to begin it.
func (r Record) NotBegun() bool {
	return r.Fault != nil && r.Fault.Code.Asks()
}

// Added reports whether the record is words that went into other work: that is no outcome to tell, as the work that
// took them has its own.
func (r Record) Added() bool { return r.Why == WhyAdded && r.Outcome == OutcomeResult }

// Tests tells how the tests ended that the work ran last. That is noted with its outcome, since not all items are kept;
// until then, and for work from before it was noted, the items tell.
func (r Record) Tests() Tests {
	if r.Tested == TestsPassed || r.Tested == TestsFailed {
		return r.Tested
	}
	return TestsOf(r.Items)
}

// Declined reports whether a person, or nobody in time, said no to what the work asked for last.
func (r Record) Declined() bool {
	n := len(r.Answers)
	return n > 0 && (r.Answers[n-1].Decision == DecisionDecline || r.Answers[n-1].Decision == DecisionStop)
}

// Clone returns a record that shares nothing that changes.
func (r *Record) Clone() Record {
	c := *r
	c.Items, c.Answers = slices.Clone(r.Items), slices.Clone(r.Answers)
	if r.EndedAt != nil {
		c.EndedAt = new(*r.EndedAt)
	}
	return c
}

// A RecordFrom is the session whose newest part a new session was told.
type RecordFrom struct {
	Server   string `json:"server"`
	ThreadID string `json:"thread_id"`
	Title    string `json:"title,omitempty"`
}

// RecordError is an error as the API gives it.
type RecordError struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Next    string `json:"next,omitempty"`
	Detail  string `json:"detail,omitempty"`
}

// RecordItem is one thing the agent did, as the page shows it.
type RecordItem struct {
	ID     string   `json:"id"`
	Kind   ItemKind `json:"kind"`
	Text   string   `json:"text"`
	Output string   `json:"output,omitempty"`
	Exit   *int     `json:"exit,omitempty"`
	State  string   `json:"state"` // running, done, failed

	Changes []FileChange `json:"changes,omitempty"` // of an edit
}

// A RecordAnswer is who answered a question of the agent, how and when. Of an answer in words it does not have the
// words: they may be a secret.
type RecordAnswer struct {
	Kind     QuestionKind `json:"kind"`
	Text     string       `json:"text,omitempty"`     // what was asked, shortened
	Command  string       `json:"command,omitempty"`  // shortened
	Decision Decision     `json:"decision,omitempty"` // "": it was answered or withdrawn elsewhere
	By       string       `json:"by"`                 // [ByVoice] and its like, "nobody" when it was given up, "elsewhere"
	At       time.Time    `json:"at"`
}

// A RecordQuestion is a question as the page shows it.
type RecordQuestion struct {
	ID        QuestionID   `json:"id"`
	Label     string       `json:"label"` // its name in calls, like "q1"
	Handoff   string       `json:"handoff"`
	Server    string       `json:"server"`
	Title     string       `json:"title,omitempty"`
	Kind      QuestionKind `json:"kind"`
	Text      string       `json:"text"`
	Command   string       `json:"command,omitempty"`
	Cwd       string       `json:"cwd,omitempty"`
	Reason    string       `json:"reason,omitempty"`
	Changes   []string     `json:"changes,omitempty"`
	Decisions []Decision   `json:"decisions"`
	Words     bool         `json:"words,omitempty"`   // it is answered in words
	Asks      []Ask        `json:"asks,omitempty"`    // what is asked, one by one; as many lines answer it
	Voice     bool         `json:"voice"`             // a yes, or the words, may also be said in a call
	Tap       string       `json:"tap,omitempty"`     // why it can only be answered on the page; "": also by voice
	Beyond    string       `json:"beyond,omitempty"`  // what a yes would allow beyond this one act
	Person    bool         `json:"person,omitempty"`  // a person has to decide it on the page, each time anew
	Program   string       `json:"program,omitempty"` // of a copy: what has the session open; "": not known
	Risk      string       `json:"risk,omitempty"`    // of allowing it: low, medium or high; "": there is nothing to allow
	Asked     time.Time    `json:"asked"`
	// GivesUp is when it is declined because nobody answered; later, where that fails.
	GivesUp time.Time `json:"gives_up,omitzero"`
}

// A RecordSticky is a sticky session as the page shows it.
type RecordSticky struct {
	Server   string    `json:"server"` // "bigpc", or "bigpc/api" for a project
	ThreadID string    `json:"thread_id"`
	Title    string    `json:"title,omitempty"`
	Why      string    `json:"why"` // named or new
	Since    time.Time `json:"since"`
}

// An EventKind says what a [PageEvent] carries.
type EventKind string

// The kinds of events on a caller's feed.
const (
	EventHandoff  EventKind = "handoff"  // a whole record; replaces the one with the same id
	EventItem     EventKind = "item"     // one item of a handoff; replaces the one with the same id
	EventDelta    EventKind = "delta"    // text to append to an item
	EventDropped  EventKind = "dropped"  // an item is withdrawn
	EventQuestion EventKind = "question" // a question is open
	EventClosed   EventKind = "closed"   // a question is no longer open
	EventSticky   EventKind = "sticky"   // the sticky sessions changed; read them again
	EventCleared  EventKind = "cleared"  // finished work was put away, or brought back; read until when
	EventServers  EventKind = "servers"  // the health of the fleet changed; read it again
)

// A PageEvent is one entry of a caller's feed. ID grows by one a feed.
type PageEvent struct {
	ID       uint64          `json:"-"`
	Kind     EventKind       `json:"kind"`
	Handoff  string          `json:"handoff,omitempty"`
	Record   *Record         `json:"record,omitempty"`
	Item     *RecordItem     `json:"item,omitempty"`
	ItemID   string          `json:"item_id,omitempty"`
	Delta    string          `json:"delta,omitempty"`
	Question *RecordQuestion `json:"question,omitempty"`
	Closed   QuestionID      `json:"closed,omitempty"`
}
