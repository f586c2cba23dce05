package responses

import (
	"context"
	"iter"
	"slices"
	"sync"

	"switchboard/handoff"
	"switchboard/handoff/threads"
	"switchboard/servers"
)

// A conn is one connection to a [Server]: a view of it that can be closed. What runs does not notice.
type conn struct {
	server *Server       // Set once
	id     string        // Set once; tells it from every other
	once   sync.Once     // closes done
	done   chan struct{} // Set once
}

// Close ends the connection.
func (c *conn) Close() error {
	c.once.Do(func() { close(c.done) })
	return nil
}

// open reports whether the connection can be used.
func (c *conn) open() error {
	select {
	case <-c.done:
		return handoff.Fault(handoff.CodeUnreachable, c.server.cfg.Name, "the connection is closed")
	default:
		return nil
	}
}

// read reads a thread.
func (c *conn) read(ctx context.Context, thread string) (threads.Record, error) {
	if err := c.open(); err != nil {
		return threads.Record{}, err
	}
	record, err := c.server.cfg.Threads.Read(ctx, c.server.cfg.Name, thread)
	if err != nil {
		fault := *handoff.AsError(err)
		if fault.Code == handoff.CodeSessionGone {
			fault.Subject = "you named"
		}
		return record, &fault
	}
	return record, nil
}

// Attach attaches a thread.
func (c *conn) Attach(ctx context.Context, thread string) (handoff.Attached, error) {
	if isAside(thread) {
		return handoff.Attached{}, handoff.Fault(handoff.CodeSessionGone, "you named", "nothing of it is kept")
	}
	record, err := c.read(ctx, thread)
	if err != nil {
		return handoff.Attached{}, err
	}
	return c.attached(record.Thread), nil
}

func (c *conn) attached(t threads.Thread) handoff.Attached {
	return handoff.Attached{
		Agent:  &agent{conn: c, thread: t.ID, closed: make(chan struct{}), followers: map[handoff.TurnID]*following{}},
		Target: handoff.Target{Thread: t.ID}, Title: t.Title, Workspace: t.Dir,
		Running: handoff.TurnID(t.Running(c.server.cfg.Now())), Newest: handoff.TurnID(t.Newest()),
	}
}

// Create makes a fresh thread. Every thread works in the server's workspace; another directory is refused.
func (c *conn) Create(ctx context.Context, dir string) (handoff.Attached, error) {
	return c.create(ctx, dir, newID("thr"))
}

func (c *conn) create(ctx context.Context, dir, id string) (handoff.Attached, error) {
	if err := c.open(); err != nil {
		return handoff.Attached{}, err
	}
	if dir != "" && dir != c.server.cfg.Dir {
		return handoff.Attached{}, handoff.Fault(handoff.CodeUnsupported, c.server.cfg.Name,
			"it works in its workspace alone")
	}
	made, err := c.server.advance(ctx, threads.Create{Owner: c.server.cfg.Name, Thread: id, Dir: c.server.cfg.Dir,
		At: c.server.cfg.Now()})
	if err != nil {
		return handoff.Attached{}, err
	}
	return c.attached(made.Thread), nil
}

// Fork copies a thread up to and with a finished turn, "" for the newest one.
func (c *conn) Fork(ctx context.Context, thread string, last handoff.TurnID) (handoff.Attached, error) {
	if _, err := c.read(ctx, thread); err != nil {
		return handoff.Attached{}, err
	}
	made, err := c.server.advance(ctx, threads.Fork{Owner: c.server.cfg.Name, Thread: thread, After: string(last),
		Copy: newID("thr"), At: c.server.cfg.Now()})
	if err != nil {
		return handoff.Attached{}, err
	}
	return c.attached(made.Thread), nil
}

// An agent is one attachment of a thread.
type agent struct {
	conn   *conn         // Set once
	thread string        // Set once
	once   sync.Once     // closes closed
	closed chan struct{} // Set once

	mu        sync.Mutex
	followers map[handoff.TurnID]*following // Guarded by mu
}

// following is what this attachment reads of a turn.
type following struct {
	hub *hub
	*follower
}

// Close detaches.
func (a *agent) Close() error {
	a.once.Do(func() {
		close(a.closed)
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, f := range a.followers {
			f.hub.leave(f.follower)
		}
		clear(a.followers)
		a.conn.server.leave(a.thread)
	})
	return nil
}

// open reports whether the attachment can be used. Nothing was sent when it cannot.
func (a *agent) open() error {
	select {
	case <-a.closed:
		return handoff.Fault(handoff.CodeUnreachable, a.conn.server.cfg.Name, "detached")
	default:
		return a.conn.open()
	}
}

// Start gives the thread a turn. Started again under the same id it is the same turn, and nothing runs twice.
func (a *agent) Start(ctx context.Context, turn handoff.Turn) (handoff.TurnID, error) {
	if err := a.open(); err != nil {
		return "", err
	}
	if err := checkInput(turn.Input); err != nil {
		return "", err
	}
	id, err := a.conn.server.begin(ctx, a.thread, turn, func(r *run) { a.follower(r) })
	if err != nil {
		return "", err
	}
	return id, nil
}

// follower returns what this attachment reads of a running turn.
func (a *agent) follower(r *run) *following {
	a.mu.Lock()
	defer a.mu.Unlock()
	if f := a.followers[r.id]; f != nil {
		return f
	}
	f := &following{hub: r.hub, follower: r.hub.follow(a.conn.id)}
	select {
	case <-a.closed:
		r.hub.leave(f.follower)
	default:
		a.followers[r.id] = f
	}
	return f
}

// Follow yields what a turn reports: one that runs as it goes on, one that has ended as it is kept.
func (a *agent) Follow(ctx context.Context, id handoff.TurnID) iter.Seq2[handoff.Update, error] {
	return func(yield func(handoff.Update, error) bool) {
		if err := leftBy(ctx, a.closed, a.conn.done); err != nil {
			yield(nil, err)
			return
		}
		a.mu.Lock()
		f := a.followers[id]
		a.mu.Unlock()
		if r := a.conn.server.running(a.thread); f == nil && r != nil && r.id == id {
			f = a.follower(r)
		}
		if f == nil {
			a.kept(ctx, id, yield)
			return
		}
		for {
			u, err := f.hub.next(ctx, f.follower, a.closed, a.conn.done)
			if !yield(u, err) || err != nil {
				return
			}
			if _, ended := u.(handoff.TurnEnded); ended { // read to its end, it is forgotten
				a.mu.Lock()
				defer a.mu.Unlock()
				if f := a.followers[id]; f != nil {
					f.hub.leave(f.follower)
					delete(a.followers, id)
				}
				return
			}
		}
	}
}

// kept yields a turn that has ended, or whose runner was lost.
func (a *agent) kept(ctx context.Context, id handoff.TurnID, yield func(handoff.Update, error) bool) {
	record, err := a.conn.read(ctx, a.thread)
	if err != nil {
		yield(nil, err)
		return
	}
	i := slices.IndexFunc(record.Turns, func(t threads.Turn) bool { return t.ID == string(id) })
	if i < 0 {
		yield(nil, handoff.Fault(handoff.CodeTurnGone, a.conn.server.cfg.Name, ""))
		return
	}
	for _, u := range recalled(record, record.Turns[i]) {
		if !yield(u, nil) {
			return
		}
	}
}

// run returns the turn if it runs.
func (a *agent) run(id handoff.TurnID) (*run, error) {
	if err := a.open(); err != nil {
		return nil, err
	}
	r := a.conn.server.running(a.thread)
	if r == nil || r.id != id || id == "" {
		return nil, handoff.Fault(handoff.CodeNotPending, "", "that turn does not run")
	}
	return r, nil
}

// Steer gives the running turn more words. What it accepts is written down. It reaches the model, after what the tools
// of the moment give back, or comes back with the end of the turn, as words that it never heard; also when the process
// is killed.
func (a *agent) Steer(ctx context.Context, turn handoff.TurnID, input []handoff.Part) error {
	r, err := a.run(turn)
	if err != nil {
		return err
	}
	if err := checkInput(input); err != nil {
		return err
	}
	return r.inbox.put(ctx, input, func(s threads.Steer) error {
		step := r.sign()
		step.Steer = &s
		_, err := r.server.advance(context.WithoutCancel(ctx), step) // so that it is certain whether it was written
		return err
	})
}

// Interrupt ends the turn. It returns when the turn has ended.
func (a *agent) Interrupt(ctx context.Context, turn handoff.TurnID) error {
	r, err := a.run(turn)
	if err != nil {
		return err
	}
	if !r.interrupt(errInterrupted) {
		return handoff.Fault(handoff.CodeNotPending, "", "the turn is ending already")
	}
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return handoff.Fault(handoff.CodeAgentGone, "", "the interrupt was taken, and the turn is ending")
	}
}

// Decide answers a question of a running turn.
func (a *agent) Decide(ctx context.Context, id handoff.QuestionID, d handoff.Decision) error {
	if err := a.open(); err != nil {
		return err
	}
	r := a.conn.server.running(a.thread)
	if r == nil || !r.hub.decide(id, d) {
		return handoff.Fault(handoff.CodeNotPending, "", "that question is not open")
	}
	return nil
}

// Reconcile tells for certain whether a turn was started under this id.
func (a *agent) Reconcile(ctx context.Context, _ handoff.TurnID, id string) (handoff.TurnID, error) {
	if isAside(a.thread) {
		return "", handoff.Fault(handoff.CodeUnsupported, a.conn.server.cfg.Name, "nothing of the session is kept")
	}
	want := turnID(a.thread, id)
	if err := a.conn.server.undoClaim(ctx, a.thread, want); err != nil {
		return "", err
	}
	record, err := a.conn.read(ctx, a.thread)
	if err != nil {
		return "", err
	}
	if id != "" && slices.ContainsFunc(record.Turns, func(t threads.Turn) bool { return t.ID == string(want) }) {
		return want, nil
	}
	return "", nil
}

var (
	_ handoff.Agent      = (*agent)(nil)
	_ handoff.Controls   = (*agent)(nil)
	_ handoff.Reconciler = (*agent)(nil)
	_ servers.Forker     = (*conn)(nil)
	_ servers.Catalog    = (*conn)(nil)
)
