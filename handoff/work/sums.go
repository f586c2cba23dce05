package work

import (
	"slices"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/phase"
)

// Idle reports whether everything is in the store, nobody attends, every outcome was heard, and nothing is paused.
func (s *State) Idle() bool {
	if len(s.listeners) > 0 || len(s.questions) > 0 || !s.stored() {
		return false
	}
	for _, h := range slices.Backward(s.all) { // the newest is open if any is, mostly
		if h.open || h.Paused || h.State != handoff.StatusDelivered {
			return false
		}
	}
	return true
}

// Sums asks what there is, for gauges and for whoever ends a home. All fields but Server and Since are results.
type Sums struct {
	Server string    // "": none
	Since  time.Time // when that was lost

	Beginning bool // some work has not reached its agent yet
	Working   bool // work on the server has not ended
	Waiting   int  // number of works that wait for the server
	Questions int
	States    map[handoff.Status]int // of those that are not over, or were not heard
}

func (e *Sums) apply(s *State) {
	e.States = map[handoff.Status]int{}
	e.Questions = len(s.questions)
	for _, h := range s.all {
		if h.State != handoff.StatusDelivered {
			e.States[h.State]++
		}
		e.Beginning = e.Beginning || h.open && begins(h.state.Phase)
		if h.Server != e.Server {
			continue
		}
		e.Working = e.Working || h.open
		unknown := h.Outcome == handoff.OutcomeUnknown && h.EndedAt != nil && !h.EndedAt.Before(e.Since)
		if h.open || h.Outcome == "" || h.NotBegun() && !h.heard() || unknown {
			e.Waiting++
		}
	}
}

func begins(p phase.Phase) bool {
	switch p {
	case phase.Resolving, phase.Attaching, phase.Starting, phase.Steering:
		return true
	}
	return false
}
