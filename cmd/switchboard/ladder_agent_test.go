package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/call/calltest"
	"switchboard/handoff/homes"
	"switchboard/handoff/router"
	"switchboard/handoff/threads"
	"switchboard/servers"
	"switchboard/servers/responses"
	"switchboard/servers/responses/simulator"
	machines "switchboard/servers/simulator"
)

// A climber plays one conversation with a router, over an agent of our own on a simulated API, all in one bubble of
// fake time.
type climber struct {
	*calltest.Player
	t   *testing.T
	api *simulator.API
}

// climb plays one ladder.
func climb(t *testing.T, ladder func(*climber)) {
	m := machines.Machine{Name: "laptop", Dir: "/home/me/src/notes"}
	w, api := calltest.NewWorld(t), simulator.New("ladder", 1, simulator.Actor(m))
	agents := responses.NewAgents(threads.NewMemory(), nil)
	agent := agents.Add(responses.Config{
		Name: m.Name, URL: "http://upstream/v1", Client: &http.Client{Transport: inMemory{api}}, Threads: threads.NewMemory(),
		Workspace: simulator.NewTools(m, 1), Dir: m.Dir, Log: zap.NewNop(), Model: responses.Model{Name: "m", Continuation: responses.ResponseIDs},
	})
	fleet, err := servers.New(servers.Config{Log: zap.NewNop(), Specs: []servers.Spec{{Name: m.Name, Kind: responses.Name, Dir: m.Dir, Dial: agent.Dial, IsThread: agents.Kind().IsThread}}})
	must(t, err)
	stopAgents, stopFleet := background(t, agents.Run), background(t, fleet.Run)
	p := &calltest.Player{World: w, NewLife: func(life string) (*homes.Homes, calltest.Calls) {
		return routerAndCalls(life, router.Config{Fleet: fleet, Store: w.Ledger.For(life), IDs: router.NewIDs(life)}, fleet)
	}}
	p.Begin("h")
	time.Sleep(time.Second) // it is connected
	p.Call(false)
	ladder(&climber{p, t, api})
	p.End()
	stopFleet()
	stopAgents()
	for _, why := range api.Wrong() {
		t.Error(why)
	}
}

// asks has the voice model call a tool.
func (r *climber) asks(id, tool, args string) { r.Perform("request", id+" "+tool+" "+args) }

// hears waits for words that are said, in fake time. What was said before counts as well.
func (r *climber) hears(words string) {
	r.t.Helper()
	for range 600 {
		if r.World.Heard(words) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	r.t.Errorf("never said: %q; but\n%s", words, r.World.Ladder())
}

// record is the newest work whose prompt is this one.
func (r *climber) record(prompt string) handoff.Record {
	r.t.Helper()
	all, _ := r.Router.Handoffs(calltest.Grant)
	n := slices.IndexFunc(all, func(rec handoff.Record) bool { return rec.Prompt == prompt })
	if n < 0 {
		r.t.Fatalf("there is no work %q", prompt)
	}
	return all[n]
}

// newInputs is what the model was sent from the nth request on, as far as it is words of a person or outputs.
func (r *climber) newInputs(n int) string {
	var all []string
	for _, req := range r.api.Requests()[n:] {
		for _, raw := range req.Input {
			var it struct {
				Role, Type string
				Content    []struct{ Text string }
			}
			_ = json.Unmarshal(raw, &it)
			switch {
			case it.Type == "function_call_output":
				all = append(all, "output")
			case it.Role == "user" && len(it.Content) > 0 && !strings.HasPrefix(it.Content[0].Text, "["):
				all = append(all, it.Content[0].Text)
			}
		}
	}
	return strings.Join(all, ", ")
}

// agentLadders are climbed one by one, each in a world of its own. Set once.
var agentLadders = map[string]func(*climber){
	"a follow-up goes on in the same session": func(r *climber) {
		r.asks("c1", "codex", `{"server":"laptop","prompt":"run the tests"}`)
		r.hears("every package is fine")
		r.asks("c2", "codex", `{"server":"laptop","prompt":"what changed?"}`)
		r.hears("I ran the tests, and all passed")
		first, second := r.record("run the tests"), r.record("what changed?")
		if first.Why != handoff.WhyNew || second.Why != handoff.WhyContinued || first.ThreadID != second.ThreadID {
			r.t.Errorf("%+v, %+v", first, second)
		}
	},
	"a session that is not there runs nothing": func(r *climber) {
		r.asks("c1", "codex", `{"server":"laptop","thread_id":"thr_aaaaaaaaaaaaaaaaaaaaaaaaaa","prompt":"run the tests"}`)
		time.Sleep(10 * time.Second)
		if rec := r.record("run the tests"); rec.Outcome != handoff.OutcomeFailed && rec.Outcome != handoff.OutcomeCancelled || len(r.api.Requests()) > 0 {
			r.t.Errorf("%+v", rec)
		}
	},
	"words are added to work that runs": func(r *climber) {
		r.asks("c1", "codex", `{"server":"laptop","prompt":"run the benchmarks"}`)
		time.Sleep(5 * time.Second)
		r.asks("c2", "codex", `{"server":"laptop","prompt":"run the tests"}`)
		r.hears(`"status":"added"`)
		r.hears("every package is fine")
		if got := r.newInputs(0); got != "run the benchmarks, output, run the tests, output" {
			r.t.Errorf("the model heard %s", got)
		}
	},
	"what stopped work never heard is told": func(r *climber) {
		r.asks("c1", "codex", `{"server":"laptop","prompt":"run the benchmarks"}`)
		time.Sleep(5 * time.Second)
		r.asks("c2", "codex", `{"server":"laptop","prompt":"and push it"}`)
		r.hears(`"status":"added"`)
		r.asks("c3", "stop_work", `{"server":"laptop"}`)
		r.hears(`It never heard what they added, and nothing was begun for it: "and push it"`)
		if rec := r.record("run the benchmarks"); rec.Outcome != handoff.OutcomeInterrupted || len(rec.Undelivered) != 1 {
			r.t.Errorf("%+v", rec)
		}
		time.Sleep(time.Minute)
		if n := len(r.api.Requests()); n != 1 {
			r.t.Errorf("the model was asked %d times", n)
		}
	},
	"an approval is asked, and done after a yes": func(r *climber) {
		r.asks("c1", "codex", `{"server":"laptop","prompt":"push it"}`)
		r.hears("git push origin release-2.4")
		time.Sleep(5 * time.Second)
		questions := r.Router.Questions(calltest.Grant)
		if len(questions) != 1 {
			r.t.Fatalf("%+v", questions)
		}
		must(r.t, r.Router.Decide(r.t.Context(), calltest.Grant, questions[0].ID, handoff.DecisionAccept))
		r.hears("The branch release-2.4 is pushed.")
	},
	"a no is heard": func(r *climber) {
		r.asks("c1", "codex", `{"server":"laptop","prompt":"push it"}`)
		r.hears("git push origin release-2.4")
		time.Sleep(5 * time.Second)
		r.Perform("typed", "no, don't")
		label := r.Router.Questions(calltest.Grant)[0].Label
		r.asks("c2", "answer_agent", fmt.Sprintf(`{"question":%q,"decision":"decline"}`, label))
		r.hears("I did not push the branch")
	},
	"what comes next waits": func(r *climber) {
		r.asks("c1", "codex", `{"server":"laptop","prompt":"run the benchmarks"}`)
		time.Sleep(3 * time.Second)
		r.asks("c2", "queue_next", `{"server":"laptop","prompt":"run the tests"}`)
		r.hears("every package is fine")
		first, second := r.record("run the benchmarks"), r.record("run the tests")
		if first.EndedAt == nil || second.EndedAt == nil || second.EndedAt.Before(*first.EndedAt) || first.ThreadID != second.ThreadID {
			r.t.Errorf("%+v, %+v", first, second)
		}
	},
	"a side question leaves no session": func(r *climber) {
		r.asks("c1", "run_on_server", `{"server":"laptop","prompt":"which branch is it?"}`)
		r.hears("It is on the branch release-2.4.")
		if all := r.World.Ledger.Places(); len(all) > 0 {
			r.t.Errorf("it is the session of the machine now: %v", all)
		}
	},
	"who hung up hears it in the next call": func(r *climber) {
		r.asks("c1", "codex", `{"server":"laptop","prompt":"run the benchmarks"}`)
		time.Sleep(5 * time.Second)
		r.HangUp()
		time.Sleep(time.Minute)
		r.Call(false)
		r.hears("benchmarks are done")
	},
}

// TestLaddersOnAnAgentOfOurOwn: what the router's ladders hold on a scripted agent holds on an agent that Switchboard
// runs itself: sessions, steering, questions, queueing, stopping, and who hung up.
func TestLaddersOnAnAgentOfOurOwn(t *testing.T) {
	for name, ladder := range agentLadders {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { climb(t, ladder) })
		})
	}
}

// inMemory reaches a handler without a network, which knows no fake time.
type inMemory struct{ handler http.Handler }

// RoundTrip implements [http.RoundTripper].
func (m inMemory) RoundTrip(req *http.Request) (*http.Response, error) {
	body, out := io.Pipe()
	ctx, cancel := context.WithCancel(req.Context())
	w := &answering{header: http.Header{}, status: http.StatusOK, begun: make(chan struct{}), out: out}
	go func() {
		m.handler.ServeHTTP(w, req.WithContext(ctx))
		w.begin()
		_ = out.Close()
	}()
	<-w.begun
	stop := context.AfterFunc(req.Context(), func() { _ = body.CloseWithError(context.Cause(req.Context())) })
	return &http.Response{StatusCode: w.status, Header: w.header, Body: read{body, func() { stop(); cancel() }}, Request: req}, nil
}

// answering is where the handler writes.
type answering struct {
	header http.Header
	status int
	once   sync.Once
	begun  chan struct{}
	out    *io.PipeWriter
}

func (w *answering) Header() http.Header { return w.header }

func (w *answering) WriteHeader(status int) { w.status = status; w.begin() }

func (w *answering) Write(p []byte) (int, error) { w.begin(); return w.out.Write(p) }

func (w *answering) begin() { w.once.Do(func() { close(w.begun) }) }

// read is a body whose reader went away when it is closed.
type read struct {
	*io.PipeReader
	left func()
}

func (r read) Close() error { r.left(); return r.PipeReader.Close() }
