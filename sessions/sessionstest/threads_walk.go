package sessionstest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"switchboard/handoff/threads"
)

// walk makes random steps and keeps beside the store what each thread must have, where copies are real ones.
func (s *threadSuite) walk() {
	random := rand.New(rand.NewPCG(1, 2))
	s.create("t0")
	have := map[string][]string{"t0": nil} // turns that have ended, by thread
	names := []string{"t0"}
	for i := range 300 {
		thread := names[random.IntN(len(names))]
		before := have[thread]
		turn, copied, after := fmt.Sprint("n", i), fmt.Sprint("t", i+1), ""
		at := len(before)
		if at > 0 && random.IntN(3) == 0 {
			at = 1 + random.IntN(at)
			after = before[at-1]
		}
		history := slices.Clone(before[:at])
		if random.IntN(4) == 0 {
			s.advance(threads.Fork{Owner: threadOwner, Thread: thread, After: after, Copy: copied, At: s.now})
			names, have[copied] = append(names, copied), history
			continue
		}
		r, err := s.store.Advance(s.Context(), s.claim(thread, after, turn, copied))
		if err != nil {
			continue // copied too often
		}
		if want := at < len(before); r.Forked != want {
			s.Fatalf("a claim after %q of %v forked: %v", after, before, r.Forked)
		}
		if random.IntN(5) == 0 {
			s.advance(threads.Undo{Owner: threadOwner, Thread: r.Thread.ID, Turn: turn, Fence: r.Turn.Fence})
			continue
		}
		s.advance(s.end(r))
		if r.Forked {
			names = append(names, copied)
		}
		have[r.Thread.ID] = append(history, turn)
	}
	for _, name := range names {
		s.holds(name, have[name]...)
	}
}
