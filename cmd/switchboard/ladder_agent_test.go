package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/call"
	"switchboard/handoff/call/calltest"
	"switchboard/handoff/homes"
	"switchboard/handoff/router"
	"switchboard/handoff/threads"
	"switchboard/handoff/tools"
	"switchboard/servers"
	"switchboard/servers/responses"
	"switchboard/servers/responses/simulator"
	machines "switchboard/servers/simulator"
)

// A rungs is one caller with a scripted voice, a router, and an agent of our own on a simulated API, all in one bubble
// of fake time: what the ladders of package call climb on a scripted agent.
type rungs struct {
	t      *testing.T
	api    *simulator.API
	router *homes.Homes
	calls  *call.Calls
	work   sync.WaitGroup
	stop   func()

	mu       sync.Mutex
	said     []handoff.Utterance       // Guarded by mu, like all that follows
	stickies map[string]handoff.Sticky // by server
}

func newRungs(t *testing.T) *rungs {
	m := machines.Machine{Name: "laptop", Dir: "/home/me/src/notes"}
	r := &rungs{t: t, api: simulator.New("ladder", 1, simulator.Actor(m)), stickies: map[string]handoff.Sticky{}}
	agents := responses.NewAgents(threads.NewMemory())
	agent := agents.Add(responses.Config{
		Name: m.Name, URL: "http://upstream/v1", Client: &http.Client{Transport: inMemory{r.api}}, Threads: threads.NewMemory(),
		Workspace: simulator.NewTools(m, 1), Dir: m.Dir, Log: zap.NewNop(), Model: responses.Model{Name: "m", Continuation: responses.ResponseIDs},
	})
	fleet, err := servers.New(servers.Config{Log: zap.NewNop(), Specs: []servers.Spec{{Name: m.Name, Kind: responses.Name, Dir: m.Dir, Dial: agent.Dial, IsThread: agents.Kind().IsThread}}})
	must(t, err)
	r.router = homes.New(router.Config{Fleet: fleet, Stickies: r, Log: zap.NewNop(), IDs: router.NewIDs("h")})
	r.calls = call.New(call.Config{
		Runs: r.router, Attending: r.router, Questions: r.router, Shown: r.router.Shown,
		Tools: tools.Backend{Directory: fleet, Resolver: fleet, Work: r.router, Questions: r.router}, Log: zap.NewNop(), Life: "h",
	})
	stops := []func(){background(t, agents.Run), background(t, fleet.Run), background(t, r.router.Run)}
	r.stop = func() {
		for _, stop := range slices.Backward(stops) {
			stop()
		}
		r.work.Wait()
	}
	time.Sleep(time.Second) // it is connected
	return r
}

// List implements [handoff.Stickies].
func (r *rungs) List(context.Context, handoff.Caller) ([]handoff.Sticky, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.stickies)), nil
}

// Set implements [handoff.Stickies].
func (r *rungs) Set(_ context.Context, _ handoff.Caller, s handoff.Sticky) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stickies[s.Target.Server] = s
	return nil
}

// Clear implements [handoff.Stickies].
func (r *rungs) Clear(_ context.Context, _ handoff.Caller, t handoff.Target) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.stickies, t.Server)
	return nil
}

// A rungsVoice says what it is asked to a moment later.
type rungsVoice struct {
	*rungs
	events chan handoff.Event
	over   chan struct{}
	once   sync.Once
}

func (r *rungs) call() *rungsVoice {
	v := &rungsVoice{rungs: r, events: make(chan handoff.Event, 256), over: make(chan struct{})}
	r.work.Go(func() { _ = r.calls.Serve(context.Background(), calltest.Grant, v) })
	return v
}

func (v *rungsVoice) Events() <-chan handoff.Event { return v.events }

func (v *rungsVoice) Say(u handoff.Utterance) {
	v.mu.Lock()
	v.said = append(v.said, u)
	v.mu.Unlock()
	v.work.Go(func() {
		select {
		case <-time.After(200 * time.Millisecond):
			select {
			case v.events <- handoff.Said{ID: u.ID, At: time.Now()}:
			case <-v.over:
			}
		case <-v.over:
		}
	})
}

func (v *rungsVoice) hangUp() {
	v.once.Do(func() {
		v.events <- handoff.CallEnded{}
		synctest.Wait()
		close(v.over)
		synctest.Wait()
		close(v.events)
	})
}

// asks has the voice model call a tool.
func (v *rungsVoice) asks(id, tool, args string) {
	v.events <- handoff.FunctionCall{CallID: id, Tool: tool, Arguments: args}
}

// hears waits for words that are said, in fake time. What was said before counts as well.
func (r *rungs) hears(words string) {
	r.t.Helper()
	for range 600 {
		r.mu.Lock()
		heard := slices.ContainsFunc(r.said, func(u handoff.Utterance) bool { return strings.Contains(u.Text, words) })
		r.mu.Unlock()
		if heard {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	r.t.Errorf("never said: %q; but %+v", words, r.said)
}

// record is the newest work whose prompt is this one.
func (r *rungs) record(prompt string) handoff.Record {
	r.t.Helper()
	all, _ := r.router.Handoffs(calltest.Grant)
	n := slices.IndexFunc(all, func(rec handoff.Record) bool { return rec.Prompt == prompt })
	if n < 0 {
		r.t.Fatalf("there is no work %q", prompt)
	}
	return all[n]
}

// newInputs is what the model was sent from the nth request on, as far as it is words of a person or outputs.
func (r *rungs) newInputs(n int) string {
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
var agentLadders = map[string]func(*rungs, *rungsVoice){
	"a follow-up goes on in the same session": func(r *rungs, v *rungsVoice) {
		v.asks("c1", "codex", `{"server":"laptop","prompt":"run the tests"}`)
		r.hears("every package is fine")
		v.asks("c2", "codex", `{"server":"laptop","prompt":"what changed?"}`)
		r.hears("I ran the tests, and all passed")
		first, second := r.record("run the tests"), r.record("what changed?")
		if first.Why != handoff.WhyNew || second.Why != handoff.WhyContinued || first.ThreadID != second.ThreadID {
			r.t.Errorf("%+v, %+v", first, second)
		}
	},
	"a session that is not there runs nothing": func(r *rungs, v *rungsVoice) {
		v.asks("c1", "codex", `{"server":"laptop","thread_id":"thr_aaaaaaaaaaaaaaaaaaaaaaaaaa","prompt":"run the tests"}`)
		time.Sleep(10 * time.Second)
		if rec := r.record("run the tests"); rec.Outcome != handoff.OutcomeFailed && rec.Outcome != handoff.OutcomeCancelled || len(r.api.Requests()) > 0 {
			r.t.Errorf("%+v", rec)
		}
	},
	"words are added to work that runs": func(r *rungs, v *rungsVoice) {
		v.asks("c1", "codex", `{"server":"laptop","prompt":"run the benchmarks"}`)
		time.Sleep(5 * time.Second)
		v.asks("c2", "codex", `{"server":"laptop","prompt":"run the tests"}`)
		r.hears(`"status":"added"`)
		r.hears("every package is fine")
		if got := r.newInputs(0); got != "run the benchmarks, output, run the tests, output" {
			r.t.Errorf("the model heard %s", got)
		}
	},
	"what stopped work never heard is told": func(r *rungs, v *rungsVoice) {
		v.asks("c1", "codex", `{"server":"laptop","prompt":"run the benchmarks"}`)
		time.Sleep(5 * time.Second)
		v.asks("c2", "codex", `{"server":"laptop","prompt":"and push it"}`)
		r.hears(`"status":"added"`)
		v.asks("c3", "stop_work", `{"server":"laptop"}`)
		r.hears(`It never heard what they added, and nothing was begun for it: "and push it"`)
		if rec := r.record("run the benchmarks"); rec.Outcome != handoff.OutcomeInterrupted || len(rec.Undelivered) != 1 {
			r.t.Errorf("%+v", rec)
		}
		time.Sleep(time.Minute)
		if n := len(r.api.Requests()); n != 1 {
			r.t.Errorf("the model was asked %d times", n)
		}
	},
	"an approval is asked, and done after a yes": func(r *rungs, v *rungsVoice) {
		v.asks("c1", "codex", `{"server":"laptop","prompt":"push it"}`)
		r.hears("git push origin release-2.4")
		time.Sleep(5 * time.Second)
		questions := r.router.Questions(calltest.Grant)
		if len(questions) != 1 {
			r.t.Fatalf("%+v", questions)
		}
		must(r.t, r.router.Decide(r.t.Context(), calltest.Grant, questions[0].ID, handoff.DecisionAccept))
		r.hears("The branch release-2.4 is pushed.")
	},
	"a no is heard": func(r *rungs, v *rungsVoice) {
		v.asks("c1", "codex", `{"server":"laptop","prompt":"push it"}`)
		r.hears("git push origin release-2.4")
		time.Sleep(5 * time.Second)
		v.events <- handoff.Heard{Text: "no, don't", Typed: true, Began: time.Now()}
		v.asks("c2", "answer_agent", fmt.Sprintf(`{"question":%q,"decision":"decline"}`, r.router.Questions(calltest.Grant)[0].Label))
		r.hears("I did not push the branch")
	},
	"what comes next waits": func(r *rungs, v *rungsVoice) {
		v.asks("c1", "codex", `{"server":"laptop","prompt":"run the benchmarks"}`)
		time.Sleep(3 * time.Second)
		v.asks("c2", "queue_next", `{"server":"laptop","prompt":"run the tests"}`)
		r.hears("every package is fine")
		first, second := r.record("run the benchmarks"), r.record("run the tests")
		if first.EndedAt == nil || second.EndedAt == nil || second.EndedAt.Before(*first.EndedAt) || first.ThreadID != second.ThreadID {
			r.t.Errorf("%+v, %+v", first, second)
		}
	},
	"a side question leaves no session": func(r *rungs, v *rungsVoice) {
		v.asks("c1", "run_on_server", `{"server":"laptop","prompt":"which branch is it?"}`)
		r.hears("It is on the branch release-2.4.")
		if len(r.stickies) > 0 {
			r.t.Errorf("it is the session of the machine now: %v", r.stickies)
		}
	},
	"who hung up hears it in the next call": func(r *rungs, v *rungsVoice) {
		v.asks("c1", "codex", `{"server":"laptop","prompt":"run the benchmarks"}`)
		time.Sleep(5 * time.Second)
		v.hangUp()
		time.Sleep(time.Minute)
		next := r.call()
		r.hears("benchmarks are done")
		next.hangUp()
	},
}

// TestLaddersOnAnAgentOfOurOwn: what the router's ladders hold on a scripted agent holds on an agent that Switchboard
// runs itself: sessions, steering, questions, queueing, stopping, and who hung up.
func TestLaddersOnAnAgentOfOurOwn(t *testing.T) {
	for name, climb := range agentLadders {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRungs(t)
				v := r.call()
				climb(r, v)
				v.hangUp()
				r.stop()
				for _, why := range r.api.Wrong() {
					t.Error(why)
				}
			})
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
