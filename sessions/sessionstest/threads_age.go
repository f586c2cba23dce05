package sessionstest

import (
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/threads"
)

// TestThreadsAge holds that threads are forgotten when nobody used them for life, and never before; one that was copied
// as long as its copies. pass lets time go by for the store, whose clock the test then reads from now.
func TestThreadsAge(t *testing.T, store threads.Store, life time.Duration, pass func(time.Duration), now func() time.Time) {
	s := &threadSuite{T: t, store: store, now: now()}
	for _, id := range []string{"old", "used", "running", "source", "empty"} {
		s.create(id)
	}
	for _, id := range []string{"old", "used", "source"} {
		s.turn(id, "", "a", "")
	}
	s.advance(threads.Fork{Owner: threadOwner, Thread: "source", Copy: "copy", At: s.now})
	later := func(part time.Duration) {
		pass(part)
		s.now = now()
	}
	later(life * 2 / 3)
	s.turn("used", "", "b", "")
	s.turn("copy", "", "b", "")
	running := s.advance(s.claim("running", "", "a", ""))
	later(life * 2 / 3)
	s.here(map[string]bool{"old": false, "empty": false, "used": true, "running": true, "source": true, "copy": true})
	if r, err := store.Read(t.Context(), threadOwner, "copy"); err != nil || len(r.Turns) != 2 {
		t.Errorf("of the copy there are %d turns, %v", len(r.Turns), err)
	}
	if list, err := store.List(t.Context(), threadOwner, 10); err != nil || len(list) < 3 {
		t.Errorf("%d are listed, %v", len(list), err)
	}
	s.advance(threads.Append{Owner: threadOwner, Thread: "running", Turn: "a", Fence: running.Turn.Fence, At: s.now})
	later(life * 2 / 3)
	s.here(map[string]bool{"used": false, "copy": false, "running": true})
	later(3 * life)
	s.here(map[string]bool{"running": false, "source": false})
	if list, err := store.List(t.Context(), threadOwner, 10); err != nil || len(list) > 0 {
		t.Errorf("%+v are listed, %v", list, err)
	}
}

// here holds which threads are there.
func (s *threadSuite) here(want map[string]bool) {
	s.Helper()
	for id, there := range want {
		_, err := s.store.Read(s.Context(), threadOwner, id)
		if (err == nil) != there || err != nil && handoff.AsError(err).Code != handoff.CodeSessionGone {
			s.Errorf("%s: %v, and should be there: %v", id, err, there)
		}
	}
}
