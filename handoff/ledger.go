package handoff

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
)

// Bounds of what the ledger keeps of a handoff in its entry, which is read and written at each step; the whole
// words are apart, see [LedgerBody].
const (
	LedgerAttempts  = 2   // how often a start may be sent: once more only after it certainly never ran
	maxLedgerPrompt = 200 // bytes
	maxLedgerSpoken = 4096
	maxLedgerName   = 512 // bytes of a title and of each id; a longer id is refused, never cut
)

// A Ledger keeps what happened to each handoff beyond the process. Implementations are safe for concurrent
// use; each method is one try and gives an [*Error] with code unreachable within a second when a store
// elsewhere does not answer. Then it cannot be told whether the step was written; repeating it is safe. A
// store in this process is never away and may take longer while the machine is busy.
type Ledger interface {
	// Advance writes one step, or finds that it was already written. It returns the entry as it is
	// then; with an error of [LedgerVerdict.Fault] the entry as it was found.
	Advance(ctx context.Context, s LedgerStep) (LedgerEntry, error)
	// Open returns a caller's entries that are not delivered, oldest first.
	Open(ctx context.Context, c Caller) ([]LedgerEntry, error)
	// OpenAll returns those of every caller: what a new life of the router has to take care of.
	OpenAll(ctx context.Context) ([]LedgerEntry, error)
}

// A LedgerEntry is what is remembered of one handoff. The zero Status means that there is none.
type LedgerEntry struct {
	Key       string // from [LedgerKey]
	Caller    Caller
	Owner     string // who carries the handoff; see [LedgerStep]
	Args      string // from [LedgerHash]: what was asked
	Status    Status
	Inherited bool // another owner adopted it: it can never be started any more
	Attempt   int  // how often the start may have been sent, at most [LedgerAttempts]
	LedgerFacts
	Accepted time.Time // when the entry was made; in UTC, whole milliseconds, like Ended
	Ended    time.Time // when its outcome became known
}

// LedgerFacts are the words of an entry. A step replaces those that it has and leaves the others; only
// dispatching always sets Watermark and Turn, because a fresh thread has none.
type LedgerFacts struct {
	CallID    string // from [LedgerHash]: the call_id, for the log
	ClientID  string // the [Turn.ID] that the start carries
	Target    Target
	Watermark TurnID // the thread's newest turn before the start
	Turn      TurnID // the acknowledged or found turn
	Prompt    string // its first words
	Title     string
	Why       string // named, continued or new
	Outcome   Outcome
	Code      Code   // of what went wrong
	Spoken    string // the outcome as it is said
}

// A LedgerStep is what one owner wants to happen to one entry. An owner is whoever carries the handoff: one
// goroutine in one life of the router. A name of its own for each keeps a request that was delivered twice
// from being started twice.
type LedgerStep struct {
	Key     string
	Caller  Caller
	Owner   string
	Args    string
	To      Status    // where to; "" with Adopt
	New     bool      // there may be no entry yet: make it
	Adopt   bool      // become the owner and nothing else; the former owner can write no more
	Attempt int       // with dispatching: 1, or 2 to send the start again
	At      time.Time // now
	Set     LedgerFacts
	Body    LedgerBody // whole words; a text that is "" leaves what is kept
}

// LedgerKey names a handoff: 20 letters and digits [a-z2-7] that are the same in every life of the router.
// A call_id is unique only in its session.
func LedgerKey(session, callID string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s", len(session), session, callID))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:20])
}

// LedgerHash shortens text that is only compared: 32 hex digits.
func LedgerHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// A ledgerEdge is one way to change an entry's status.
type ledgerEdge struct {
	from, to Status
	when     ledgerWhen
	attempts []int     // with dispatching: which attempts may go this way
	outcomes []Outcome // with completed: which outcomes may
}

// ledgerWhen says for whose entries an edge is there.
type ledgerWhen int

const (
	always ledgerWhen = iota
	own               // only for who made the entry: nobody else knows whether anything was sent since
)

// ledgerEdges are all ways, and there is no other table: the service, its Lua and the model check use this
// one. Nothing leads to delivered but completed, and nothing from there.
var ledgerEdges = []ledgerEdge{
	{from: "", to: StatusAccepted, when: own},
	{from: "", to: StatusDispatching, when: own, attempts: []int{1}},
	// A store that came back empty is told again how far the work is; that starts nothing.
	{from: "", to: StatusStarted, when: own},
	{from: "", to: StatusCompleted, when: own, outcomes: []Outcome{
		OutcomeResult, OutcomeFailed, OutcomeInterrupted, OutcomeCancelled, OutcomeUnknown}},
	{from: StatusAccepted, to: StatusDispatching, when: own, attempts: []int{1}},
	{from: StatusAccepted, to: StatusCompleted, outcomes: []Outcome{OutcomeFailed, OutcomeCancelled, OutcomeUnknown}},
	// Likewise one that came back as it was a while ago.
	{from: StatusAccepted, to: StatusStarted, when: own},
	{from: StatusAccepted, to: StatusCompleted, when: own, outcomes: []Outcome{OutcomeResult, OutcomeInterrupted}},
	{from: StatusDispatching, to: StatusDispatching, when: own, attempts: []int{2}},
	{from: StatusDispatching, to: StatusStarted},
	{from: StatusDispatching, to: StatusCompleted, outcomes: []Outcome{
		// A result without a turn of its own: words added to running work.
		OutcomeResult, OutcomeFailed, OutcomeInterrupted, OutcomeCancelled, OutcomeUnknown}},
	// Acknowledged, and then found as another turn.
	{from: StatusStarted, to: StatusStarted},
	// Acknowledged, and yet it never ran: the only way back.
	{from: StatusStarted, to: StatusDispatching, when: own, attempts: []int{2}},
	{from: StatusStarted, to: StatusCompleted, outcomes: []Outcome{
		OutcomeResult, OutcomeFailed, OutcomeInterrupted, OutcomeCancelled, OutcomeUnknown}},
	{from: StatusCompleted, to: StatusDelivered},
}

// ledgerOrder ranks the statuses.
var ledgerOrder = map[Status]int{
	"": 0, StatusAccepted: 1, StatusDispatching: 2, StatusStarted: 3, StatusCompleted: 4, StatusDelivered: 5,
}

// From returns the statuses that the step may leave, for an entry that its owner made or inherited; ""
// means that there is none.
func (s LedgerStep) From(inherited bool) []Status {
	var from []Status
	for _, e := range ledgerEdges {
		if e.allows(s, inherited) {
			from = append(from, e.from)
		}
	}
	return from
}

// Past returns the statuses that are further than the one the step leads to.
func (s LedgerStep) Past() []Status {
	var past []Status
	for _, e := range ledgerEdges { // every status but the first is the end of some edge
		if ledgerOrder[e.to] > ledgerOrder[s.To] && !slices.Contains(past, e.to) {
			past = append(past, e.to)
		}
	}
	return past
}

// bounded cuts what is only shown or said.
func (f LedgerFacts) bounded() LedgerFacts {
	f.Prompt, f.Spoken = Clip(f.Prompt, maxLedgerPrompt), Clip(f.Spoken, maxLedgerSpoken)
	f.Title = Clip(f.Title, maxLedgerName)
	return f
}

// merge puts the words of a step over those of an entry.
func (f LedgerFacts) merge(s LedgerStep) LedgerFacts {
	n := s.Set
	if s.To == StatusDispatching {
		f.Watermark, f.Turn = "", ""
	}
	return LedgerFacts{
		CallID: cmp.Or(n.CallID, f.CallID), ClientID: cmp.Or(n.ClientID, f.ClientID), Target: cmp.Or(n.Target, f.Target),
		Watermark: cmp.Or(n.Watermark, f.Watermark), Turn: cmp.Or(n.Turn, f.Turn), Prompt: cmp.Or(n.Prompt, f.Prompt),
		Title: cmp.Or(n.Title, f.Title), Why: cmp.Or(n.Why, f.Why), Outcome: cmp.Or(n.Outcome, f.Outcome),
		Code: cmp.Or(n.Code, f.Code), Spoken: cmp.Or(n.Spoken, f.Spoken),
	}
}
