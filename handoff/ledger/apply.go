package ledger

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
)

// A Result is what a step means for an entry.
type Result string

// The results.
const (
	Applied  Result = "applied"  // the entry changes
	Same     Result = "same"     // the same owner wrote the same step before; nothing changes
	Conflict Result = "conflict" // another request has this key
	Taken    Result = "taken"    // the entry has another owner
	Past     Result = "past"     // the entry has a later status already
	Missing  Result = "missing"  // there is no entry, and the step does not make one
	Illegal  Result = "illegal"  // there is no such edge
)

// Check returns the step with its texts cut to their bounds and its time to milliseconds, or an error if no entry could
// take the step.
func (s Step) Check() (Step, error) {
	bad := func(why string) (Step, error) {
		return Step{}, handoff.Fault(handoff.CodeInternal, "", "a step of the ledger "+why)
	}
	rank, known := Order[s.To]
	switch {
	case s.Key == "" || s.Owner == "" || s.Args == "" || s.Caller.Principal == "":
		return bad("without key, owner, arguments or caller")
	case !known, s.Adopt != (rank == 0), s.Adopt && (s.New || s.Set != Facts{} || s.Body != Body{}):
		return bad("to nowhere")
	case (s.To == handoff.StatusDispatching) != (s.Attempt != 0), s.Attempt < 0, s.Attempt > maxAttempts:
		return bad("with a wrong attempt")
	case s.To == handoff.StatusStarted && s.Set.Turn == "":
		return bad("to started without a turn")
	case (s.To == handoff.StatusCompleted) != (s.Set.Outcome != ""):
		return bad("with a wrong outcome")
	case s.Again && !s.New:
		return bad("that asks again for nothing")
	case s.At.IsZero():
		return bad("without a time")
	}
	for _, id := range []string{
		s.Key, s.Owner, s.Args, s.Caller.Principal, s.Caller.User, s.Set.Print, s.Set.ClientID,
		s.Set.Target.Server, s.Set.Target.Project, s.Set.Target.Thread,
		string(s.Set.Watermark), string(s.Set.Turn), s.Set.Why, string(s.Set.Tests),
	} {
		if len(id) > maxName {
			return bad("with an id that is too long")
		}
	}
	for _, text := range []*string{
		&s.Set.Print, &s.Set.ClientID, &s.Set.Target.Server, &s.Set.Target.Project, &s.Set.Target.Thread,
		(*string)(&s.Set.Watermark), (*string)(&s.Set.Turn), &s.Set.Prompt, &s.Set.Title, &s.Set.Why, &s.Set.Spoken,
		&s.Set.Asker, (*string)(&s.Set.Parent), (*string)(&s.Set.Code),
	} {
		*text = strings.ToValidUTF8(*text, "\ufffd") // an entry is stored as JSON
	}
	s.Set, s.At = s.Set.bounded(), time.UnixMilli(s.At.UnixMilli()).UTC()
	s.Body.Prompt, s.Body.Text = handoff.Clip(s.Body.Prompt, MaxBody), handoff.Clip(s.Body.Text, MaxBody)
	if len(s.Body.Did) > MaxBody {
		s.Body.Did = ""
	}
	if !s.Keeps() || len(s.Body.Request) > MaxRequest {
		s.Body.Request = ""
	}
	if s.Set.Unkept {
		s.Body = Body{}
	}
	return s, nil
}

// bounded cuts the texts that are only shown or said; if no words are kept, to nothing.
func (f Facts) bounded() Facts {
	if f.Unkept {
		f.Prompt, f.Title, f.Spoken = "", "", ""
	}
	f.Prompt, f.Spoken = handoff.Clip(f.Prompt, maxPrompt), handoff.Clip(f.Spoken, maxSpoken)
	f.Title = handoff.Clip(f.Title, maxName)
	return f
}

// Apply returns the entry after the step. If the owner wrote the same step before, nothing changes and that is no
// error. Any other step that does not apply returns the unchanged entry and the error of [Result.Fault].
func (e Entry) Apply(s Step) (Entry, error) {
	s, err := s.Check()
	if err != nil {
		return e, err
	}
	result := e.Judge(s)
	if result != Applied {
		return e, result.Fault(e, s)
	}
	if s.Adopt {
		e.Owner, e.Inherited = s.Owner, true
		return e, nil
	}
	if e.Status == "" || e.Anew(s) {
		e = Entry{Key: s.Key, Caller: s.Caller, Args: s.Args, Owner: s.Owner, Accepted: s.At}
	}
	e.Facts = e.Merge(s)
	e.Status, e.Attempt = s.To, cmp.Or(s.Attempt, e.Attempt)
	switch s.To {
	case handoff.StatusCompleted:
		e.Ended = s.At
	case handoff.StatusDelivered:
		e = e.History()
	}
	return e, nil
}

// Free reports whether a new run may have the key of an entry that is over: nothing was sent to an agent, and nobody
// stopped the work. Work that was stopped, paused or dropped is not begun because its request is repeated.
func (e Entry) Free() bool {
	switch {
	case e.Outcome == "", e.Turn != "":
		return false
	case e.Code == handoff.CodeStoreDown: // nothing is sent before the step to dispatching is written
		return true
	case e.Attempt > 0:
		return false
	case e.Code == handoff.CodeNotBegun: // if it is delivered, the caller has decided
		return e.Status == handoff.StatusCompleted
	}
	return e.Outcome == handoff.OutcomeFailed || e.Code == handoff.CodeShutdown
}

// Anew reports whether a step replaces the entry, as if there were none: the key is free, and a repeated request has a
// new owner. Late steps of the former owner do not.
func (e Entry) Anew(s Step) bool {
	return s.New && s.Again && e.Owner != s.Owner && e.Caller == s.Caller && e.Free() && slices.Contains(s.From(false), "")
}

// Judge decides what a checked step means for an entry. It changes nothing.
func (e Entry) Judge(s Step) Result {
	from := s.From(e.Inherited)
	switch {
	case e.Anew(s):
		return Applied
	case e.Status == "":
		if s.New && slices.Contains(from, e.Status) {
			return Applied
		}
		return Missing
	case e.Args != s.Args || e.Caller != s.Caller:
		return Conflict
	case s.Adopt:
		if e.Owner == s.Owner {
			return Same
		}
		return Applied
	case e.Owner != s.Owner:
		return Taken
	case e.Status == s.To && (s.Attempt == 0 || s.Attempt == e.Attempt) &&
		(s.To != handoff.StatusStarted || s.Set.Turn == e.Turn):
		return Same
	case slices.Contains(from, e.Status) && (s.Attempt == 0 || s.Attempt > e.Attempt):
		return Applied
	case slices.Contains(s.Past(), e.Status), e.Status == s.To && e.Attempt > s.Attempt:
		return Past
	}
	return Illegal
}

// Fault returns the error of a result, nil when the step is written.
func (r Result) Fault(e Entry, s Step) error {
	detail := "step to " + string(s.To) + " of an entry that is " + cmp.Or(string(e.Status), "not there")
	if s.Adopt {
		detail = "adoption of an entry that is not there"
	}
	switch r {
	case Applied, Same:
		return nil
	case Conflict:
		return handoff.Fault(handoff.CodeConflict, "", "")
	case Taken:
		return handoff.Fault(handoff.CodeTakenOver, "", detail)
	case Past:
		return handoff.Fault(handoff.CodeTakenOver, "", detail)
	case Missing:
		return handoff.Fault(handoff.CodeNotFound, "such work", detail)
	default:
		return handoff.Fault(handoff.CodeInternal, "", detail)
	}
}
