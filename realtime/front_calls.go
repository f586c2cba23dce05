package realtime

import (
	"cmp"
	"slices"

	"switchboard/handoff"
)

// Calls lists the calls of this caller that live, oldest first. A caller without a name gets an
// empty list, because the next one without a name is somebody else.
func (f *Front) Calls(grant handoff.Grant) []handoff.CallInfo {
	list := []handoff.CallInfo{}
	if grant.Caller.Nameless() {
		return list
	}
	f.mu.Lock()
	for id, c := range f.calls {
		if c.grant.MayEnd(grant) && !c.over.Load() { // one that is over may take a moment to close its far ends
			list = append(list, handoff.CallInfo{ID: id, Began: c.made, Held: c.held.Load()})
		}
	}
	f.mu.Unlock()
	slices.SortFunc(list, func(a, b handoff.CallInfo) int { return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.ID, b.ID)) })
	return list
}
