package ledger

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
)

// Bounds of an entry, which is read and written at each step. The whole words are stored apart, see [Body].
const (
	maxAttempts = 2   // how often a start may be sent: a second time only after it certainly never ran
	maxPrompt   = 200 // bytes
	maxSpoken   = 4096
	maxName     = 512 // bytes of a title and of each id; a longer id is refused, never cut
)

// A Ledger stores the state of each handoff beyond the process. Implementations are safe for concurrent use. Each
// method tries once. If a store elsewhere does not answer within a second, it returns an [*handoff.Error] with code
// unreachable; then it is not known whether a step was written, and repeating the step is safe. A store in this process
// is always reachable, and may take longer while the machine is busy.
//
// A store knows which life of the service opened it last. Each step carries the epoch of its life. All steps of an
// older life are refused with code shutdown.
type Ledger interface {
	// Advance writes one step, or finds that it is written already. It returns the entry afterwards, also with an error
	// of [Result.Fault], which changes nothing.
	Advance(ctx context.Context, s Step) (Entry, error)
	// Open returns a caller's entries that are not delivered, oldest first.
	Open(ctx context.Context, c handoff.Caller) ([]Entry, error)
	// OpenAll returns the entries of all callers that are not delivered, for a new life of the router.
	OpenAll(ctx context.Context) ([]Entry, error)
}

// An Entry is the stored state of one handoff. The zero Status means that there is none.
type Entry struct {
	Key       string // from [Key]
	Caller    handoff.Caller
	Owner     string // the one that may write steps; see [Step]
	Args      string // from [Hash]: of the request's arguments
	Status    handoff.Status
	Inherited bool // another owner has adopted it, so it can never be started any more
	Attempt   int  // how often the start may have been sent: 0, 1 or 2
	Facts
	Accepted time.Time // when the entry was made; in UTC, whole milliseconds, like Ended
	Ended    time.Time // when its outcome became known
}

// Facts are the details of an entry. A step replaces those that it has and keeps the others. But a step to dispatching
// always replaces Watermark and Turn, since a new thread has none.
type Facts struct {
	// Print is the print of the request (see [handoff.Request]); "": it has none. [Answered] replaces it.
	Print     string
	ClientID  string // the [handoff.Turn.ID] that the start carries
	Target    handoff.Target
	Watermark handoff.TurnID // the thread's newest turn before the start
	Turn      handoff.TurnID // the acknowledged or found turn
	Prompt    string         // the beginning of the prompt
	Title     string
	Why       string // such as [handoff.WhyNamed]
	Outcome   handoff.Outcome
	Tests     handoff.Tests // how the last run of tests ended
	Code      handoff.Code  // of the fault; "": none
	Spoken    string        // a sentence about the outcome
	Giver     string        // of the grant that gave it: [handoff.Grant.Key]
	Asker     string        // the program that asked, by its own name; "": a person
	Parent    handoff.RunID // the work whose agent asked; "": none
	Unkept    bool          // only the key, the ids and the outcome are kept, for [KeyFor], and no words
}

// A Step is a change of one entry by its owner. An owner is one run in one life of the router. Since each run has a
// name of its own, a request that is delivered twice is not started twice.
type Step struct {
	Key     string
	Caller  handoff.Caller
	Owner   string
	Args    string
	To      handoff.Status // the next status; "" with Adopt
	New     bool           // make the entry if there is none
	Again   bool           // with New: replace an entry whose key is free, since the request was made again
	Adopt   bool           // become the owner and nothing else; the former owner can write no more
	Attempt int            // with dispatching: 1, or 2 to send the start again
	At      time.Time      // now
	Set     Facts
	Body    Body // whole words; a text that is "" stays as it was
}

// Keeps reports whether the whole request of a handoff is kept beside the entry after a step: while it waits or is
// paused.
func (s Step) Keeps() bool {
	return s.Adopt || s.To == handoff.StatusAccepted || s.To == handoff.StatusCompleted && s.Set.Code.Asks()
}

// Answered is the [Facts].Print of work whose asker has the answer: the same request is new work then.
const Answered = "-"

// Key returns the key of a handoff: 20 letters and digits [a-z2-7], the same in every life of the router. A call_id is
// unique only in its session.
func Key(session, callID string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s", len(session), session, callID))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:20])
}

// Hash returns a hash of text that is only compared, 32 hex digits.
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// An edge is one way to change an entry's status.
type edge struct {
	from, to handoff.Status
	when     when
	attempts []int             // with dispatching: the attempts that are allowed
	outcomes []handoff.Outcome // with completed: the outcomes that are allowed
}

// when says for which owners there is an edge.
type when int

const (
	always when = iota
	own         // only for the owner that made the entry: no other knows whether anything was sent since
)

// edges is the only table of transitions: the ledger and the model check use it. Only completed leads to
// delivered, and delivered leads nowhere.
var edges = []edge{
	{from: "", to: handoff.StatusAccepted, when: own},
	{from: "", to: handoff.StatusDispatching, when: own, attempts: []int{1}},
	// For a store that came back empty. These steps start nothing.
	{from: "", to: handoff.StatusStarted, when: own},
	{from: "", to: handoff.StatusCompleted, when: own, outcomes: []handoff.Outcome{
		handoff.OutcomeResult, handoff.OutcomeFailed, handoff.OutcomeInterrupted, handoff.OutcomeCancelled,
		handoff.OutcomeUnknown}},
	{from: handoff.StatusAccepted, to: handoff.StatusDispatching, when: own, attempts: []int{1}},
	{
		from: handoff.StatusAccepted, to: handoff.StatusCompleted,
		outcomes: []handoff.Outcome{handoff.OutcomeFailed, handoff.OutcomeCancelled, handoff.OutcomeUnknown},
	},
	// For a store that lost its newest steps.
	{from: handoff.StatusAccepted, to: handoff.StatusStarted, when: own},
	{
		from: handoff.StatusAccepted, to: handoff.StatusCompleted, when: own,
		outcomes: []handoff.Outcome{handoff.OutcomeResult, handoff.OutcomeInterrupted},
	},
	{from: handoff.StatusDispatching, to: handoff.StatusDispatching, when: own, attempts: []int{2}},
	{from: handoff.StatusDispatching, to: handoff.StatusStarted},
	{from: handoff.StatusDispatching, to: handoff.StatusCompleted, outcomes: []handoff.Outcome{
		// A result without a turn of its own: the words were added to running work.
		handoff.OutcomeResult, handoff.OutcomeFailed, handoff.OutcomeInterrupted, handoff.OutcomeCancelled,
		handoff.OutcomeUnknown}},
	// The acknowledged turn was found under another id.
	{from: handoff.StatusStarted, to: handoff.StatusStarted},
	// The acknowledged turn never ran. This is the only edge back.
	{from: handoff.StatusStarted, to: handoff.StatusDispatching, when: own, attempts: []int{2}},
	{from: handoff.StatusStarted, to: handoff.StatusCompleted, outcomes: []handoff.Outcome{
		handoff.OutcomeResult, handoff.OutcomeFailed, handoff.OutcomeInterrupted, handoff.OutcomeCancelled,
		handoff.OutcomeUnknown}},
	{from: handoff.StatusCompleted, to: handoff.StatusDelivered},
}

// Order ranks the statuses.
var Order = map[handoff.Status]int{
	"": 0, handoff.StatusAccepted: 1, handoff.StatusDispatching: 2, handoff.StatusStarted: 3, handoff.StatusCompleted: 4,
	handoff.StatusDelivered: 5,
}

// From returns the statuses from which the step is allowed, for an entry that its owner made or inherited; "" means
// that there is no entry.
func (s Step) From(inherited bool) []handoff.Status {
	var from []handoff.Status
	for _, e := range edges {
		switch {
		case e.to != s.To, s.Adopt, e.when == own && inherited:
		case e.attempts != nil && !slices.Contains(e.attempts, s.Attempt):
		case e.outcomes != nil && !slices.Contains(e.outcomes, s.Set.Outcome):
		default:
			from = append(from, e.from)
		}
	}
	return from
}

// Past returns the statuses after the one that the step leads to.
func (s Step) Past() []handoff.Status {
	var past []handoff.Status
	for _, e := range edges { // every status but the first is the end of some edge
		if Order[e.to] > Order[s.To] && !slices.Contains(past, e.to) {
			past = append(past, e.to)
		}
	}
	return past
}

// Merge returns the facts of an entry after a step.
func (f Facts) Merge(s Step) Facts {
	n := s.Set
	if s.To == handoff.StatusDispatching {
		f.Watermark, f.Turn = "", ""
	}
	return Facts{
		Print: cmp.Or(n.Print, f.Print), ClientID: cmp.Or(n.ClientID, f.ClientID), Target: cmp.Or(n.Target, f.Target),
		Watermark: cmp.Or(n.Watermark, f.Watermark), Turn: cmp.Or(n.Turn, f.Turn), Prompt: cmp.Or(n.Prompt, f.Prompt),
		Title: cmp.Or(n.Title, f.Title), Why: cmp.Or(n.Why, f.Why), Outcome: cmp.Or(n.Outcome, f.Outcome),
		Tests: cmp.Or(n.Tests, f.Tests), Code: cmp.Or(n.Code, f.Code), Spoken: cmp.Or(n.Spoken, f.Spoken),
		Giver: cmp.Or(n.Giver, f.Giver), Asker: cmp.Or(n.Asker, f.Asker), Parent: cmp.Or(n.Parent, f.Parent), Unkept: n.Unkept || f.Unkept,
	}
}
