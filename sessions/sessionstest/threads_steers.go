package sessionstest

import (
	"fmt"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/threads"
)

// waits checks what the newest turn of a thread took and what of that is unheard.
func (s *threadSuite) waits(thread string, steers []threads.Steer, unheard ...string) {
	s.Helper()
	r := s.read(thread)
	turn := r.Turns[len(r.Turns)-1]
	if fmt.Sprint(turn.Steers) != fmt.Sprint(steers) || fmt.Sprint(turn.Unheard) != fmt.Sprint(unheard) {
		s.Errorf("%s waits with %v and did not hear %q, want %v and %q", turn.ID, turn.Steers, turn.Unheard, steers, unheard)
	}
}

func (s *threadSuite) steers() {
	s.create("t")
	r := s.advance(s.claim("t", "", "a", ""))
	steer := func(n int) threads.Append {
		return threads.Append{Owner: threadOwner, Thread: "t", Turn: "a", Fence: r.Turn.Fence, At: s.now, Steer: &threads.Steer{N: n, Words: fmt.Sprint("steer ", n)}}
	}
	one, two, three := *steer(1).Steer, *steer(2).Steer, *steer(3).Steer
	for _, n := range []int{1, 2, 2, 1, 3} { // also made twice, and late
		s.advance(steer(n))
	}
	s.waits("t", []threads.Steer{one, two, three})
	write := s.end(r).Append
	write.Heard = 1
	s.advance(write)
	s.advance(write)
	s.waits("t", []threads.Steer{two, three})
	s.holds("t", "a")
	s.now = s.now.Add(time.Second)
	end := s.end(r)
	end.Items, end.Anchor = nil, nil
	s.advance(end)
	s.advance(end)
	s.waits("t", nil, "steer 2", "steer 3")
	s.refused(steer(4), handoff.CodeTakenOver)
	r = s.advance(s.claim("t", "", "b", ""))
	last := steer(1)
	last.Turn, last.Fence = "b", r.Turn.Fence
	s.advance(last)
	s.now = s.now.Add(threads.Lease)
	s.advance(threads.Fork{Owner: threadOwner, Thread: "t", Copy: "u", At: s.now})
	s.waits("t", nil, "steer 1") // of a turn that was lost
	s.waits("u", nil, "steer 1")
}
