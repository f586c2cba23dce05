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
	findTimeout    = 10 * time.Second // session/list, to look one session up
	controlTimeout = 10 * time.Second
	closeTimeout   = 2 * time.Second
	stopTimeout    = time.Second // for a cancel before the input ends
)

// Bounds of sessions.
const (
	maxSessions  = 64 // that are remembered while nobody uses them
	maxListPages = 10
)

// replayQuiet is for how long nothing of a history must come until it counts as whole, where it follows the answer.
const replayQuiet = 300 * time.Millisecond

// A connection is one agent process. It implements [servers.Conn], [servers.Forker] and [servers.Catalog] and is safe
// for concurrent use.
type connection struct {
	cfg        Config         // Set once
	log        *zap.Logger    // Set once
	generation string         // Set once: tells questions of this connection from those of another
	peer       *jsonrpc.Peer  // Set once
	can        capabilities   // Set once, by the answer to initialize
	ended      chan struct{}  // Set once, closed when no goroutine of the connection is left
	work       sync.WaitGroup // of goroutines that look after ended turns
	closing    atomic.Bool    // set by Close

	// names says whether messages of the agent have ids: learned from what it says.
	names atomic.Int32

	mu       sync.Mutex
	sessions map[string]*session // Guarded by mu

	reads chan struct{} // Set once, holds one: a reader of a session that is not open here
	tally tally         // of all sessions
}

// What is known of the ids of messages.
const (
	namesUnknown int32 = iota // nothing yet
	namesAlways               // what comes without one is not the agent's
	namesNever                // a turn ended well whose words had none
)

// note says in a sentence what the agent cannot do.
func (c *connection) note() string {
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

// plausible is what an id may be made of: agents make names of files of it.
var plausible = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_-]{0,127}$`)

// Attach opens a session, once for all who attach it.
func (c *connection) Attach(ctx context.Context, id string) (handoff.Attached, error) {
	if !plausible.MatchString(id) {
		return handoff.Attached{}, handoff.Fault(handoff.CodeUnknownSession, "you named", "no session is called so")
	}
	s := c.hold(id)
	if err := c.opened(ctx, s); err != nil {
		c.release(s)
		return handoff.Attached{}, err
	}
	return c.attached(s), nil
}

// opened opens a session unless it is open.
func (c *connection) opened(ctx context.Context, s *session) error {
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

// open opens a session in the agent. What is known up to its newest change is resumed; else its history is loaded. One
// in which a prompt of an earlier connection runs is taken over as it is. The caller holds its gate.
func (c *connection) open(ctx context.Context, s *session) error {
	ctx, cancel := context.WithTimeoutCause(ctx, openTimeout, errTimeout)
	defer cancel()
	if taken, err := c.adopt(ctx, s); taken || err != nil {
		return err
	}
	found, err := c.rested(ctx, s.id)
	if err != nil {
		return err
	}
	p, known, err := s.place(&c.cfg, found)
	if err != nil {
		return err
	}
	method := doLoad
	if bool(c.can.Agent.Sessions.Resume) && (known || !c.can.Agent.Load) {
		method = doResume
	} else if !c.can.Agent.Load {
		return gone("its agent opens no session again")
	}
	var o opened
	if method == doResume {
		err = c.peer.Call(ctx, doResume, p, &o)
	} else {
		err = c.load(ctx, s, p, &o)
	}
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok && found.ID == "" && !isHeld(e) && e.Code != codeAuth {
		return gone(e.Error()) // each agent has another code for that
	}
	if err != nil {
		return err
	}
	if o.Session != "" && o.Session != s.id {
		return handoff.Fault(handoff.CodeSessionMismatch, c.cfg.Name, method+" gave another session")
	}
	if err := c.settle(ctx, s, &o); err != nil {
		c.closeIn(s)
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open, s.updated = true, found.Updated
	return nil
}

// load has the history of a session replayed. What comes is history until the answer, and where messages have no ids
// until nothing more comes: one agent answers first.
func (c *connection) load(ctx context.Context, s *session, p place, o *opened) (err error) {
	s.replay()
	defer func() { s.replayed(err == nil) }()
	if err := c.peer.Call(ctx, doLoad, p, o); err != nil || c.names.Load() == namesAlways {
		return err
	}
	for {
		select {
		case <-s.came:
		case <-time.After(replayQuiet):
			return nil
		case <-ctx.Done():
			return &servers.UnansweredError{Cause: context.Cause(ctx)}
		case <-c.peer.Done():
			return &servers.UnansweredError{Cause: c.peer.Lost()}
		}
	}
}

// settle sets the mode of a session that was made or opened, and takes over what its answer says.
func (c *connection) settle(ctx context.Context, s *session, o *opened) error {
	s.mu.Lock()
	s.takeModes(o)
	s.mu.Unlock()
	return c.setMode(ctx, s)
}

// setMode brings a session into the mode that is configured, and returns nil only when the agent has confirmed that.
func (c *connection) setMode(ctx context.Context, s *session) error {
	s.mu.Lock()
	available, current, option := s.modes, s.mode, s.modeOption
	s.mu.Unlock()
	want, err := c.cfg.wanted(available)
	if err != nil || want == "" || want == current {
		return err
	}
	if option == "" {
		err = c.peer.Call(ctx, doSetMode, map[string]string{"sessionId": s.id, "modeId": want}, nil)
		current = want
	} else {
		var o opened
		err = c.peer.Call(ctx, doSetOption, map[string]string{"sessionId": s.id, "configId": option, "value": want}, &o)
		i := slices.IndexFunc(o.Options, func(o configOption) bool { return o.ID == option })
		if current = ""; i >= 0 {
			current = o.Options[i].current()
		}
	}
	if e, refused := errors.AsType[*jsonrpc.Error](err); refused && !isBusy(e) || err == nil && current != want {
		why := "it did not confirm"
		if refused {
			why = e.Message
		}
		return handoff.Fault(handoff.CodeRefused, c.cfg.Name,
			handoff.ClipRunes("the mode "+want+" cannot be set: "+why, maxDetail))
	}
	if err == nil {
		s.mu.Lock()
		s.mode = want
		s.mu.Unlock()
	}
	return err
}

// Create makes a fresh session.
func (c *connection) Create(ctx context.Context, dir string) (handoff.Attached, error) {
	dir, err := c.cfg.directory(dir)
	if err != nil {
		return handoff.Attached{}, err
	}
	return c.fresh(ctx, doNew, place{Cwd: dir, Servers: []struct{}{}}, history{})
}

// Fork copies a session, also one that works or is held by another process. Only whole sessions can be copied.
func (c *connection) Fork(ctx context.Context, id string, last handoff.TurnID) (handoff.Attached, error) {
	if !c.can.Agent.Sessions.Fork {
		return handoff.Attached{}, handoff.Fault(handoff.CodeUnsupported, c.cfg.Name, "its agent copies no sessions")
	}
	source := c.hold(id)
	defer c.release(source)
	found, _, err := c.find(ctx, id)
	if err != nil {
		return handoff.Attached{}, c.fault(err, "", handoff.CodeUnreachable)
	}
	p, _, err := source.place(&c.cfg, found)
	if err != nil {
		return handoff.Attached{}, err
	}
	source.mu.Lock()
	past, known, running := source.history.copied(), source.known, source.turn != nil && source.turn.id == last
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
		return c.fresh(ctx, doFork, p, past)
	}
	at, err := c.fresh(ctx, doFork, p, history{})
	switch {
	case err != nil && found.ID == "" && handoff.AsError(err).Code == handoff.CodeRefused:
		return at, gone(handoff.AsError(err).Detail) // each agent has another code for that
	case err != nil || !c.can.Agent.Load:
		return at, err
	}
	s := at.Agent.(*agent).session
	p.Session = s.id
	if err := c.learn(ctx, s, p); err != nil {
		_ = at.Agent.Close()
		return handoff.Attached{}, c.fault(err, "", handoff.CodeUnreachable)
	}
	learned := c.attached(s)
	learned.Agent = at.Agent
	return learned, nil
}

// learn loads the history of a copy, which is that of a source that nobody has read.
func (c *connection) learn(ctx context.Context, s *session, p place) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	var o opened
	if err := c.load(ctx, s, p, &o); err != nil {
		return err
	}
	return c.settle(ctx, s, &o)
}

// fresh makes a session, which begins with a history.
func (c *connection) fresh(ctx context.Context, method string, p place, past history) (handoff.Attached, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, openTimeout, errTimeout)
	defer cancel()
	var o opened
	err := c.peer.Call(ctx, method, p, &o)
	switch {
	case err != nil:
		return handoff.Attached{}, c.fault(err, "", handoff.CodeUnreachable)
	case o.Session == "" || o.Session == p.Session || len(o.Session) > maxID:
		return handoff.Attached{}, handoff.Fault(handoff.CodeSessionMismatch, c.cfg.Name, method+" gave no session")
	}
	s := c.hold(o.Session)
	s.mu.Lock()
	s.open, s.known, s.cwd, s.history = true, true, p.Cwd, past
	s.mu.Unlock()
	if err := c.settle(ctx, s, &o); err != nil {
		c.release(s)
		return handoff.Attached{}, c.fault(err, "", handoff.CodeUnreachable)
	}
	return c.attached(s), nil
}

// attached describes an open session, which the caller holds.
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

// hold counts one more use of a session.
func (c *connection) hold(id string) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[id]
	if s == nil {
		s = newSession(c, id)
		c.sessions[id] = s
	}
	s.refs++
	return s
}

// release counts one use less. A session that nobody uses and in which nothing runs is closed in the agent, so that
// others may work in it; what is known of it stays for a while.
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

// closeIdle closes a session in the agent that nobody uses and in which nothing runs.
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
		c.closeIn(s)
	}
}

// closeIn closes a session in the agent. The caller holds its gate.
func (c *connection) closeIn(s *session) {
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

// Close ends the connection and returns when its goroutines have ended. Running turns are cancelled, because an agent
// that works may work on when its input ends, unless a keeper has them go on; whoever follows one is told that the
// connection ended.
func (c *connection) Close() error {
	if c.closing.CompareAndSwap(false, true) && c.peer.Lost() == nil && !c.can.Meta.Switchboard.Keeps {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		for _, s := range c.all() {
			if !s.isIdle() {
				_ = c.peer.Tell(ctx, doCancel, sessionParams{s.id}) // the end of its input says the rest
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

// handle routes what the agent says. It runs in the reader and never waits.
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
		if s := c.known(p.Session); s != nil {
			s.hear(&p.Update)
		}
	case m.Method == onPrompted || m.Method == onAnswered:
		c.adopted(m)
	case m.Method == onWithdraw:
		var p struct {
			ID json.RawMessage `json:"requestId"`
		}
		if json.Unmarshal(m.Params, &p) == nil {
			for _, s := range c.all() {
				s.withdrawn(string(p.ID))
			}
		}
	case m.ID == nil: // a notification that we do not know
	case m.Method == onPermission || m.Method == onElicit:
		c.ask(m)
	default:
		c.peer.Refuse(m.ID, codeNoMethod, "not offered: "+handoff.ClipRunes(strings.ToValidUTF8(m.Method, ""), 80))
	}
}

func (c *connection) known(id string) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessions[id]
}
