package calltest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
)

// Machines makes and finds threads, under the names that the ladder has for them.
type Machines interface {
	Known(ctx context.Context, t handoff.Target) (handoff.Attached, error)
	Make(ctx context.Context, t handoff.Target, ephemeral bool) (handoff.Attached, error)
	// Copy copies a thread up to its last turn.
	Copy(ctx context.Context, from handoff.Target, last handoff.TurnID, t handoff.Target) (handoff.Attached, error)
}

// Wait waits for the time that a request takes, or until ctx ends.
func (w *World) Wait(ctx context.Context, d time.Duration) error {
	select {
	case <-After(d):
		return nil
	case <-ctx.Done():
		return handoff.Fault(handoff.CodeUnreachable, "it", "")
	}
}

// After is [time.After] without a timer where there is nothing to wait for. Under -race, two goroutines of a bubble
// that receive from timers which are due crash the runtime of Go 1.26 (tsan: SIGSEGV): they have one race context.
func After(d time.Duration) <-chan time.Time {
	if d > 0 {
		return time.After(d)
	}
	now := make(chan time.Time)
	close(now)
	return now
}

// Resolve implements [handoff.Fleet]: it knows names exactly, and passes threads on.
func (w *World) Resolve(_ context.Context, _ handoff.Grant, t handoff.Target) (handoff.Target, error) {
	if err := w.Failure("resolve "+t.Server, t.Server); err != nil {
		return handoff.Target{}, err
	}
	name, project, _ := strings.Cut(t.Server, "/")
	if slices.Contains(w.Names(), name) {
		return handoff.Target{Server: name, Project: project, Thread: t.Thread}, nil
	}
	return handoff.Target{}, &handoff.Error{Code: handoff.CodeUnknownServer, Subject: t.Server, Choices: w.Names()}
}

// Attach implements [handoff.Fleet].
func (w *World) Attach(ctx context.Context, t handoff.Target) (handoff.Attached, error) {
	w.Record("agent", t.Server, "resume "+t.Thread)
	if err := w.Wait(ctx, w.AttachTakes); err != nil {
		return handoff.Attached{}, err
	}
	if d, ok := w.outages[t.Server]; ok && time.Since(w.Began) >= d[0] && time.Since(w.Began) < d[1] {
		return handoff.Attached{}, handoff.Fault(handoff.CodeUnreachable, t.Server, "")
	}
	if err := w.Failure("attach "+t.Thread, t.Thread); err != nil {
		return handoff.Attached{}, err
	}
	if other := w.returns[t.Thread]; other != "" {
		t.Thread = other
	}
	at, err := w.Machines.Known(ctx, t)
	return w.attached(at, t, t.Thread), err
}

// Create implements [handoff.Fleet].
func (w *World) Create(ctx context.Context, t handoff.Target) (handoff.Attached, error) {
	return w.create(ctx, t, false)
}

// CreateEphemeral implements [handoff.Ephemeral].
func (w *World) CreateEphemeral(ctx context.Context, t handoff.Target) (handoff.Attached, error) {
	return w.create(ctx, t, true)
}

// CreateIn implements [handoff.Planter]: no project of the world has worktrees by itself.
func (w *World) CreateIn(ctx context.Context, t handoff.Target, name string, always bool) (handoff.Attached, error) {
	if !always {
		return w.create(ctx, t, false)
	}
	tree := handoff.WorktreeAt("/src" + handoff.WorktreeDirs + "/" + name)
	w.Record("agent", t.Server, "worktree "+tree.Root)
	at, err := w.create(ctx, t, false)
	at.Worktree = tree
	return at, err
}

// RemoveWorktree removes the worktree of a thread, as the tool does.
func (w *World) RemoveWorktree(_ context.Context, _ handoff.Grant, t handoff.Target) error {
	err := w.Failure("remove "+t.Thread, t.Server)
	if err == nil {
		w.Record("agent", t.Server, t.Thread+": worktree removed")
	}
	return err
}

func (w *World) create(ctx context.Context, t handoff.Target, ephemeral bool) (handoff.Attached, error) {
	what, kind := "create ", "fresh"
	if ephemeral {
		what, kind = "create ephemeral ", "aside"
	}
	w.Record("agent", t.Server, what+t.Project)
	if err := w.Wait(ctx, w.AttachTakes); err != nil {
		return handoff.Attached{}, err
	}
	if err := w.Failure("create "+t.Server, t.Server); err != nil {
		return handoff.Attached{}, err
	}
	w.mu.Lock()
	w.made++
	t.Thread = fmt.Sprintf("%s-%d", kind, w.made)
	w.mu.Unlock()
	at, err := w.Machines.Make(ctx, t, ephemeral)
	return w.attached(at, t, t.Thread), err
}

// Fork implements [handoff.Forker].
func (w *World) Fork(ctx context.Context, from handoff.Target, last handoff.TurnID) (handoff.Attached, error) {
	w.Record("agent", from.Server, "copy "+from.Thread)
	if err := w.Wait(ctx, w.AttachTakes); err != nil {
		return handoff.Attached{}, err
	}
	t := from
	t.Thread = "copy-" + from.Thread
	at, err := w.Machines.Copy(ctx, from, last, t)
	return w.attached(at, t, from.Thread), err
}

// ForkEphemeral implements [handoff.Ephemeral].
func (w *World) ForkEphemeral(_ context.Context, t handoff.Target, _ handoff.TurnID) (handoff.Attached, error) {
	return handoff.Attached{}, handoff.Fault(handoff.CodeUnsupported, t.Server, "")
}

// attached returns an attachment with a thread's name in the ladder, and the title of the thread titled.
func (w *World) attached(at handoff.Attached, t handoff.Target, titled string) handoff.Attached {
	at.Target, at.Title, at.VoiceApprovals = t, w.Titles[titled], w.Voice
	return at
}

// Registered implements [handoff.Registrar].
func (w *World) Registered(server string) handoff.Registered {
	return handoff.Registered{Names: append([]string{server}, w.aliases[server]...), VoiceApprovals: w.Voice,
		EndsWithUs: w.children[server]}
}

// place returns "bigpc" or "bigpc/api".
func place(t handoff.Target) string {
	if t.Project == "" {
		return t.Server
	}
	return t.Server + "/" + t.Project
}

// Servers implements [handoff.Directory].
func (w *World) Servers(context.Context, handoff.Grant) (out []handoff.ServerInfo) {
	for _, s := range w.Names() {
		health := handoff.HealthUp
		if s == w.dead {
			health = handoff.HealthDown
		}
		out = append(out, handoff.ServerInfo{Name: s, Kind: "codex", Health: health})
	}
	return out
}

// Sessions implements [handoff.Directory].
func (w *World) Sessions(context.Context, handoff.Grant, handoff.SessionQuery) (handoff.SessionList, error) {
	list := handoff.SessionList{Items: []handoff.SessionInfo{{ID: "t1", Label: "auth refactor", Title: "Auth refactor",
		Server: "bigpc", Age: "5 minutes ago", Status: handoff.SessionIdle}}}
	for i := range w.sessions {
		list.Items = append(list.Items,
			handoff.SessionInfo{ID: fmt.Sprintf("thread-%04d", i), Title: strings.Repeat("long title ", 9), Server: "bigpc",
				Age: "yesterday"})
	}
	if w.dead != "" {
		list.Errors = []handoff.ServerProblem{{Server: w.dead, Code: handoff.CodeUnreachable,
			Message: w.dead + " is not answering."}}
	}
	return list, nil
}

// Read implements [handoff.Directory].
func (w *World) Read(_ context.Context, _ handoff.Grant, t handoff.Target, _ int) (handoff.Transcript, error) {
	if err := w.Failure("read "+t.Thread, t.Thread); err != nil {
		return handoff.Transcript{}, err
	}
	return handoff.Transcript{Server: t.Server, ID: t.Thread, Title: "Auth refactor",
		Lines: []handoff.Line{{Role: "agent", Text: "One test fails."}}}, nil
}

// Notify implements [handoff.Notifier]: it records the notice.
func (w *World) Notify(n handoff.Notice) {
	w.Record("page", "notice", string(n.Kind)+" "+n.Handoff+" "+n.Text)
}

// Audit implements [handoff.Auditor]: it records decisions before they are given. A disk does not end with a context.
func (w *World) Audit(ctx context.Context, rec handoff.AuditRecord) error {
	if err := w.Wait(context.WithoutCancel(ctx), w.audits); err != nil {
		return err
	}
	if err := w.Failure("audit x", "the audit"); err != nil {
		return err
	}
	w.Record("agent", "audit", strings.TrimSpace(string(rec.Decision)+" by "+rec.By+" "+rec.Tier))
	return nil
}
