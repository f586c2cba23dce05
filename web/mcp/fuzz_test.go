package mcp_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// FuzzDoor: every request to the endpoint gets an answer, and only a valid call of codex begins work.
func FuzzDoor(f *testing.F) {
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":{}},"name":"codex","arguments":{"server":"bigpc","prompt":"run"}}}`
	for _, version := range []string{"", "2025-06-18", "2026-07-28", "9999"} {
		for _, body := range []string{call, `{"jsonrpc":"2.0","id":null,"method":"tools/call"}`, `[]`, `{"jsonrpc":"2.0","id":1,"method":"server/discover"}`,
			`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`,
			strings.Replace(call, `"run"`, `"`+strings.Repeat("[", 100)+`"`, 1), strings.Replace(call, "codex", "wait", 1)} {
			f.Add(body, version, "", "tools/call")
		}
	}
	fleet := newFleet()
	url := serve(f, fleet, 10*time.Millisecond)
	f.Fuzz(func(t *testing.T, body, version, session, method string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{
			"Content-Type": {"application/json"},
			"Accept":       {"application/json, text/event-stream"},
			"X-Who":        {"owner"},
		}
		for name, value := range map[string]string{"Mcp-Protocol-Version": version, "Mcp-Session-Id": session, "Mcp-Method": method, "Mcp-Name": "codex"} {
			if value != "" && !strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' }) {
				r.Header.Set(name, value)
			}
		}
		before := fleet.count()
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if begun := fleet.count() - before; begun > 1 ||
			begun == 1 && (resp.StatusCode != http.StatusOK || !strings.Contains(body, "prompt")) {
			t.Errorf("%d works by %q: %d %s", begun, body, resp.StatusCode, answer)
		}
		if resp.StatusCode >= 500 {
			t.Errorf("%q: %d %s", body, resp.StatusCode, answer)
		}
	})
}
