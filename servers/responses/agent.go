package responses

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/threads"
	"switchboard/servers"
)

// A conn is one connection to a [Server]. Closing it does not affect running turns.
type conn struct {
	server *Server       // Set once
	id     string        // Set once; unique
	once   sync.Once     // closes done
	done   chan struct{} // Set once
}

// Close ends the connection.
func (c *conn) Close() error {
	c.once.Do(func() { close(c.done) })
	return nil
}

// open returns an error after the connection was closed.
func (c *conn) open() error {
	select {
	case <-c.done:
		return handoff.Fault(handoff.CodeUnreachable, c.server.cfg.Name, "the connection is closed")
	default:
		return nil
	}
}

// read returns a thread out of the store.
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

// Attach attaches to a thread.
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
		Agent:  &agent{conn: c, thread: t.ID, closed: make(chan struct{}), followers: map[handoff.TurnID]*follower{}},
		Target: handoff.Target{Thread: t.ID}, Title: t.Title, Workspace: t.Dir,
		Running: handoff.TurnID(c.server.active(t)), Newest: handoff.TurnID(t.Newest()),
	}
}

// Create makes a new thread. Every thread works in the workspace of the server; another directory is refused.
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
		At: time.Now()})
	if err != nil {
		return handoff.Attached{}, err
	}
	return c.attached(made.Thread), nil
}

// Fork copies a thread up to and including a finished turn, "" for the newest one.
func (c *conn) Fork(ctx context.Context, thread string, last handoff.TurnID) (handoff.Attached, error) {
	record, err := c.read(ctx, thread)
	if err != nil {
		return handoff.Attached{}, err
	}
	made, err := c.server.advance(ctx, c.fork(record.Thread, last, "thr"))
	if err != nil {
		return handoff.Attached{}, err
	}
	return c.attached(made.Thread), nil
}

// fork returns the step that copies a thread. Its active turn ends with that, if it was lost.
func (c *conn) fork(t threads.Thread, last handoff.TurnID, kind string) threads.Fork {
	f := threads.Fork{Owner: c.server.cfg.Name, Thread: t.ID, After: string(last), Copy: newID(kind), At: time.Now()}
	if c.server.active(t) == "" {
		f.Lost = t.Active
	}
	return f
}

// An agent is one attachment to a thread.
type agent struct {
	conn   *conn         // Set once
	thread string        // Set once
	once   sync.Once     // closes closed
	closed chan struct{} // Set once

	mu        sync.Mutex
	followers map[handoff.TurnID]*follower // Guarded by mu: one for each turn that it reads
}

// Close detaches.
func (a *agent) Close() error {
	a.once.Do(func() {
		close(a.closed)
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, f := range a.followers {
			f.hub.leave(f)
		}
		clear(a.followers)
		a.conn.server.leave(a.thread)
	})
	return nil
}

// open returns an error after the attachment or its connection was closed.
func (a *agent) open() error {
	select {
	case <-a.closed:
		return handoff.Fault(handoff.CodeUnreachable, a.conn.server.cfg.Name, "detached")
	default:
		return a.conn.open()
	}
}

// Start starts a turn. With an id that was used before it returns that turn, and nothing runs twice.
func (a *agent) Start(ctx context.Context, turn handoff.Turn) (handoff.TurnID, error) {
	if err := a.open(); err != nil {
		return "", err
	}
	if err := checkInput(turn.Input); err != nil {
		return "", err
	}
	id, err := a.conn.server.begin(ctx, a.thread, turn, func(r *run) { a.follow(r) })
	if err != nil {
		return "", err
	}
	return id, nil
}

// follow returns the follower of a running turn.
func (a *agent) follow(r *run) *follower {
	a.mu.Lock()
	defer a.mu.Unlock()
	if f := a.followers[r.id]; f != nil {
		return f
	}
	f := r.hub.follow(a.conn.id)
	select {
	case <-a.closed:
		r.hub.leave(f)
	default:
		a.followers[r.id] = f
	}
	return f
}

// Follow yields the updates of a turn: those of a running turn as they come, those of an ended turn from the store.
func (a *agent) Follow(ctx context.Context, id handoff.TurnID) iter.Seq2[handoff.Update, error] {
	return func(yield func(handoff.Update, error) bool) {
		if err := whyGone(ctx, a.closed, a.conn.done); err != nil {
			yield(nil, err)
			return
		}
		a.mu.Lock()
		f := a.followers[id]
		a.mu.Unlock()
		if r := a.conn.server.running(a.thread); f == nil && r != nil && r.id == id {
			f = a.follow(r)
		}
		if f == nil {
			a.replay(ctx, id, yield)
			return
		}
		for {
			u, err := f.hub.next(ctx, f, a.closed, a.conn.done)
			if !yield(u, err) || err != nil {
				return
			}
			if _, ended := u.(handoff.TurnEnded); ended { // nothing more is to be read
				a.mu.Lock()
				defer a.mu.Unlock()
				if f := a.followers[id]; f != nil {
					f.hub.leave(f)
					delete(a.followers, id)
				}
				return
			}
		}
	}
}

// replay yields the updates of a turn in the store: one that has ended, or whose process died.
func (a *agent) replay(ctx context.Context, id handoff.TurnID, yield func(handoff.Update, error) bool) {
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
	for _, u := range replayUpdates(record, record.Turns[i]) {
		if !yield(u, nil) {
			return
		}
	}
}

// run returns the run of a turn, or an error if the turn is not running.
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

// Steer gives more words to a running turn. Accepted words are stored. Either the model gets them, after the outputs
// of the tools that run now, or the end of the turn returns them as undelivered, even after the process was killed.
func (a *agent) Steer(ctx context.Context, turn handoff.TurnID, input []handoff.Part) error {
	r, err := a.run(turn)
	if err != nil {
		return err
	}
	if err := checkInput(input); err != nil {
		return err
	}
	return r.inbox.put(ctx, input, func(s threads.Steer) error {
		step := r.emptyStep()
		step.Steer = &s
		_, err := r.server.advance(context.WithoutCancel(ctx), step) // a cancelled write would be uncertain
		return err
	})
}

// Interrupt ends the turn and returns once it has ended.
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

// Reconcile returns the turn that was started with this id, "" if certainly none was.
func (a *agent) Reconcile(ctx context.Context, _ handoff.TurnID, id string) (handoff.TurnID, error) {
	if isAside(a.thread) {
		return "", handoff.Fault(handoff.CodeUnsupported, a.conn.server.cfg.Name, "nothing of the session is kept")
	}
	want := turnID(a.thread, id)
	if r := a.conn.server.unsureStart(want); r != nil { // make sure, by starting it
		err := a.conn.server.start(ctx, r, func(r *run) { a.follow(r) })
		if code := handoff.CodeOf(err); code == handoff.CodeUnknownStart || code == handoff.CodeUnreachable {
			return "", err
		}
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
