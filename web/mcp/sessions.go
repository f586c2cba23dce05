package mcp

import (
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"switchboard/handoff"
)

// A session is an open session of a client.
type session struct {
	caller   handoff.Caller // Set once
	key      string         // Set once; "": none
	begun    bool           // Guarded by the front's mu: the request that begins it has been answered
	requests int            // Guarded by the front's mu: that are being answered, open streams too
	idle     *time.Timer    // Guarded by the front's mu: ends the session; nil: it has not begun
}

// keep adds the server of a session that begins. It fails if the caller or the key has too many sessions.
func (f *Front) keep(server *mcp.Server, g handoff.Grant) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	ofCaller, ofKey := 0, 0
	for s, its := range f.open {
		if its.begun && !used(s) { // the session has ended
			f.dropLocked(s)
			continue
		}
		if its.caller == g.Caller {
			ofCaller++
		}
		if its.key == g.Key && g.Key != "" {
			ofKey++
		}
	}
	if ofCaller >= maxSessions || ofKey >= maxKeySessions {
		return handoff.Fault(handoff.CodeOverloaded, "MCP sessions", "")
	}
	f.open[server] = &session{caller: g.Caller, key: g.Key}
	return nil
}

// begun records that the request that should begin a session has been answered. If it began none, the server is
// removed.
func (f *Front) begun(server *mcp.Server) {
	f.mu.Lock()
	defer f.mu.Unlock()
	its := f.open[server]
	if its == nil || !used(server) {
		f.dropLocked(server)
		return
	}
	its.begun = true
	its.idle = time.AfterFunc(f.cfg.Idle, func() { f.endIdle(server) })
}

// use keeps a session while a request of it is answered: until done is called. A client does not always recover from
// the end of a session, so one whose stream is open does not end.
func (f *Front) use(id string) (done func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for server, its := range f.open {
		for s := range server.Sessions() {
			if s.ID() != id {
				continue
			}
			its.requests++
			return func() { f.rest(its) }
		}
	}
	return func() {}
}

func (f *Front) rest(its *session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if its.requests--; its.requests == 0 && its.idle != nil {
		its.idle.Reset(f.cfg.Idle)
	}
}

// endIdle ends a session that nobody has used for long, unless a request of it is being answered: then rest begins the
// time anew.
func (f *Front) endIdle(server *mcp.Server) {
	f.mu.Lock()
	its := f.open[server]
	if its == nil || its.requests > 0 {
		f.mu.Unlock()
		return
	}
	f.dropLocked(server)
	f.mu.Unlock()
	closeSessions(server)
}

func (f *Front) dropLocked(server *mcp.Server) {
	if its := f.open[server]; its != nil && its.idle != nil {
		its.idle.Stop()
	}
	delete(f.open, server)
}

// used reports whether a session of the server is open.
func used(s *mcp.Server) bool {
	for range s.Sessions() {
		return true
	}
	return false
}

// Close ends all sessions.
func (f *Front) Close() {
	f.mu.Lock()
	var open []*mcp.Server
	for s := range f.open {
		open = append(open, s)
		f.dropLocked(s)
	}
	f.mu.Unlock()
	for _, s := range open {
		closeSessions(s)
	}
}

func closeSessions(server *mcp.Server) {
	for s := range server.Sessions() {
		_ = s.Close() // the client sees the end of its stream
	}
}
