package handoff

import (
	"cmp"
	"slices"
	"time"
)

// A LedgerVerdict is what a step means for an entry.
type LedgerVerdict string

// The verdicts.
const (
	LedgerApplied  LedgerVerdict = "applied"  // the entry changes
	LedgerSame     LedgerVerdict = "same"     // the same owner wrote the same before; nothing changes
	LedgerConflict LedgerVerdict = "conflict" // something else was asked under this key
	LedgerTaken    LedgerVerdict = "taken"    // somebody else owns the entry
	LedgerPast     LedgerVerdict = "past"     // the entry is further already
	LedgerMissing  LedgerVerdict = "missing"  // there is no entry, and the step does not make one
	LedgerIllegal  LedgerVerdict = "illegal"  // no edge leads there
)

// allows reports whether the step may go this way.
func (e ledgerEdge) allows(s LedgerStep, inherited bool) bool {
	switch {
	case e.to != s.To || s.Adopt:
		return false
	case e.when == own && inherited:
		return false
	case e.attempts != nil && !slices.Contains(e.attempts, s.Attempt):
		return false
	default:
		return e.outcomes == nil || slices.Contains(e.outcomes, s.Set.Outcome)
	}
}

// Check returns the step with its texts cut to their bounds and its time to milliseconds, or what is
// wrong with it whatever the entry is.
func (s LedgerStep) Check() (LedgerStep, error) {
	bad := func(why string) (LedgerStep, error) {
		return LedgerStep{}, Fault(CodeInternal, "", "a step of the ledger "+why)
	}
	rank, known := ledgerOrder[s.To]
	switch {
	case s.Key == "" || s.Owner == "" || s.Args == "" || s.Caller.Principal == "":
		return bad("without key, owner, arguments or caller")
	case !known, s.Adopt != (rank == 0), s.Adopt && (s.New || s.Set != LedgerFacts{} || s.Body != LedgerBody{}):
		return bad("to nowhere")
	case (s.To == StatusDispatching) != (s.Attempt != 0), s.Attempt < 0, s.Attempt > LedgerAttempts:
		return bad("with a wrong attempt")
	case s.To == StatusStarted && s.Set.Turn == "":
		return bad("to started without a turn")
	case (s.To == StatusCompleted) != (s.Set.Outcome != ""):
		return bad("with a wrong outcome")
	case s.At.IsZero():
		return bad("without a time")
	}
	for _, id := range []string{
		s.Key, s.Owner, s.Args, s.Caller.Principal, s.Caller.User, s.Set.CallID, s.Set.ClientID, s.Set.Target.Server,
		s.Set.Target.Project, s.Set.Target.Thread, string(s.Set.Watermark), string(s.Set.Turn), s.Set.Why,
	} {
		if len(id) > maxLedgerName {
			return bad("with an id that is too long")
		}
	}
	s.Set, s.At = s.Set.bounded(), ledgerTime(s.At)
	s.Body.Prompt, s.Body.Text = Clip(s.Body.Prompt, MaxLedgerBody), Clip(s.Body.Text, MaxLedgerBody)
	return s, nil
}

// ledgerTime is a time as the ledger keeps it.
func ledgerTime(t time.Time) time.Time { return time.UnixMilli(t.UnixMilli()).UTC() }

// Apply returns the entry after the step. When nothing changes because the owner wrote the same before,
// that is no error; otherwise the entry comes back as it was, with the error of [LedgerVerdict.Fault].
func (e LedgerEntry) Apply(s LedgerStep) (LedgerEntry, error) {
	s, err := s.Check()
	if err != nil {
		return e, err
	}
	verdict := e.Judge(s)
	if verdict != LedgerApplied {
		return e, verdict.Fault(e, s)
	}
	if s.Adopt {
		e.Owner, e.Inherited = s.Owner, true
		return e, nil
	}
	if e.Status == "" {
		e = LedgerEntry{Key: s.Key, Caller: s.Caller, Args: s.Args, Owner: s.Owner, Accepted: s.At}
	}
	e.LedgerFacts = e.merge(s)
	e.Status, e.Attempt = s.To, cmp.Or(s.Attempt, e.Attempt)
	switch s.To {
	case StatusCompleted:
		e.Ended = s.At
	case StatusDelivered:
		e = e.History()
	}
	return e, nil
}

// Judge decides what a checked step means for an entry. It changes nothing.
func (e LedgerEntry) Judge(s LedgerStep) LedgerVerdict {
	from := s.From(e.Inherited)
	switch {
	case e.Status == "":
		if s.New && slices.Contains(from, e.Status) {
			return LedgerApplied
		}
		return LedgerMissing
	case e.Args != s.Args || e.Caller != s.Caller:
		return LedgerConflict
	case s.Adopt:
		if e.Owner == s.Owner {
			return LedgerSame
		}
		return LedgerApplied
	case e.Owner != s.Owner:
		return LedgerTaken
	case e.Status == s.To && (s.Attempt == 0 || s.Attempt == e.Attempt) && (s.To != StatusStarted || s.Set.Turn == e.Turn):
		return LedgerSame
	case slices.Contains(from, e.Status) && (s.Attempt == 0 || s.Attempt > e.Attempt):
		return LedgerApplied
	case slices.Contains(s.Past(), e.Status), e.Status == s.To && e.Attempt > s.Attempt:
		return LedgerPast
	}
	return LedgerIllegal
}

// Fault returns the error of a verdict, nil when the step is written.
func (v LedgerVerdict) Fault(e LedgerEntry, s LedgerStep) error {
	detail := "step to " + string(s.To) + " of an entry that is " + cmp.Or(string(e.Status), "not there")
	if s.Adopt {
		detail = "adoption of an entry that is not there"
	}
	switch v {
	case LedgerApplied, LedgerSame:
		return nil
	case LedgerConflict:
		return Fault(CodeConflict, "", "")
	case LedgerTaken:
		return Fault(CodeTakenOver, "", detail)
	case LedgerPast:
		return Fault(CodeTakenOver, "", detail)
	case LedgerMissing:
		return Fault(CodeNotFound, "such work", detail)
	default:
		return Fault(CodeInternal, "", detail)
	}
}
