package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchboard/handoff"
)

// TestCutBeforeTheAnswer: an outcome that comes after the connection of its call broke was not told. The call, repeated
// over the same session or another, gets it, and begins nothing.
func TestCutBeforeTheAnswer(t *testing.T) {
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			f := newFleet()
			front := frontOf(t, f, nil)
			left := make(chan struct{}, 8)
			url := serveWith(t, func(w http.ResponseWriter, r *http.Request) error {
				defer context.AfterFunc(r.Context(), func() { left <- struct{}{} })()
				return front.Serve(w, r, owner)
			})
			wire := &breakable{}
			way := &http.Transport{DialContext: wire.dial, DisableKeepAlives: true}
			t.Cleanup(way.CloseIdleConnections)
			s, err := connectOver(t, &sdk.StreamableClientTransport{
				Endpoint: url, HTTPClient: &http.Client{Transport: way}, DisableStandaloneSSE: true,
			}, version, nil)
			if err != nil {
				t.Fatal(err)
			}
			gone := make(chan error, 1)
			ask := onBigpc("wait for it")
			go func() {
				_, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "codex", Arguments: ask})
				gone <- err
			}()
			f.until(func() bool { return f.followers == 1 })
			wire.cut()
			if err := <-gone; err == nil {
				t.Error("a call over a broken connection was answered")
			}
			<-left // the server knows
			f.finish("w-1", handoff.OutcomeResult, "I waited.")
			f.until(func() bool { return f.followers == 0 })
			says(t, connect(t, url, "owner", version, nil), "codex", ask, "I waited.")
			if n := f.count(); n != 1 {
				t.Errorf("repeated: %d works", n)
			}
			f.until(func() bool { return f.told == 1 })
		})
	}
}

// breakable is a way to a server whose connections break.
type breakable struct{ conns []net.Conn }

func (b *breakable) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	b.conns = append(b.conns, conn)
	return conn, err
}

func (b *breakable) cut() {
	for _, conn := range b.conns {
		_ = conn.Close()
	}
}

// failing takes no more bytes once it was told to.
type failing struct {
	http.ResponseWriter
	broken chan struct{}
}

func (w failing) Write(p []byte) (int, error) {
	select {
	case <-w.broken:
		return len(p) / 2, io.ErrShortWrite
	default:
		return w.ResponseWriter.Write(p)
	}
}

func (w failing) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// TestHalfAnAnswer: an outcome that was written in part was not told.
func TestHalfAnAnswer(t *testing.T) {
	f := newFleet()
	front := frontOf(t, f, nil)
	broken := make(chan struct{})
	s := serveWith(t, func(w http.ResponseWriter, r *http.Request) error {
		return front.Serve(failing{w, broken}, r, owner)
	})
	session := connect(t, s, "owner", "2026-07-28", nil)
	close(broken)
	ctx, leave := context.WithTimeout(t.Context(), time.Second)
	defer leave()
	ask := &sdk.CallToolParams{Name: "codex", Arguments: onBigpc("run the tests")}
	if result, err := session.CallTool(ctx, ask); err == nil {
		t.Fatalf("answered: %+v", result)
	}
	front.Close()
	if f.told != 0 || f.count() != 1 {
		t.Errorf("told %d times, %d works", f.told, f.count())
	}
}

// TestToldOverAPipe: over a pipe an outcome counts as told once its line was written.
func TestToldOverAPipe(t *testing.T) {
	f := newFleet()
	front := frontOf(t, f, nil)
	ours, theirs := net.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- front.Pipe(t.Context(), theirs, owner)
	}()
	lines := bufio.NewReader(ours)
	for i, ask := range []string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":{"server":"bigpc","prompt":"run it"}}}`,
	} {
		if _, err := io.WriteString(ours, ask+"\n"); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			f.until(func() bool { return len(f.records) == 1 && f.followers == 0 })
			if f.told != 0 {
				t.Error("told before it was read")
			}
		}
		if _, err := lines.ReadBytes('\n'); err != nil {
			t.Fatal(err)
		}
	}
	f.until(func() bool { return f.told == 1 })
	_ = ours.Close()
	<-ended
}

// TestFormAfterItsOutcome: a call that is repeated with the answer to a form waits for the work that asked, whatever
// became of that, and begins nothing: neither when its outcome was told meanwhile, nor without the state of the form.
func TestFormAfterItsOutcome(t *testing.T) {
	f := newFleet()
	url := serve(t, f, time.Minute)
	call := func(more string) (result struct {
		Result struct {
			State    string          `json:"requestState"`
			Requests json.RawMessage `json:"inputRequests"`
			Content  []struct{ Text string }
		}
	}) {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":{"server":"bigpc","prompt":"ask it"}` +
			more + `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},` +
			`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{
			"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
			"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"codex"},
		}
		resp, err := as("owner").RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		if _, data, ok := bytes.Cut(text, []byte("data: ")); ok {
			text = data
		}
		if err != nil || json.Unmarshal(bytes.TrimSpace(text), &result) != nil {
			t.Fatalf("%d %s, %v", resp.StatusCode, text, err)
		}
		return result
	}
	first := call("").Result
	if first.State == "" || !strings.Contains(string(first.Requests), "question of w-1") {
		t.Fatalf("no form: %+v", first)
	}
	f.finish("w-1", handoff.OutcomeResult, "It was done.")
	_ = f.Told(t.Context(), handoff.Grant{}, "w-1") // by wait, or by the person's voice
	responses := `,"inputResponses":{"question of w-1":{"action":"cancel"}}`
	state, _ := json.Marshal(first.State)
	got := call(responses + `,"requestState":` + string(state)).Result
	if len(got.Content) == 0 || !strings.Contains(got.Content[0].Text, "It was done.") || f.count() != 1 {
		t.Errorf("with its state: %+v, %d works", got, f.count())
	}
	f.change(func() { f.questions = nil })
	if got := call(responses).Result; f.count() != 1 {
		t.Errorf("without its state: %+v, %d works", got, f.count())
	}
}
