package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"switchboard/handoff"
)

// TestBadInput holds that what comes in wrong gets a clear error, and that the call goes on.
func TestBadInput(t *testing.T) {
	t.Parallel()
	r := start(t, func(p *plan) { p.Hurry = 5 })
	for _, tc := range []struct {
		method, path, body string
		status             int
		words              string
	}{
		{"GET", "/nothing", "", 404, "not_found"},
		{"GET", "/v1/responses", "", 400, "unsupported_endpoint"},
		{"POST", "/fleet/questions/x", "{", 400, "malformed"},
		{"POST", "/fleet/questions/x", `{"decision":"accept"}`, 409, "not_pending"},
		{"POST", "/fleet/handoffs/x/stop", "", 404, "not_found"},
		{"GET", "/fleet/handoffs/x", "", 404, "not_found"},
		{"DELETE", "/fleet/sticky/nosuch", "", 404, "not_found"},
		{"GET", "/fleet/sessions?server=nosuch", "", 404, "unknown_server"},
		{"GET", "/fleet/sessions/bigpc/nosuch", "", 404, "unknown_session"},
		{"GET", "/fleet/sessions/attic/0123456789abcdef", "", 503, "attic is not answering"},
		{"POST", "/v1/realtime/calls", "this is no SDP", 400, "malformed"},
		{"GET", "/v1/realtime?call_id=rtc_x", "", 404, "not_found"},
		{"GET", "/v1/realtime", "", 400, "malformed"},
	} {
		status, body := r.ask(tc.method, tc.path, tc.body)
		if status != tc.status || !strings.Contains(string(body), tc.words) || !strings.Contains(string(body), `"error"`) {
			t.Errorf("%s %s: %d %s, want %d with %q", tc.method, tc.path, status, body, tc.status, tc.words)
		}
	}

	p := r.call()
	p.send(`{"type":"session.update"`)
	if e := p.await("error"); e.Error.Message == "" {
		t.Errorf("bad JSON: %s", e.raw)
	}
	p.send(`["not","an","object"]`)
	p.await("error")
	p.send(`{"type":"no.such.event","event_id":"mine"}`)
	if e := p.await("error"); !strings.Contains(e.raw, "mine") {
		t.Errorf("the model's own error must pass: %s", e.raw)
	}
	p.say("Which machines do I have?")
	p.hear("attic is not answering")
	p.say("Ask attic to check the backups")
	p.hear("attic is not answering")
	if works := r.handoffs(); len(works) != 1 || works[0].Outcome != handoff.OutcomeFailed ||
		works[0].Error.Code != handoff.CodeUnreachable {
		t.Errorf("a machine that is down: %+v", works)
	}
}

// TestWrongKey holds that no way in works without the right key.
func TestWrongKey(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	for _, path := range []string{"/fleet/servers", "/fleet/events", "/v1/realtime", "/fleet/handoffs"} {
		for _, key := range []string{"", "Bearer wrong-key-wrong-key", "Basic " + testKey} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.base+path, nil)
			must(t, err)
			if key != "" {
				req.Header.Set("Authorization", key)
			}
			resp, err := http.DefaultClient.Do(req)
			must(t, err)
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s with %q: %d", path, key, resp.StatusCode)
			}
		}
	}
	dialer := websocket.Dialer{Subprotocols: []string{"realtime", "openai-insecure-api-key.wrong-key-wrong-key"}}
	if _, resp, err := dialer.DialContext(t.Context(), r.socket(), nil); err == nil ||
		resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a wrong key as subprotocol: %v", err)
	}
	dialer.Subprotocols[1] = "openai-insecure-api-key." + testKey
	conn, _, err := dialer.DialContext(t.Context(), r.socket(), nil)
	must(t, err)
	if conn.Subprotocol() != "realtime" {
		t.Errorf("subprotocol %q", conn.Subprotocol())
	}
	_ = conn.Close()
}

// TestVoiceModelIsDown holds that a dead voice model is an HTTP error before a call begins.
func TestVoiceModelIsDown(t *testing.T) {
	t.Parallel()
	r := start(t, func(p *plan) { p.Model = modelSettings{URL: "ws://127.0.0.1:1/v1/realtime", Name: "dead"} })
	header := http.Header{"Authorization": {"Bearer " + testKey}}
	_, resp, err := websocket.DefaultDialer.DialContext(t.Context(), r.socket(), header)
	if err == nil || resp == nil || resp.StatusCode != http.StatusBadGateway {
		t.Fatalf("%v %v", resp, err)
	}
}
