package keeper

// sessions are those that the agent has open or that have a turn. Owned by the book.
type sessions struct {
	all   map[string]*session
	size  int    // bytes of all turns
	limit int    // of size: beyond it turns are forgotten
	ends  uint64 // turns that have ended so far

	forgotten uint64 // turns that were forgotten for want of room
	gaps      uint64 // running turns whose messages were dropped for want of room
}

// A session is one that the agent has open or that has a turn.
type session struct {
	cwd        string
	open       bool            // in the agent
	openBy     map[uint64]bool // the attached clients that have it open
	lastClient uint64          // that opened it or sent it a prompt
	turn       *turn           // the newest one; nil: none is recorded
}

// hasClient reports whether an attached client has sent or adopted the session's turn.
func (s *session) hasClient() bool { return s.turn != nil && len(s.turn.clients) > 0 }

func (s *session) runs() bool { return s.turn != nil && s.turn.ended == 0 }

// works reports whether a prompt runs that was not told to stop. Such a prompt may be silent for any time.
func (a *sessions) works() bool {
	for _, s := range a.all {
		if s.runs() && !s.turn.stopped {
			return true
		}
	}
	return false
}

// owesOutcome reports whether a prompt has ended, without being told to stop, and no client knows its outcome.
func (a *sessions) owesOutcome() bool {
	for _, s := range a.all {
		if t := s.turn; t != nil && t.ended != 0 && !t.reported && !t.stopped {
			return true
		}
	}
	return false
}

// stop returns the messages that tell the agent to stop all running prompts.
func (a *sessions) stop() (lines [][]byte) {
	for name, s := range a.all {
		if s.runs() {
			lines = append(lines, frame{Method: doCancel, Params: raw(map[string]string{"sessionId": name})}.line())
		}
	}
	return lines
}

// ensure returns the session of an id, and adds it if it is not known.
func (a *sessions) ensure(name string) *session {
	s := a.all[name]
	if s == nil {
		s = &session{openBy: map[uint64]bool{}}
		a.all[name] = s
	}
	return s
}

// forget removes a session that is neither open nor has a turn.
func (a *sessions) forget(name string) {
	if s := a.all[name]; s != nil && !s.open && s.turn == nil {
		delete(a.all, name)
	}
}

// record records a message of the running turn of a session. When there is no room, the turn keeps only the agent's
// requests from there on.
func (a *sessions) record(s *session, m recorded) {
	if s.turn.gap && m.requestID == "" {
		return
	}
	s.turn.messages = append(s.turn.messages, m)
	if a.grow(s, len(m.line)); a.size > a.limit {
		a.makeRoom()
	}
	if a.size <= a.limit || s.turn.gap {
		return
	}
	s.turn.gap = true
	a.gaps++
	var requests []recorded
	for _, m := range s.turn.messages {
		if m.requestID != "" {
			requests = append(requests, m)
		} else {
			a.grow(s, -len(m.line))
		}
	}
	s.turn.messages = requests
}

// makeRoom forgets turns that have ended until size and their number are within bounds.
func (a *sessions) makeRoom() {
	for {
		oldest, ended := "", 0
		for name, s := range a.all {
			if s.turn == nil || s.turn.ended == 0 {
				continue
			}
			if ended++; oldest == "" || s.turn.ended < a.all[oldest].turn.ended {
				oldest = name
			}
		}
		if oldest == "" || a.size <= a.limit && ended <= maxEnded {
			return
		}
		a.forgotten++
		a.drop(a.all[oldest])
		a.forget(oldest)
	}
}

// drop forgets the turn of a session.
func (a *sessions) drop(s *session) {
	if s.turn != nil {
		a.size -= s.turn.size
		s.turn = nil
	}
}

// grow adds n bytes to the size of a session's turn.
func (a *sessions) grow(s *session, n int) {
	s.turn.size += n
	a.size += n
}
