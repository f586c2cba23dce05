package simulator

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	machine "switchboard/servers/simulator"
)

// handlePrompt handles a prompt or a cancel.
func (p *process) handlePrompt(r request) {
	w := p.world
	var q *prompt
	var refused *wireError
	fault := FaultNone
	w.do(func() {
		l := p.live[r.Params.Session]
		switch {
		case r.Method == "session/cancel":
			if l != nil && l.running != nil {
				l.running.stop()
			}
			return
		case l == nil:
			refused = noSuchSession
			return
		}
		text := p.words(r)
		if fault, w.fault = w.fault, FaultNone; fault == FaultLost {
			return
		}
		if fault == FaultNone && l.running != nil { // real agents queue it, run it after a cancel, or give up the first
			refused = &wireError{-32600, "a prompt runs", nil}
			return
		}
		q = &prompt{id: r.ID, live: l, text: text, cancel: make(chan struct{}), steers: make(chan string, 8)}
		w.starts++
		if fault == FaultNone {
			l.running = q
			w.modes = append(w.modes, l.mode)
			if !w.cfg.Profile.Branches {
				l.records = slices.Clone(l.stored.records)
			}
		}
	})
	switch {
	case refused != nil:
		p.work.Go(func() { p.answer(r.ID, nil, refused) })
	case fault == FaultCut: // it runs to its end, and is only recorded
		(&turn{process: p, live: q.live, prompt: q, silent: true}).play()
		p.kill()
	case fault == FaultLost:
		p.kill()
	case q != nil:
		p.work.Go(func() { (&turn{process: p, live: q.live, prompt: q}).play() })
	}
}

// A turn runs the steps of one prompt.
type turn struct {
	*process
	live   *live
	prompt *prompt
	later  []string // messages to send after the answer
	steer  string   // the text of a steer that ended a hang; "": none
	silent bool     // nothing is sent
}

// play runs a prompt, and answers it.
func (t *turn) play() {
	t.record(record{user: true, id: t.world.name("user"), text: []string{t.prompt.text}})
	result, err := t.run(t.prompt.text)
	if t.silent {
		return
	}
	t.world.do(func() { t.live.running = nil })
	t.answer(t.prompt.id, result, err)
	for _, text := range t.later {
		id := t.world.name("msg")
		t.record(record{id: id, text: []string{text}})
		t.chunk(id, text)
		t.update(t.live.id, object{"sessionUpdate": "usage_update", "used": 1, "size": 2,
			"_meta": object{"_claude/origin": object{"kind": "task-notification"}}})
	}
}

// record adds to the session's history.
func (t *turn) record(r record) {
	t.world.do(func() {
		t.live.records = append(t.live.records, r)
		t.live.stored.records = slices.Clone(t.live.records)
		if t.live.title == "" && r.user {
			t.live.stored.title, _, _ = strings.Cut(strings.Join(r.text, ""), "\n")
		}
		t.live.stored.updated = t.world.tick()
	})
}

// chunk sends a piece of the agent's message.
func (t *turn) chunk(id, text string) {
	if !t.silent {
		t.update(t.live.id, t.process.chunk("agent_message_chunk", id, text))
	}
}

// run does the steps of the script until they end or the prompt is cancelled. A steer replaces the remaining steps.
func (t *turn) run(words string) (any, *wireError) {
	usage := any(object{"inputTokens": 7, "outputTokens": 5, "totalTokens": 12})
	steps := t.world.cfg.Script(machine.Prompt{Text: words})
	for len(steps) > 0 {
		step := steps[0]
		steps = steps[1:]
		more, err, ended := t.step(step)
		steps = append(more, steps...)
		if t.steer != "" {
			steps, t.steer = t.steerSteps(t.steer), ""
		}
		if err != nil {
			return nil, err
		}
		if ended {
			usage = nil
			break
		}
		select {
		case <-t.prompt.cancel:
			return object{"stopReason": "cancelled", "usage": usage}, nil
		case words := <-t.prompt.steers:
			steps = t.steerSteps(words)
		case <-t.done:
			return nil, nil
		default:
		}
	}
	result := object{"stopReason": "end_turn", "usage": usage}
	if t.world.cfg.Profile.NoUsage {
		delete(result, "usage")
	}
	return result, nil
}

// steerSteps records a steer, and returns its steps.
func (t *turn) steerSteps(words string) []machine.Step {
	t.record(record{user: true, id: t.world.name("user"), text: []string{words}})
	return t.world.cfg.Script(machine.Prompt{Text: words, Steered: true})
}

// step does one step. It returns the steps to do next, and whether the turn failed without an error.
func (t *turn) step(step machine.Step) (more []machine.Step, err *wireError, ended bool) {
	switch s := step.(type) {
	case machine.Say:
		t.say(t.world.name("msg"), s.Text)
	case machine.Stray:
		t.chunk("", s.Text)
	case machine.Later:
		t.later = append(t.later, s.Text)
	case machine.Run:
		t.command(s)
	case machine.Both:
		for _, run := range s {
			t.command(run)
		}
	case machine.Edit:
		t.edit(s)
	case machine.Ask:
		more = t.ask(s)
	case machine.Input:
		more = t.input(s)
	case machine.Pause:
		select {
		case <-time.After(s.For):
		case <-t.prompt.cancel:
		}
	case machine.Hang:
		t.hang()
	case machine.Fail:
		if !t.world.cfg.Profile.QuietFail {
			t.say(t.world.name("msg"), "API Error: "+s.Message)
			return nil, &wireError{-32603, "Internal error: API Error: " + s.Message, object{"errorKind": "server_error"}}, false
		}
		t.update(t.live.id, object{"sessionUpdate": "session_info_update",
			"_meta": object{"codex": object{"threadStatus": object{"type": "systemError"}}}})
		t.chunk("", s.Message)
		return nil, nil, true
	}
	return more, nil, false
}

// say streams a message word by word.
func (t *turn) say(id, text string) {
	t.record(record{id: id, text: []string{text}})
	for _, word := range strings.SplitAfter(text, " ") {
		t.chunk(id, word)
	}
}

// report sends an update of a tool call, and records the call when it has ended.
func (t *turn) report(u object, ended bool) {
	if !t.silent {
		t.update(t.live.id, u)
	}
	if ended {
		whole := object{}
		maps.Copy(whole, u)
		whole["sessionUpdate"] = "tool_call"
		t.record(record{call: whole})
	}
}

func (t *turn) command(run machine.Run) {
	id := t.world.name("call")
	var out strings.Builder
	for _, line := range run.Lines {
		out.WriteString(strings.TrimSuffix(line.Text, "\n") + "\n")
	}
	input := object{"command": run.Command, "description": "Run it"}
	t.report(object{"sessionUpdate": "tool_call", "toolCallId": id, "kind": "execute", "status": "pending",
		"title": "Terminal", "rawInput": object{}}, false)
	t.report(object{"sessionUpdate": "tool_call_update", "toolCallId": id, "title": run.Command, "rawInput": input,
		"content": []object{{"type": "content", "content": object{"type": "text", "text": "Run it"}}}}, false)
	end := object{"sessionUpdate": "tool_call_update", "toolCallId": id, "kind": "execute", "title": run.Command,
		"status": "completed", "rawInput": input}
	switch t.world.cfg.Profile.Output {
	case OutputTerminal:
		t.report(object{"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "in_progress",
			"content": []object{{"type": "terminal", "terminalId": id}}}, false)
		end["_meta"] = object{"terminal_output_delta": object{"data": out.String()},
			"terminal_exit": object{"exit_code": run.Exit}}
	case OutputWhole:
		content := []object{{"type": "content", "content": object{"type": "text", "text": out.String()}}}
		t.report(object{
			"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "in_progress", "content": content,
		}, false)
		end["content"] = content
		end["rawOutput"] = object{"output": out.String(), "metadata": object{"exit": run.Exit}}
	case OutputText:
		text := strings.TrimRight(out.String(), "\n")
		end["content"] = []object{{"type": "content", "content": object{"type": "text", "text": "```console\n" + text + "\n```"}}}
		end["rawOutput"] = text
		if run.Exit != 0 {
			end["status"] = "failed"
		}
	}
	t.report(end, true)
}

func (t *turn) edit(s machine.Edit) {
	for _, c := range s.Changes {
		var before, after strings.Builder
		for line := range strings.Lines(c.Diff) {
			switch line[0] {
			case '-':
				before.WriteString(line[1:])
			case '+':
				after.WriteString(line[1:])
			}
		}
		id := t.world.name("call")
		diff := []object{{"type": "diff", "path": c.Path, "oldText": before.String(), "newText": after.String()}}
		t.report(object{"sessionUpdate": "tool_call", "toolCallId": id, "kind": "edit", "status": "in_progress",
			"title": "Edit", "content": diff}, false)
		t.report(object{"sessionUpdate": "tool_call_update", "toolCallId": id, "kind": "edit", "status": "completed",
			"title": "Edit", "content": diff}, true)
	}
}

// request sends a request to the client. It returns nil if the turn or the process ends first.
func (t *turn) request(method string, params object) json.RawMessage {
	var id int64
	came := make(chan json.RawMessage, 1)
	t.world.do(func() { id, t.next, t.waiting[t.next] = t.next, t.next+1, came })
	params["sessionId"] = t.live.id
	t.send(object{"id": id, "method": method, "params": params})
	cancelled := t.prompt.cancel
	if t.world.cfg.Profile.NeedsAnswer {
		cancelled = nil
	}
	select {
	case result := <-came:
		return result
	case <-cancelled:
		t.send(object{"method": "$/cancel_request", "params": object{"requestId": id}})
	case <-t.done:
	}
	return nil
}

func (t *turn) ask(s machine.Ask) []machine.Step {
	id := t.world.name("call")
	call := object{"toolCallId": id, "title": s.Command, "kind": "execute", "status": "pending"}
	if !t.world.cfg.Profile.TitleOnly {
		call["rawInput"] = object{"command": s.Command}
		t.report(object{"sessionUpdate": "tool_call", "toolCallId": id, "kind": "execute", "status": "pending",
			"title": s.Command, "rawInput": object{"command": s.Command}}, false)
	}
	answer := t.request("session/request_permission", object{"toolCall": call, "options": []object{
		{"optionId": "and-ever", "kind": "allow_always", "name": "Always"},
		{"optionId": "go", "kind": "allow_once", "name": "Yes"}, {"optionId": "no-go", "kind": "reject_once", "name": "No"},
	}})
	var got struct {
		Outcome struct {
			Outcome string `json:"outcome"`
			Option  string `json:"optionId"`
		} `json:"outcome"`
	}
	_ = json.Unmarshal(answer, &got)
	switch {
	case got.Outcome.Option == "go" || got.Outcome.Option == "and-ever":
		t.report(object{"sessionUpdate": "tool_call_update", "toolCallId": id, "kind": "execute", "status": "completed",
			"title": s.Command, "rawInput": object{"command": s.Command}, "rawOutput": "done"}, true)
		return s.Accepted
	case got.Outcome.Option == "no-go" && t.world.cfg.Profile.RejectEnds:
		t.report(object{"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "failed"}, false)
		t.prompt.stop()
		return nil
	}
	t.report(object{"sessionUpdate": "tool_call_update", "toolCallId": id, "kind": "execute", "status": "failed",
		"title": s.Command}, true)
	return s.Declined
}

func (t *turn) input(s machine.Input) []machine.Step {
	properties := object{}
	for i, q := range s.Queries {
		var options []object
		for _, o := range q.Options {
			options = append(options, object{"const": "const " + o, "title": o})
		}
		properties[fmt.Sprint("question_", i)] = object{"type": "string", "title": q.Text, "oneOf": options}
		properties[fmt.Sprint("question_", i, "_custom")] = object{"type": "string", "title": "Other"}
	}
	answer := t.request("elicitation/create", object{"mode": "form", "message": s.Queries[0].Text,
		"requestedSchema": object{"type": "object", "properties": properties}})
	var got struct {
		Action  string            `json:"action"`
		Content map[string]string `json:"content"`
	}
	_ = json.Unmarshal(answer, &got)
	answers := make([]string, len(s.Queries))
	for i := range answers {
		answers[i] = strings.TrimPrefix(got.Content[fmt.Sprint("question_", i)], "const ")
	}
	return s.Answered(answers)
}

// hang runs a command until Release, a cancel or a steer.
func (t *turn) hang() {
	if t.silent {
		return
	}
	id := t.world.name("call")
	u := object{"toolCallId": id, "kind": "execute", "title": "sleep 1000", "rawInput": object{"command": "sleep 1000"}}
	tell := func(kind, status string) {
		u["sessionUpdate"], u["status"] = kind, status
		own := object{}
		maps.Copy(own, u)
		t.report(own, false)
	}
	tell("tool_call", "in_progress")
	released := look(t.world, func() chan struct{} { return t.world.released })
	select {
	case <-released:
		tell("tool_call_update", "completed")
	case <-t.prompt.cancel:
	case words := <-t.prompt.steers:
		t.steer = words
		tell("tool_call_update", "completed")
	case <-t.done:
	}
}
