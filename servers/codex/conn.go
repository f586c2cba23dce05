package codex

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
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

// A connection is one connection to a Codex app-server. It implements [servers.Conn] and is safe for concurrent use.
type connection struct {
	cfg        Config        // Set once
	log        *zap.Logger   // Set once
	generation string        // Set once: names this connection in its questions
	peer       *jsonrpc.Peer // Set once
	client     client        // Set once
	ended      chan struct{} // Set once, closed when no goroutine of the connection is left

	mu        sync.Mutex
	threads   map[string]*thread // Guarded by mu: that are attached or subscribed
	subagents []*subagent        // Guarded by mu: of turns in these threads; at most maxSubagents, oldest first

	changes chan struct{} // Set once, never closed, capacity 1: see [servers.Link.Changed]

	// resubscriptions is set once and never closed. Beyond its bound maxResubscriptions they are left out and counted.
	resubscriptions chan resubscription
	tally           tally // of all threads

	unfit atomic.Pointer[handoff.Error] // why the last new thread could not be used; nil: it could
}

// Attach resumes a thread and subscribes to it, unless that is done.
func (c *connection) Attach(ctx context.Context, id string) (handoff.Attached, error) {
	t := c.acquire(id)
	if err := c.subscribe(ctx, t); err != nil {
		_ = c.release(t)
		return handoff.Attached{}, err
	}
	return c.attached(t), nil
}

// Create makes a new thread with the configured model and policy.
func (c *connection) Create(ctx context.Context, dir string) (handoff.Attached, error) {
	return c.create(ctx, threadStartParams{Cwd: dir})
}

// CreateEphemeral makes a new thread that is in no list. Only this connection gets its messages.
func (c *connection) CreateEphemeral(ctx context.Context, dir string) (handoff.Attached, error) {
	return c.create(ctx, threadStartParams{Cwd: dir, Ephemeral: true})
}

func (c *connection) create(ctx context.Context, params threadStartParams) (handoff.Attached, error) {
	params.Model, params.ApprovalPolicy, params.Sandbox = c.cfg.Model, c.cfg.Approval, c.cfg.newSandbox()
	t, _, err := c.makeThread(ctx, "thread/start", params)
	if err == nil {
		p := t.mayDo()
		if setting := p.differs(c.cfg); setting != "" {
			err = handoff.Fault(handoff.CodeRefused, c.cfg.Name,
				setting+": a new session did not get what is configured, but "+p.String())
		} else {
			err = c.checkCeiling(p)
		}
		unfit, _ := errors.AsType[*handoff.Error](err) // nil: the next one is as good
		c.unfit.Store(unfit)
	}
	return c.attachOrRelease(t, err)
}

// Fork copies a thread up to and with the turn last ("": all of it), and attaches the copy. The thread may be open in
// another process. The copy has the settings of its source. A turn that runs in the source is interrupted in the copy.
func (c *connection) Fork(ctx context.Context, id string, last handoff.TurnID) (handoff.Attached, error) {
	return c.fork(ctx, threadForkParams{ThreadID: id, LastTurnID: string(last)})
}

// ForkEphemeral is like [connection.Fork], but the copy is in no list.
func (c *connection) ForkEphemeral(ctx context.Context, id string, last handoff.TurnID) (handoff.Attached, error) {
	return c.fork(ctx, threadForkParams{ThreadID: id, LastTurnID: string(last), Ephemeral: true})
}

func (c *connection) fork(ctx context.Context, params threadForkParams) (handoff.Attached, error) {
	params.ExcludeTurns = true
	t, result, err := c.makeThread(ctx, "thread/fork", params)
	switch {
	case err != nil:
	case t.id == params.ThreadID:
		err = handoff.Fault(handoff.CodeSessionMismatch, c.cfg.Name, "thread/fork gave the source back")
	case result.InitialTurnsPage == nil && !t.keepsNothing():
		c.reread(ctx, t)
	}
	return c.attachOrRelease(t, err)
}

// makeThread makes a thread by a request. It may return a thread beside an error.
func (c *connection) makeThread(ctx context.Context, method string, params any) (*thread, *threadResult, error) {
	var t *thread
	result, err := c.client.subscribing(ctx, method, params, func(r *threadResult) {
		if r.Thread.ID != "" {
			t = c.acquire(r.Thread.ID)
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

// attachOrRelease returns an attachment of a new thread, or releases the thread if there is an error.
func (c *connection) attachOrRelease(t *thread, err error) (handoff.Attached, error) {
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

// attached returns an attachment of a subscribed thread.
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

// acquire counts one more attachment of a thread, and adds the thread if it is not known.
func (c *connection) acquire(id string) *thread {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.threads[id]
	if t == nil {
		t = &thread{id: id, gate: make(chan struct{}, 1), tally: &c.tally, changed: c.noteChange}
		c.threads[id] = t
	}
	t.refs++
	return t
}

// unref counts one attachment less, and reports whether it was the last.
func (c *connection) unref(t *thread) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t.refs--
	c.dropLocked(t)
	return t.refs == 0
}

// dropLocked forgets a thread that is neither attached nor subscribed.
func (c *connection) dropLocked(t *thread) {
	if t.refs == 0 && !t.isSubscribed() && c.threads[t.id] == t {
		delete(c.threads, t.id)
		t.drop()
		c.dismissLocked(func(h *subagent) bool { return h.thread == t })
		c.subagents = slices.DeleteFunc(c.subagents, func(h *subagent) bool { return h.thread == t })
	}
}

// release ends one attachment. The last one unsubscribes, within detachTimeout.
func (c *connection) release(t *thread) error {
	if !c.unref(t) {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), detachTimeout, errTimeout)
	defer cancel()
	if err := t.lock(ctx); err != nil {
		return c.name("").fault(err, handoff.CodeUnreachable, handoff.CodeUnreachable)
	}
	defer t.unlock()
	if !c.markUnsubscribed(t) {
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

// markUnsubscribed marks a thread without attachments as unsubscribed, and reports whether it was subscribed.
func (c *connection) markUnsubscribed(t *thread) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return t.refs == 0 && t.setUnsubscribed()
}

// subscribe resumes a thread unless it is subscribed.
func (c *connection) subscribe(ctx context.Context, t *thread) error {
	if t.isSubscribed() { // it stays so, because the caller has acquired it
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

// attachTurns is how many of a thread's newest turns are read when it is attached.
const attachTurns = 2

// resume resumes a thread, and reads a doubtful newest turn again. The caller holds the thread's gate.
func (c *connection) resume(ctx context.Context, t *thread) error {
	page, err := c.resumed(ctx, t, attachTurns)
	if err != nil {
		return err
	}
	for _, delay := range rereadDelays[:attachRereads] {
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

// resumed resumes a thread and returns its newest turns, or nil if it has none or they cannot be read. The caller holds
// the thread's gate.
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

// nameOfHeld returns the title of a thread that cannot be resumed, since it is archived or open elsewhere, so that the
// error can name it.
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

// rereadDelays are the pauses before a doubtful newest turn is read again. For a moment at its begin and its end, a
// turn is reported as interrupted without a time of its end; 120 ms later it never was (12 of 12). It stays so only
// after a crash of the server. Attaching reads it again twice, waiting for its end three times.
var rereadDelays = []time.Duration{100 * time.Millisecond, 400 * time.Millisecond, 500 * time.Millisecond}

// attachRereads is how many of these pauses an attachment may wait.
const attachRereads = 2

// doubtful reports whether a turn's status may be wrong: it is interrupted, without a time of its end.
func doubtful(w wireTurn) bool { return w.Status == statusInterrupted && w.CompletedAt == nil }

// reread reads the newest turn and adopts it, unless a turn has begun or ended meanwhile. It returns nil if the turns
// cannot be read, as in a thread that never ran.
func (c *connection) reread(ctx context.Context, t *thread) *turnsPage {
	t.mu.Lock()
	before := t.turnEvents
	t.mu.Unlock()
	page, err := c.client.turnsList(ctx, t.id, nil, 1, "notLoaded")
	if err != nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.turnEvents == before {
		t.adoptLocked(page.Data)
	}
	return &page
}

// noteChange notes that the list of threads or the questions of others have changed.
func (c *connection) noteChange() {
	select {
	case c.changes <- struct{}{}:
	default: // a change is noted already
	}
}

// handle routes a message of the server. It runs in the reader and never waits.
func (c *connection) handle(m jsonrpc.Message) {
	var n note
	if json.Unmarshal(m.Params, &n) != nil || n.ThreadID == "" {
		return
	}
	if !n.fit() || len(m.ID) > maxID {
		c.peer.Malformed.Add(1)
		return
	}
	switch m.Method { // these come for all threads; others would change only the newest ones, which are listed each time
	case noteThreadName, noteThreadArchived, noteThreadUnarchived, noteThreadDeleted:
		c.noteChange()
	}
	c.mu.Lock()
	t := c.threads[n.ThreadID]
	c.mu.Unlock()
	switch {
	case t == nil:
		c.handleSubagent(m, &n)
	case m.ID != nil:
		c.handleQuestion(t, m, nil)
	default:
		c.noteSubagents(t, handoff.TurnID(n.TurnID), n.Item)
		ends := m.Method == noteTurnCompleted && n.Turn != nil
		if !ends {
			t.handle(m.Method, &n)
			c.noteAsync(t, m.Method, &n)
			return
		}
		id := handoff.TurnID(n.Turn.ID)
		ours := t.isOurs(id)
		n.works = len(c.running(t, id)) > 0
		t.handle(m.Method, &n)
		c.dismiss(t, id, ours)
	}
}

// doubtRunning has the followers of all running turns read them, because a frame was left out. A request is left to the
// other clients.
func (c *connection) doubtRunning(jsonrpc.Message) {
	c.mu.Lock()
	threads := slices.Collect(maps.Values(c.threads))
	c.mu.Unlock()
	for _, t := range threads {
		t.doubtRunning()
	}
}

// handleQuestion handles a request of the server to a person. about, which may be nil, completes a subagent's question.
func (c *connection) handleQuestion(t *thread, m jsonrpc.Message, about func(*askParams, *handoff.Question)) {
	var p askParams
	if m.Method == askAsync || m.Method == askTooLong || json.Unmarshal(m.Params, &p) != nil { // no words of a server's
		return
	}
	if len(m.Params) > maxQuestion { // it is shown, so that people know why the turn waits, but without its content
		c.tally.unasked.Add(1)
		c.log.Warn("question too long", zap.Int("bytes", len(m.Params)))
		p = askParams{ThreadID: p.ThreadID, TurnID: p.TurnID, ItemID: p.ItemID}
		m.Method = askTooLong
	}
	q, ok := p.describe(m.Method)
	if !ok {
		return
	}
	p.Owner.Limit(&q, p.once(m.Method))
	if about != nil {
		about(&p, &q)
	}
	c.ask(t, m, p, q)
}

// ask adds a question of a thread.
func (c *connection) ask(t *thread, m jsonrpc.Message, p askParams, q handoff.Question) {
	// After a reconnect, the server sends a request again with the same number. When the server is restarted, numbers
	// begin again at 0, but then all turns that had asked have ended.
	q.ID = handoff.QuestionID(strings.Join([]string{c.cfg.Name, p.ThreadID, p.TurnID, string(m.ID)}, ":"))
	q.Connection, q.Asked = c.generation, time.Now()
	t.ask(m, p, q)
}

// name returns the names of this server and a session for errors.
func (c *connection) name(session string) naming { return naming{server: c.cfg.Name, session: session} }
