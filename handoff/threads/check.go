package threads

import (
	"slices"

	"switchboard/handoff"
)

// check returns the fault of a step that no thread can take.
func check(s Step) error {
	a := s.about()
	ids := []string{a.owner, a.thread}
	switch s := s.(type) {
	case Fork:
		ids = append(ids, a.copied)
	case Claim:
		if ids = append(ids, a.turn); len(a.items) == 0 { // whether a copy sees a turn is decided by the turn's items
			return handoff.Fault(handoff.CodeInternal, "", "a turn that is given nothing")
		}
	case Append:
		ids = append(ids, a.turn)
	case End:
		if ids = append(ids, a.turn); !slices.Contains([]Status{Completed, Incomplete, Failed, Interrupted}, s.Status) {
			return handoff.Fault(handoff.CodeInternal, "", "an end that is none")
		}
	}
	switch {
	case a.at.IsZero() || slices.Contains(ids, ""):
		return handoff.Fault(handoff.CodeInternal, "", "a step of threads without an id or a time")
	case slices.ContainsFunc(append(ids, a.after), func(id string) bool { return len(id) > maxID }):
		return handoff.Fault(handoff.CodeMalformed, "the id is too long", "")
	case a.steer != nil && (a.steer.N <= 0 || len(a.steer.Words) > MaxWords):
		return handoff.Fault(handoff.CodeInternal, "", "a steer without a number, or with too many words")
	case slices.ContainsFunc(a.items, func(it Item) bool { return len(it.JSON) > MaxItem }):
		return handoff.Fault(handoff.CodeTooLarge, "an item of the session", "")
	}
	return nil
}
