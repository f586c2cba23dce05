package simulator

import (
	"encoding/json"
	"fmt"
	"time"
)

// askInput asks for words. It reports true: the turn waits.
func (m *machine) askInput(u *turn, s Input) bool {
	a := m.newAsk(u)
	questions := []any{}
	for i, q := range s.Queries {
		options := []any{}
		for _, label := range q.Options {
			options = append(options, map[string]any{"label": label, "description": label})
		}
		questions = append(questions, map[string]any{
			"id": queryID(i), "header": "Question", "question": q.Text, "isOther": true, "isSecret": q.Secret, "options": options,
		})
	}
	a.method, a.params = "item/tool/requestUserInput", map[string]any{
		"threadId": u.thread.id, "turnId": u.id, "itemId": newID(time.Now()), "questions": questions, "isBlocking": false, "autoResolutionMs": nil,
	}
	a.heard = func(p packet) []Step {
		var result struct {
			Answers map[string]struct{ Answers []string }
		}
		_ = json.Unmarshal(p.Result, &result) // nothing readable is no answer
		answers := make([]string, len(s.Queries))
		for i := range answers {
			if given := result.Answers[queryID(i)].Answers; len(given) > 0 {
				answers[i] = given[0]
			}
		}
		return s.Answered(answers)
	}
	m.setStatus(u.thread, statusActive, "waitingOnUserInput")
	m.put(a)
	return true
}

func queryID(i int) string { return fmt.Sprintf("q%d", i+1) }

// askPermit asks for rights. It reports true: the turn waits.
func (m *machine) askPermit(u *turn, s Permit) bool {
	a := m.newAsk(u)
	var network, files, reason any
	if s.Network {
		network = map[string]any{"enabled": true}
	}
	if len(s.Write) > 0 {
		files = map[string]any{"write": s.Write}
	}
	if s.Reason != "" {
		reason = s.Reason
	}
	a.method, a.params = "item/permissions/requestApproval", map[string]any{
		"threadId": u.thread.id, "turnId": u.id, "itemId": newID(time.Now()), "environmentId": "local", "startedAtMs": time.Now().UnixMilli(),
		"cwd": u.thread.cwd, "reason": reason, "permissions": map[string]any{"network": network, "fileSystem": files},
	}
	a.heard = func(p packet) []Step {
		var result struct {
			Permissions struct {
				Network *struct{ Enabled bool }
				Files   json.RawMessage `json:"fileSystem"`
			}
		}
		_ = json.Unmarshal(p.Result, &result)
		got := result.Permissions
		if s.Network && (got.Network == nil || !got.Network.Enabled) || len(s.Write) > 0 && (len(got.Files) == 0 || string(got.Files) == "null") {
			return s.Refused
		}
		return s.Granted
	}
	m.setStatus(u.thread, statusActive, "waitingOnApproval")
	m.put(a)
	return true
}

// askElicit asks for the call of a tool. It reports true: the turn waits.
func (m *machine) askElicit(u *turn, s Elicit) bool {
	a := m.newAsk(u)
	a.method, a.params = "mcpServer/elicitation/request", map[string]any{
		"threadId": u.thread.id, "turnId": u.id, "serverName": "lab", "mode": "form", "message": fmt.Sprintf("Allow the lab MCP server to run tool %q?", s.Tool),
		"requestedSchema": map[string]any{"type": "object", "properties": map[string]any{}},
		"_meta": map[string]any{
			"codex_approval_kind": "mcp_tool_call", "persist": []string{"session", "always"}, "tool_name": s.Tool,
			"tool_annotations": map[string]any{"readOnlyHint": false, "destructiveHint": true}, "tool_description": "d", "tool_params": map[string]any{}, "tool_params_display": []any{},
		},
	}
	a.heard = func(p packet) []Step {
		var result struct{ Action string }
		_ = json.Unmarshal(p.Result, &result) // nothing readable is no
		if result.Action != "accept" {
			return s.Refused
		}
		return s.Granted
	}
	m.setStatus(u.thread, statusActive, "waitingOnApproval")
	m.put(a)
	return true
}
