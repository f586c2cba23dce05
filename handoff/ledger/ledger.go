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

// Bounds of what the ledger keeps of a handoff in its entry, which is read and written at each step; the whole
// words are apart, see [Body].
const (
	maxAttempts = 2   // how often a start may be sent: once more only after it certainly never ran
	maxPrompt   = 200 // bytes
	maxSpoken   = 4096
	maxName     = 512 // bytes of a title and of each id; a longer id is refused, never cut
)

// A Ledger keeps what happened to each handoff beyond the process. Implementations are safe for concurrent
// use; each method is one try and gives an [*handoff.Error] with code unreachable within a second when a store
// elsewhere does not answer. Then it cannot be told whether the step was written; repeating it is safe. A
// store in this process is never away and may take longer while the machine is busy.
//
// A store knows which life of the service opened it last. Each step carries the life's epoch, and one of an
// older life is refused with code shutdown, whatever it is of.
type Ledger interface {
	// Advance writes one step, or finds that it was already written. It returns the entry as it is
	// then; with an error of [Result.Fault] the entry as it was found.
	Advance(ctx context.Context, s Step) (Entry, error)
	// Open returns a caller's entries that are not delivered, oldest first.
	Open(ctx context.Context, c handoff.Caller) ([]Entry, error)
	// OpenAll returns those of every caller: what a new life of the router has to take care of.
	OpenAll(ctx context.Context) ([]Entry, error)
}

// An Entry is what is remembered of one handoff. The zero Status means that there is none.
type Entry struct {
	Key       string // from [Key]
	Caller    handoff.Caller
	Owner     string // who carries the handoff; see [Step]
	Args      string // from [Hash]: what was asked
	Status    handoff.Status
	Inherited bool // another owner adopted it: it can never be started any more
	Attempt   int  // how often the start may have been sent: once, or twice
	Facts
	Accepted time.Time // when the entry was made; in UTC, whole milliseconds, like Ended
	Ended    time.Time // when its outcome became known
}

// Facts are the words of an entry. A step replaces those that it has and leaves the others; only
// dispatching always sets Watermark and Turn, because a fresh thread has none.
type Facts struct {
	CallID    string // from [Hash]: the call_id, for the log
	ClientID  string // the [handoff.Turn.ID] that the start carries
	Target    handoff.Target
	Watermark handoff.TurnID // the thread's newest turn before the start
	Turn      handoff.TurnID // the acknowledged or found turn
	Prompt    string         // its first words
	Title     string
	Why       string // named, continued or new
	Outcome   handoff.Outcome
	Tests     handoff.Tests // how those ended that it ran last
	Code      handoff.Code  // of what went wrong
	Spoken    string        // the outcome as it is said
	Asker     string        // the program that asked, by its own name; "": a person
	Parent    handoff.RunID // the work whose agent asked; ""
	Unkept    bool          // nothing is kept but the key, the ids and the outcome, for [KeyFor]: no words
}

// A Step is what one owner wants to happen to one entry. An owner is whoever carries the handoff: one
// goroutine in one life of the router. A name of its own for each keeps a request that was delivered twice
// from being started twice.
type Step struct {
	Key     string
	Caller  handoff.Caller
	Owner   string
	Args    string
	To      handoff.Status // where to; "" with Adopt
	New     bool           // there may be no entry yet: make it
	Again   bool           // with New: it is asked for once more, so an entry whose key is free is made anew
	Adopt   bool           // become the owner and nothing else; the former owner can write no more
	Attempt int            // with dispatching: 1, or 2 to send the start again
	At      time.Time      // now
	Set     Facts
	Body    Body // whole words; a text that is "" leaves what is kept
}

// Keeps reports whether the whole request of a handoff is kept beside the entry after a step: as long as its words
// wait, or are paused.
func (s Step) Keeps() bool {
	return s.Adopt || s.To == handoff.StatusAccepted || s.To == handoff.StatusCompleted && s.Set.Code.Asks()
}

// Key names a handoff: 20 letters and digits [a-z2-7] that are the same in every life of the router.
// A call_id is unique only in its session.
func Key(session, callID string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s", len(session), session, callID))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:20])
}

// Hash shortens text that is only compared: 32 hex digits.
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// An edge is one way to change an entry's status.
type edge struct {
	from, to handoff.Status
	when     when
	attempts []int             // with dispatching: which attempts may go this way
	outcomes []handoff.Outcome // with completed: which outcomes may
}

// when says for whose entries an edge is there.
type when int

const (
	always when = iota
	own         // only for who made the entry: nobody else knows whether anything was sent since
)

// edges are all ways, and there is no other table: the service, its Lua and the model check use this
// one. Nothing leads to delivered but completed, and nothing from there.
var edges = []edge{
	{from: "", to: handoff.StatusAccepted, when: own},
	{from: "", to: handoff.StatusDispatching, when: own, attempts: []int{1}},
	// A store that came back empty is told again how far the work is; that starts nothing.
	{from: "", to: handoff.StatusStarted, when: own},
	{from: "", to: handoff.StatusCompleted, when: own, outcomes: []handoff.Outcome{
		handoff.OutcomeResult, handoff.OutcomeFailed, handoff.OutcomeInterrupted, handoff.OutcomeCancelled,
		handoff.OutcomeUnknown}},
	{from: handoff.StatusAccepted, to: handoff.StatusDispatching, when: own, attempts: []int{1}},
	{
		from: handoff.StatusAccepted, to: handoff.StatusCompleted,
		outcomes: []handoff.Outcome{handoff.OutcomeFailed, handoff.OutcomeCancelled, handoff.OutcomeUnknown},
	},
	// Likewise one that came back as it was a while ago.
	{from: handoff.StatusAccepted, to: handoff.StatusStarted, when: own},
	{
		from: handoff.StatusAccepted, to: handoff.StatusCompleted, when: own,
		outcomes: []handoff.Outcome{handoff.OutcomeResult, handoff.OutcomeInterrupted},
	},
	{from: handoff.StatusDispatching, to: handoff.StatusDispatching, when: own, attempts: []int{2}},
	{from: handoff.StatusDispatching, to: handoff.StatusStarted},
	{from: handoff.StatusDispatching, to: handoff.StatusCompleted, outcomes: []handoff.Outcome{
		// A result without a turn of its own: words added to running work.
		handoff.OutcomeResult, handoff.OutcomeFailed, handoff.OutcomeInterrupted, handoff.OutcomeCancelled,
		handoff.OutcomeUnknown}},
	// Acknowledged, and then found as another turn.
	{from: handoff.StatusStarted, to: handoff.StatusStarted},
	// Acknowledged, and yet it never ran: the only way back.
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

// From returns the statuses that the step may leave, for an entry that its owner made or inherited; ""
// means that there is none.
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

// Past returns the statuses that are further than the one the step leads to.
func (s Step) Past() []handoff.Status {
	var past []handoff.Status
	for _, e := range edges { // every status but the first is the end of some edge
		if Order[e.to] > Order[s.To] && !slices.Contains(past, e.to) {
			past = append(past, e.to)
		}
	}
	return past
}

// Merge puts the words of a step over those of an entry.
func (f Facts) Merge(s Step) Facts {
	n := s.Set
	if s.To == handoff.StatusDispatching {
		f.Watermark, f.Turn = "", ""
	}
	return Facts{
		CallID: cmp.Or(n.CallID, f.CallID), ClientID: cmp.Or(n.ClientID, f.ClientID), Target: cmp.Or(n.Target, f.Target),
		Watermark: cmp.Or(n.Watermark, f.Watermark), Turn: cmp.Or(n.Turn, f.Turn), Prompt: cmp.Or(n.Prompt, f.Prompt),
		Title: cmp.Or(n.Title, f.Title), Why: cmp.Or(n.Why, f.Why), Outcome: cmp.Or(n.Outcome, f.Outcome),
		Tests: cmp.Or(n.Tests, f.Tests), Code: cmp.Or(n.Code, f.Code), Spoken: cmp.Or(n.Spoken, f.Spoken),
		Asker: cmp.Or(n.Asker, f.Asker), Parent: cmp.Or(n.Parent, f.Parent), Unkept: n.Unkept || f.Unkept,
	}
}
