package main

import (
	"net/http"
	"testing"

	"github.com/gorilla/websocket"
)

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
