package acp

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/jsonrpc"
)

// How long each kind of request may take.
const (
	openTimeout    = 30 * time.Second // session/new, load, resume, fork: the agent may start a program for each
	findTimeout    = 10 * time.Second // session/list, to find one session
	controlTimeout = 10 * time.Second
	closeTimeout   = 2 * time.Second
	stopTimeout    = time.Second // for a cancel before the input ends
)

// Bounds of sessions.
const (
	maxSessions  = 64 // beyond which unused ones are forgotten
	maxListPages = 10 // of a list for people
)

// replayQuiet is the pause after which a history that follows its answer counts as complete.
const replayQuiet = 300 * time.Millisecond

// A connection is one agent process. It implements [servers.Conn], [servers.Forker] and [servers.Catalog] and is safe
// for concurrent use.
type connection struct {
	cfg        Config         // Set once
	log        *zap.Logger    // Set once
	generation string         // Set once: names this connection in its questions
	peer       *jsonrpc.Peer  // Set once
	can        capabilities   // Set once, by the answer to initialize
	ended      chan struct{}  // Set once, closed when no goroutine of the connection is left
	work       sync.WaitGroup // of goroutines after the end of turns
	closing    atomic.Bool    // set by Close

	// messageIDs is one of idsUnknown, idsAlways and idsNever.
	messageIDs atomic.Int32

	mu       sync.Mutex
	sessions map[string]*session // Guarded by mu

	fit   atomic.Bool                   // a session has got its mode
	unfit atomic.Pointer[handoff.Error] // why no session can have its mode; nil: it is not known that none can

	reads chan struct{} // Set once: a semaphore of 1 for reading sessions that are not open here
	tally tally         // of all sessions
}

// Whether the agent's messages have ids, as far as its updates have shown.
const (
	idsUnknown int32 = iota
	idsAlways        // text without an id is not the agent's
	idsNever         // a turn with messages without ids ended well
)

// limitations returns a sentence about what the agent cannot do; "": it can do everything.
func (c *connection) limitations() string {
	var lacks []string
	if !c.can.Meta.Steering.Supported {
		lacks = append(lacks, "be told more while it works")
	}
	if !c.can.Agent.Sessions.List {
		lacks = append(lacks, "list its sessions")
	}
	if !c.can.Agent.Load && !bool(c.can.Agent.Sessions.Resume) {
		lacks = append(lacks, "open a session again")
	}
	if !c.can.Agent.Sessions.Fork {
		lacks = append(lacks, "copy a session")
	}
	if len(lacks) == 0 {
		return ""
	}
	return "Its agent cannot " + handoff.ListWords(lacks) + "."
}

// validID matches ids of sessions. Agents make file names of them.
var validID = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_-]{0,127}$`)

// Attach opens a session, unless it is open.
func (c *connection) Attach(ctx context.Context, id string) (handoff.Attached, error) {
	if !validID.MatchString(id) {
		return handoff.Attached{}, handoff.Fault(handoff.CodeUnknownSession, "you named", "no session is called so")
	}
	s := c.acquire(id)
	if err := c.ensureOpen(ctx, s); err != nil {
		c.release(s)
		return handoff.Attached{}, err
	}
	return c.attached(s), nil
}

// ensureOpen opens a session unless it is open.
func (c *connection) ensureOpen(ctx context.Context, s *session) error {
	if err := s.enter(ctx); err != nil {
		return c.fault(err, s.name(), handoff.CodeUnreachable)
	}
	defer s.leave()
	if s.isOpen() {
		if err := c.peer.Lost(); err != nil {
			return c.fault(&servers.NotSentError{Cause: err}, s.name(), handoff.CodeUnreachable)
		}
		return nil
	}
	return c.fault(c.open(ctx, s), s.name(), handoff.CodeUnreachable)
}

// open opens a session in the agent. It adopts a running prompt of an earlier connection. Else it resumes a session
// whose history is known and unchanged, and loads any other. The caller holds the session's gate.
func (c *connection) open(ctx context.Context, s *session) error {
	ctx, cancel := context.WithTimeoutCause(ctx, openTimeout, errTimeout)
	defer cancel()
	if taken, err := c.adopt(ctx, s); taken || err != nil {
		return err
	}
	found, unread := c.findAtRest(ctx, s.id)
	s.mu.Lock()
	needed := s.cwd == "" // without its directory, it would be opened in another
	s.mu.Unlock()
	if unread != nil && (needed || ctx.Err() != nil || !errors.Is(unread, errTimeout)) {
		return unread
	}
	p, known, err := s.openParams(&c.cfg, found)
	if err != nil {
		return err
	}
	method := doLoad
	if bool(c.can.Agent.Sessions.Resume) && (known || !c.can.Agent.Load) {
		method = doResume
	} else if !c.can.Agent.Load {
		return gone("its agent opens no session again")
	}
	var o openResult
	if method == doResume {
		err = c.peer.Call(ctx, doResume, p, &o)
	} else {
		err = c.load(ctx, s, p, &o)
	}
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok && found.ID == "" && unread == nil && !isHeld(e) && e.Code != codeAuth {
		return gone(e.Error()) // the code differs from agent to agent
	}
	if err != nil {
		return err
	}
	if o.Session != "" && o.Session != s.id {
		return handoff.Fault(handoff.CodeSessionMismatch, c.cfg.Name, method+" gave another session")
	}
	if err := c.applyResult(ctx, s, &o); err != nil {
		c.closeSession(s)
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open, s.updated = true, found.Updated
	return nil
}

// load opens a session with a replay of its history. Messages are of the history until the answer. If messages have no
// ids, they are so also after it, up to a pause of replayQuiet: one agent answers first.
func (c *connection) load(ctx context.Context, s *session, p openParams, o *openResult) (err error) {
	s.beginReplay()
	defer func() { s.endReplay(err == nil) }()
	if err := c.peer.Call(ctx, doLoad, p, o); err != nil || c.messageIDs.Load() == idsAlways {
		return err
	}
	for {
		select {
		case <-s.replayProgress:
		case <-time.After(replayQuiet):
			return nil
		case <-ctx.Done():
			return &servers.UnansweredError{Cause: context.Cause(ctx)}
		case <-c.peer.Done():
			return &servers.UnansweredError{Cause: c.peer.Lost()}
		}
	}
}

// applyResult applies the answer that made or opened a session, and sets the session's mode.
func (c *connection) applyResult(ctx context.Context, s *session, o *openResult) error {
	s.mu.Lock()
	s.setModes(o)
	s.mu.Unlock()
	return c.setMode(ctx, s)
}

// Create makes a new session.
func (c *connection) Create(ctx context.Context, dir string) (handoff.Attached, error) {
	dir, err := c.cfg.directory(dir)
	if err != nil {
		return handoff.Attached{}, err
	}
	return c.makeSession(ctx, doNew, openParams{Cwd: dir, Servers: []struct{}{}}, history{})
}

// Fork copies a session, also one that works or that another process has open. It copies whole sessions only: last is
// "" or the newest turn.
func (c *connection) Fork(ctx context.Context, id string, last handoff.TurnID) (handoff.Attached, error) {
	if !c.can.Agent.Sessions.Fork {
		return handoff.Attached{}, handoff.Fault(handoff.CodeUnsupported, c.cfg.Name, "its agent copies no sessions")
	}
	source := c.acquire(id)
	defer c.release(source)
	found, _, err := c.find(ctx, id)
	if err != nil {
		return handoff.Attached{}, c.fault(err, "", handoff.CodeUnreachable)
	}
	p, _, err := source.openParams(&c.cfg, found)
	if err != nil {
		return handoff.Attached{}, err
	}
	source.mu.Lock()
	past, known, running := source.history, source.known, source.turn != nil && source.turn.id == last
	past.entries, past.keys = slices.Clone(past.entries), slices.Clone(past.keys)
	source.mu.Unlock()
	switch {
	case last == "":
	case running:
		return handoff.Attached{}, handoff.Fault(handoff.CodeBusy, c.cfg.Name, "")
	case known && !past.has(last):
		return handoff.Attached{}, handoff.Fault(handoff.CodeNotFound, "such point in that session", "")
	case !known || past.newest() != last:
		return handoff.Attached{}, handoff.Fault(handoff.CodeUnsupported, c.cfg.Name, "its agent copies whole sessions only")
	}
	if known {
		return c.makeSession(ctx, doFork, p, past)
	}
	at, err := c.makeSession(ctx, doFork, p, history{})
	switch {
	case err != nil && found.ID == "" && handoff.AsError(err).Code == handoff.CodeRefused:
		return at, gone(handoff.AsError(err).Detail) // the code differs from agent to agent
	case err != nil || !c.can.Agent.Load:
		return at, err
	}
	s := at.Agent.(*agent).session
	p.Session = s.id
	if err := c.loadCopy(ctx, s, p); err != nil {
		_ = at.Agent.Close()
		return handoff.Attached{}, c.fault(err, "", handoff.CodeUnreachable)
	}
	loaded := c.attached(s)
	loaded.Agent = at.Agent
	return loaded, nil
}

// loadCopy loads the history of a copy whose source's history is not known here.
func (c *connection) loadCopy(ctx context.Context, s *session, p openParams) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	var o openResult
	if err := c.load(ctx, s, p, &o); err != nil {
		return err
	}
	return c.applyResult(ctx, s, &o)
}

// makeSession makes a session by a method of the protocol. past is its history.
func (c *connection) makeSession(
	ctx context.Context, method string, p openParams, past history,
) (handoff.Attached, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, openTimeout, errTimeout)
	defer cancel()
	var o openResult
	err := c.peer.Call(ctx, method, p, &o)
	switch {
	case err != nil:
		return handoff.Attached{}, c.fault(err, "", handoff.CodeUnreachable)
	case o.Session == "" || o.Session == p.Session || len(o.Session) > maxID:
		return handoff.Attached{}, handoff.Fault(handoff.CodeSessionMismatch, c.cfg.Name, method+" gave no session")
	}
	s := c.acquire(o.Session)
	s.mu.Lock()
	s.open, s.known, s.cwd, s.history = true, true, p.Cwd, past
	s.mu.Unlock()
	if err := c.applyResult(ctx, s, &o); err != nil {
		c.release(s)
		return handoff.Attached{}, c.fault(err, "", handoff.CodeUnreachable)
	}
	return c.attached(s), nil
}

// attached returns a use of an open session. The caller has acquired the session.
func (c *connection) attached(s *session) handoff.Attached {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := handoff.Attached{
		Agent:  &agent{conn: c, session: s, closed: make(chan struct{})},
		Target: handoff.Target{Thread: s.id}, Title: s.nameLocked(), Newest: s.history.newest(), Workspace: s.cwd,
	}
	if s.turn != nil {
		at.Running = s.turn.id
	}
	return at
}

// acquire counts one more use of a session, and adds the session if it is not known.
func (c *connection) acquire(id string) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[id]
	if s == nil {
		s = &session{
			conn: c, id: id, gate: make(chan struct{}, 1), sending: make(chan struct{}, 1),
			replayProgress: make(chan struct{}, 1), calls: map[string]*call{},
		}
		c.sessions[id] = s
	}
	s.refs++
	return s
}

// release counts one use less. It closes an unused session in the agent unless a prompt runs in it, so that other
// programs may use it. It keeps the session's history, but if there are more than maxSessions
// sessions, it forgets an unused one.
func (c *connection) release(s *session) {
	c.mu.Lock()
	s.refs--
	idle := s.refs == 0
	if len(c.sessions) > maxSessions {
		for id, other := range c.sessions {
			if other.refs == 0 && other.isIdle() && (!other.isOpen() || !bool(c.can.Agent.Sessions.Close)) {
				delete(c.sessions, id)
				break
			}
		}
	}
	c.mu.Unlock()
	if idle {
		c.closeIdle(s)
	}
}

// closeIdle closes a session in the agent if it is not used and no prompt runs in it.
func (c *connection) closeIdle(s *session) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), closeTimeout, errTimeout)
	defer cancel()
	if !c.can.Agent.Sessions.Close || c.peer.Lost() != nil || s.enter(ctx) != nil {
		return
	}
	defer s.leave()
	c.mu.Lock()
	used := s.refs > 0
	c.mu.Unlock()
	if !used && s.isOpen() && s.isIdle() {
		c.closeSession(s)
	}
}

// closeSession closes a session in the agent. The caller holds the session's gate.
func (c *connection) closeSession(s *session) {
	s.mu.Lock()
	s.open = false
	s.mu.Unlock()
	if !c.can.Agent.Sessions.Close {
		return
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), closeTimeout, errTimeout)
	defer cancel()
	if err := c.peer.Call(ctx, doClose, sessionParams{s.id}, nil); err != nil {
		c.log.Debug("close a session", zap.Error(err))
	}
}

// Close ends the connection and returns when its goroutines have ended. It cancels running turns, since an agent may
// work on after the end of its input, unless a mux keeps them running. Followers get an error.
func (c *connection) Close() error {
	if c.closing.CompareAndSwap(false, true) && c.peer.Lost() == nil && !c.can.Meta.Switchboard.Keeps {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		for _, s := range c.all() {
			if !s.isIdle() {
				_ = c.peer.Tell(ctx, doCancel, sessionParams{s.id}) // if it fails, the end of the input has to do
			}
		}
	}
	c.peer.Lose(servers.ErrClosed)
	<-c.ended
	return nil
}

func (c *connection) all() []*session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.sessions))
}

// handle routes a message of the agent. It runs in the reader and never waits.
func (c *connection) handle(m jsonrpc.Message) {
	if len(m.ID) > maxID {
		c.peer.Malformed.Add(1)
		return
	}
	switch {
	case m.Method == onUpdate:
		var p updateParams
		if json.Unmarshal(m.Params, &p) != nil || len(p.Update.Message) > maxID || len(p.Update.ID) > maxID {
			c.peer.Malformed.Add(1)
			return
		}
		if s := c.sessionByID(p.Session); s != nil {
			s.handleUpdate(&p.Update)
		}
	case m.Method == onPrompted || m.Method == onAnswered:
		c.handleAdopted(m)
	case m.Method == onWithdraw:
		var p struct {
			ID json.RawMessage `json:"requestId"`
		}
		if json.Unmarshal(m.Params, &p) == nil {
			for _, s := range c.all() {
				s.withdrawn(string(p.ID))
			}
		}
	case m.ID == nil: // an unknown notification
	case m.Method == onPermission || m.Method == onElicit:
		c.ask(m)
	default:
		c.peer.Refuse(m.ID, codeNoMethod, "not offered: "+handoff.ClipRunes(strings.ToValidUTF8(m.Method, ""), 80))
	}
}

// missed refuses a request of the agent that was left out, since the agent would wait for the answer for ever.
func (c *connection) missed(m jsonrpc.Message) {
	if m.ID != nil {
		c.handle(m)
	}
}

func (c *connection) sessionByID(id string) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessions[id]
}
