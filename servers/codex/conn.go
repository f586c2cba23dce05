package codex

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/jsonrpc"
)

// A connection is one connection to a Codex app-server. It implements [servers.Conn] and is safe for concurrent use.
type connection struct {
	cfg        Config        // Set once
	log        *zap.Logger   // Set once
	generation string        // Set once: tells questions of this connection from those of another
	peer       *jsonrpc.Peer // Set once
	client     client        // Set once
	ended      chan struct{} // Set once, closed when no goroutine of the connection is left

	mu        sync.Mutex
	threads   map[string]*thread // Guarded by mu: those that somebody attached or is attaching
	subagents []*subagent        // Guarded by mu: of turns in those; at most maxHelpers, oldest first

	changes chan struct{} // Set once, never closed, capacity 1: see [servers.Link.Changed]

	resubscriptions chan resubscription // Set once, never closed; bound maxResubscriptions, beyond which they are left out
	tally           tally               // of all threads
}

// Attach resumes a thread and subscribes to it, once for all who attach it.
func (c *connection) Attach(ctx context.Context, id string) (handoff.Attached, error) {
	t := c.hold(id)
	if err := c.subscribe(ctx, t); err != nil {
		_ = c.release(t)
		return handoff.Attached{}, err
	}
	return c.attached(t), nil
}

// Create makes a fresh thread with the configured model and policy.
func (c *connection) Create(ctx context.Context, dir string) (handoff.Attached, error) {
	return c.create(ctx, threadStartParams{Cwd: dir})
}

// CreateEphemeral makes a fresh thread that no list has. Only this connection hears of it.
func (c *connection) CreateEphemeral(ctx context.Context, dir string) (handoff.Attached, error) {
	return c.create(ctx, threadStartParams{Cwd: dir, Ephemeral: true})
}

func (c *connection) create(ctx context.Context, params threadStartParams) (handoff.Attached, error) {
	params.Model, params.ApprovalPolicy, params.Sandbox = c.cfg.Model, c.cfg.Approval, c.cfg.Sandbox
	t, _, err := c.fresh("thread/start", func(land func(*threadResult)) (*threadResult, error) {
		return c.client.threadStart(ctx, params, land)
	})
	if err == nil {
		p := t.mayDo()
		if setting := p.differs(c.cfg); setting != "" {
			err = handoff.Fault(handoff.CodeRefused, c.cfg.Name,
				setting+": a new session did not get what is configured, but "+p.String())
		} else {
			err = c.checkCeiling(p)
		}
	}
	return c.handOver(t, err)
}

// Fork copies a thread up to and with the turn last ("": all of it), also one that another process holds,
// and attaches the copy. The copy has the settings of its source. What runs in the source is interrupted in
// the copy.
func (c *connection) Fork(ctx context.Context, id string, last handoff.TurnID) (handoff.Attached, error) {
	return c.fork(ctx, threadForkParams{ThreadID: id, LastTurnID: string(last)})
}

// ForkEphemeral copies a thread as [connection.Fork] does, into one that no list has.
func (c *connection) ForkEphemeral(ctx context.Context, id string, last handoff.TurnID) (handoff.Attached, error) {
	return c.fork(ctx, threadForkParams{ThreadID: id, LastTurnID: string(last), Ephemeral: true})
}

func (c *connection) fork(ctx context.Context, params threadForkParams) (handoff.Attached, error) {
	t, result, err := c.fresh("thread/fork", func(land func(*threadResult)) (*threadResult, error) {
		return c.client.threadFork(ctx, params, land)
	})
	switch {
	case err != nil:
	case t.id == params.ThreadID:
		err = handoff.Fault(handoff.CodeSessionMismatch, c.cfg.Name, "thread/fork gave the source back")
	case result.InitialTurnsPage == nil && !t.keepsNothing():
		c.reread(ctx, t)
	}
	return c.handOver(t, err)
}

// fresh makes a thread. It may return one beside an error.
func (c *connection) fresh(
	method string, ask func(land func(*threadResult)) (*threadResult, error),
) (*thread, *threadResult, error) {
	var t *thread
	result, err := ask(func(r *threadResult) {
		if r.Thread.ID != "" {
			t = c.hold(r.Thread.ID)
			t.snapshot(r)
		}
	})
	switch {
	case err != nil:
		return t, nil, c.name("").fault(err, handoff.CodeUnreachable, handoff.CodeUnreachable)
	case t == nil:
		return nil, nil, handoff.Fault(handoff.CodeRefused, c.cfg.Name, method+" gave no thread")
	}
	return t, result, nil
}

// handOver attaches a fresh thread, or leaves it when there is an error.
func (c *connection) handOver(t *thread, err error) (handoff.Attached, error) {
	if err == nil {
		return c.attached(t), nil
	}
	if t != nil {
		_ = c.release(t)
	}
	return handoff.Attached{}, err
}

// Close ends the connection and returns when its goroutines have ended.
func (c *connection) Close() error {
	c.peer.Lose(servers.ErrClosed)
	<-c.ended
	return nil
}

// attached describes a subscribed thread.
func (c *connection) attached(t *thread) handoff.Attached {
	t.mu.Lock()
	defer t.mu.Unlock()
	return handoff.Attached{
		Agent:   &agent{conn: c, thread: t, closed: make(chan struct{})},
		Target:  handoff.Target{Thread: t.id},
		Title:   t.title,
		Running: t.running,
		Newest:  t.newest,

		Workspace: t.cwd,
	}
}

// hold counts one more attachment of a thread.
func (c *connection) hold(id string) *thread {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.threads[id]
	if t == nil {
		t = &thread{id: id, gate: make(chan struct{}, 1), tally: &c.tally, news: c.news}
		c.threads[id] = t
	}
	t.refs++
	return t
}

// letGo counts one attachment less and reports whether it was the last.
func (c *connection) letGo(t *thread) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t.refs--
	c.dropLocked(t)
	return t.refs == 0
}

// dropLocked forgets a thread that nobody attaches and that we are not subscribed to.
func (c *connection) dropLocked(t *thread) {
	if t.refs == 0 && !t.isSubscribed() && c.threads[t.id] == t {
		delete(c.threads, t.id)
		t.drop()
		c.dismissLocked(func(h *subagent) bool { return h.thread == t })
		c.subagents = slices.DeleteFunc(c.subagents, func(h *subagent) bool { return h.thread == t })
	}
}

// release ends one attachment; the last one unsubscribes, best effort and bounded.
func (c *connection) release(t *thread) error {
	if !c.letGo(t) {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), detachTimeout, errTimeout)
	defer cancel()
	if err := t.lock(ctx); err != nil {
		return c.name("").fault(err, handoff.CodeUnreachable, handoff.CodeUnreachable)
	}
	defer t.unlock()
	if !c.leave(t) {
		return nil
	}
	err := c.client.threadUnsubscribe(ctx, t.id)
	c.mu.Lock()
	c.dropLocked(t)
	c.mu.Unlock()
	if err != nil && c.peer.Lost() == nil {
		return c.name("").fault(err, handoff.CodeUnreachable, handoff.CodeUnreachable)
	}
	return nil
}

// leave marks a thread that nobody attaches as unsubscribed, and reports whether it was subscribed.
func (c *connection) leave(t *thread) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return t.refs == 0 && t.setUnsubscribed()
}

// subscribe resumes a thread unless it is subscribed.
func (c *connection) subscribe(ctx context.Context, t *thread) error {
	if t.isSubscribed() { // and it stays so, because the caller holds it
		return nil
	}
	if err := t.lock(ctx); err != nil {
		return c.name("").fault(err, handoff.CodeUnreachable, handoff.CodeUnreachable)
	}
	defer t.unlock()
	if t.isSubscribed() {
		return nil
	}
	return c.resume(ctx, t)
}

// attachTurns is how many of a thread's newest turns come with attaching it.
const attachTurns = 2

// resume resumes a thread, and reads a doubtful newest turn again. The caller holds its gate.
func (c *connection) resume(ctx context.Context, t *thread) error {
	page, err := c.resumed(ctx, t, attachTurns)
	if err != nil {
		return err
	}
	for _, delay := range doubts[:attachDoubts] {
		if page == nil || len(page.Data) == 0 || !doubtful(page.Data[0]) {
			return nil
		}
		select {
		case <-time.After(delay):
		case <-c.peer.Done():
			return c.name("").fault(
				&servers.NotSentError{Cause: c.peer.Lost()}, handoff.CodeUnreachable, handoff.CodeUnreachable)
		case <-ctx.Done():
			return c.name("").fault(context.Cause(ctx), handoff.CodeUnreachable, handoff.CodeUnreachable)
		}
		page = c.reread(ctx, t)
	}
	return nil
}

// resumed resumes a thread and returns its newest turns, or nil when it has none or they cannot be read.
// The caller holds its gate.
func (c *connection) resumed(ctx context.Context, t *thread, turns int) (*turnsPage, error) {
	result, err := c.client.threadResume(ctx, t.id, turns, func(r *threadResult) {
		if r.Thread.ID == t.id {
			t.snapshot(r)
		}
	})
	if err != nil {
		return nil, c.name(c.nameOfHeld(ctx, t, err)).fault(err, handoff.CodeUnreachable, handoff.CodeUnreachable)
	}
	if other := result.Thread.ID; other != t.id {
		c.mu.Lock()
		_, used := c.threads[other]
		c.mu.Unlock()
		if other != "" && !used {
			if err := c.client.threadUnsubscribe(ctx, other); err != nil {
				c.log.Debug("unsubscribe from a thread that was not asked for", zap.Error(err))
			}
		}
		return nil, handoff.Fault(handoff.CodeSessionMismatch, c.cfg.Name, "thread/resume gave another thread")
	}
	if page := result.InitialTurnsPage; page != nil {
		return page, nil
	}
	return c.reread(ctx, t), nil
}

// nameOfHeld returns the title of a thread that is there but may not be resumed, so that people hear which one it is.
func (c *connection) nameOfHeld(ctx context.Context, t *thread, why error) string {
	t.mu.Lock()
	name := t.title
	t.mu.Unlock()
	if name != "" || !refusedAs(why, refusedInUse) && !refusedAs(why, refusedArchived) {
		return name
	}
	if known, err := c.client.threadRead(ctx, t.id); err == nil {
		return title(&known)
	}
	return ""
}

// doubts is when a newest turn that reads as interrupted without an end is read again. At its edges a
// turn is reported so although it runs or has completed; 120 ms later it never was (12 of 12). Only a
// crash of the server leaves it so. Who attaches looks twice again, who waits for its end three times.
var doubts = []time.Duration{100 * time.Millisecond, 400 * time.Millisecond, 500 * time.Millisecond}

// attachDoubts is how many of them delay an attachment.
const attachDoubts = 2

// doubtful reports whether a turn may be something else than it says.
func doubtful(w wireTurn) bool { return w.Status == statusInterrupted && w.CompletedAt == nil }

// reread reads the newest turn and takes it over, unless turns were heard to begin or end meanwhile.
// A thread that never ran has none.
func (c *connection) reread(ctx context.Context, t *thread) *turnsPage {
	t.mu.Lock()
	before := t.heard
	t.mu.Unlock()
	page, err := c.client.turnsList(ctx, t.id, nil, 1, "notLoaded")
	if err != nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.heard == before {
		t.adoptLocked(page.Data)
	}
	return &page
}

// news notes that something is not as it was listed or asked.
func (c *connection) news() {
	select {
	case c.changes <- struct{}{}:
	default: // it is noted already
	}
}

// handle routes what the server says. It runs in the reader and never waits.
func (c *connection) handle(m jsonrpc.Message) {
	var n note
	if json.Unmarshal(m.Params, &n) != nil || n.ThreadID == "" {
		return
	}
	if !n.fit() || len(m.ID) > maxID {
		c.peer.Malformed.Add(1)
		return
	}
	switch m.Method { // told of every thread; what begins or runs is among the newest, which are listed anew each time
	case noteThreadName, noteThreadArchived, noteThreadUnarchived, noteThreadDeleted:
		c.news()
	}
	c.mu.Lock()
	t := c.threads[n.ThreadID]
	c.mu.Unlock()
	switch {
	case t == nil:
		c.hearSubagent(m, &n)
	case m.ID != nil:
		c.asks(t, m, nil)
	default:
		c.meet(t, handoff.TurnID(n.TurnID), n.Item)
		t.hear(m.Method, &n)
		if m.Method == noteTurnCompleted && n.Turn != nil {
			c.dismiss(t, handoff.TurnID(n.Turn.ID))
		}
	}
}

// mistrust has the turns that run be read, because a frame was left out.
func (c *connection) mistrust() {
	c.mu.Lock()
	threads := slices.Collect(maps.Values(c.threads))
	c.mu.Unlock()
	for _, t := range threads {
		t.mistrust()
	}
}

// asks takes a request of the server to a person. about, which may be nil, adds what is known of a subagent's.
func (c *connection) asks(t *thread, m jsonrpc.Message, about func(*askParams, *handoff.Question)) {
	var p askParams
	if json.Unmarshal(m.Params, &p) != nil {
		return
	}
	if len(m.Params) > maxQuestion { // shown, so that nobody waits in the dark, and no more kept of it
		c.tally.unasked.Add(1)
		c.log.Warn("question too long", zap.Int("bytes", len(m.Params)))
		p = askParams{ThreadID: p.ThreadID, TurnID: p.TurnID, ItemID: p.ItemID}
		m.Method = askTooLong
	}
	q, ok := p.describe(m.Method)
	if !ok {
		return
	}
	if about != nil {
		about(&p, &q)
	}
	// After a reconnect a request comes again under its number. Numbers begin again at 0 when the server is restarted,
	// which ends every turn that had asked.
	q.ID = handoff.QuestionID(strings.Join([]string{c.cfg.Name, p.ThreadID, p.TurnID, string(m.ID)}, ":"))
	q.Connection, q.Asked = c.generation, time.Now()
	t.ask(m, p, q)
}

// name returns what errors call this server and a session.
func (c *connection) name(session string) naming { return naming{server: c.cfg.Name, session: session} }
