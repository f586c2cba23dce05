package handoff

import (
	"slices"
	"strings"
	"time"
)

// A Status is the status of a handoff in the ledger. It only moves forward.
type Status string

// The statuses, in order.
const (
	StatusAccepted    Status = "accepted"    // nothing was sent yet
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
	OutcomeUnknown     Outcome = "unknown"   // it is not known whether the work ran, or how it ended
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
	WhyWatched   = "watched"   // somebody else began the turn, and the caller asked to have it followed
)

// A Record is one handoff as the page and the API show it.
type Record struct {
	ID         string       `json:"id"`
	Server     string       `json:"server"`
	Project    string       `json:"project,omitempty"`
	ThreadID   string       `json:"thread_id,omitempty"`
	TurnID     TurnID       `json:"-"` // once the agent has acknowledged it
	Title      string       `json:"title,omitempty"`
	Why        string       `json:"why,omitempty"`      // [WhyNamed] or another of the reasons above
	Into       string       `json:"into,omitempty"`     // with [WhyAdded]: the work that took the words
	Worktree   *Worktree    `json:"worktree,omitempty"` // that its session is in; nil: none of its own
	From       *RecordFrom  `json:"from,omitempty"`     // with [WhyNew]: the session elsewhere that goes on in this one
	Prompt     string       `json:"prompt"`
	Key        string       `json:"-"`                // of the grant that gave it; "": not known
	Client     string       `json:"client,omitempty"` // the program that asked, by its own name; "": a person
	Parent     ID           `json:"parent,omitempty"` // the work whose agent asked for this; "": none
	Waits      string       `json:"waits,omitempty"`  // not begun yet: the work before it is "ours" or "theirs"
	Place      int          `json:"place,omitempty"`  // with Waits: place in the queue, once that was reordered; 0: last
	State      Status       `json:"state"`
	Outcome    Outcome      `json:"outcome,omitempty"`
	Text       string       `json:"text,omitempty"`   // the agent's whole answer
	Spoken     string       `json:"spoken,omitempty"` // the part of it that can be said
	Error      *RecordError `json:"error,omitempty"`
	Fault      *Error       `json:"-"` // the error behind Error, for sentences about it
	EndsWithUs bool         `json:"-"` // see [Registered]
	// Undelivered are words that were added to the work and that the agent never got, because the turn ended.
	Undelivered []string       `json:"undelivered,omitempty"`
	Goal        Goal           `json:"goal,omitempty"`     // how the goal of its session stands, if it worked for one
	Items       []RecordItem   `json:"items,omitempty"`    // what the agent did, oldest first, the newest 200
	LeftOut     int            `json:"left_out,omitempty"` // older items, which are not kept
	Tested      Tests          `json:"-"`                  // how its last run of tests ended; see Tests
	Usage       *Usage         `json:"usage,omitempty"`    // tokens so far; nil: the agent did not say
	Answers     []RecordAnswer `json:"answers,omitempty"`  // to its questions, oldest first, the newest 50
	Unkept      bool           `json:"-"`                  // it is forgotten once its outcome was heard
	Paused      bool           `json:"paused,omitempty"`   // not begun: the caller is asked about it; see NotBegun
	WentOn      bool           `json:"went_on,omitempty"`  // it was paused, and other work was begun in its place
	CreatedAt   time.Time      `json:"created_at"`
	StartedAt   *time.Time     `json:"started_at,omitempty"` // when it was first seen to run; nil: not known, or not begun
	EndedAt     *time.Time     `json:"ended_at,omitempty"`
}

// Behind reports whether the record waits for the work first in the same session, so that it is paused if first is
// stopped. If it waits for the session that first makes, it has no ThreadID yet. Nothing is behind a turn of somebody
// else, which is not stopped.
func (r Record) Behind(first Record) bool {
	same := r.ThreadID == first.ThreadID || r.ThreadID == "" && r.Project == first.Project
	return r.Waits != "" && first.Waits == "" && first.Why != WhyMerged && r.Server == first.Server && same
}

// Crashed reports whether the work ended because its agent's program did: nobody stopped it.
func (r Record) Crashed() bool {
	return r.Outcome != OutcomeResult && (r.Error != nil && r.Error.Code == CodeAgentEnded ||
		r.Fault != nil && r.Fault.Code == CodeAgentEnded)
}

// Failed reports whether the work ended without a result and nobody stopped it, or left tests that fail.
func (r Record) Failed() bool {
	switch r.Outcome {
	case OutcomeResult:
		return r.Tests() == TestsFailed
	case OutcomeFailed, OutcomeUnknown:
		return !r.Paused
	}
	return r.Crashed()
}

// NotBegun reports whether the work was waiting when the process was restarted, or when the work before it was stopped.
// The caller is asked whether to begin it.
func (r Record) NotBegun() bool {
	return r.Fault != nil && r.Fault.Code.Asks()
}

// Added reports whether the words went into other work. Then there is no outcome to tell: the other work has its own.
// If the caller wanted to stop them, they are told that they went in.
func (r Record) Added() bool {
	return r.Why == WhyAdded && r.Outcome == OutcomeResult && r.Fault == nil
}

// Tests returns how the last run of tests in the work ended. It is stored with the outcome, since not all items are
// kept. Without that (the work has not ended, or is from an older Switchboard) it is derived from the items.
func (r Record) Tests() Tests {
	if r.Tested == TestsPassed || r.Tested == TestsFailed {
		return r.Tested
	}
	return TestsOf(r.Items)
}

// Since returns when the work began, or if that is not known, when it was asked for.
func (r Record) Since() time.Time {
	if r.StartedAt != nil {
		return *r.StartedAt
	}
	return r.CreatedAt
}

// Declined reports whether the last question of the work was declined, or nobody answered it in time.
func (r Record) Declined() bool {
	n := len(r.Answers)
	return n > 0 && (r.Answers[n-1].Decision == DecisionDecline || r.Answers[n-1].Decision == DecisionStop)
}

// Clone returns a copy of the record with its own Items and Answers, which grow. Everything else is shared: it may be
// replaced, and is never changed in place.
func (r *Record) Clone() Record {
	c := *r
	c.Items, c.Answers = slices.Clone(r.Items), slices.Clone(r.Answers)
	return c
}

// A RecordFrom is the session whose newest part a new session was told.
type RecordFrom struct {
	Server   string `json:"server"`
	ThreadID string `json:"thread_id"`
	Title    string `json:"title,omitempty"`
}

// RecordError is an error in the API.
type RecordError struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Next    string `json:"next,omitempty"`
	Detail  string `json:"detail,omitempty"`
	Why     string `json:"why,omitempty"` // a clause about the machine, see [Error.Why]
}

// RecordItem is an [Item] in the API.
type RecordItem struct {
	ID     string   `json:"id"`
	Kind   ItemKind `json:"kind"`
	Text   string   `json:"text"`
	Output string   `json:"output,omitempty"`
	Cut    bool     `json:"cut,omitempty"` // a part of the output, of the text or of the diffs is not there
	Exit   *int     `json:"exit,omitempty"`
	State  string   `json:"state"` // running, done, failed

	Changes []FileChange `json:"changes,omitempty"` // of an edit
	By      string       `json:"by,omitempty"`      // the subagent that did it; "": the agent itself
}

// A RecordAnswer says who answered a question of the agent, how and when. It never has the words of an answer, which
// may be a secret.
type RecordAnswer struct {
	Kind     QuestionKind `json:"kind"`
	Text     string       `json:"text,omitempty"`     // what was asked, shortened
	Command  string       `json:"command,omitempty"`  // shortened
	Decision Decision     `json:"decision,omitempty"` // "": it was answered or withdrawn elsewhere
	By       string       `json:"by"`                 // [ByVoice] and its like, "nobody" when it was given up, "elsewhere"
	At       time.Time    `json:"at"`
}

// A RecordQuestion is a [Question] in the API.
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
	Asks      []Ask        `json:"asks,omitempty"`    // what is asked, one by one; as many answers, or lines, answer it
	Voice     bool         `json:"voice"`             // a yes, or the answer in words, may also be said in a call
	Tap       string       `json:"tap,omitempty"`     // why it can only be answered on the page; "": also by voice
	Beyond    string       `json:"beyond,omitempty"`  // what a yes would allow beyond this one act
	There     string       `json:"there,omitempty"`   // why a yes counts only on the machine itself; "": none is known
	Person    bool         `json:"person,omitempty"`  // a person has to decide it on the page, each time anew
	Program   string       `json:"program,omitempty"` // of a copy: the program that has the session open; "": not known
	URL       string       `json:"url,omitempty"`     // the page that a person is asked to open
	Risk      string       `json:"risk,omitempty"`    // of allowing it: low, medium or high; "": there is nothing to allow
	Asked     time.Time    `json:"asked"`
	// GivesUp is when it is declined unless somebody answers. If declining fails, it stays open longer.
	GivesUp time.Time `json:"gives_up,omitzero"`
}

// SecondAct returns what a person types at their own terminal to allow what is risky, after they have read it: the
// first word of its command if that can be typed, else the name of its machine.
func (q RecordQuestion) SecondAct() string {
	word, _, _ := strings.Cut(strings.TrimSpace(q.Command), " ")
	if word == "" || strings.ContainsFunc(word, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return q.Server
	}
	return word
}

// Elsewhere returns the error for a yes that counts only on the machine that asks; nil: it counts from here.
func (q RecordQuestion) Elsewhere() *Error {
	if q.There == "" {
		return nil
	}
	return &Error{
		Code: CodeRefused, Subject: q.Server, Detail: q.There, Why: q.There,
		Next: "A yes counts only on the machine itself: " + q.There + ". A no counts from here.",
	}
}

// A RecordSticky is a [Sticky] in the API.
type RecordSticky struct {
	Server   string    `json:"server"` // "bigpc", or "bigpc/api" for a project
	ThreadID string    `json:"thread_id"`
	Title    string    `json:"title,omitempty"`
	Why      string    `json:"why"` // named or new
	Since    time.Time `json:"since"`
}

// A PageKind says what a [PageEvent] carries.
type PageKind string

// The kinds of events on a caller's feed.
const (
	PageHandoff  PageKind = "handoff"  // a whole record; replaces the one with the same id
	PageItem     PageKind = "item"     // one item of a handoff; replaces the one with the same id
	PageDelta    PageKind = "delta"    // text to append to an item
	PageDropped  PageKind = "dropped"  // an item is withdrawn
	PageQuestion PageKind = "question" // a question is open
	PageClosed   PageKind = "closed"   // a question is no longer open
	PageSticky   PageKind = "sticky"   // the sticky sessions changed; read them again
	PageCleared  PageKind = "cleared"  // finished work was hidden or shown again; read the time up to which it is hidden
	PageServers  PageKind = "servers"  // the health of the fleet changed; read it again
)

// A PageEvent is one event of a caller's feed. The ID grows by one with each event of the feed.
type PageEvent struct {
	ID       uint64          `json:"-"`
	Kind     PageKind        `json:"kind"`
	Handoff  string          `json:"handoff,omitempty"`
	Record   *Record         `json:"record,omitempty"`
	Item     *RecordItem     `json:"item,omitempty"`
	ItemID   string          `json:"item_id,omitempty"`
	Delta    string          `json:"delta,omitempty"`
	Question *RecordQuestion `json:"question,omitempty"`
	Closed   QuestionID      `json:"closed,omitempty"`
}
