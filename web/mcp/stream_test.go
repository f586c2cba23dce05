package mcp_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"switchboard/web/mcp"
)

// TestStream: an open stream keeps its session, however long nothing is asked, and beats; a session without one ends.
// An answer that takes longer than the server's deadline for writes arrives.
func TestStream(t *testing.T) {
	f := newFleet()
	front := frontOf(t, f, func(cfg *mcp.Config) {
		cfg.Patience, cfg.Idle, cfg.Beat = 400*time.Millisecond, 50*time.Millisecond, 20*time.Millisecond
	})
	server := httptest.NewUnstartedServer(handler(func(w http.ResponseWriter, r *http.Request) error { return front.Serve(w, r, owner) }))
	server.Config.WriteTimeout = 100 * time.Millisecond
	server.EnableHTTP2 = true // there a deadline also ends what is quiet
	server.StartTLS()
	t.Cleanup(server.Close)
	send := func(method, session, body string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Content-Type", "application/json")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp
	}
	begin := func() string {
		resp := send(http.MethodPost, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",
			"capabilities":{},"clientInfo":{"name":"some-agent","version":"7"}}}`)
		_, _ = io.Copy(io.Discard, resp.Body)
		id := resp.Header.Get("Mcp-Session-Id")
		if id == "" {
			t.Fatalf("no session: %s", resp.Status)
		}
		return id
	}
	list := func(session string) int {
		resp := send(http.MethodPost, session, `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`)
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}
	kept := begin()
	stream := send(http.MethodGet, kept, "")
	if stream.StatusCode != http.StatusOK || stream.Header.Get("X-Accel-Buffering") != "no" {
		t.Fatalf("the stream is %s, %v", stream.Status, stream.Header)
	}
	beats := bufio.NewScanner(stream.Body)
	for n := 0; n < 20; { // 400 ms or more: eight times the session's idle time
		if !beats.Scan() {
			t.Fatalf("the stream ends after %d heartbeats: %v", n, beats.Err())
		}
		if beats.Text() == ": alive" {
			n++
		}
	}
	if got := list(kept); got != http.StatusOK {
		t.Errorf("with an open stream the session is answered with %d", got)
	}
	slow := send(http.MethodPost, kept, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"codex",
		"arguments":{"server":"bigpc","prompt":"it takes long"}}}`)
	if text, err := io.ReadAll(slow.Body); err != nil || !strings.Contains(string(text), `"id":3`) {
		t.Errorf("what takes long is answered with %q, %v", text, err)
	}
	_ = stream.Body.Close()
	for end := time.Now().Add(time.Minute); list(kept) != http.StatusNotFound; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a session that nobody uses stays")
		}
	}
}
