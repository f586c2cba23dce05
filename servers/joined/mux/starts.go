package mux

import (
	"fmt"
	"time"

	"switchboard/handoff"
)

// livedFor is how long an agent lives at least that is started again at once.
const livedFor = time.Minute

// restarts are the pauses before an agent that ends soon, again and again, is started again.
var restarts = handoff.Backoff{First: time.Second, Longest: time.Minute}

// Starts are the starts of an agent in a row, each soon after the one before. The zero value has none.
type Starts struct {
	last time.Time
	n    int
}

// Next counts a start that begins now. Its error says that the start has to wait, and for how long.
func (s *Starts) Next(agent string) error {
	pause, since := restarts.Step(s.n-1), time.Since(s.last)
	switch {
	case since > livedFor+pause:
		s.n = 0
	case since < pause:
		return fmt.Errorf("%s ended %d times in a row; it is started again in %v", agent, s.n, (pause - since).Round(time.Second))
	}
	s.last, s.n = time.Now(), s.n+1
	return nil
}
