package threads

import (
	"slices"
	"time"

	"switchboard/handoff"
)

// check returns the fault of a step that no thread can take.
func check(s Step) error {
	owner, thread := s.about()
	ids, optional, at := []string{owner, thread}, []string(nil), time.Time{}
	var items []Item
	var steer *Steer
	switch s := s.(type) {
	case Create:
		at = s.At
	case Fork:
		ids, optional, at = append(ids, s.Copy), []string{s.After}, s.At
	case Claim:
		ids, optional, at, items = append(ids, s.Turn), []string{s.After, s.Copy}, s.At, s.Items
		if len(items) == 0 { // whether a copy sees a turn is decided by the turn's items
			return handoff.Fault(handoff.CodeInternal, "", "a turn that is given nothing")
		}
	case Append:
		ids, at, items, steer = append(ids, s.Turn), s.At, s.Items, s.Steer
	case End:
		ids, at, items, steer = append(ids, s.Turn), s.At, s.Items, s.Steer
		if !slices.Contains([]Status{Completed, Incomplete, Failed, Interrupted}, s.Status) {
			return handoff.Fault(handoff.CodeInternal, "", "an end that is none")
		}
	case Undo:
		ids, at = append(ids, s.Turn), time.Unix(0, 0)
	}
	if at.IsZero() || slices.Contains(ids, "") {
		return handoff.Fault(handoff.CodeInternal, "", "a step of threads without an id or a time")
	}
	if slices.ContainsFunc(append(ids, optional...), func(id string) bool { return len(id) > maxID }) {
		return handoff.Fault(handoff.CodeMalformed, "the id is too long", "")
	}
	if steer != nil && (steer.N <= 0 || len(steer.Words) > MaxWords) {
		return handoff.Fault(handoff.CodeInternal, "", "a steer without a number, or with too many words")
	}
	if slices.ContainsFunc(items, func(it Item) bool { return len(it.JSON) > MaxItem }) {
		return handoff.Fault(handoff.CodeTooLarge, "an item of the session", "")
	}
	return nil
}
