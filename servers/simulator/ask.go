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
	person bool                 // only clients that promised to ask a person get it
	answer func(packet) []frame // returns the frames that follow an answer
}

// askApproval opens the item and asks for approval. It returns true if the turn waits: a command that was accepted for
// the session is not asked about again.
func (u *turn) askApproval(s Ask) bool {
	if s.Person {
		return u.askPerson(s)
	}
	t := u.thread
	it := &item{kind: "commandExecution", command: s.Command, cwd: t.cwd, status: turnRunning}
	if len(s.Changes) > 0 {
		it = &item{kind: "fileChange", changes: s.Changes, status: turnRunning}
	}
	edits := it.kind == "fileChange"
	if !edits && slices.Contains(t.allowed, s.Command) {
		u.openItem(it)
		u.frames = slices.Concat(outputFrames(it, s.Lines, s.Exit), frames(s.Accepted), u.frames)
		return false
	}
	if edits { // the real one shows an edit before the status
		u.openItem(it)
		t.setStatus(statusActive, "waitingOnApproval")
	} else {
		t.setStatus(statusActive, "waitingOnApproval")
		u.openItem(it)
	}
	answer := func(p packet) []frame {
		switch decision := decisionOf(p); decision {
		case "accept", "acceptForSession":
			if decision != "accept" {
				t.allowed = append(t.allowed, s.Command)
			}
			t.setStatus(statusActive)
			work := outputFrames(it, s.Lines, s.Exit)
			if edits {
				work = changeFrames(it, 0)
			}
			return append(work, frames(s.Accepted)...)
		case "cancel", "decline":
			it.status = "declined"
		default: // an error or an invalid answer is a refusal too
			it.status = "failed"
		}
		u.closeItem(it)
		t.setStatus(statusActive)
		u.usage()
		return frames(s.Declined)
	}
	params := map[string]any{"itemId": it.id, "startedAtMs": time.Now().UnixMilli(), "reason": textOrNull(s.Reason)}
	if edits {
		params["grantRoot"] = nil
		return u.request(&ask{answer: answer}, "item/fileChange/requestApproval", params)
	}
	words := strings.Fields(it.command)
	params["kind"], params["environmentId"] = "command", "local"
	params["command"], params["cwd"], params["commandActions"] = inShell(it.command), it.cwd, actions(it.command)
	params["proposedExecpolicyAmendment"] = words
	params["availableDecisions"] = []any{
		"accept", map[string]any{"acceptWithExecpolicyAmendment": map[string]any{"execpolicy_amendment": words}}, "cancel",
	}
	return u.request(&ask{answer: answer}, "item/commandExecution/requestApproval", params)
}

// textOrNull returns a text on the wire, or null for "".
func textOrNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// request sends a request to all subscribers. It returns true: the turn waits for the answer.
func (u *turn) request(a *ask, method string, params map[string]any) bool {
	t := u.thread
	a.id, a.turn, a.method, a.params = t.m.askSeq, u, method, params
	params["threadId"], params["turnId"] = t.id, u.id
	t.m.askSeq++
	t.m.asks = append(t.m.asks, a)
	u.ask = a
	for _, c := range t.subscribers {
		a.send(c)
	}
	return true
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
		m.log.Debug("an answer came too late", zap.Int("request", id))
		return
	}
	a := m.asks[i]
	u := a.turn
	u.ask = nil
	m.resolve(a)
	u.frames = append(a.answer(p), u.frames...)
	if decisionOf(p) == "cancel" {
		u.finish(turnInterrupted, "")
		return
	}
	u.advance()
}

// question asks for something other than approval, with a status of its own, and goes on with the steps that follow
// from the answer. It returns true: the turn waits.
func (u *turn) question(
	status string, person bool, answer func(packet) []Step, method string, params map[string]any,
) bool {
	u.thread.setStatus(statusActive, status)
	return u.request(&ask{person: person, answer: func(p packet) []frame {
		if decisionOf(p) != "cancel" {
			u.thread.setStatus(statusActive)
			u.usage()
		}
		return frames(answer(p))
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
func (u *turn) askInput(s Input) bool {
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
	answer := func(p packet) []Step {
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
		return s.Answered(answers)
	}
	return u.question("waitingOnUserInput", false, answer, "item/tool/requestUserInput", map[string]any{
		"itemId": newID(time.Now()), "questions": questions, "isBlocking": false, "autoResolutionMs": nil,
	})
}

func queryID(i int) string { return fmt.Sprintf("q%d", i+1) }

// askPerson asks for the decision of a person. The item begins only when the command runs.
func (u *turn) askPerson(s Ask) bool {
	answer := func(p packet) []Step {
		if decisionOf(p) != "accept" { // acceptForSession is no valid answer here
			return s.Declined
		}
		return append([]Step{Run{Command: s.Command, Lines: s.Lines, Exit: s.Exit}}, s.Accepted...)
	}
	now := time.Now()
	return u.question("waitingOnApproval", true, answer, "item/commandExecution/requestApproval", map[string]any{
		"kind": "humanCommand", "itemId": newID(now), "environmentId": "local", "startedAtMs": now.UnixMilli(),
		"command": inShell(s.Command), "cwd": u.thread.cwd, "commandActions": actions(s.Command),
		"reason": textOrNull(s.Reason), "availableDecisions": []any{"accept", "decline", "cancel"},
	})
}

// publishReview publishes the decision of the agent's own reviewer.
func (u *turn) publishReview(s Review) {
	now := time.Now()
	u.thread.publish("item/autoApprovalReview/completed", map[string]any{
		"turnId": u.id, "reviewId": newID(now), "targetItemId": nil, "decisionSource": "agent",
		"startedAtMs": now.UnixMilli(), "completedAtMs": now.UnixMilli(),
		"review": map[string]any{"status": s.Status, "riskLevel": textOrNull(s.Risk), "userAuthorization": nil,
			"rationale": textOrNull(s.Rationale)},
		"action": map[string]any{"type": "command", "source": "shell", "command": inShell(s.Command), "cwd": u.thread.cwd},
	})
}

// askPermit asks for more permissions.
func (u *turn) askPermit(s Permit) bool {
	var network, files any
	if s.Network {
		network = map[string]any{"enabled": true}
	}
	if len(s.Write) > 0 {
		files = map[string]any{"write": s.Write}
	}
	answer := func(p packet) []Step {
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
		if s.Network && !online || len(s.Write) > 0 && !writes {
			return s.Refused
		}
		return s.Granted
	}
	now := time.Now()
	return u.question("waitingOnApproval", false, answer, "item/permissions/requestApproval", map[string]any{
		"itemId": newID(now), "environmentId": "local", "startedAtMs": now.UnixMilli(), "cwd": u.thread.cwd,
		"reason": textOrNull(s.Reason), "permissions": map[string]any{"network": network, "fileSystem": files},
	})
}

// askElicit asks whether a tool may be called.
func (u *turn) askElicit(s Elicit) bool {
	answer := func(p packet) []Step {
		var result struct{ Action string }
		_ = json.Unmarshal(p.Result, &result) // an unreadable answer counts as no
		if result.Action != "accept" {
			return s.Refused
		}
		return s.Granted
	}
	return u.question("waitingOnApproval", false, answer, "mcpServer/elicitation/request", map[string]any{
		"serverName": "lab", "mode": "form", "message": fmt.Sprintf("Allow the lab MCP server to run tool %q?", s.Tool),
		"requestedSchema": map[string]any{"type": "object", "properties": map[string]any{}},
		"_meta": map[string]any{
			"codex_approval_kind": "mcp_tool_call", "persist": []string{"session", "always"}, "tool_name": s.Tool,
			"tool_annotations": map[string]any{"readOnlyHint": false, "destructiveHint": true},
			"tool_description": "d", "tool_params": map[string]any{}, "tool_params_display": []any{},
		},
	})
}
