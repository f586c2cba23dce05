package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	acpsim "switchboard/servers/acp/simulator"
	machines "switchboard/servers/simulator"
)

// A farm is all that is around a Switchboard under test: simulated machines and a scripted voice model.
// It lives in the test, so that what it counted outlives a Switchboard that was killed.
type farm struct {
	world *machines.World
	at    map[string]string // machine -> ws:// address
	voice *voiceTap
	taken atomic.Int64 // connections that the machines accepted

	agents *acpsim.World // that speak the Agent Client Protocol; nil: there are none
	model  *jobModel     // of real agents; nil: there are none
}

// A counted listener counts what it accepts.
type counted struct {
	net.Listener
	taken *atomic.Int64
}

func (l counted) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.taken.Add(1)
	}
	return conn, err
}

func (f *farm) connections() int64 { return f.taken.Load() }

// newFarm serves the machines and the voice until the test ends.
//
// The agents do what a prompt says: "job N takes M" says a remark, works M milliseconds and ends with
// "job N is done"; "job N asks" wants to push, "job N asks for COMMAND" to run that; "job N hangs" never ends.
func newFarm(t testing.TB) *farm {
	t.Helper()
	f := &farm{world: machines.NewWorld(machines.Config{Script: jobSteps}), at: map[string]string{}}
	for _, m := range f.world.Machines() {
		if m.Down {
			continue
		}
		l := loopback(t)
		f.at[m.Name] = "ws://" + l.Addr().String()
		background(t, func(ctx context.Context) error { return f.world.Serve(ctx, m.Name, counted{l, &f.taken}) })
	}
	f.voice = newVoiceTap(t, scriptedVoice(t).URL)
	return f
}

// jobSteps is what the agents do.
func jobSteps(p machines.Prompt) []machines.Step {
	var n, takes int
	switch {
	case scans(p.Text, "job %d takes %d", &n, &takes):
		half := time.Duration(takes) * time.Millisecond / 2
		return []machines.Step{
			machines.Pause{For: half}, machines.Say{Text: fmt.Sprintf("I look at number %d.", n)},
			machines.Pause{For: half}, machines.Say{Text: fmt.Sprintf("job %d is done.\n\nAll went well.", n)},
		}
	case scans(p.Text, "job %d asks", &n):
		command := "git push origin main"
		if _, other, found := strings.Cut(p.Text, " asks for "); found {
			command = other
		}
		return []machines.Step{machines.Ask{
			Command:  command,
			Accepted: []machines.Step{machines.Say{Text: fmt.Sprintf("job %d is pushed.", n)}},
			Declined: []machines.Step{machines.Say{Text: fmt.Sprintf("job %d is left alone.", n)}},
		}}
	case scans(p.Text, "job %d hangs", &n):
		return []machines.Step{machines.Hang{}}
	}
	return []machines.Step{machines.Say{Text: "That is no job."}}
}

func scans(text, format string, into ...any) bool {
	n, err := fmt.Sscanf(text, format, into...)
	return err == nil && n == len(into) && (!strings.HasSuffix(format, "hangs") || strings.HasSuffix(text, "hangs"))
}

// work is what a caller says to have work done in a session of its own.
func work(server, prompt string) string {
	return fmt.Sprintf(`codex {"server":%q,"thread_id":"new","prompt":%q}`, server, prompt)
}

// turns counts the turns that the agents began, by prompt.
func (f *farm) turns() map[string]int {
	count := map[string]int{}
	for name := range f.at {
		for _, s := range f.world.Starts(name) {
			if s.Turn != "" && !s.Steered {
				count[s.Prompt]++
			}
		}
	}
	if f.agents != nil {
		for _, prompt := range f.agents.Prompts() {
			words, _, _ := strings.Cut(prompt, "\n\n<switchboard-note")
			count[words]++
		}
	}
	if f.model != nil {
		f.model.count(count)
	}
	return count
}

// withAgents adds agents of the Agent Client Protocol, which do what the others do, and returns the address where one
// process of them is reached by each connection.
func (f *farm) withAgents(t testing.TB) string {
	t.Helper()
	f.agents = acpsim.NewWorld(acpsim.Config{
		Profile: acpsim.Profile{List: true, Load: true, Resume: true, Fork: true, Close: true, Steering: true, Names: true,
			Modes: []string{"auto", "default"}},
		Script: jobSteps,
	})
	l := loopback(t)
	background(t, func(ctx context.Context) error {
		defer context.AfterFunc(ctx, func() { _ = l.Close() })()
		var all sync.WaitGroup
		defer all.Wait()
		for {
			conn, err := l.Accept()
			if err != nil {
				return nil
			}
			all.Go(func() {
				defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
				f.agents.Serve(conn, conn, func() { _ = conn.Close() })
			})
		}
	})
	return l.Addr().String()
}

// check holds what is true at the end, as the far ends count it: no work was begun twice, and no request
// was answered twice.
func (f *farm) check(t testing.TB) {
	t.Helper()
	for prompt, n := range f.turns() {
		if n > 1 {
			t.Errorf("%q was begun %d times", prompt, n)
		}
	}
	for _, r := range f.voice.all() {
		if len(r.outputs) > 1 {
			t.Errorf("%s was answered %d times: %q", r.arguments, len(r.outputs), r.outputs)
		}
	}
}

// A voiceTap stands before a voice model and notes what the client never sees: our tool calls and what
// they were answered.
type voiceTap struct {
	URL   string                         // Set once
	watch func(toModel bool, e tapEvent) // Set once, before the first call; may be nil

	mu       sync.Mutex
	requests []*toolRequest // Guarded by mu: oldest first
	messages []given        // Guarded by mu: system messages for the model
	open     int            // Guarded by mu: calls
}

// given is a text that a voice model got in a call.
type given struct {
	call int
	text string
}

// A toolRequest is a call of one of our tools and its answers.
type toolRequest struct {
	call      int // which connection
	id        string
	arguments string
	outputs   []string
}

func newVoiceTap(t testing.TB, upstream string) *voiceTap {
	t.Helper()
	v := &voiceTap{}
	v.URL = tap(t, upstream, func() func(bool, []byte) {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.open++
		call := v.open
		return func(toModel bool, data []byte) {
			var e tapEvent
			if json.Unmarshal(data, &e) != nil {
				return
			}
			if toModel {
				v.sent(call, e)
			} else {
				v.received(call, e)
			}
			if v.watch != nil {
				v.watch(toModel, e)
			}
		}
	}) + "/v1/realtime"
	return v
}

// tap stands before a WebSocket server until the test ends, and returns its address. For each connection begin returns
// what sees each message before it is passed on.
func tap(t testing.TB, upstream string, begin func() (show func(toServer bool, data []byte))) string {
	t.Helper()
	l := loopback(t)
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	server := &http.Server{
		ReadHeaderTimeout: patience,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			all.Add(1)
			defer all.Done()
			behind, _, err := websocket.DefaultDialer.DialContext(ctx, upstream+"?"+r.URL.RawQuery, nil)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
			defer behind.Close()
			client, err := (&websocket.Upgrader{Subprotocols: []string{"realtime"}}).Upgrade(w, r, nil)
			if err != nil {
				return
			}
			defer client.Close()
			show := begin()
			stop := context.AfterFunc(ctx, func() { _ = client.Close(); _ = behind.Close() })
			defer stop()
			var both sync.WaitGroup
			both.Go(func() { carry(client, behind, func(data []byte) { show(true, data) }) })
			both.Go(func() { carry(behind, client, func(data []byte) { show(false, data) }) })
			both.Wait()
		}),
	}
	all.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() { cancel(); _ = server.Close(); all.Wait() })
	return "ws://" + l.Addr().String()
}

// carry passes messages on until one of the two is gone, and ends the other; show sees each before it is passed on.
func carry(from, to *websocket.Conn, show func(data []byte)) {
	defer to.Close()
	for {
		kind, data, err := from.ReadMessage()
		if err != nil {
			return
		}
		show(data)
		if to.WriteMessage(kind, data) != nil {
			return
		}
	}
}

// A tapEvent is an event as far as the tap looks at it.
type tapEvent struct {
	Type string
	Item struct {
		Type, Role, Name, Arguments, Output, Status string
		CallID                                      string `json:"call_id"`
		Content                                     []struct{ Text string }
	}
}

// received notes what the model does.
func (v *voiceTap) received(call int, e tapEvent) {
	if e.Type != "response.output_item.done" || e.Item.Type != "function_call" || e.Item.Status != "completed" {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.requests = append(v.requests, &toolRequest{call: call, id: e.Item.CallID, arguments: e.Item.Arguments})
}

// sent notes what the model is given.
func (v *voiceTap) sent(call int, e tapEvent) {
	if e.Type != "conversation.item.create" {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if e.Item.Type == "message" && e.Item.Role == "system" && len(e.Item.Content) > 0 {
		v.messages = append(v.messages, given{call, e.Item.Content[0].Text})
	}
	for _, r := range v.requests {
		if e.Item.Type == "function_call_output" && r.call == call && r.id == e.Item.CallID {
			r.outputs = append(r.outputs, e.Item.Output)
		}
	}
}

// all returns the requests so far.
func (v *voiceTap) all() []toolRequest {
	v.mu.Lock()
	defer v.mu.Unlock()
	var all []toolRequest
	for _, r := range v.requests {
		one := *r
		one.outputs = append([]string(nil), r.outputs...)
		all = append(all, one)
	}
	return all
}

// answered counts the answers so far.
func (v *voiceTap) answered() int {
	n := 0
	for _, r := range v.all() {
		n += len(r.outputs)
	}
	return n
}

// calls counts the calls so far.
func (v *voiceTap) calls() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.open
}
