package simulator

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Statuses of a thread on the wire.
const (
	statusIdle      = "idle"
	statusActive    = "active"
	statusNotLoaded = "notLoaded"
	statusFailed    = "systemError"
)

// Statuses of a turn on the wire.
const (
	turnRunning     = "inProgress"
	turnCompleted   = "completed"
	turnFailed      = "failed"
	turnInterrupted = "interrupted"
)

// version is the simulated version of the app-server.
const version = "0.169.0"

// A thread is one conversation. Guarded by mu of its machine.
type thread struct {
	m                              *machine // Set once, by [machine.add]
	id, name, preview, cwd, branch string
	exec                           bool // made by codex exec
	created, updated               time.Time
	ephemeral, archived            bool
	loaded                         bool
	stored                         bool // it had a turn or got a name, so it can be resumed
	status                         string
	flags                          []string
	turns                          []*turn
	turn                           *turn // the running turn, or nil
	subscribers                    []*conn
	forkedFrom                     string   // id of its source, or ""
	approval, sandbox              string   // as given to thread/start
	allowed                        []string // commands accepted for the session
	forgotten                      int      // how many turns of earlier worlds it recalled
	known                          *Session // by the built-in agent
}

// source returns the program that made the thread, by which lists filter.
func (t *thread) source() string {
	if t.exec {
		return sourceExec
	}
	return "vscode" // the name that the app-server uses for itself
}

const sourceExec = "exec"

// An item is one entry of a turn, as clients see it. Guarded by mu of its machine.
type item struct {
	*Item
	id                 string
	client             *string // of a message of the user
	cwd                string
	started, completed time.Time
}

// A turn is one run of a thread. Guarded by mu of its machine.
type turn struct {
	id                 string
	thread             *thread
	status             string
	fault              string
	items              []*item // finished items
	open               []*item // open items, oldest first
	work               *Work
	next               *timer // for the next frame
	steers             []input
	hangs              bool // it waits at a Hang
	coming             bool // it was acknowledged but has not begun
	ask                *ask // open request of the turn, or nil
	started, completed time.Time
}

// An input is a message of the user.
type input struct {
	text   string
	client *string
}

// thread returns the thread of a seed.
func (s Seed) thread(now time.Time) *thread {
	at := now.Add(-s.Old)
	t := &thread{
		id: s.ID, name: s.Title, cwd: s.Dir, branch: s.Branch, created: at.Add(-time.Hour), updated: at,
		loaded: true, stored: true, status: statusIdle, known: newSession(s.Dir, s.Branch, s.Done...), exec: s.Exec,
	}
	start := at.Add(-time.Duration(len(s.Turns)) * 10 * time.Minute)
	for i, st := range s.Turns {
		begin := start.Add(time.Duration(i+1) * 10 * time.Minute)
		u := &turn{id: newID(begin), thread: t, status: turnCompleted, started: begin.Add(-time.Minute), completed: begin}
		add := func(it Item) {
			u.items = append(u.items, &item{Item: &it, id: newID(begin), cwd: s.Dir, started: begin.Add(-time.Minute),
				completed: begin})
		}
		add(Item{Kind: ItemUser, Text: st.Prompt})
		if st.Command != "" {
			add(Item{Kind: ItemCommand, Command: st.Command, Output: st.Output, Exit: new(0), Status: ItemCompleted})
		}
		add(Item{Kind: ItemMessage, Text: st.Answer})
		t.turns = append(t.turns, u)
	}
	t.preview = s.Turns[0].Prompt
	return t
}

func (t *thread) wireStatus() map[string]any {
	switch {
	case !t.loaded:
		return map[string]any{"type": statusNotLoaded}
	case t.status == statusActive:
		flags := t.flags
		if flags == nil {
			flags = []string{}
		}
		return map[string]any{"type": statusActive, "activeFlags": flags}
	}
	return map[string]any{"type": t.status}
}

// wire returns the Thread object, without its turns.
func (t *thread) wire() map[string]any {
	var git any
	if t.branch != "" {
		git = map[string]any{"sha": nil, "branch": t.branch, "originUrl": nil}
	}
	return map[string]any{
		"id": t.id, "sessionId": t.id, "forkedFromId": textOrNull(t.forkedFrom), "parentThreadId": nil, "preview": t.preview,
		"ephemeral": t.ephemeral, "modelProvider": "simulator", "model": "simulated", "createdAt": t.created.Unix(),
		"updatedAt": t.updated.Unix(), "recencyAt": t.updated.Unix(), "status": t.wireStatus(), "path": nil, "cwd": t.cwd,
		"cliVersion": version, "source": t.source(), "gitInfo": git, "name": textOrNull(t.name), "turns": []any{},
	}
}

// settings returns the answer to start and resume: the settings of the thread, and the given fields.
func (t *thread) settings(fields map[string]any) map[string]any {
	all := map[string]any{
		"model": "simulated", "modelProvider": "simulator", "cwd": t.cwd, "reasoningEffort": nil,
		"approvalPolicy": cmp.Or(t.approval, "on-request"), "approvalsReviewer": "user",
		"sandbox": map[string]any{"type": cmp.Or(t.sandbox, sandboxTypes["workspace-write"]),
			"writableRoots": []any{}, "networkAccess": false},
	}
	maps.Copy(all, fields)
	return all
}

// Views of a turn's items.
const (
	viewNone    = "notLoaded"
	viewSummary = "summary"
	viewFull    = "full"
)

// wire returns the Turn object. The summary view has the message of the user and the last one of the agent.
func (u *turn) wire(view string) map[string]any {
	items := []any{}
	last := u.lastMessage()
	for _, it := range u.items {
		if view == viewFull || view == viewSummary && (it.Kind == ItemUser || it == last) {
			items = append(items, it.wire())
		}
	}
	var fault, started, completed, took any
	if u.fault != "" {
		fault = map[string]any{"message": u.fault, "codexErrorInfo": "other", "additionalDetails": nil}
	}
	if !u.started.IsZero() {
		started = u.started.Unix()
	}
	if !u.completed.IsZero() {
		completed, took = u.completed.Unix(), u.completed.Sub(u.started).Milliseconds()
	}
	return map[string]any{
		"id": u.id, "rootTurnId": u.id, "items": items, "itemsView": view, "status": u.status, "error": fault,
		"startedAt": started, "completedAt": completed, "durationMs": took,
	}
}

// lastMessage returns the newest finished message of the agent, nil for none.
func (u *turn) lastMessage() *item {
	for _, it := range slices.Backward(u.items) {
		if it.Kind == ItemMessage {
			return it
		}
	}
	return nil
}

// wire returns the ThreadItem object.
func (it *item) wire() map[string]any {
	var completed any
	if !it.completed.IsZero() {
		completed = it.completed.UnixMilli()
	}
	all := map[string]any{"type": it.Kind, "id": it.id, "startedAtMs": it.started.UnixMilli(), "completedAtMs": completed}
	with := func(more map[string]any) map[string]any {
		maps.Copy(all, more)
		return all
	}
	switch it.Kind {
	case ItemUser:
		return with(map[string]any{"clientId": it.client,
			"content": []any{map[string]any{"type": "text", "text": it.Text, "text_elements": []any{}}}})
	case ItemMessage:
		return with(map[string]any{"text": it.Text, "phase": nil})
	case ItemThought:
		summary := []string{}
		if it.Text != "" {
			summary = append(summary, it.Text)
		}
		return with(map[string]any{"summary": summary, "content": []any{}})
	case ItemEdit:
		return with(map[string]any{"changes": wireChanges(it.Changes), "status": it.Status})
	}
	var output, took any
	if it.Status != ItemRunning && it.Exit != nil {
		output, took = it.Output, it.completed.Sub(it.started).Milliseconds()
	}
	return with(map[string]any{
		"command": inShell(it.Command), "cwd": it.cwd, "processId": nil, "source": "agent", "status": it.Status,
		"commandActions": actions(it.Command), "aggregatedOutput": output, "exitCode": it.Exit, "durationMs": took,
	})
}

func wireChanges(changes []Change) []any {
	all := []any{}
	for _, c := range changes {
		kind := map[string]any{"type": "update", "move_path": nil}
		if c.Add {
			kind = map[string]any{"type": "add"}
		}
		all = append(all, map[string]any{"path": c.Path, "kind": kind, "diff": c.Diff})
	}
	return all
}

func actions(command string) []any {
	return []any{map[string]any{"type": "unknown", "command": command}}
}

// inShell returns a command in the form of the app-server.
func inShell(command string) string {
	return "/bin/bash -lc '" + strings.ReplaceAll(command, "'", `'\''`) + "'"
}
