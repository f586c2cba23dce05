package keeper

// sessions are those that the agent has open, or that have a turn, and the room for what is kept of them. Owned by the
// book.
type sessions struct {
	all  map[string]*session
	kept int    // bytes of all turns
	most int    // bytes that are kept: beyond them turns are forgotten
	ends uint64 // turns that have ended so far

	forgotten, gaps uint64 // turns that were, and whose words were, dropped for want of room
}

// A session is one that the agent has open, or that has a turn.
type session struct {
	cwd  string
	open bool
	by   map[uint64]bool // the attached clients that have it open
	last uint64          // of the clients that opened it or gave it a prompt
	turn *turn           // the newest that is kept; nil: none
}

// heard reports whether a client is attached that has given, or adopted, the turn of the session.
func (s *session) heard() bool { return s.turn != nil && len(s.turn.clients) > 0 }

func (s *session) runs() bool { return s.turn != nil && s.turn.ended == 0 }

// works reports whether a prompt runs that nobody has told to stop: one may be silent for as long as it takes.
func (a *sessions) works() bool {
	for _, s := range a.all {
		if s.runs() && !s.turn.stopped {
			return true
		}
	}
	return false
}

// owes reports whether a prompt has ended, not because it was told to stop, and no client knows.
func (a *sessions) owes() bool {
	for _, s := range a.all {
		if t := s.turn; t != nil && t.ended != 0 && !t.told && !t.stopped {
			return true
		}
	}
	return false
}

// stop returns what tells the agent to stop all that runs.
func (a *sessions) stop() (lines [][]byte) {
	for name, s := range a.all {
		if s.runs() {
			lines = append(lines, frame{Method: doCancel, Params: raw(map[string]string{"sessionId": name})}.line())
		}
	}
	return lines
}

// named returns the session of a name; one that is not known begins.
func (a *sessions) named(name string) *session {
	s := a.all[name]
	if s == nil {
		s = &session{by: map[uint64]bool{}}
		a.all[name] = s
	}
	return s
}

// forget forgets a session of which there is nothing to know.
func (a *sessions) forget(name string) {
	if s := a.all[name]; s != nil && !s.open && s.turn == nil {
		delete(a.all, name)
	}
}

// keep keeps what the agent said of the running turn of a session.
func (a *sessions) keep(s *session, what said) {
	if s.turn.gap && what.ask == "" {
		return
	}
	s.turn.said = append(s.turn.said, what)
	if a.count(s, len(what.line)); a.kept > a.most {
		a.room()
	}
	if a.kept <= a.most || s.turn.gap {
		return
	}
	s.turn.gap = true
	a.gaps++
	var asks []said
	for _, one := range s.turn.said {
		if one.ask != "" {
			asks = append(asks, one)
		} else {
			a.count(s, -len(one.line))
		}
	}
	s.turn.said = asks
}

// room forgets turns that have ended until there is room.
func (a *sessions) room() {
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
		if oldest == "" || a.kept <= a.most && ended <= maxEnded {
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
		a.kept -= s.turn.size
		s.turn = nil
	}
}

func (a *sessions) count(s *session, n int) {
	s.turn.size += n
	a.kept += n
}
