package realtime

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/rtc/rtctest"
	"switchboard/realtime/simulator"
)

// A fakeProvider is the simulator with a call whose client is connected to it directly, and a front that can join the
// call.
type fakeProvider struct {
	t      *testing.T
	model  string        // the address that fronts dial
	grant  handoff.Grant // of who attaches
	front  *Front
	edge   string
	caller *websocket.Conn // of the product
	id     string          // of its call

	mu    sync.Mutex
	cuts  []net.Conn // Guarded by mu: between the front and the simulator
	joins int        // Guarded by mu: how many there were
}

const theirs = `{"type":"session.update","session":{"type":"realtime","output_modalities":["text"],` +
	`"instructions":"Be the shop.","tools":[{"type":"function","name":"weather","description":"Tells the weather.",` +
	`"parameters":{}}]}}`

// transcribes is the update of a client that turns transcription on.
const transcribes = `{"type":"session.update","session":{"type":"realtime","output_modalities":["audio"],` +
	`"audio":{"input":{"transcription":{"model":"w"}}}}}`

// provide begins a call of the product, whose client has a tool of its own.
func provide(t *testing.T, voice simulator.Config, router *listener, more ...func(*Config)) *fakeProvider {
	rtctest.NoLeaks(t)
	p := &fakeProvider{t: t, grant: someone}
	voice.Hurry = 20
	model, between := simulates(t, voice), listenLocal(t)
	p.model = "ws://" + between.Addr().String() + "/v1/realtime?model=x"
	cfg := Config{ModelURL: p.model, Router: router, Tools: ours}
	for _, change := range more {
		change(&cfg)
	}
	var relayed sync.WaitGroup
	t.Cleanup(func() {
		_ = between.Close()
		p.cut()
		relayed.Wait()
	})
	relayed.Go(func() { p.relay(between, model, &relayed) })
	p.front = runs(t, cfg)
	p.edge = serves(t, func(w http.ResponseWriter, r *http.Request, _ handoff.Grant) {
		body, _ := io.ReadAll(r.Body)
		p.front.ServeAttach(w, r, p.grant, string(body))
	})
	caller, answer, err := websocket.DefaultDialer.Dial("ws://"+model+"/v1/realtime?model=x", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = caller.Close() })
	p.caller, p.id = caller, strings.TrimPrefix(answer.Header.Get("Location"), callPath)
	expect(t, caller, "session.created")
	send(t, caller, theirs)
	expect(t, caller, "session.updated")
	return p
}

// relay carries what the front dials to the simulator.
func (p *fakeProvider) relay(from net.Listener, to string, all *sync.WaitGroup) {
	for {
		in, err := from.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", to)
		if err != nil {
			_ = in.Close()
			return
		}
		p.mu.Lock()
		p.cuts, p.joins = append(p.cuts, in, out), p.joins+1
		p.mu.Unlock()
		for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
			all.Go(func() {
				_, _ = io.Copy(way[1], way[0])
				_ = way[1].Close()
			})
		}
	}
}

// cut ends all connections between the front and the simulator without a goodbye.
func (p *fakeProvider) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.cuts {
		_ = c.Close()
	}
	p.cuts = nil
}

// attach asks the front to join a call.
func (p *fakeProvider) attach(id string) (status int, body string) {
	p.t.Helper()
	answer, err := http.Post(p.edge, "", strings.NewReader(id))
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	all, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(all)
}

// tools waits until the session of the product has these tools, and returns what came meanwhile.
func (p *fakeProvider) tools(names ...string) {
	p.t.Helper()
	_ = p.caller.SetReadDeadline(time.Now().Add(patience))
	for {
		_, event, err := p.caller.ReadMessage()
		if err != nil {
			p.t.Fatalf("no tools %q: %v", names, err)
		}
		session := gjson.GetBytes(event, "session")
		if !session.Exists() {
			continue
		}
		if got := session.Get("instructions").String(); got != "Be the shop." {
			p.t.Errorf("instructions %q", got)
		}
		if session.Get("audio.input.transcription").IsObject() {
			p.t.Error("somebody pays for transcripts")
		}
		var have []string
		for _, tool := range session.Get("tools").Array() {
			have = append(have, tool.Get("name").String())
		}
		if slices.Equal(have, names) {
			return
		}
	}
}

// until reads events of the product's client up to the end of a response with this text.
func (p *fakeProvider) until(text string) (all []string) {
	p.t.Helper()
	_ = p.caller.SetReadDeadline(time.Now().Add(patience))
	for {
		_, event, err := p.caller.ReadMessage()
		if err != nil {
			p.t.Fatalf("no %q: %v\n%s", text, err, strings.Join(all, "\n"))
		}
		all = append(all, string(event))
		if gjson.GetBytes(event, "type").String() == "response.done" &&
			strings.Contains(gjson.GetBytes(event, "response.output").Raw, text) {
			return all
		}
	}
}

func (p *fakeProvider) open() int {
	return len(p.front.Calls(someone))
}

var allOurs = []string{"weather", "codex", "list_servers", "read_session", "status", "remain_silent", "run_on_server"}

// works answers each request early and tells its result.
func works(v handoff.Voice, e handoff.VoiceEvent) {
	if r, ok := e.(handoff.FunctionCall); ok {
		id := r.CallID[max(0, len(r.CallID)-10):] // as short as the router's
		v.Say(handoff.Utterance{ID: "early-" + id, CallID: r.CallID, Text: `{"status":"started"}`,
			Floor: handoff.FloorUnlessSpoke})
		v.Say(handoff.Utterance{ID: "late-" + id, Text: "All tests pass.", Floor: handoff.FloorAsk})
	}
}

// testsRun is a model that has the tests run, also by a tool of the client.
func testsRun() simulator.Config {
	return simulator.Config{Script: func(h simulator.Heard) []simulator.Move {
		switch {
		case h.Said("weather"):
			return []simulator.Move{simulator.Call{Tool: "weather", Arguments: `{}`, ID: "call_w"}}
		case h.Said("never"):
			return []simulator.Move{simulator.Call{Tool: "codex", Arguments: `{"prompt":"never"}`, ID: "call_n"}}
		case h.Said("tests"):
			return []simulator.Move{simulator.Say{Text: "One moment."},
				simulator.Call{Tool: "codex", Arguments: `{"server":"bigpc","prompt":"run the tests"}`, Twice: true}}
		case h.Told("all tests pass"):
			return []simulator.Move{simulator.Say{Text: "They pass."}}
		}
		return nil
	}}
}

func TestAttach(t *testing.T) {
	router := &listener{on: works}
	p := provide(t, testsRun(), router)
	if status, body := p.attach(p.id); status != http.StatusCreated || gjson.Get(body, "id").String() != p.id ||
		gjson.Get(body, "object").String() != "realtime.call" {
		t.Fatalf("%d %s", status, body)
	}
	p.tools(allOurs...)
	if status, body := p.attach(p.id); status != http.StatusConflict ||
		gjson.Get(body, "error.code").String() != string(handoff.CodeAttached) {
		t.Errorf("second: %d %s", status, body)
	}
	writes(t, p.caller, "how is the weather?")
	p.until("call_w") // theirs to answer
	send(t, p.caller, string(events.Output("e", "item_w", "call_w", "sunny")))
	writes(t, p.caller, "run the tests on bigpc")
	all := p.until("They pass.")
	if n := strings.Count(strings.Join(all, "\n"), `"type":"response.created"`); n < 2 {
		t.Errorf("%d responses", n)
	}
	var words, requests []string
	rtctest.Eventually(t, "what was said and told", func() bool {
		for _, e := range router.heard() {
			switch e := e.(type) {
			case handoff.Heard:
				words = append(words, e.Text)
			case handoff.FunctionCall:
				requests = append(requests, e.Tool)
			case handoff.Said:
				if strings.HasPrefix(e.ID, "late-") {
					words = append(words, "told")
				}
			}
		}
		return slices.Contains(words, "told")
	})
	if want := []string{"how is the weather?", "run the tests on bigpc", "told"}; !slices.Equal(words, want) ||
		!slices.Equal(requests, []string{"codex"}) {
		t.Errorf("router heard %q, %q", words, requests)
	}
	send(t, p.caller, theirs) // their own client sets its tools again
	p.tools("weather")
	p.tools(allOurs...)
	if err := p.front.Hangup(someone, p.id); err != nil {
		t.Fatal(err)
	}
	p.tools("weather") // the call goes on without us
	rtctest.Eventually(t, "our end", func() bool { return p.open() == 0 })
	rtctest.Eventually(t, "a second time",
		func() bool { status, _ := p.attach(p.id); return status == http.StatusCreated })
	p.tools(allOurs...)
	_ = p.caller.Close()
	rtctest.Eventually(t, "the end with the provider's", func() bool { return p.open() == 0 })
	rtctest.Eventually(t, "an id that is free",
		func() bool { status, _ := p.attach(p.id); return status == http.StatusNotFound })
}

func TestAttachRefused(t *testing.T) {
	p := provide(t, simulator.Config{}, &listener{})
	for id, want := range map[string]int{"": http.StatusBadRequest, "a b": http.StatusBadRequest,
		strings.Repeat("a", 129): http.StatusBadRequest, "rtc_unknown": http.StatusNotFound} {
		status, body := p.attach(id)
		if status != want || gjson.Get(body, "error.param").String() != "call_id" {
			t.Errorf("%q: %d %s", id, status, body)
		}
	}
}

// After the socket was lost, requests that ran are answered, nothing is told twice, and the call goes on, also if the
// router reuses the id of an utterance.
func TestAttachLost(t *testing.T) {
	router := &listener{}
	router.on = func(v handoff.Voice, e handoff.VoiceEvent) {
		if r, ok := e.(handoff.FunctionCall); ok && !strings.Contains(r.Arguments, "never") {
			v.Say(handoff.Utterance{ID: "a-" + r.CallID[len(r.CallID)-10:], CallID: r.CallID, Text: `{"status":"started"}`})
			v.Say(handoff.Utterance{ID: "s1", Text: "All tests pass.", Floor: handoff.FloorAsk})
		}
	}
	p := provide(t, testsRun(), router)
	if status, body := p.attach(p.id); status != http.StatusCreated {
		t.Fatalf("%d %s", status, body)
	}
	p.tools(allOurs...)
	writes(t, p.caller, "run the tests")
	before := tagsOf(p.until("They pass."))
	writes(t, p.caller, "never answer")
	p.until("call_n")
	rtctest.Eventually(t, "the request", func() bool {
		return slices.ContainsFunc(router.heard(),
			func(e handoff.VoiceEvent) bool { r, ok := e.(handoff.FunctionCall); return ok && r.CallID == "call_n" })
	})
	p.cut()
	_ = p.caller.SetReadDeadline(time.Now().Add(patience))
	for {
		_, event, err := p.caller.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		if gjson.GetBytes(event, "item.call_id").String() == "call_n" &&
			gjson.Get(gjson.GetBytes(event, "item.output").String(), "say").Exists() {
			break
		}
	}
	writes(t, p.caller, "run the tests")
	after := tagsOf(p.until("They pass."))
	if len(before) == 0 || len(after) == 0 ||
		slices.ContainsFunc(after, func(tag string) bool { return slices.Contains(before, tag) }) {
		t.Errorf("responses were asked for as %q, then as %q: one of before would count as one of after", before, after)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.joins != 2 {
		t.Errorf("joined %d times", p.joins)
	}
}

// tagsOf returns the tags of the responses that ended, of those with one.
func tagsOf(all []string) (tags []string) {
	for _, event := range all {
		r := gjson.Parse(event)
		if tag := events.TagOf(r.Get("response")); tag != "" && r.Get("type").Str == events.TypeDone {
			tags = append(tags, tag)
		}
	}
	return tags
}

// A spoken yes counts if it began after the question was heard: the provider reports when its sound stops, and when the
// caller speaks.
func TestAttachSpoken(t *testing.T) {
	now := make(chan simulator.Event, 1)
	router := &listener{}
	router.on = func(v handoff.Voice, e handoff.VoiceEvent) {
		if w, ok := e.(handoff.Heard); ok && w.Text == "push it" {
			v.Say(handoff.Utterance{ID: "question", Text: "May it push?", Floor: handoff.FloorAsk})
		}
	}
	asks := func(h simulator.Heard) []simulator.Move {
		if !h.Told("May it push") {
			return nil
		}
		return []simulator.Move{simulator.Say{Text: "It wants to push to the origin from bigpc. Yes or no?"}}
	}
	p := provide(t, simulator.Config{Events: now, Script: asks}, router)
	if status, body := p.attach(p.id); status != http.StatusCreated {
		t.Fatalf("%d %s", status, body)
	}
	send(t, p.caller, transcribes)
	_ = p.caller.SetReadDeadline(time.Now().Add(patience))
	for set := false; !set; {
		_, event, err := p.caller.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		set = gjson.GetBytes(event, "session.audio.input.transcription.model").Exists()
	}
	expect := func(what string, is func(handoff.VoiceEvent) bool) (found handoff.VoiceEvent) {
		rtctest.Eventually(t, what, func() bool {
			for _, e := range router.heard() {
				if found == nil && is(e) {
					found = e
				}
			}
			return found != nil
		})
		return found
	}
	words := func(text string) func(handoff.VoiceEvent) bool {
		return func(e handoff.VoiceEvent) bool { w, ok := e.(handoff.Heard); return ok && w.Text == text && !w.Typed }
	}
	now <- simulator.Hear{Text: "push it", For: 50 * time.Millisecond}
	expect("the words", words("push it"))
	said := expect("the question", func(e handoff.VoiceEvent) bool { _, ok := e.(handoff.Said); return ok }).(handoff.Said)
	if said.ID != "question" || said.Cut || said.At.IsZero() || !strings.Contains(said.Text, "Yes or no?") {
		t.Errorf("said %+v", said)
	}
	time.Sleep(detectLag) // as people do: voice detection takes as long, and so much is taken off
	now <- simulator.Hear{Text: "yes", For: 50 * time.Millisecond}
	if yes := expect("the yes", words("yes")).(handoff.Heard); yes.Began.Before(said.At) {
		t.Errorf("a yes that began %v before the question was heard", said.At.Sub(yes.Began))
	}
	writes(t, p.caller, "yes, push")
	if typed := expect("what was typed",
		func(e handoff.VoiceEvent) bool { w, ok := e.(handoff.Heard); return ok && w.Typed }).(handoff.Heard); !typed.Loose {
		t.Error("what any program of the call can have typed counts as the caller's")
	}
}

// The provider's refusals keep their meaning, and it is told who the end user is.
func TestAttachRefusedByTheProvider(t *testing.T) {
	for status, want := range map[int]handoff.Code{
		http.StatusNotFound: handoff.CodeNotFound, http.StatusUnauthorized: handoff.CodeVoiceKey,
		http.StatusTooManyRequests: handoff.CodeVoiceLimit, http.StatusBadGateway: handoff.CodeVoiceUnreachable,
	} {
		asked := make(chan *http.Request, 1)
		far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked <- r
			w.WriteHeader(status)
		}))
		front := runs(t, Config{ModelURL: "ws" + strings.TrimPrefix(far.URL, "http") +
			"/v1/realtime?model=x&api-version=1", Key: "sk", Router: &listener{}})
		r, w := httptest.NewRequest(http.MethodPost, "/v1/realtime/attach", nil), httptest.NewRecorder()
		r.Header.Set(safetyHeader, "alice")
		front.ServeAttach(w, r, someone, "rtc_1")
		if code := gjson.Get(w.Body.String(), "error.code").String(); code != string(want) {
			t.Errorf("%d: %d %s", status, w.Code, w.Body)
		}
		if r := <-asked; r.Header.Get(safetyHeader) != "alice" || r.Header.Get("Authorization") != "Bearer sk" ||
			r.URL.RawQuery != "api-version=1&call_id=rtc_1" {
			t.Errorf("asked %s with %v", r.URL, r.Header)
		}
		far.Close()
	}
}

// A call that is left while its socket is dialled for the first time is not joined.
func TestAttachLeftWhileDialled(t *testing.T) {
	asked := make(chan struct{}, 1)
	far := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer far.Close()
	front := runs(t, Config{ModelURL: "ws" + strings.TrimPrefix(far.URL, "http") + "/v1/realtime", Router: &listener{}})
	front.provider.dialTimeout = time.Hour // only leaving ends the dial
	w, answered := httptest.NewRecorder(), make(chan struct{})
	go func() {
		defer close(answered)
		front.ServeAttach(w, httptest.NewRequest(http.MethodPost, "/v1/realtime/attach", nil), someone, "rtc_1")
	}()
	<-asked
	if err := front.Hangup(someone, "rtc_1"); err != nil {
		t.Error(err)
	}
	<-answered
	if code := gjson.Get(w.Body.String(), "error.code").String(); code != string(handoff.CodeNotFound) {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
}
