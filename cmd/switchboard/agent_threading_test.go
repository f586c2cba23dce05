package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"switchboard/servers"
	"switchboard/servers/responses"
	"switchboard/servers/responses/simulator"
)

// screenshot is a picture that a client of /v1/responses sends.
const screenshot = "data:image/png;base64,iVBORw0KGgo="

// A threadedAgent is a service with an agent of our own on a simulated Responses API, as clients of /v1/responses see
// it.
type threadedAgent struct {
	*running
	api  *simulator.API
	last string // the newest response
	sent int    // requests of the API that were looked at
}

// startThreaded starts one whose model lists its folder once a turn and then answers.
func startThreaded(t *testing.T, continuation string) *threadedAgent {
	api := simulator.New("upstream", 0, func(req simulator.Request) simulator.Reply {
		words, answered := req.LastSaid()
		if answered {
			return simulator.Reply{Items: []simulator.Item{simulator.Say("done: " + words)}}
		}
		return simulator.Reply{Items: []simulator.Item{simulator.Call(fmt.Sprint("call_", len(req.History)), "list_dir", map[string]any{"path": "."})}}
	})
	t.Cleanup(func() {
		for _, why := range api.Wrong() {
			t.Errorf("a real one refuses: %s", why)
		}
	})
	upstream := httptest.NewServer(api)
	t.Cleanup(upstream.Close)
	t.Cleanup(api.Release)
	work := t.TempDir()
	r := start(t, func(p *plan) {
		p.Servers = []servers.Spec{{
			Name: "helper", Kind: responses.Name, Dir: work,
			Own: &responses.Settings{URL: upstream.URL + "/v1", Model: "m", Workspace: work, Continuation: continuation},
		}}
	})
	r.up("helper")
	return &threadedAgent{running: r, api: api}
}

// turn asks for the response after the newest one, and returns what that sent to the API.
func (a *threadedAgent) turn(n int) []simulator.Request {
	a.t.Helper()
	words := fmt.Sprint("look ", n)
	body, err := json.Marshal(map[string]any{"model": "helper", "previous_response_id": a.last, "input": []any{map[string]any{
		"role": "user", "content": []any{map[string]any{"type": "input_text", "text": words}, map[string]any{"type": "input_image", "image_url": screenshot}},
	}}})
	must(a.t, err)
	if a.last == "" {
		body = []byte(strings.Replace(string(body), `"previous_response_id":""`, `"previous_response_id":null`, 1))
	}
	var got struct{ ID, Status string }
	status, answer := a.ask(http.MethodPost, "/v1/responses", string(body))
	if json.Unmarshal(answer, &got) != nil || status != http.StatusOK || got.Status != "completed" || !strings.Contains(string(answer), `"done: `+words+`"`) {
		a.t.Fatalf("turn %d: %d %s", n, status, answer)
	}
	a.last = got.ID
	all := a.api.Requests()
	since := all[a.sent:]
	a.sent = len(all)
	return since
}

// sizes tells of each request whether it goes on from a response, its items, and the screenshots among them.
func sizes(reqs []simulator.Request) string {
	var all []string
	for _, req := range reqs {
		shots := 0
		for _, it := range req.Input {
			shots += strings.Count(string(it), `"image_url":"`+screenshot+`"`)
		}
		how := map[bool]string{true: "after", false: "whole"}[req.Previous != ""]
		all = append(all, fmt.Sprintf("%s %d/%d", how, len(req.Input), shots))
	}
	return strings.Join(all, ", ")
}

// TestThreadedInputStaysFlat: over eight turns by /v1/responses the API gets what is new with response_ids, and all of
// it with replay. The screenshots reach it as they were sent.
func TestThreadedInputStaysFlat(t *testing.T) {
	t.Parallel()
	for continuation, want := range map[string]func(turn int) string{
		responses.ResponseIDs: func(turn int) string {
			return map[bool]string{true: "whole 1/1, after 1/0", false: "after 1/1, after 1/0"}[turn == 0]
		},
		responses.Replay: func(turn int) string { // each turn leaves a question, a call, its output and an answer
			return fmt.Sprintf("whole %d/%d, whole %d/%d", 4*turn+1, turn+1, 4*turn+3, turn+1)
		},
	} {
		t.Run(continuation, func(t *testing.T) {
			t.Parallel()
			a := startThreaded(t, continuation)
			for turn := range 8 {
				if got := sizes(a.turn(turn)); got != want(turn) {
					t.Errorf("turn %d sends %s, want %s", turn, got, want(turn))
				}
			}
		})
	}
}

// TestThreadForgottenUpstream: when the API knows the response no more that a turn goes on from, everything is sent
// once, and the turns after it go on from what came of that.
func TestThreadForgottenUpstream(t *testing.T) {
	t.Parallel()
	a := startThreaded(t, responses.ResponseIDs)
	a.turn(0)
	a.api.Forget()
	for i, want := range []string{"after 1/1, whole 5/2, after 1/0", "after 1/1, after 1/0"} {
		if got := sizes(a.turn(1 + i)); got != want {
			t.Errorf("turn %d sends %s, want %s", 1+i, got, want)
		}
	}
}
