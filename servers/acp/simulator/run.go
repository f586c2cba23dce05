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

// A turn is the work on one prompt.
type turn struct {
	*process
	live   *live
	prompt *prompt
	work   *machine.Work
	ids    map[*machine.Item]string // of items that have begun
	later  []string                 // messages to send after the answer
	silent bool                     // nothing is sent
}

// play runs a prompt, and answers it.
func (t *turn) play() {
	t.ids = map[*machine.Item]string{}
	t.work = machine.NewWork(t.world.cfg.Script, func(machine.Fact) {})
	t.hear(machine.Prompt{Text: t.prompt.text})
	result, err := t.run()
	if t.silent {
		return
	}
	t.world.do(func() { t.live.running = nil })
	t.answer(t.prompt.id, result, err)
	for _, text := range t.later {
		t.say(text)
		t.update(t.live.id, object{"sessionUpdate": "usage_update", "used": 1, "size": 2,
			"_meta": object{"_claude/origin": object{"kind": "task-notification"}}})
	}
}

// hear records what the person says, and has the agent work on it.
func (t *turn) hear(p machine.Prompt) {
	t.record(record{t.world.name("user"), &machine.Item{Kind: machine.ItemUser, Text: p.Text}})
	t.work.Hear(p)
}

// record adds to the session's history.
func (t *turn) record(r record) {
	t.world.do(func() {
		t.live.records = append(t.live.records, r)
		t.live.stored.records = slices.Clone(t.live.records)
		if t.live.title == "" && r.Kind == machine.ItemUser {
			t.live.stored.title, _, _ = strings.Cut(r.Text, "\n")
		}
		t.live.stored.updated = t.world.tick()
	})
}

// chunk sends a piece of the agent's message.
func (t *turn) chunk(id, text string) { t.report(t.process.chunk("agent_message_chunk", id, text)) }

// say sends a message that is no step of the work.
func (t *turn) say(text string) {
	id := t.world.name("msg")
	t.record(record{id, &machine.Item{Kind: machine.ItemMessage, Text: text}})
	t.chunk(id, text)
}

// report sends an update.
func (t *turn) report(u object) {
	if !t.silent {
		t.update(t.live.id, u)
	}
}

// run works until nothing is left or the prompt is cancelled.
func (t *turn) run() (any, *wireError) {
	usage := any(object{"inputTokens": 7, "outputTokens": 5, "totalTokens": 12})
	for act, more := t.work.Next(); more; act, more = t.work.Next() {
		if fail, ok := act.Step.(machine.Fail); ok {
			if err := t.fail(fail.Message); err != nil {
				return nil, err
			}
			usage = nil
			break
		}
		t.show(act)
		steers := t.prompt.steers
		if t.work.Open() {
			steers = nil
		}
		select {
		case <-t.prompt.cancel:
			return object{"stopReason": "cancelled", "usage": usage}, nil
		case words := <-steers:
			t.hear(machine.Prompt{Text: words, Steered: true})
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

// fail reports why the turn fails. If it returns nil, the answer does not say that it failed.
func (t *turn) fail(message string) *wireError {
	if t.world.cfg.Profile.QuietFail {
		t.report(object{"sessionUpdate": "session_info_update",
			"_meta": object{"codex": object{"threadStatus": object{"type": "systemError"}}}})
		t.chunk("", message)
		return nil
	}
	t.say("API Error: " + message)
	return &wireError{-32603, "Internal error: API Error: " + message, object{"errorKind": "server_error"}}
}

// show tells the client of an act, and waits where it says so.
func (t *turn) show(act machine.Act) {
	switch act.Does {
	case machine.Waits:
		select {
		case <-time.After(act.For):
		case <-t.prompt.cancel:
		}
	case machine.Begins:
		t.begin(act.Item)
	case machine.Adds:
		if act.Item.Kind == machine.ItemMessage {
			t.chunk(t.ids[act.Item], act.Text)
		}
	case machine.Ends:
		t.end(act.Item)
	case machine.Asks:
		switch s := act.Step.(type) {
		case machine.Ask:
			t.ask(act.Item)
		case machine.Input:
			t.input(s)
		}
	case machine.Tells:
		switch s := act.Step.(type) {
		case machine.Stray:
			t.chunk("", s.Text)
		case machine.Later:
			t.later = append(t.later, s.Text)
		}
	case machine.Rests:
		t.hang()
	}
}

// begin names an item that begins, and tells of a tool call.
func (t *turn) begin(it *machine.Item) {
	id := t.world.name("item")
	t.ids[it] = id
	switch it.Kind {
	case machine.ItemCommand:
		t.report(object{"sessionUpdate": "tool_call", "toolCallId": id, "kind": "execute", "status": "pending",
			"title": "Terminal", "rawInput": object{}})
		t.report(object{"sessionUpdate": "tool_call_update", "toolCallId": id, "title": it.Command, "rawInput": rawInput(it),
			"content": content("Run it")})
		if t.world.cfg.Profile.Output == OutputTerminal {
			t.report(object{"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "in_progress",
				"content": []object{{"type": "terminal", "terminalId": id}}})
		}
	case machine.ItemEdit:
		u := t.ended(record{id, it})
		u["sessionUpdate"], u["status"] = "tool_call", "in_progress"
		t.report(u)
	}
}

// end ends an item, and records it.
func (t *turn) end(it *machine.Item) {
	r := record{t.ids[it], it}
	switch it.Kind {
	case machine.ItemCommand, machine.ItemEdit:
		if t.world.cfg.Profile.Output == OutputWhole && it.Kind == machine.ItemCommand && it.Exit != nil {
			t.report(object{"sessionUpdate": "tool_call_update", "toolCallId": r.id, "status": "in_progress",
				"content": content(it.Output)})
		}
		t.report(t.ended(r))
	case machine.ItemMessage:
	default:
		return
	}
	t.record(r)
}

func rawInput(it *machine.Item) object { return object{"command": it.Command, "description": "Run it"} }

func content(text string) []object {
	return []object{{"type": "content", "content": object{"type": "text", "text": text}}}
}

// ended returns the update that ends a tool call.
func (p *process) ended(r record) object {
	u := object{"sessionUpdate": "tool_call_update", "toolCallId": r.id, "status": "completed"}
	if r.Kind == machine.ItemEdit {
		var diffs []object
		for _, c := range r.Changes {
			before, after := sides(c.Diff)
			diffs = append(diffs, object{"type": "diff", "path": c.Path, "oldText": before, "newText": after})
		}
		u["kind"], u["title"], u["content"] = "edit", "Edit", diffs
		return u
	}
	u["kind"], u["title"] = "execute", r.Command
	if r.Exit == nil { // it was not run
		u["status"] = "failed"
		return u
	}
	u["rawInput"] = rawInput(r.Item)
	switch p.world.cfg.Profile.Output {
	case OutputTerminal:
		u["_meta"] = object{"terminal_output_delta": object{"data": r.Output}, "terminal_exit": object{"exit_code": *r.Exit}}
	case OutputWhole:
		u["content"] = content(r.Output)
		u["rawOutput"] = object{"output": r.Output, "metadata": object{"exit": *r.Exit}}
	case OutputText:
		text := strings.TrimRight(r.Output, "\n")
		u["content"], u["rawOutput"] = content("```console\n"+text+"\n```"), text
		if *r.Exit != 0 {
			u["status"] = "failed"
		}
	}
	return u
}

// sides returns what the changed lines of a diff were, and what they are.
func sides(diff string) (before, after string) {
	for line := range strings.Lines(diff) {
		switch line[0] {
		case '-':
			before += line[1:]
		case '+':
			after += line[1:]
		}
	}
	return before, after
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

// ask asks for permission to run a command.
func (t *turn) ask(it *machine.Item) {
	id := t.world.name("item")
	call := object{"toolCallId": id, "title": it.Command, "kind": "execute", "status": "pending"}
	t.ids[it], it.Status = id, machine.ItemRunning
	if !t.world.cfg.Profile.TitleOnly {
		call["rawInput"] = object{"command": it.Command}
		u := maps.Clone(call)
		u["sessionUpdate"] = "tool_call"
		t.report(u)
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
	yes := got.Outcome.Option == "go" || got.Outcome.Option == "and-ever"
	switch {
	case yes:
	case got.Outcome.Option == "no-go" && t.world.cfg.Profile.RejectEnds:
		t.report(object{"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "failed"})
		t.prompt.stop()
		return
	default:
		t.end(it)
	}
	t.work.Answer(yes)
}

// input asks for an answer in words.
func (t *turn) input(s machine.Input) {
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
	t.work.Answer(true, answers...)
}

// hang runs a command until Release, a cancel or a steer.
func (t *turn) hang() {
	if t.silent {
		return
	}
	id := t.world.name("item")
	tell := func(kind, status string) {
		t.report(object{"sessionUpdate": kind, "status": status, "toolCallId": id, "kind": "execute", "title": "sleep 1000",
			"rawInput": object{"command": "sleep 1000"}})
	}
	tell("tool_call", "in_progress")
	released := look(t.world, func() chan struct{} { return t.world.released })
	select {
	case <-released:
		tell("tool_call_update", "completed")
	case <-t.prompt.cancel:
	case words := <-t.prompt.steers:
		tell("tool_call_update", "completed")
		t.hear(machine.Prompt{Text: words, Steered: true})
	case <-t.done:
	}
}
