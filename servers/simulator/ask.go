package simulator

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
)

// An ask is a request to the clients. The first answer counts. Guarded by the machine's mu.
type ask struct {
	id     int // counts from 0, anew after a kill of the machine
	turn   *turn
	method string
	params map[string]any
	person bool         // only clients that promised to ask a person get it
	answer func(packet) // answers the question of the work
}

// asks asks the clients a question of the work. It returns true if the turn waits for the answer.
func (u *turn) asks(act Act) bool {
	switch s := act.Step.(type) {
	case Ask:
		if s.Person {
			u.askPerson(s)
			return true
		}
		return u.askApproval(s, act.Item)
	case Input:
		u.askInput(s)
	case Permit:
		u.askPermit(s)
	}
	return true
}

// askApproval opens the item and asks for approval. It returns true if the turn waits: a command that was accepted for
// the session is not asked about again.
func (u *turn) askApproval(s Ask, about *Item) bool {
	t, it := u.thread, &item{Item: about, cwd: u.thread.cwd}
	about.Status = ItemRunning
	edits := it.Kind == ItemEdit
	if !edits && slices.Contains(t.allowed, s.Command) {
		u.openItem(it)
		u.work.Answer(true)
		return false
	}
	if edits { // the real one shows an edit before the status
		u.openItem(it)
		t.setStatus(statusActive, "waitingOnApproval")
	} else {
		t.setStatus(statusActive, "waitingOnApproval")
		u.openItem(it)
	}
	answer := func(p packet) {
		decision := decisionOf(p)
		accepted := decision == "accept" || decision == "acceptForSession"
		switch {
		case decision == "acceptForSession":
			t.allowed = append(t.allowed, s.Command)
		case decision == "cancel" || decision == "decline":
			it.Status = ItemDeclined
		case !accepted: // an error or an invalid answer is a refusal too
			it.Status = ItemFailed
		}
		if !accepted {
			u.closeItem(it)
		}
		if t.setStatus(statusActive); !accepted {
			u.usage()
		}
		u.work.Answer(accepted)
	}
	params := map[string]any{"itemId": it.id, "startedAtMs": time.Now().UnixMilli(), "reason": textOrNull(s.Reason)}
	if edits {
		params["grantRoot"] = nil
		u.request(&ask{answer: answer}, "item/fileChange/requestApproval", params)
		return true
	}
	words := strings.Fields(it.Command)
	params["kind"], params["environmentId"] = "command", "local"
	params["command"], params["cwd"], params["commandActions"] = inShell(it.Command), it.cwd, actions(it.Command)
	params["proposedExecpolicyAmendment"] = words
	params["availableDecisions"] = []any{
		"accept", map[string]any{"acceptWithExecpolicyAmendment": map[string]any{"execpolicy_amendment": words}}, "cancel",
	}
	u.request(&ask{answer: answer}, "item/commandExecution/requestApproval", params)
	return true
}

// textOrNull returns a text on the wire, or null for "".
func textOrNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// request sends a request to all subscribers.
func (u *turn) request(a *ask, method string, params map[string]any) {
	t := u.thread
	a.id, a.turn, a.method, a.params = t.m.askSeq, u, method, params
	params["threadId"], params["turnId"] = t.id, u.id
	t.m.askSeq++
	t.m.asks = append(t.m.asks, a)
	u.ask = a
	for _, c := range t.subscribers {
		a.send(c)
	}
}

// send sends the request to a client that may get it.
func (a *ask) send(c *conn) {
	if !a.person || c.people {
		c.send(marshal(map[string]any{"method": a.method, "id": a.id, "params": a.params}))
	}
}

// replay sends the open requests again, unchanged, to a new subscriber.
func (t *thread) replay(c *conn) {
	for _, a := range t.m.asks {
		if a.turn.thread == t {
			a.send(c)
		}
	}
}

// handleAnswer handles a client's answer. The first answer of any client counts; an answer to no open request is
// dropped.
func (m *machine) handleAnswer(c *conn, p packet) {
	var id int
	if json.Unmarshal(p.ID, &id) != nil || !c.initialized {
		return
	}
	i := slices.IndexFunc(m.asks, func(a *ask) bool { return a.id == id })
	if i < 0 {
		m.Log.Debug("an answer came too late", zap.Int("request", id))
		return
	}
	a := m.asks[i]
	u := a.turn
	u.ask = nil
	m.resolve(a)
	a.answer(p)
	if decisionOf(p) == "cancel" {
		u.finish(turnInterrupted, "")
		return
	}
	u.advance()
}

// question asks for something other than approval, with a status of its own. answer answers the work.
func (u *turn) question(status string, person bool, answer func(packet), method string, params map[string]any) {
	u.thread.setStatus(statusActive, status)
	u.request(&ask{person: person, answer: func(p packet) {
		if decisionOf(p) != "cancel" {
			u.thread.setStatus(statusActive)
			u.usage()
		}
		answer(p)
	}}, method, params)
}

// decisionOf returns the decision in an answer, "" for none.
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

// resolve removes a request and notifies the clients.
func (m *machine) resolve(a *ask) {
	m.asks = slices.DeleteFunc(m.asks, func(have *ask) bool { return have == a })
	a.turn.thread.publish("serverRequest/resolved", map[string]any{"requestId": a.id})
}

// askInput asks for an answer in words.
func (u *turn) askInput(s Input) {
	questions := []any{}
	for i, q := range s.Queries {
		options := []any{}
		for _, label := range q.Options {
			options = append(options, map[string]any{"label": label, "description": label})
		}
		questions = append(questions, map[string]any{
			"id": queryID(i), "header": "Question", "question": q.Text, "isOther": true, "isSecret": q.Secret,
			"options": options,
		})
	}
	answer := func(p packet) {
		var result struct {
			Answers map[string]struct{ Answers []string }
		}
		_ = json.Unmarshal(p.Result, &result) // an unreadable answer counts as none
		answers := make([]string, len(s.Queries))
		for i := range answers {
			if list := result.Answers[queryID(i)].Answers; len(list) > 0 {
				answers[i] = list[0]
			}
		}
		u.work.Answer(true, answers...)
	}
	u.question("waitingOnUserInput", false, answer, "item/tool/requestUserInput", map[string]any{
		"itemId": newID(time.Now()), "questions": questions, "isBlocking": false, "autoResolutionMs": nil,
	})
}

func queryID(i int) string { return fmt.Sprintf("q%d", i+1) }

// askPerson asks for the decision of a person. The item begins only when the command runs.
func (u *turn) askPerson(s Ask) {
	now := time.Now()
	answer := func(p packet) { u.work.Answer(decisionOf(p) == "accept") } // acceptForSession is no valid answer here
	u.question("waitingOnApproval", true, answer, "item/commandExecution/requestApproval", map[string]any{
		"kind": "humanCommand", "itemId": newID(now), "environmentId": "local", "startedAtMs": now.UnixMilli(),
		"command": inShell(s.Command), "cwd": u.thread.cwd, "commandActions": actions(s.Command),
		"reason": textOrNull(s.Reason), "availableDecisions": []any{"accept", "decline", "cancel"},
	})
}

// askPermit asks for more permissions.
func (u *turn) askPermit(s Permit) {
	var network, files any
	if s.Network {
		network = map[string]any{"enabled": true}
	}
	if len(s.Write) > 0 {
		files = map[string]any{"write": s.Write}
	}
	answer := func(p packet) {
		var result struct {
			Permissions struct {
				Network *struct{ Enabled bool }
				Files   json.RawMessage `json:"fileSystem"`
			}
		}
		_ = json.Unmarshal(p.Result, &result)
		granted := result.Permissions
		online := granted.Network != nil && granted.Network.Enabled
		writes := len(granted.Files) > 0 && string(granted.Files) != "null"
		u.work.Answer((online || !s.Network) && (writes || len(s.Write) == 0))
	}
	now := time.Now()
	u.question("waitingOnApproval", false, answer, "item/permissions/requestApproval", map[string]any{
		"itemId": newID(now), "environmentId": "local", "startedAtMs": now.UnixMilli(), "cwd": u.thread.cwd,
		"reason": textOrNull(s.Reason), "permissions": map[string]any{"network": network, "fileSystem": files},
	})
}
