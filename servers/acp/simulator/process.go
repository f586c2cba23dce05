package simulator

import (
	"bufio"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	machine "switchboard/servers/simulator"
)

type object = map[string]any

// A wireError is an error of JSON-RPC.
type wireError struct {
	code    int
	message string
	data    object
}

// A process is one agent process.
type process struct {
	world *World
	out   chan object   // to the writer; capacity 64, when it is full senders wait
	done  chan struct{} // closed by kill
	once  sync.Once
	work  sync.WaitGroup
	close func() // Set once

	next    int64                          // Guarded by mu of the world: id of its next request, from 0
	live    map[string]*live               // Guarded by mu of the world
	waiting map[int64]chan json.RawMessage // Guarded by mu of the world: channels for the answers to its requests
}

// live is a session that a process has open.
type live struct {
	*stored
	mode    string
	running *prompt
	records []record // the history as this process knows it
}

// A prompt is a prompt that runs.
type prompt struct {
	id     json.RawMessage
	live   *live
	text   string
	cancel chan struct{}
	once   sync.Once
	steers chan string
}

func (p *prompt) stop() { p.once.Do(func() { close(p.cancel) }) }

// request is a message of the client.
type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Params struct {
		Session string `json:"sessionId"`
		Cwd     string `json:"cwd"`
		Cursor  string `json:"cursor"`
		Mode    string `json:"modeId"`
		Value   string `json:"value"`
		Prompt  []struct {
			Type, Text string
		} `json:"prompt"`
		Servers *[]any `json:"mcpServers"`
		Meta    struct {
			Steering struct {
				Idle string `json:"idleBehavior"`
			} `json:"steering"`
		} `json:"_meta"`
	} `json:"params"`
}

// Serve runs a process on a pair of streams until the input ends, and returns when its goroutines have ended. hangUp
// closes both streams.
func (w *World) Serve(in io.Reader, out io.Writer, hangUp func()) {
	p := &process{world: w, out: make(chan object, 64), done: make(chan struct{}), live: map[string]*live{},
		waiting: map[int64]chan json.RawMessage{}, close: hangUp}
	w.do(func() { w.processes = append(w.processes, p) })
	p.work.Go(func() { p.write(out) })
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var r request
		if json.Unmarshal(line, &r) == nil {
			p.handle(r)
		}
	}
	p.kill()
	p.work.Wait()
	w.do(func() {
		w.processes = slices.DeleteFunc(w.processes, func(other *process) bool { return other == p })
		p.free()
	})
}

// free frees the sessions that the process holds. The caller holds mu of the world.
func (p *process) free() {
	for _, s := range p.world.sessions {
		if s.holder == p {
			s.holder = nil
		}
	}
}

// kill ends the process and all that runs in it. It frees the process's sessions before it closes the streams.
func (p *process) kill() {
	p.once.Do(func() {
		close(p.done)
		p.world.do(p.free)
		p.close()
	})
}

func (p *process) write(out io.Writer) {
	for {
		select {
		case m := <-p.out:
			m["jsonrpc"] = "2.0"
			line, err := json.Marshal(m)
			if err == nil {
				_, err = out.Write(append(line, '\n'))
			}
			if err != nil {
				p.kill()
				return
			}
		case <-p.done:
			return
		}
	}
}

func (p *process) send(m object) {
	select {
	case p.out <- m:
	case <-p.done:
	}
}

func (p *process) answer(id json.RawMessage, result any, err *wireError) {
	if err != nil {
		p.send(object{"id": id, "error": object{"code": err.code, "message": err.message, "data": err.data}})
		return
	}
	p.send(object{"id": id, "result": result})
}

func (p *process) update(session string, u object) {
	p.send(object{"method": "session/update", "params": object{"sessionId": session, "update": u}})
}

// handle handles a message of the client.
func (p *process) handle(r request) {
	switch {
	case r.Method == "":
		p.world.do(func() {
			var id int64
			if json.Unmarshal(r.ID, &id) == nil && p.waiting[id] != nil {
				p.waiting[id] <- r.Result
				delete(p.waiting, id)
			}
		})
		return
	case r.Method == "session/prompt" || r.Method == "session/cancel":
		p.handlePrompt(r)
		return
	}
	var result any
	var history []object
	var err *wireError
	p.world.do(func() { result, history, err = p.do(r) })
	answer := func() {
		if r.ID != nil {
			p.answer(r.ID, result, err)
		}
	}
	can := p.world.cfg.Profile
	if can.SlowList > 0 && r.Method == "session/list" {
		time.AfterFunc(can.SlowList, answer)
		return
	}
	if can.LateReplay {
		answer()
	}
	for _, u := range history {
		p.update(r.Params.Session, u)
	}
	if !can.LateReplay {
		answer()
	}
}

var noSuchSession = &wireError{-32002, "Resource not found", nil}

// do does what a request asks for. history are the updates that replay a session. The caller holds mu of the world.
func (p *process) do(r request) (result any, history []object, err *wireError) {
	w, can := p.world, p.world.cfg.Profile
	allowed := map[string]bool{
		"session/list": can.List, "session/load": can.Load, "session/resume": can.Resume, "session/fork": can.Fork,
		"session/close": can.Close, "_session/steering": can.Steering, "initialize": true, "session/new": true,
		"session/set_mode": !can.ModeOption, "session/set_config_option": can.ModeOption,
	}
	s, l := w.sessions[r.Params.Session], p.live[r.Params.Session]
	opens := slices.Contains([]string{"session/load", "session/resume"}, r.Method)
	switch {
	case !allowed[r.Method]:
		return nil, nil, &wireError{-32601, "Method not found: " + r.Method, nil}
	case r.Method == "initialize":
		return p.capabilities(), nil, nil
	case r.Method == "session/list":
		return p.list(r.Params.Cursor), nil, nil
	case r.Method == "session/new" && (r.Params.Servers == nil || !strings.HasPrefix(r.Params.Cwd, "/")):
		return nil, nil, &wireError{-32602, "Invalid params", nil}
	case r.Method == "session/new":
		return p.openSession(w.make(r.Params.Cwd, nil), true), nil, nil
	case s == nil || r.Method == "session/load" && len(s.records) == 0:
		return nil, nil, noSuchSession
	case opens && can.OneWriter && s.holder != nil && s.holder != p:
		return nil, nil, &wireError{-32600, "This session is in use by another client",
			object{"reason": "thread_active_writer"}}
	case r.Method == "session/load":
		history = p.replay(s)
		fallthrough
	case opens:
		return p.openSession(s, false), history, nil
	case r.Method == "session/fork":
		return p.openSession(w.make(s.cwd, slices.Clone(s.records)), true), nil, nil
	case l == nil:
		return nil, nil, noSuchSession
	}
	switch r.Method {
	case "session/close":
		delete(p.live, s.id)
	case "session/set_mode":
		if !slices.Contains(can.Modes, r.Params.Mode) {
			return nil, nil, &wireError{-32602, "Invalid mode", nil}
		}
		l.mode = r.Params.Mode
	case "session/set_config_option":
		if !can.Deaf {
			l.mode = r.Params.Value
		}
		return object{"configOptions": p.options(l.mode)}, nil, nil
	case "_session/steering":
		return p.steer(l, r), nil, nil
	}
	return object{}, nil, nil
}

func (p *process) steer(l *live, r request) object {
	switch {
	case l.running == nil && r.Params.Meta.Steering.Idle != "promptRequired":
		return object{"outcome": "startedNewTurn"}
	case l.running == nil:
		return object{"outcome": "promptRequired", "reason": "noRunningTurn"}
	}
	l.running.steers <- p.words(r) // has room for more than tests send
	return object{"outcome": "injected"}
}

// words returns the text of a prompt, and counts its pictures. The caller holds mu of the world.
func (p *process) words(r request) string {
	var all []string
	for _, b := range r.Params.Prompt {
		if b.Type == "image" {
			p.world.pictures++
			continue
		}
		all = append(all, b.Text)
	}
	text := strings.Join(all, "")
	p.world.prompts = append(p.world.prompts, text)
	return text
}

func (p *process) capabilities() any {
	can := p.world.cfg.Profile
	sessions := object{}
	for name, has := range map[string]bool{"list": can.List, "resume": can.Resume, "fork": can.Fork, "close": can.Close} {
		if has {
			sessions[name] = object{}
		}
	}
	return object{
		"protocolVersion": 1, "_meta": object{"steering": object{"supported": can.Steering}},
		"agentCapabilities": object{"loadSession": can.Load, "promptCapabilities": object{"image": true},
			"sessionCapabilities": sessions},
		"agentInfo": object{"name": "simulated", "version": "1.2.3"},
	}
}

// listPage is the number of sessions in a page of a list. It is small, so that there are several pages.
const listPage = 2

func (p *process) list(cursor string) any {
	var all []*stored
	for _, s := range p.world.sessions {
		if len(s.records) > 0 {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *stored) int { return b.updated.Compare(a.updated) })
	at := slices.IndexFunc(all, func(s *stored) bool { return s.id == cursor }) + 1
	result := object{}
	var page []object
	for _, s := range all[at:min(at+listPage, len(all))] {
		page = append(page, object{"sessionId": s.id, "cwd": s.cwd, "title": s.title, "updatedAt": s.updated})
		if at+listPage < len(all) {
			result["nextCursor"] = s.id
		}
	}
	result["sessions"] = page
	return result
}

// openSession opens a session, and returns the result of the method that did so. fresh: the session is new. The caller
// holds mu of the world.
func (p *process) openSession(s *stored, fresh bool) any {
	can := p.world.cfg.Profile
	l := p.live[s.id]
	if l == nil {
		l = &live{stored: s}
		p.live[s.id] = l
	}
	l.records = slices.Clone(s.records)
	if can.OneWriter {
		s.holder = p
	}
	if len(can.Modes) > 0 && (l.mode == "" || can.Forgets) {
		l.mode = can.Modes[0]
	}
	result := object{"sessionId": s.id}
	if !fresh {
		delete(result, "sessionId")
	}
	switch {
	case can.ModeOption:
		result["configOptions"] = p.options(l.mode)
	case len(can.Modes) > 0:
		var modes []object
		for _, m := range can.Modes {
			modes = append(modes, object{"id": m, "name": m})
		}
		result["modes"] = object{"currentModeId": l.mode, "availableModes": modes}
	}
	return result
}

func (p *process) options(mode string) any {
	var values []object
	for _, m := range p.world.cfg.Profile.Modes {
		values = append(values, object{"value": m, "name": m})
	}
	return []object{
		{"id": "verbose", "category": "other", "currentValue": false},
		{"id": "mode", "category": "mode", "currentValue": mode, "options": values},
	}
}

// replay returns the updates that replay a session.
func (p *process) replay(s *stored) (all []object) {
	for _, r := range s.records {
		switch r.Kind {
		case machine.ItemUser:
			all = append(all, p.chunk("user_message_chunk", r.id, r.Text))
		case machine.ItemMessage:
			all = append(all, p.chunk("agent_message_chunk", r.id, r.Text))
		default:
			u := p.ended(r)
			u["sessionUpdate"] = "tool_call"
			all = append(all, u)
		}
	}
	return append(all, object{"sessionUpdate": "available_commands_update", "availableCommands": []any{}})
}

// chunk returns the update with a piece of a message.
func (p *process) chunk(kind, id, text string) object {
	u := object{"sessionUpdate": kind, "content": object{"type": "text", "text": text}}
	if p.world.cfg.Profile.Names && id != "" {
		u["messageId"] = id
	}
	return u
}
