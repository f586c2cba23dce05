package simulator

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Codes of JSON-RPC errors. Almost everything is an invalid request; clients tell apart by the text.
const (
	codeInvalid     = -32600
	codeUnsupported = -32601
	codeParams      = -32602
	codeOverloaded  = -32001
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

func errorReply(id json.RawMessage, code int, text string) []byte {
	return marshal(map[string]any{"id": id, "error": map[string]any{"code": code, "message": text}})
}

func (c *conn) reply(id json.RawMessage, result any) {
	c.send(marshal(map[string]any{"id": id, "result": result}))
}

func (c *conn) refuse(id json.RawMessage, r *refusal) {
	fault := map[string]any{"code": r.code, "message": r.text}
	if r.data != nil {
		fault["data"] = r.data
	}
	c.send(marshal(map[string]any{"id": id, "error": fault}))
}

// A method answers a request: it replies itself, or returns why it refuses.
type method func(*machine, asked) *refusal

// methods are those that the simulator knows. Set once.
var methods = map[string]method{
	"thread/start":       (*machine).threadStart,
	"thread/resume":      (*machine).threadResume,
	"thread/fork":        (*machine).threadFork,
	"thread/unsubscribe": (*machine).threadUnsubscribe,
	"thread/list":        (*machine).threadList,
	"thread/loaded/list": (*machine).threadLoadedList,
	"thread/read":        (*machine).threadRead,
	"thread/turns/list":  (*machine).turnsList,
	"thread/items/list":  (*machine).itemsList,
	"thread/name/set":    (*machine).threadNameSet,
	"thread/archive":     (*machine).threadArchive,
	"thread/unarchive":   (*machine).threadUnarchive,
	"turn/start":         (*machine).turnStart,
	"turn/steer":         (*machine).turnSteer,
	"turn/interrupt":     (*machine).turnInterrupt,
}

// handle answers a request of a connection that is still there.
func (m *machine) handle(r asked) {
	if !slices.Contains(m.conns, r.conn) {
		return
	}
	if m.faults.Overloaded {
		r.conn.refuse(r.id, &refusal{code: codeOverloaded, text: "Server overloaded; retry later."})
		return
	}
	answer, known := methods[r.call]
	var no *refusal
	switch {
	case r.call == "initialize":
		no = m.initialize(r)
	case !known:
		no = refuse("Invalid request: unknown variant `%s`, expected one of %s", r.call, knownMethods())
	case len(r.args) == 0:
		no = refuse("Invalid request: missing field `params`")
	case !r.conn.initialized:
		no = refuse("Not initialized")
	default:
		no = answer(m, r)
	}
	if no != nil {
		r.conn.refuse(r.id, no)
	}
}

func knownMethods() string {
	names := []string{"`initialize`"}
	for name := range methods {
		names = append(names, "`"+name+"`")
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// decode reads params as the app-server does: unknown fields are ignored.
func decode(r asked, into any) *refusal {
	if err := json.Unmarshal(r.args, into); err != nil {
		return refuse("Invalid request: %v", err)
	}
	return nil
}

func (m *machine) initialize(r asked) *refusal {
	var p struct {
		ClientInfo   *struct{ Name, Version string }
		Capabilities *struct {
			OptOut []string `json:"optOutNotificationMethods"`
		}
	}
	if no := decode(r, &p); no != nil {
		return no
	}
	switch {
	case r.conn.initialized:
		return refuse("Already initialized")
	case p.ClientInfo == nil:
		return refuse("Invalid request: missing field `clientInfo`")
	case strings.ContainsAny(p.ClientInfo.Name, "\r\n\x00"):
		return refuse("Invalid clientInfo.name: '%s'. Must be a valid HTTP header value.", p.ClientInfo.Name)
	}
	r.conn.initialized = true
	if p.Capabilities != nil {
		r.conn.optOut = p.Capabilities.OptOut
	}
	r.conn.reply(r.id, map[string]any{
		"userAgent": fmt.Sprintf("%s/%s (simulated; x86_64) unknown (%s; %s)", p.ClientInfo.Name, version, p.ClientInfo.Name, p.ClientInfo.Version),
		"codexHome": "~/.codex", "platformFamily": "unix", "platformOs": "linux",
	})
	m.notify([]*conn{r.conn}, "remoteControl/status/changed", map[string]any{
		"status": "disabled", "serverName": m.about.Name, "installationId": "00000000-0000-4000-8000-000000000000", "environmentId": nil,
	})
	return nil
}

// find reads a thread id. Absent is what is said of a thread that is not there.
func (m *machine) find(id *string, absent string) (*thread, *refusal) {
	if id == nil {
		return nil, refuse("Invalid request: missing field `threadId`")
	}
	if wrong := checkID(*id); wrong != "" {
		return nil, refuse("%s", wrong)
	}
	t := m.thread(*id)
	if t == nil {
		return nil, refuse("%s%s", absent, *id)
	}
	return t, nil
}

func refuseArchived(t *thread) *refusal {
	return refuse("session %s is archived. Run `codex unarchive %s` to unarchive it first.", t.id, t.id)
}

const (
	absentTurn   = "thread not found: "
	absentRead   = "thread not loaded: "
	absentStored = "no rollout found for thread id "
)

// sandboxTypes are the sandbox modes of thread/start and what they are called in its answer. Set once.
var sandboxTypes = map[string]string{
	"read-only": "readOnly", "workspace-write": "workspaceWrite", "danger-full-access": "dangerFullAccess",
}

func (m *machine) threadStart(r asked) *refusal {
	var p struct {
		Cwd            *string
		Ephemeral      bool
		Sandbox        *string
		ApprovalPolicy *string
	}
	if no := decode(r, &p); no != nil {
		return no
	}
	sandbox := sandboxTypes["workspace-write"]
	if p.Sandbox != nil {
		sandbox = sandboxTypes[*p.Sandbox]
	}
	if sandbox == "" {
		return refuse("Invalid request: unknown variant `%s`, expected one of `read-only`, `workspace-write`, `danger-full-access`", *p.Sandbox)
	}
	now := time.Now()
	t := &thread{id: newID(now), cwd: m.about.Dir, created: now, updated: now, ephemeral: p.Ephemeral, loaded: true, status: statusIdle, sandbox: sandbox}
	if p.ApprovalPolicy != nil {
		t.approval = *p.ApprovalPolicy
	}
	if p.Cwd != nil && *p.Cwd != "" {
		t.cwd = *p.Cwd
	}
	t.branch = m.branchOf(t.cwd)
	t.subscribers = []*conn{r.conn}
	m.add(t)
	r.conn.reply(r.id, t.settings(map[string]any{"thread": t.wire(nil)}))
	m.broadcast("thread/started", map[string]any{"thread": t.wire(nil)})
	return nil
}

// branchOf is the branch of a directory: that of the newest thread there.
func (m *machine) branchOf(dir string) string {
	newest := &thread{}
	for _, t := range m.threads {
		if t.cwd == dir && t.updated.After(newest.updated) {
			newest = t
		}
	}
	return newest.branch
}

func (m *machine) threadResume(r asked) *refusal {
	var p struct {
		ThreadID     *string `json:"threadId"`
		ExcludeTurns bool
		Page         *page `json:"initialTurnsPage"`
	}
	if no := decode(r, &p); no != nil {
		return no
	}
	t, no := m.find(p.ThreadID, absentStored)
	switch {
	case m.faults.ResumeError != "":
		return refuse("%s", m.faults.ResumeError)
	case no != nil:
		return no
	case !t.stored || t.ephemeral:
		return refuse("%s%s", absentStored, t.id)
	case m.faults.InUse && !t.loaded:
		return refuse("thread %s already has an active writer", t.id)
	case t.archived:
		return refuseArchived(t)
	}
	answer := func() {
		if slices.Contains(m.conns, r.conn) {
			m.resume(r, t, p.ExcludeTurns, p.Page)
		}
	}
	if d := m.faults.ResumeDelay; d > 0 {
		m.later(d, answer)
		return nil
	}
	answer()
	return nil
}

func (m *machine) resume(r asked, t *thread, excludeTurns bool, pg *page) {
	if !t.loaded {
		t.loaded = true
		m.setStatus(t, statusIdle)
	}
	if !slices.Contains(t.subscribers, r.conn) {
		t.subscribers = append(t.subscribers, r.conn)
	}
	with := map[string]any{"initialTurnsPage": nil, "turnsBackwardsCursor": nil, "itemsBackwardsCursor": nil}
	var turns []any
	if !excludeTurns {
		for _, u := range t.turns {
			turns = append(turns, u.wire(viewFull))
		}
		m.notify([]*conn{r.conn}, "deprecationNotice", map[string]any{
			"summary": "Full-history hydration is deprecated for paginated threads; omit `includeTurns` or set it to `false`, then page with `thread/turns/list` and `thread/items/list`.",
			"details": nil,
		})
	}
	if pg != nil {
		if result, no := pg.turns(t, m.faults.FalseInterrupt); no == nil {
			with["initialTurnsPage"] = result
		}
	}
	about := t.wire(turns)
	if m.faults.ResumeID != "" {
		about["id"] = m.faults.ResumeID
	}
	with["thread"] = about
	r.conn.reply(r.id, t.settings(with))
	m.broadcast("thread/goal/cleared", map[string]any{"threadId": t.id})
	m.replay(t, r.conn)
}

func (m *machine) threadUnsubscribe(r asked) *refusal {
	t, no := m.threadOf(r, "")
	status := "notLoaded"
	switch {
	case no != nil && t == nil && !strings.HasPrefix(no.text, "invalid") && !strings.HasPrefix(no.text, "Invalid"):
	case no != nil:
		return no
	case t.loaded && m.unsubscribe(t, r.conn):
		status = "unsubscribed"
	case t.loaded:
		status = "notSubscribed"
	}
	r.conn.reply(r.id, map[string]any{"status": status})
	return nil
}

// threadOf finds the thread of a request that has nothing but its id.
func (m *machine) threadOf(r asked, absent string) (*thread, *refusal) {
	var p struct {
		ThreadID *string `json:"threadId"`
	}
	if no := decode(r, &p); no != nil {
		return nil, no
	}
	return m.find(p.ThreadID, absent)
}

func (m *machine) threadLoadedList(r asked) *refusal {
	ids := []string{}
	for _, t := range m.threads {
		if t.loaded {
			ids = append(ids, t.id)
		}
	}
	r.conn.reply(r.id, map[string]any{"data": ids, "nextCursor": nil})
	return nil
}

func (m *machine) threadNameSet(r asked) *refusal {
	var p struct {
		ThreadID *string `json:"threadId"`
		Name     string
	}
	if no := decode(r, &p); no != nil {
		return no
	}
	t, no := m.find(p.ThreadID, absentStored)
	if no != nil {
		return no
	}
	if strings.TrimSpace(p.Name) == "" {
		return refuse("thread name must not be empty")
	}
	t.name, t.stored = p.Name, true
	r.conn.reply(r.id, map[string]any{})
	m.broadcast("thread/name/updated", map[string]any{"threadId": t.id, "threadName": t.name})
	return nil
}

func (m *machine) threadArchive(r asked) *refusal {
	t, no := m.threadOf(r, absentStored)
	if no != nil {
		return no
	}
	if !t.stored {
		return refuse("%s%s", absentStored, t.id)
	}
	if t.turn != nil {
		m.finish(t.turn, turnInterrupted, "")
	}
	t.archived = true
	m.unloadNow(t)
	r.conn.reply(r.id, map[string]any{})
	m.broadcast("thread/archived", map[string]any{"threadId": t.id})
	return nil
}

func (m *machine) threadUnarchive(r asked) *refusal {
	t, no := m.threadOf(r, absentStored)
	if no != nil {
		return no
	}
	t.archived = false
	r.conn.reply(r.id, map[string]any{"thread": t.wire(nil)})
	m.broadcast("thread/unarchived", map[string]any{"threadId": t.id})
	return nil
}
