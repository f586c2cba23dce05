package simulator

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
)

// An ask is a request to the clients that waits for the first answer. Owned by the machine's loop.
type ask struct {
	id     int // counts in the whole process from 0
	step   Ask // of an approval of a command or an edit
	turn   *turn
	method string
	params map[string]any
	item   *item               // what is asked about; nil for everything but approvals
	heard  func(packet) []Step // of everything else: what an answer leads to; nil for approvals
}

// ask opens the item and asks for approval. It reports true: the turn waits. A command that was accepted
// for the session is not asked about again.
func (m *machine) ask(u *turn, s Ask) bool {
	t := u.thread
	it := &item{kind: "commandExecution", command: s.Command, cwd: t.cwd, status: turnRunning}
	if len(s.Changes) > 0 {
		it = &item{kind: "fileChange", changes: s.Changes, status: turnRunning}
	}
	if it.kind == "commandExecution" && slices.Contains(t.allowed, s.Command) {
		m.openItem(u, it)
		u.frames = slices.Concat(outputFrames(it, s.Lines, s.Exit), frames(s.Accepted), u.frames)
		return false
	}
	a := m.newAsk(u)
	a.step, a.item = s, it
	if it.kind == "fileChange" { // recorded: the edit is shown first, then the waiting
		m.openItem(u, it)
		m.setStatus(t, statusActive, "waitingOnApproval")
	} else {
		m.setStatus(t, statusActive, "waitingOnApproval")
		m.openItem(u, it)
	}
	a.method, a.params = a.request(it)
	m.put(a)
	return true
}

// put asks everybody who listens.
func (m *machine) put(a *ask) {
	for _, c := range a.turn.thread.subscribers {
		c.send(a.message())
	}
}

// newAsk opens a request; the turn waits for its answer.
func (m *machine) newAsk(u *turn) *ask {
	a := &ask{id: m.askSeq, turn: u}
	m.askSeq++
	u.ask = a
	m.asks = append(m.asks, a)
	return a
}

func (a *ask) request(it *item) (string, map[string]any) {
	u := a.turn
	params := map[string]any{"threadId": u.thread.id, "turnId": u.id, "itemId": it.id, "startedAtMs": time.Now().UnixMilli(), "reason": nil}
	if a.step.Reason != "" {
		params["reason"] = a.step.Reason
	}
	if it.kind == "fileChange" {
		params["grantRoot"] = nil
		return "item/fileChange/requestApproval", params
	}
	words := strings.Fields(it.command)
	params["kind"], params["environmentId"] = "command", "local"
	params["command"], params["cwd"], params["commandActions"] = inShell(it.command), it.cwd, actions(it.command)
	params["proposedExecpolicyAmendment"] = words
	params["availableDecisions"] = []any{
		"accept", map[string]any{"acceptWithExecpolicyAmendment": map[string]any{"execpolicy_amendment": words}}, "cancel",
	}
	return "item/commandExecution/requestApproval", params
}

func (a *ask) message() []byte {
	return marshal(map[string]any{"method": a.method, "id": a.id, "params": a.params})
}

// replay asks a new subscriber what is open: same id, same words.
func (m *machine) replay(t *thread, c *conn) {
	for _, a := range m.asks {
		if a.turn.thread == t {
			c.send(a.message())
		}
	}
}

// answered takes a client's answer. The first one counts, whoever gives it; what nobody asked is dropped.
func (m *machine) answered(c *conn, p packet) {
	var id int
	if json.Unmarshal(p.ID, &id) != nil || !c.initialized {
		return
	}
	i := slices.IndexFunc(m.asks, func(a *ask) bool { return a.id == id })
	if i < 0 {
		m.log.Debug("an answer came too late", zap.Int("request", id))
		return
	}
	a := m.asks[i]
	u := a.turn
	u.ask = nil
	m.resolved(a)
	if a.heard != nil {
		m.setStatus(u.thread, statusActive)
		m.usage(u)
		u.frames = slices.Concat(frames(a.heard(p)), u.frames)
		m.advance(u)
		return
	}
	switch decisionOf(p) {
	case "acceptForSession":
		u.thread.allowed = append(u.thread.allowed, a.step.Command)
		m.accepted(u, a)
	case "accept":
		m.accepted(u, a)
	case "cancel":
		m.declined(u, a, "declined")
		m.finish(u, turnInterrupted, "")
		return
	case "decline":
		m.declined(u, a, "declined")
	default: // an error or nonsense is a refusal too
		m.declined(u, a, "failed")
	}
	m.advance(u)
}

// decisionOf reads an answer, "" when it is none.
func decisionOf(p packet) string {
	var result struct{ Decision json.RawMessage }
	if json.Unmarshal(p.Result, &result) != nil {
		return ""
	}
	var word string
	if json.Unmarshal(result.Decision, &word) == nil {
		return word
	}
	var amended map[string]json.RawMessage
	if json.Unmarshal(result.Decision, &amended) == nil && amended["acceptWithExecpolicyAmendment"] != nil {
		return "acceptForSession"
	}
	return ""
}

func (m *machine) accepted(u *turn, a *ask) {
	m.setStatus(u.thread, statusActive)
	work := outputFrames(a.item, a.step.Lines, a.step.Exit)
	if a.item.kind == "fileChange" {
		work = changeFrames(a.item, 0)
	}
	u.frames = slices.Concat(work, frames(a.step.Accepted), u.frames)
}

func (m *machine) declined(u *turn, a *ask, status string) {
	a.item.status = status
	m.closeItem(u, a.item)
	m.setStatus(u.thread, statusActive)
	m.usage(u)
	u.frames = slices.Concat(frames(a.step.Declined), u.frames)
}

// resolved tells that a question is settled.
func (m *machine) resolved(a *ask) {
	m.asks = slices.DeleteFunc(m.asks, func(have *ask) bool { return have == a })
	m.publish(a.turn.thread, "serverRequest/resolved", map[string]any{"requestId": a.id})
}
