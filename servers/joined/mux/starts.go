package mux

import (
	"fmt"
	"time"

	"switchboard/handoff"
)

// soon is how long after its last start the next one of an agent counts as soon: longer than any pause.
const soon = 2 * time.Minute

// restarts are the pauses before an agent that ends soon, again and again, is started again: at first, at once.
var restarts = handoff.Backoff{First: time.Second, Longest: time.Minute}

// Starts are the starts of an agent in a row, each soon after the one before. The zero value has none.
type Starts struct {
	last time.Time
	n    int
}

// Next counts a start that begins now. Its error says that the start has to wait, and for how long.
func (s *Starts) Next(agent string) error {
	since := time.Since(s.last)
	if since > soon {
		s.n = 0
	}
	if wait := restarts.Step(s.n-2) - since; s.n > 1 && wait > 0 {
		return fmt.Errorf("%s ended %d times in a row; it is started again in %v", agent, s.n, wait.Round(time.Second))
	}
	s.last, s.n = time.Now(), s.n+1
	return nil
}
