package servers

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
)

// Config of a [Fleet].
type Config struct {
	Specs []Spec
	Log   *zap.Logger // nil: nothing is logged
	// Changed, if it is set, is called after a change of a server's health, and after a change that a server reports
	// (see [Link.Changed]), from one goroutine and without a lock. One call may stand for several changes.
	Changed func()
	// Hidden, if it is set, reports whether a thread is hidden from a caller: it was started for somebody else. If its
	// owner is not known, that of the thread counts of which it is a copy, and so on: they come in this order. It is
	// called from any goroutine and must not wait.
	Hidden func(c handoff.Caller, server string, threads ...string) bool
	// ByAPI, if it is set, returns a function that reports whether a program of the caller made a thread. Programs make
	// many threads, and people rarely mean one of these.
	ByAPI func(ctx context.Context, c handoff.Caller) func(server, thread string) bool
}

// A Fleet is all servers. It implements [handoff.Fleet] and [handoff.Directory].
type Fleet struct {
	log      *zap.Logger              // Set once
	now      atomic.Pointer[registry] // written by New and Change
	onChange func()                   // Set once: Config.Changed
	changes  chan struct{}            // capacity 1: full means that a call is due already

	hidden func(c handoff.Caller, server string, threads ...string) bool          // Set once: Config.Hidden
	byAPI  func(context.Context, handoff.Caller) func(server, thread string) bool // Set once: Config.ByAPI

	lists lists // safe by itself
	mu    sync.Mutex
	start func(*connector) // Guarded by mu: starts a connector; nil unless Run runs
}

// New checks the servers and makes a fleet. Nothing is connected before [Fleet.Run].
func New(c Config) (*Fleet, error) {
	if err := check(c.Specs); err != nil {
		return nil, err
	}
	f := &Fleet{
		log: cmp.Or(c.Log, zap.NewNop()), onChange: c.Changed, changes: make(chan struct{}, 1), hidden: c.Hidden, byAPI: c.ByAPI,
		lists: lists{newest: map[string]listing{}, wider: map[string]listing{}, underway: map[listKey]*listRequest{}},
	}
	if f.byAPI == nil {
		f.byAPI = func(context.Context, handoff.Caller) func(string, string) bool {
			return func(string, string) bool { return false }
		}
	}
	if f.hidden == nil {
		f.hidden = func(handoff.Caller, string, ...string) bool { return false }
	}
	var connectors []*connector
	for _, s := range c.Specs {
		connectors = append(connectors, newConnector(s, f.log, f.change, f.listChanged))
	}
	f.now.Store(newRegistry(connectors))
	return f, nil
}

// change has onChange called.
func (f *Fleet) change() {
	select {
	case f.changes <- struct{}{}:
	default: // a call is due already, and is made after this change
	}
}

// listChanged handles a change that a server reports, see [Link.Changed]: older threads are listed anew.
func (f *Fleet) listChanged(server string) {
	f.lists.outdateOlder(server)
	f.change()
}

// runCallbacks calls onChange after changes, until stop is closed.
func (f *Fleet) runCallbacks(stop <-chan struct{}) {
	for {
		select {
		case <-f.changes:
			if f.onChange != nil {
				f.onChange()
			}
		case <-stop:
			return
		}
	}
}

// Resolve implements [handoff.Fleet]. If a project is named, it finds only the project's threads. It returns a full
// thread id as it is, also while the server is down. Attaching or copying a thread of another project fails.
func (f *Fleet) Resolve(ctx context.Context, g handoff.Grant, t handoff.Target) (handoff.Target, error) {
	now := f.now.Load()
	at, fault := now.place(g, t)
	if fault != nil {
		return handoff.Target{}, fault
	}
	k := now.byName[at.server]
	resolved := handoff.Target{Server: at.server, Project: at.project}
	thread, done := k.spec.fullThread(t.Thread)
	if done && f.hides(g.Caller, k, thread, f.lists.sources(at.server)) {
		return handoff.Target{}, handoff.Fault(handoff.CodeUnknownSession, sayable(t.Thread), "")
	}
	if known, ok := byID(thread, f.lists.cached(at.server).threads); done && ok { // else Attach checks it
		fault = k.checkWithin(at.project, known.Dir, sayable(spokenTitle(known)))
	} else if !done {
		thread, fault = f.findThread(ctx, g, k, at, t.Thread)
	}
	if fault != nil {
		return handoff.Target{}, fault
	}
	resolved.Thread = thread
	return resolved, nil
}

// Attach implements [handoff.Fleet]. If the connection is lost meanwhile, it tries once more: attaching runs nothing.
func (f *Fleet) Attach(ctx context.Context, t handoff.Target) (handoff.Attached, error) {
	k, fault := f.now.Load().connector(t.Server)
	if fault != nil {
		return handoff.Attached{}, fault
	}
	if t.Thread == "" || t.Thread == handoff.NewThread {
		return handoff.Attached{}, handoff.Fault(handoff.CodeMalformed, "which session is meant", "")
	}
	a, err := k.overLoss(ctx, func(c Conn) (handoff.Attached, error) {
		return k.open(ctx, func(ctx context.Context) (handoff.Attached, error) { return c.Attach(ctx, t.Thread) })
	})
	if f.replaced(k, err) {
		return f.Attach(ctx, t)
	}
	if err != nil {
		return handoff.Attached{}, f.lists.name(err, t)
	}
	if a.Target.Thread != t.Thread {
		detach(f.log, a.Agent)
		return handoff.Attached{},
			handoff.Fault(handoff.CodeSessionMismatch, t.Server, "asked for "+t.Thread+", got "+a.Target.Thread)
	}
	if fault := f.checkPlace(ctx, k, t, a); fault != nil {
		detach(f.log, a.Agent)
		return handoff.Attached{}, fault
	}
	a.Target = t
	return k.describe(a), nil
}

// checkPlace returns an error for a thread that lies outside of the target's project, or whose worktree was removed. A
// thread whose server tells no directory is let through.
func (f *Fleet) checkPlace(ctx context.Context, k *connector, t handoff.Target, a handoff.Attached) *handoff.Error {
	if a.Workspace == "" {
		return nil
	}
	if fault := k.checkWithin(t.Project, a.Workspace, cmp.Or(sayable(a.Title), f.lists.title(t))); fault != nil {
		return fault
	}
	return f.checkTree(ctx, k, a)
}

// replaced reports whether a server's error only means that [Fleet.Change] has replaced it. Then the caller asks the
// new one.
func (f *Fleet) replaced(k *connector, err error) bool {
	if handoff.CodeOf(err) != handoff.CodeUnknownServer {
		return false
	}
	now := f.now.Load().byName[k.spec.Name]
	return now != nil && now != k
}

// overLoss asks a server for a thread, and once more if the connection is lost meanwhile.
func (k *connector) overLoss(ctx context.Context, ask func(Conn) (handoff.Attached, error)) (handoff.Attached, error) {
	for again := false; ; again = true {
		link, fault := k.link(ctx, true)
		if fault != nil {
			return handoff.Attached{}, fault
		}
		a, err := ask(link.Conn)
		if err == nil || again || ctx.Err() != nil || !lost(ctx, link) {
			return a, err
		}
	}
}

// openTakes bounds how long a thread may take to be opened, also when nobody waits for it any more.
const openTakes = 2 * time.Minute

// open has a thread opened by ask. If ctx ends first, ask goes on, and the thread is closed as soon as it is open: left
// open in the agent, no other program could open it.
func (k *connector) open(
	ctx context.Context, ask func(context.Context) (handoff.Attached, error),
) (handoff.Attached, error) {
	type result struct {
		at  handoff.Attached
		err error
	}
	opened := make(chan result)
	go func(waits <-chan struct{}) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), openTakes)
		defer cancel()
		at, err := ask(ctx)
		select {
		case opened <- result{at, err}:
		case <-waits:
			if err == nil {
				detach(k.log, at.Agent)
			}
		}
	}(ctx.Done())
	select {
	case r := <-opened:
		return r.at, r.err
	case <-ctx.Done():
		return handoff.Attached{}, k.unreachable(&view{}, "it did not answer in time")
	}
}

// Create implements [handoff.Fleet]. The thread begins in the project's directory, or else in the server's. If the
// connection is lost meanwhile, it tries once more: a thread too many does no harm, since threads that never ran are in
// no list.
func (f *Fleet) Create(ctx context.Context, t handoff.Target) (handoff.Attached, error) {
	return f.create(ctx, t, (*connector).create)
}

// create makes a thread on a connection.
func (k *connector) create(ctx context.Context, c Conn, dir string) (handoff.Attached, error) {
	return k.open(ctx, func(ctx context.Context) (handoff.Attached, error) { return c.Create(ctx, dir) })
}

// CreateEphemeral implements [handoff.Ephemeral].
func (f *Fleet) CreateEphemeral(ctx context.Context, t handoff.Target) (handoff.Attached, error) {
	return f.create(ctx, t, func(k *connector, ctx context.Context, c Conn, dir string) (handoff.Attached, error) {
		e, ok := c.(Ephemeral)
		if !ok {
			return k.create(ctx, c, dir)
		}
		return k.open(ctx, func(ctx context.Context) (handoff.Attached, error) { return e.CreateEphemeral(ctx, dir) })
	})
}

func (f *Fleet) create(
	ctx context.Context, t handoff.Target,
	with func(*connector, context.Context, Conn, string) (handoff.Attached, error),
) (handoff.Attached, error) {
	now := f.now.Load()
	k, fault := now.connector(t.Server)
	if fault != nil {
		return handoff.Attached{}, fault
	}
	dir := k.spec.Dir
	if t.Project != "" {
		var ok bool
		if dir, ok = k.spec.Projects[t.Project]; !ok {
			_, fault := now.names.project(k.spec.Name, t.Project)
			return handoff.Attached{}, fault
		}
	}
	before := k.unfit()
	a, err := k.overLoss(ctx, func(c Conn) (handoff.Attached, error) { return with(k, ctx, c, dir) })
	if k.unfit() != before {
		f.change()
	}
	if f.replaced(k, err) {
		return f.create(ctx, t, with)
	}
	if err != nil {
		return handoff.Attached{}, f.lists.name(err, t)
	}
	a.Target.Server, a.Target.Project = t.Server, t.Project
	return k.describe(a), nil
}

// Fork implements [handoff.Forker]: it copies the thread of a resolved target, in one try.
func (f *Fleet) Fork(ctx context.Context, t handoff.Target, last handoff.TurnID) (handoff.Attached, error) {
	return f.fork(ctx, t, func(ctx context.Context, c Conn) (handoff.Attached, error) {
		if forker, ok := c.(Forker); ok {
			return forker.Fork(ctx, t.Thread, last)
		}
		return handoff.Attached{}, handoff.Fault(handoff.CodeUnsupported, t.Server, "it cannot copy sessions")
	})
}

// ForkEphemeral implements [handoff.Ephemeral].
func (f *Fleet) ForkEphemeral(ctx context.Context, t handoff.Target, last handoff.TurnID) (handoff.Attached, error) {
	return f.fork(ctx, t, func(ctx context.Context, c Conn) (handoff.Attached, error) {
		if forker, ok := c.(Ephemeral); ok {
			return forker.ForkEphemeral(ctx, t.Thread, last)
		}
		return handoff.Attached{},
			handoff.Fault(handoff.CodeUnsupported, t.Server, "it knows no sessions of which nothing is kept")
	})
}

func (f *Fleet) fork(
	ctx context.Context, t handoff.Target, with func(context.Context, Conn) (handoff.Attached, error),
) (handoff.Attached, error) {
	k, fault := f.now.Load().connector(t.Server)
	switch {
	case fault != nil:
		return handoff.Attached{}, fault
	case t.Thread == "" || t.Thread == handoff.NewThread:
		return handoff.Attached{}, handoff.Fault(handoff.CodeMalformed, "which session is meant", "")
	}
	if known, ok := byID(t.Thread, f.lists.cached(t.Server).threads); ok {
		if fault := k.checkWithin(t.Project, known.Dir, sayable(spokenTitle(known))); fault != nil {
			return handoff.Attached{}, fault
		}
	}
	link, fault := k.link(ctx, true)
	switch {
	case fault == nil:
	case f.replaced(k, fault):
		return f.fork(ctx, t, with)
	default:
		return handoff.Attached{}, fault
	}
	a, err := k.open(ctx, func(ctx context.Context) (handoff.Attached, error) { return with(ctx, link.Conn) })
	if err != nil {
		return handoff.Attached{}, f.lists.name(err, t)
	}
	if a.Target.Thread == "" || a.Target.Thread == t.Thread {
		detach(f.log, a.Agent)
		return handoff.Attached{},
			handoff.Fault(handoff.CodeSessionMismatch, t.Server, "the copy of "+t.Thread+" is "+a.Target.Thread)
	}
	if fault := f.checkPlace(ctx, k, t, a); fault != nil { // the lists did not know the thread
		detach(f.log, a.Agent)
		return handoff.Attached{}, fault
	}
	a.Target.Server, a.Target.Project = t.Server, t.Project
	return k.describe(a), nil
}

// describe adds settings of the server, and what follows from the directory.
func (k *connector) describe(a handoff.Attached) handoff.Attached {
	a.VoiceApprovals = cmp.Or(k.spec.VoiceApprovals, "medium")
	a.Worktree = handoff.WorktreeAt(a.Workspace)
	return a
}

// lostGrace is how long after a failed request the loss of its connection may be noticed.
const lostGrace = 100 * time.Millisecond

// lost reports whether the connection is lost.
func lost(ctx context.Context, link *Link) bool {
	select {
	case <-link.Done:
		return true
	case <-time.After(lostGrace):
	case <-ctx.Done():
	}
	return false
}

// detach closes an agent that will not be used.
func detach(log *zap.Logger, a handoff.Agent) {
	if a == nil {
		return
	}
	if err := a.Close(); err != nil {
		log.Debug("detaching failed", zap.Error(err))
	}
}

// Registered implements [handoff.Registrar].
func (f *Fleet) Registered(server string) handoff.Registered {
	now := f.now.Load()
	k := now.byName[server]
	if k == nil {
		return handoff.Registered{Names: []string{server}}
	}
	var others []string
	for _, other := range now.connectors {
		if other != k {
			others = append(append(others, other.spec.Name), other.spec.Aliases...)
		}
	}
	return handoff.Registered{
		Known:          true,
		Names:          append([]string{k.spec.Name}, k.spec.Aliases...),
		Others:         others,
		VoiceApprovals: cmp.Or(k.spec.VoiceApprovals, "medium"),
		EndsWithUs:     k.spec.EndsWithUs || k.spec.Simulated,
		Unwatched:      k.spec.Watch == unwatched,
		Private:        k.spec.private(),
	}
}
