package simulator

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
)

// Codes of JSON-RPC errors. Almost every error is an invalid request, which clients tell apart by the text.
const (
	codeInvalid     = -32600
	codeUnsupported = -32601
	codeParams      = -32602
)

// A refusal is an error reply.
type refusal struct {
	code int
	text string
	data any
}

func refuse(format string, args ...any) *refusal {
	return &refusal{code: codeInvalid, text: fmt.Sprintf(format, args...)}
}

// reply returns the refusal as a message.
func (r *refusal) reply(id json.RawMessage) []byte {
	fault := map[string]any{"code": r.code, "message": r.text}
	if r.data != nil {
		fault["data"] = r.data
	}
	return marshal(map[string]any{"id": id, "error": fault})
}

func (c *conn) reply(id json.RawMessage, result any) {
	c.send(marshal(map[string]any{"id": id, "result": result}))
}

// A method handles a request: it sends the reply itself, or returns a refusal.
type method func(*machine, request) *refusal

// methods are the known methods, except initialize. Set once.
var methods = map[string]method{
	"command/exec":       decoded(commandExec),
	"thread/start":       decoded(threadStart),
	"thread/resume":      onThread(absentStored, threadResume),
	"thread/fork":        onThread(absentStored, threadFork),
	"thread/unsubscribe": threadUnsubscribe,
	"thread/list":        decoded(threadList),
	"thread/loaded/list": threadLoadedList,
	"thread/read":        onThread(absentRead, threadRead),
	"thread/turns/list":  onThread(absentRead, turnsList),
	"thread/items/list":  onThread(absentRead, itemsList),
	"thread/name/set":    onThread(absentStored, threadNameSet),
	"thread/archive":     onThread(absentStored, threadArchive),
	"thread/unarchive":   onThread(absentStored, threadUnarchive),
	"turn/start":         onLoaded(turnStart),
	"turn/steer":         onLoaded(turnSteer),
	"turn/interrupt":     onLoaded(turnInterrupt),
}

// handle handles a request from a connection that is not lost.
func (m *machine) handle(r request) {
	if r.conn.Lost() != nil {
		return
	}
	if m.about.Leaves && (r.call == "thread/start" || r.call == "turn/start") {
		m.gone = true
		m.lose()
		return
	}
	answer, known := methods[r.call]
	var no *refusal
	switch {
	case r.call == "initialize":
		no = decoded(initialize)(m, r)
	case !known:
		names := []string{"`initialize`"}
		for name := range methods {
			names = append(names, "`"+name+"`")
		}
		slices.Sort(names[1:])
		no = refuse("Invalid request: unknown variant `%s`, expected one of %s", r.call, strings.Join(names, ", "))
	case len(r.args) == 0:
		no = refuse("Invalid request: missing field `params`")
	case !r.conn.initialized:
		no = refuse("Not initialized")
	default:
		no = answer(m, r)
	}
	if no != nil {
		r.conn.send(no.reply(r.id))
	}
}

// decoded returns a method that decodes its params into P. Like the app-server it ignores unknown fields.
func decoded[P any](answer func(*machine, request, P) *refusal) method {
	return func(m *machine, r request) *refusal {
		var p P
		if err := json.Unmarshal(r.args, &p); err != nil {
			return refuse("Invalid request: %v", err)
		}
		return answer(m, r, p)
	}
}

// onThread returns a method on a thread. absent is the prefix of the refusal when the thread does not exist.
func onThread[P any](absent string, answer func(*thread, request, P) *refusal) method {
	return func(m *machine, r request) *refusal {
		return decoded(func(m *machine, r request, p P) *refusal {
			t, no := m.threadOf(r, absent)
			if no != nil {
				return no
			}
			return answer(t, r, p)
		})(m, r)
	}
}

// onLoaded returns a method on the turns of a thread, which must be loaded.
func onLoaded(answer func(*thread, request, turnParams) *refusal) method {
	return onThread(absentTurn, func(t *thread, r request, p turnParams) *refusal {
		if !t.loaded {
			return refuse("%s%s", absentTurn, t.id)
		}
		return answer(t, r, p)
	})
}

func initialize(m *machine, r request, p struct {
	ClientInfo   *struct{ Name, Version string }
	Capabilities *struct {
		OptOut []string `json:"optOutNotificationMethods"`
		People bool     `json:"requiredHumanApproval"`
	}
}) *refusal {
	switch {
	case r.conn.initialized:
		return refuse("Already initialized")
	case p.ClientInfo == nil:
		return refuse("Invalid request: missing field `clientInfo`")
	}
	r.conn.initialized = true
	if p.Capabilities != nil {
		r.conn.optOut, r.conn.people = p.Capabilities.OptOut, p.Capabilities.People
	}
	r.conn.reply(r.id, map[string]any{
		"userAgent": fmt.Sprintf("%s/%s (simulated)", p.ClientInfo.Name, version), "codexHome": "~/.codex",
	})
	m.notify([]*conn{r.conn}, "remoteControl/status/changed", map[string]any{
		"status": "disabled", "serverName": m.about.Name, "installationId": "00000000-0000-4000-8000-000000000000",
		"environmentId": nil,
	})
	return nil
}

// threadOf returns the thread of a request.
func (m *machine) threadOf(r request, absent string) (*thread, *refusal) {
	var p struct {
		ThreadID *string `json:"threadId"`
	}
	if err := json.Unmarshal(r.args, &p); err != nil {
		return nil, refuse("Invalid request: %v", err)
	}
	if p.ThreadID == nil {
		return nil, refuse("Invalid request: missing field `threadId`")
	}
	if !threadID.MatchString(*p.ThreadID) {
		return nil, refuse("invalid thread id: %s", *p.ThreadID)
	}
	i := slices.IndexFunc(m.threads, func(t *thread) bool { return t.id == *p.ThreadID })
	if i < 0 {
		return nil, refuse("%s%s", absent, *p.ThreadID)
	}
	return m.threads[i], nil
}

// Prefixes of the refusals for a thread that does not exist; its id follows.
const (
	absentTurn   = "thread not found: "
	absentRead   = "thread not loaded: "
	absentStored = "no rollout found for thread id "
)

// sandboxTypes maps the sandbox modes of thread/start to their names in the answer. Set once.
var sandboxTypes = map[string]string{
	"read-only": "readOnly", "workspace-write": "workspaceWrite", "danger-full-access": "dangerFullAccess",
}

func threadStart(m *machine, r request, p struct {
	Cwd            *string
	Ephemeral      bool
	Sandbox        *string
	ApprovalPolicy *string
}) *refusal {
	sandbox := sandboxTypes["workspace-write"]
	if p.Sandbox != nil {
		sandbox = sandboxTypes[*p.Sandbox]
	}
	if sandbox == "" {
		return refuse("Invalid request: unknown variant `%s`, expected one of `read-only`, `workspace-write`, "+
			"`danger-full-access`", *p.Sandbox)
	}
	now := time.Now()
	t := &thread{id: newID(now), cwd: m.about.Dir, created: now, updated: now, ephemeral: p.Ephemeral, loaded: true,
		status: statusIdle, sandbox: sandbox}
	if p.ApprovalPolicy != nil {
		t.approval = *p.ApprovalPolicy
	}
	if p.Cwd != nil && *p.Cwd != "" {
		t.cwd = *p.Cwd
	}
	newest := &thread{} // newest thread of the directory: the new one has its branch
	for _, other := range m.threads {
		if other.cwd == t.cwd && other.updated.After(newest.updated) {
			newest = other
		}
	}
	if t.branch = newest.branch; handoff.WorktreeAt(t.cwd) != nil {
		t.branch = handoff.WorktreeAt(t.cwd).Branch
	}
	t.known = newSession(t.cwd, t.branch)
	t.subscribers = []*conn{r.conn}
	m.add(t)
	r.conn.reply(r.id, t.settings(map[string]any{"thread": t.wire()}))
	m.broadcast("thread/started", map[string]any{"thread": t.wire()})
	return nil
}

// threadResume loads a thread for a connection and sends its state, but not its turns: a client reads those page by
// page.
func threadResume(t *thread, r request, p struct {
	Page *page `json:"initialTurnsPage"`
}) *refusal {
	switch {
	case !t.stored || t.ephemeral:
		return refuse("%s%s", absentStored, t.id)
	case t.m.faults.InUse && !t.loaded:
		return refuse("thread %s already has an active writer", t.id)
	case t.archived:
		return refuse("session %s is archived. Run `codex unarchive %s` to unarchive it first.", t.id, t.id)
	}
	if !t.loaded {
		t.loaded = true
		t.setStatus(statusIdle)
	}
	if !slices.Contains(t.subscribers, r.conn) {
		t.subscribers = append(t.subscribers, r.conn)
	}
	result := map[string]any{
		"thread": t.wire(), "initialTurnsPage": nil, "turnsBackwardsCursor": nil, "itemsBackwardsCursor": nil,
	}
	if p.Page != nil {
		if turns, no := p.Page.turns(t, t.m.faults.FalseInterrupt); no == nil {
			result["initialTurnsPage"] = turns
		}
	}
	r.conn.reply(r.id, t.settings(result))
	t.m.broadcast("thread/goal/cleared", map[string]any{"threadId": t.id})
	t.replay(r.conn)
	return nil
}

func threadUnsubscribe(m *machine, r request) *refusal {
	status := "notLoaded"
	if t, _ := m.threadOf(r, ""); t != nil && t.loaded {
		if status = "notSubscribed"; t.unsubscribe(r.conn) {
			status = "unsubscribed"
		}
	}
	r.conn.reply(r.id, map[string]any{"status": status})
	return nil
}

func threadLoadedList(m *machine, r request) *refusal {
	ids := []string{}
	for _, t := range m.threads {
		if t.loaded {
			ids = append(ids, t.id)
		}
	}
	r.conn.reply(r.id, map[string]any{"data": ids, "nextCursor": nil})
	return nil
}

func threadNameSet(t *thread, r request, p struct{ Name string }) *refusal {
	t.name, t.stored = p.Name, true
	r.conn.reply(r.id, map[string]any{})
	t.m.broadcast("thread/name/updated", map[string]any{"threadId": t.id, "threadName": t.name})
	return nil
}

func threadArchive(t *thread, r request, _ struct{}) *refusal {
	if !t.stored {
		return refuse("%s%s", absentStored, t.id)
	}
	if t.turn != nil {
		t.turn.finish(turnInterrupted, "")
	}
	t.archived = true
	t.unloadNow()
	r.conn.reply(r.id, map[string]any{})
	t.m.broadcast("thread/archived", map[string]any{"threadId": t.id})
	return nil
}

func threadUnarchive(t *thread, r request, _ struct{}) *refusal {
	t.archived = false
	r.conn.reply(r.id, map[string]any{"thread": t.wire()})
	t.m.broadcast("thread/unarchived", map[string]any{"threadId": t.id})
	return nil
}

// threadFork copies a thread up to and including a turn, or all of it, even if another process uses the thread. The
// copied turns keep their ids; a running one is copied as interrupted, without its open items.
func threadFork(t *thread, r request, p struct {
	Last      *string `json:"lastTurnId"`
	Ephemeral bool
}) *refusal {
	if !t.stored || t.ephemeral {
		return refuse("%s%s", absentStored, t.id)
	}
	turns, no := t.upTo(p.Last)
	if no != nil {
		return no
	}
	now := time.Now()
	clone, known := *t, *t.known
	clone.known = &known
	clone.id, clone.created, clone.updated = newID(now), now, now
	clone.forkedFrom, clone.ephemeral, clone.archived, clone.loaded = t.id, p.Ephemeral, false, true
	clone.status, clone.flags, clone.turn = statusIdle, nil, nil
	clone.subscribers, clone.turns = []*conn{r.conn}, nil
	for _, u := range turns {
		v := &turn{id: u.id, thread: &clone, status: u.status, fault: u.fault, items: u.items, started: u.started,
			completed: u.completed}
		if v.status == turnRunning {
			v.status = turnInterrupted
		}
		clone.turns = append(clone.turns, v)
	}
	t.m.add(&clone)
	r.conn.reply(r.id, clone.settings(map[string]any{
		"thread": clone.wire(), "turnsBackwardsCursor": nil, "itemsBackwardsCursor": nil,
	}))
	t.m.broadcast("thread/started", map[string]any{"thread": clone.wire()})
	return nil
}

// upTo returns the turns up to and including an ended one; all turns for nil.
func (t *thread) upTo(last *string) ([]*turn, *refusal) {
	if last == nil {
		return t.turns, nil
	}
	i := slices.IndexFunc(t.turns, func(u *turn) bool { return u.id == *last })
	switch {
	case i < 0:
		return nil, refuse("turn not found: %s", *last)
	case t.turns[i].status == turnRunning:
		return nil, refuse("lastTurnId '%s' identifies an in-progress turn", *last)
	}
	return t.turns[:i+1], nil
}
