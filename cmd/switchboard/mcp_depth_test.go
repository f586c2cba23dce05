package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"switchboard/handoff"
)

// TestMCPLoopEnds: agents of the fleet that use the fleet get two steps deep and no further, each piece of work says
// what asked for it, and a restart, or a kill, forgets none of it.
func TestMCPLoopEnds(t *testing.T) {
	t.Parallel()
	onAStore(t, func(t *testing.T, store string) {
		f := newFarm(t)
		s := newSite(t, f.voice.URL, store, f.at)
		c := s.start()
		c.up("bigpc", "laptop")
		// asks has the agent that works in a session give work to a machine; its client goes away.
		asks := func(thread, machine string, n int) (string, map[string]any) {
			client := mcp.NewClient(&mcp.Implementation{Name: "codex-mcp-client", Version: "1"}, nil)
			session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
				Endpoint: c.base + "/mcp", HTTPClient: &http.Client{Transport: bearer(testKey)}, MaxRetries: -1,
			}, nil)
			must(t, err)
			defer func() { _ = session.Close() }()
			params := &mcp.CallToolParams{Name: "codex", Arguments: map[string]any{
				"server": machine, "thread_id": "new", "prompt": fmt.Sprintf("job %d takes 600000", n),
			}}
			if thread != "" {
				params.Meta = mcp.Meta{"threadId": thread}
			}
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			answered := make(chan *mcp.CallToolResult, 1)
			go func() {
				result, _ := session.CallTool(ctx, params) // it may be left
				answered <- result
			}()
			var result *mcp.CallToolResult
			until(t, "the work, or why not", func() bool {
				select {
				case result = <-answered:
					return true
				default:
					return f.turns()[fmt.Sprintf("job %d takes 600000", n)] == 1
				}
			})
			if result == nil {
				return "", nil
			}
			structure, _ := result.StructuredContent.(map[string]any)
			text, _ := result.Content[0].(*mcp.TextContent)
			return text.Text, structure
		}
		work := func(n int) (found handoff.Record) {
			until(t, "the work's session", func() bool {
				for _, rec := range c.handoffs() {
					if rec.Prompt == fmt.Sprintf("job %d takes 600000", n) {
						found = rec
					}
				}
				return found.ThreadID != ""
			})
			return found
		}
		var ids []string
		thread := ""
		for n, machine := range []string{"bigpc", "laptop", "bigpc"} {
			if text, _ := asks(thread, machine, n); text != "" {
				t.Fatalf("step %d: %s", n, text)
			}
			rec := work(n)
			parent := ""
			if n > 0 {
				parent = ids[n-1]
			}
			if string(rec.Parent) != parent || rec.Client != "codex-mcp-client" {
				t.Errorf("step %d: asked by %q in %q, want in %q", n, rec.Client, rec.Parent, parent)
			}
			ids, thread = append(ids, rec.ID), rec.ThreadID
		}
		for _, end := range []syscall.Signal{0, syscall.SIGTERM, syscall.SIGKILL} {
			if end != 0 {
				c = s.after(c, end)
				c.up("bigpc", "laptop")
				until(t, "the work to be known again", func() bool { return len(c.handoffs()) == 3 })
			}
			text, structure := asks(thread, "laptop", 3)
			if fault, _ := structure["error"].(map[string]any); fault["code"] != string(handoff.CodeTooDeep) || !strings.Contains(text, "twice") {
				t.Errorf("after %v one step more: %s", end, text)
			}
		}
		if n := f.turns()["job 3 takes 600000"]; n != 0 {
			t.Errorf("it ran %d times", n)
		}
	})
}
