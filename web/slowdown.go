package web

import (
	"net/netip"
	"sync"
	"time"

	"switchboard/handoff"
)

// Bounds of wrong keys and codes at the login. With 17 billion codes of ten minutes, an address finds one in a thousand
// million, whoever waits for it.
const (
	maxWrong    = 10          // in a row from one address
	wrongEvery  = time.Minute // and then one each
	sharedShare = 10          // so many times more for addresses that are not known, behind which everybody may be
	maxSlowed   = 10_000      // addresses; beyond it the one that would be free first is forgotten
)

// A slowdown bounds the wrong keys and codes from each address. A right one counts for nothing. It is safe for
// concurrent use.
type slowdown struct {
	mu    sync.Mutex
	until map[netip.Addr]time.Time // Guarded by mu: when the tries of an address no longer count, at most maxSlowed
}

func wrongsOf(at netip.Addr) time.Duration {
	if at.IsValid() {
		return wrongEvery
	}
	return wrongEvery / sharedShare
}

// try counts a try from an address before it is looked at. It fails if there were too many.
func (s *slowdown) try(at netip.Addr, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, most := s.until[at], maxWrong*wrongEvery
	if until.Before(now) {
		s.makeRoomLocked(now)
		until = now
	}
	if until = until.Add(wrongsOf(at)); until.Sub(now) > most {
		return &handoff.Error{Code: handoff.CodeLimited, Subject: "wrong keys and codes from there", Retry: until.Sub(now) - most}
	}
	s.until[at] = until
	return nil
}

// wasRight takes back a try.
func (s *slowdown) wasRight(at netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until[at] = s.until[at].Add(-wrongsOf(at))
}

func (s *slowdown) makeRoomLocked(now time.Time) {
	if s.until == nil {
		s.until = map[netip.Addr]time.Time{}
	}
	if len(s.until) < maxSlowed {
		return
	}
	var first netip.Addr
	for at, until := range s.until {
		if until.Before(now) {
			delete(s.until, at)
		} else if before, is := s.until[first]; !is || until.Before(before) {
			first = at
		}
	}
	if len(s.until) >= maxSlowed {
		delete(s.until, first)
	}
}
