package router

import (
	"cmp"
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/work"
)

// do runs a job. It returns a function that posts the result; nil: the state has it already.
func (r *Router) do(ctx context.Context, l *life, j work.Job) (then func()) {
	ctx, span := handoff.BeginSpan(ctx, string(j.Kind))
	d := &work.Done{ID: j.ID, N: j.N}
	switch j.Kind {
	case work.Resolve:
		r.resolve(ctx, l, j, d)
	case work.Join:
		r.join(ctx, j)
	case work.Attach:
		r.attach(ctx, l, j, d)
	case work.Create, work.Copy:
		r.make(ctx, l, j, d)
	case work.Lease:
		d.Gate, d.Err = r.lease(ctx, j)
	case work.Elsewhere:
		d.Gate = r.awaitLease(ctx, j)
	case work.Start:
		r.startTurn(ctx, j, d)
	case work.Steer:
		limited, cancel := context.WithTimeout(ctx, work.SendTakes)
		d.Err = r.act(func() error { return j.Holder.Control.Steer(limited, j.Holder.ID, j.Request.Input) })
		cancel()
	case work.Await:
		if j.Request.Mode == handoff.ModeWatch && j.Attached.Running == "" {
			r.awaitNext(ctx, l, j)
		} else if j.Attached.Running == "" || watchToEnd(ctx, j.Attached.Agent, j.Attached.Running) != nil {
			r.cfg.Pause(ctx, j.Tries)
		}
	case work.Reconcile:
		r.reconcile(ctx, l, j, d)
	case work.Follow:
		r.follow(ctx, j, d)
	case work.Reconnect:
		r.reconnect(ctx, l, j, d)
	}
	if j.Kind == work.Join || d.Fact != "" {
		span.End(handoff.CodeOf(d.Err), "fact", d.Fact)
		return nil
	}
	return func() {
		r.step(d)
		span.End(handoff.CodeOf(d.Err), "fact", d.Fact)
	}
}

// resolve finds the server, and what may be known of the thread; it reads the session with which the request goes on.
func (r *Router) resolve(ctx context.Context, l *life, j work.Job, d *work.Done) {
	ctx, cancel := context.WithTimeout(ctx, work.SendTakes)
	defer cancel()
	d.Name, d.IsCopy = work.CutPrefixFold(j.Request.Target.Thread, work.CopyOf)
	if l.agents.ahead != nil {
		d.Target, d.Err = l.agents.ahead.awaitTarget(ctx)
	}
	// A machine that was away when the names were resolved ahead may be back.
	if l.agents.ahead == nil || handoff.CodeOf(d.Err) == handoff.CodeUnreachable {
		d.Target, d.Err = r.cfg.Fleet.Resolve(ctx, j.Grant, handoff.Target{Server: j.Request.Target.Server, Thread: d.Name})
	}
	if d.Err == nil && d.Target.Thread == "" && j.Request.Mode != handoff.ModeAside {
		d.Err = r.open(ctx)
	}
	if d.Err == nil && j.Request.From != (handoff.Target{}) {
		var from handoff.Transcript
		from, d.Err = r.readFrom(ctx, j.Grant, j.Request.From)
		d.From = &from
	}
}

// A reader reads sessions. A [handoff.Fleet] may be one.
type reader interface {
	Read(ctx context.Context, g handoff.Grant, t handoff.Target, limit int) (handoff.Transcript, error)
}

// readFrom reads the session with which a request goes on, if the grant may see it; without a thread, the sticky one of
// that server.
func (r *Router) readFrom(ctx context.Context, g handoff.Grant, from handoff.Target) (handoff.Transcript, error) {
	sessions, ok := r.cfg.Fleet.(reader)
	if !ok {
		return handoff.Transcript{}, handoff.Fault(handoff.CodeUnsupported, from.Server, "this fleet reads no sessions")
	}
	if from.Thread == "" {
		t, err := r.cfg.Fleet.Resolve(ctx, g, from)
		if err != nil {
			return handoff.Transcript{}, err
		}
		used, err := r.used(ctx)
		if err != nil {
			return handoff.Transcript{}, err
		}
		i := slices.IndexFunc(used, func(s handoff.Sticky) bool { return work.PlaceOf(s.Target) == work.PlaceOf(t) })
		if i < 0 {
			return handoff.Transcript{}, handoff.Fault(handoff.CodeUnknownSession, "on "+t.Server,
				"none is in use there: it has to be named")
		}
		from = used[i].Target
	}
	return sessions.Read(ctx, g, from, handoff.MaxReadLines)
}

// join waits until the queue of the thread lets the words go on.
func (r *Router) join(ctx context.Context, j work.Job) {
	for ctx.Err() == nil {
		look := ask(r, &work.Look{ID: j.ID, N: j.N})
		if look.Changed == nil {
			return
		}
		select {
		case <-look.Changed:
		case <-ctx.Done():
		}
	}
}

// attach attaches the thread. Unless the lease is fresh, it takes the gate at the same time. If the gate's newest turn
// is missing from the attachment, it attaches once more. It sets d.Gate even if attaching fails.
func (r *Router) attach(ctx context.Context, l *life, j work.Job, d *work.Done) {
	ctx, cancel := context.WithTimeout(ctx, work.SendTakes)
	defer cancel()
	if r.cfg.Gates == nil || j.Request.Mode == handoff.ModeWatch { // which starts nothing
		d.Attached, d.Err = l.agents.attach(ctx, j.Target)
		return
	}
	lease := j.Gate
	taken := make(chan error, 1)
	if lease.Fresh(j.Target, time.Now()) {
		taken <- nil
	} else {
		go func() {
			var err error
			lease, err = r.takeGate(ctx, j)
			taken <- err
		}()
	}
	d.Attached, d.Err = l.agents.attach(ctx, j.Target)
	if refused := <-taken; refused != nil {
		d.Err = refused
	}
	d.Gate = &lease
	if d.Err == nil && lease.Missed(d.Attached) {
		d.Attached, d.Err = l.agents.again(ctx, j.Target)
	}
}

// make makes a new thread for the words, or the copy that the caller allowed or the request asks for. In a worktree, it
// may take longer: a large repository has to be checked out.
func (r *Router) make(ctx context.Context, l *life, j work.Job, d *work.Done) {
	ctx, cancel := context.WithTimeout(ctx, 4*work.SendTakes)
	defer cancel()
	fleet, aside := r.cfg.Fleet, work.CopiesAside(j.Request)
	forker, forks := fleet.(handoff.Forker)
	ephemeral, passes := fleet.(handoff.Ephemeral)
	planter, plants := fleet.(handoff.Planter)
	t := j.Target
	switch {
	case j.Kind == work.Copy && aside && passes:
		d.Attached, d.Err = ephemeral.ForkEphemeral(ctx, t, j.Request.After)
	case j.Kind == work.Copy && !aside && forks:
		d.Attached, d.Err = forker.Fork(ctx, t, j.Request.After)
	case j.Kind == work.Copy:
		d.Err = handoff.Fault(handoff.CodeUnsupported, t.Server, "this fleet makes no such copies")
	case j.Request.Mode == handoff.ModeAside && passes:
		t.Thread = handoff.NewThread
		d.Attached, d.Err = ephemeral.CreateEphemeral(ctx, t)
	case plants && j.Request.Mode != handoff.ModeAside:
		t.Thread = handoff.NewThread
		name := handoff.WorktreeName(handoff.InputText(j.Request.Input), r.treeOf(j))
		d.Attached, d.Err = planter.CreateIn(ctx, t, name, j.Request.Worktree)
	case j.Request.Worktree:
		d.Err = handoff.Fault(handoff.CodeUnsupported, t.Server, "this fleet makes no worktrees")
	default:
		t.Thread = handoff.NewThread
		d.Attached, d.Err = fleet.Create(ctx, t)
	}
	if d.Err == nil {
		r.cfg.Owners.add(r.cfg.Caller, d.Attached.Target) // nobody else knows of it
		_, _ = l.agents.hold(d.Attached, nil)
	}
}

// treeOf returns what identifies the worktree of a job's work: the same for a repetition of it, also for the one that
// begins it after it was not begun.
func (r *Router) treeOf(j work.Job) string {
	return r.cfg.Caller.String() + " " + cmp.Or(string(j.Request.Instead), j.ID)
}

// startTurn starts the turn in the thread. It tries once.
func (r *Router) startTurn(ctx context.Context, j work.Job, d *work.Done) {
	ctx, cancel := context.WithTimeout(ctx, work.SendTakes)
	defer cancel()
	d.Err = r.act(func() (err error) {
		if r.cfg.Gates != nil && !j.Alone && !j.Gate.Valid(j.Target, time.Now()) { // the process was suspended
			return handoff.Fault(handoff.CodeBusy, j.Target.Server, "its start gate may be somebody else's")
		}
		turn := handoff.Turn{ID: j.ID, Input: j.Request.Input, Context: slices.Concat(j.Request.Context, j.Extra)}
		if w := j.Attached.Worktree; w != nil && j.Attached.Newest == "" {
			turn.Context = append(turn.Context, handoff.Context{Key: "worktree", Trusted: true, Value: "This session has a " +
				"worktree of git and the branch " + w.Branch + " of its own. Commit your work on that branch."})
		}
		start := j.Attached.Agent.Start
		if j.Request.Goal {
			pursuer, pursues := j.Attached.Agent.(handoff.Pursuer)
			if !pursues {
				return handoff.Fault(handoff.CodeNoGoal, j.Target.Server, "its agent has none")
			}
			start = pursuer.Pursue
		}
		d.Turn, err = start(ctx, turn)
		return err
	})
}

// follow posts the updates of the turn until it ends, or they do.
func (r *Router) follow(ctx context.Context, j work.Job, d *work.Done) {
	for u, err := range j.Attached.Agent.Follow(ctx, j.Turn) {
		if err != nil {
			d.Err = handoff.AsError(err)
			return
		}
		if of := ask(r, &work.Update{ID: j.ID, N: j.N, Update: u}); of.Over {
			d.Fact = of.Fact
			return
		}
	}
	d.Err = handoff.Fault(handoff.CodeAgentGone, j.Target.Server, "the updates ended before the turn")
}

// reconnect tries to attach the thread until it succeeds or Patience is over. It never starts a turn.
func (r *Router) reconnect(ctx context.Context, l *life, j work.Job, d *work.Done) {
	until := j.Lost.Add(r.cfg.Patience)
	d.Err = handoff.Fault(handoff.CodeAgentGone, j.Target.Server, "it was not looked for")
	for try := j.Tries; r.cfg.Pause(ctx, try); try++ {
		d.Attached, d.Err = l.agents.again(ctx, j.Target)
		late := !time.Now().Before(until)
		if d.Err == nil && late {
			d.Err = handoff.Fault(handoff.CodeAgentGone, j.Target.Server, "the turn cannot be followed any more")
		}
		if d.Err == nil || late || work.Permanent(d.Err) {
			return
		}
		r.cfg.Log.Debug("agent not reached", zap.Int("try", try), zap.Error(d.Err))
	}
}

// reconcile finds out whether a turn began after a start whose acknowledgement was lost, or which had no updates.
func (r *Router) reconcile(ctx context.Context, l *life, j work.Job, d *work.Done) {
	until := time.Now().Add(r.cfg.Patience)
	d.Err = handoff.Fault(handoff.CodeUnknownStart, j.Target.Server, "it was not looked for")
	for try := 0; r.cfg.Pause(ctx, try); try++ {
		d.Attached, d.Turn, d.Err = l.agents.lookFor(ctx, j.Target, j.Before, j.ID)
		joined := handoff.CodeOf(d.Err) == handoff.CodeJoined && d.Turn != ""
		if d.Err == nil || joined || work.Permanent(d.Err) || time.Now().After(until) {
			return
		}
		r.cfg.Log.Debug("start not reconciled", zap.Int("try", try), zap.Error(d.Err))
	}
}

// interrupt stops a turn. It tries again until the agent has taken that, or the work ends: the caller was told that the
// turn is being stopped, and a second interrupt does no harm.
func (r *Router) interrupt(ctx context.Context, e work.Interrupt) {
	controls, ok := e.Agent.(handoff.Controls)
	if !ok {
		r.cfg.Log.Info("the agent cannot be interrupted")
		return
	}
	for try := 0; ; try++ {
		limited, cancel := context.WithTimeout(ctx, work.SendTakes)
		err := controls.Interrupt(limited, e.Turn)
		cancel()
		if err == nil {
			return
		}
		r.cfg.Log.Info("interrupt failed", zap.String("code", string(handoff.CodeOf(err))), zap.Int("try", try),
			zap.Error(err))
		if handoff.CodeOf(err) == handoff.CodeUnsupported || !r.cfg.Pause(ctx, try) {
			return
		}
	}
}

// awaitNext looks at a watched thread until it has another newest turn, cannot be watched, or was for long enough.
func (r *Router) awaitNext(ctx context.Context, l *life, j work.Job) {
	const looks = 3 // from then on the pause between two of them does not grow
	for try := 0; r.cfg.Pause(ctx, min(try, looks)); try++ {
		at, err := l.agents.again(ctx, j.Target)
		closeAgents(r.cfg.Log, l.agents.former())
		switch {
		case err == nil && (at.Running != "" || at.Newest != j.Before),
			err != nil && (work.Permanent(err) || handoff.CodeOf(err) == handoff.CodeSessionInUse),
			handoff.Passed(j.AskedAt, time.Now()) >= work.WatchFor:
			return
		}
	}
}

// watchToEnd waits for the end of somebody else's turn, and ignores its updates.
func watchToEnd(ctx context.Context, agent handoff.Agent, turn handoff.TurnID) error {
	follow := agent.Follow
	if w, ok := agent.(handoff.Bystander); ok {
		follow = w.Watch
	}
	for u, err := range follow(ctx, turn) {
		if err != nil {
			return err
		}
		if _, ended := u.(handoff.TurnEnded); ended {
			return nil
		}
	}
	return handoff.Fault(handoff.CodeAgentGone, "", "the updates ended before the turn")
}

// Gates keeps the start gates of threads in a store; see [ledger.Gate].
type Gates interface {
	// TakeGate takes a gate, unless somebody else holds it. It returns the gate afterwards.
	TakeGate(ctx context.Context, thread handoff.Target, holder string) (ledger.Gate, error)
	// FreeGate frees a gate that the holder holds, and stores which turn began; "": it is not known.
	FreeGate(ctx context.Context, thread handoff.Target, holder string, last handoff.TurnID) error
}

// takeGate asks for the gate of a job's thread. After an error it is not known whether the handoff has it.
func (r *Router) takeGate(ctx context.Context, j work.Job) (work.GateLease, error) {
	lease := work.GateLease{Thread: j.Target}
	asked := time.Now()
	now, err := r.cfg.Gates.TakeGate(ctx, j.Target, j.ID)
	if err != nil {
		return lease, handoff.StoreDown(err)
	}
	lease.Asked, lease.Elsewhere, lease.Last = asked, now.Holder != j.ID, now.Last
	return lease, nil
}

// lease takes the gate again. Only a new turn that it names may be missing in the attachment.
func (r *Router) lease(ctx context.Context, j work.Job) (*work.GateLease, error) {
	lease, err := r.takeGate(ctx, j)
	if lease.Last == j.Gate.Last {
		lease.Last = ""
	}
	return &lease, err
}

// awaitLease asks for the gate, which another instance holds, until the handoff has it. While the store fails, it asks
// less and less often.
func (r *Router) awaitLease(ctx context.Context, j work.Job) *work.GateLease {
	lease := j.Gate
	for failed := 0; lease.Elsewhere && r.cfg.Pause(ctx, failed); {
		now, err := r.takeGate(ctx, j)
		if err != nil {
			failed++
			r.cfg.Log.Debug("start gate not asked for", zap.Int("failed", failed), zap.Error(err))
			continue
		}
		lease, failed = now, 0
	}
	return &lease
}

// free frees a gate. If that fails, the gate opens when the lease expires.
func (r *Router) free(e work.Free) {
	ctx, cancel := context.WithTimeout(context.Background(), work.StoreTakes)
	defer cancel()
	if err := r.cfg.Gates.FreeGate(ctx, e.Thread, e.ID, e.Last); err != nil {
		r.cfg.Log.Debug("the start gate of a thread opens by itself", zap.Error(err))
	}
}
