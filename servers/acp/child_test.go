package acp

import (
	"os"
	"path/filepath"
	"testing"

	"switchboard/handoff"
	"switchboard/servers/serverstest"
	"switchboard/servers/transport"
)

// TestChild: an agent is a child process that ends by itself after the end of its input. Killing it would leave the
// processes that it has started. It gets only variables that are on the list.
func TestChild(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "s3cret")
	goodbye := filepath.Join(t.TempDir(), "goodbye")
	program, err := os.Executable()
	must(t, err)
	child := &transport.Child{Command: []string{program}, Env: []string{"ACP_AGENT=1", "ACP_GOODBYE=" + goodbye}}
	link := linkTo(t, Dialer(Config{Name: "mac", Way: child}))
	if !link.Exclusive || link.Version != "1.2.3" || link.Note != "" {
		t.Errorf("%+v", link)
	}
	a := create(t, link)
	id := start(t, a, "environment")
	updates := follow(t, a, id, nil)
	if got := said(updates); len(got) != 1 || got[0] != "[]" {
		t.Errorf("the agent has %q", got)
	}
	id = start(t, a, serverstest.PromptWait)
	follow(t, a, id, asWaiting)
	must(t, link.Conn.Close())
	if _, err := os.Stat(goodbye); err != nil {
		t.Errorf("it did not end by itself: %v", err)
	}
	for _, last := range a.Agent.Follow(t.Context(), id) {
		if last != nil {
			wantCode(t, "following it", last, handoff.CodeAgentGone)
		}
	}
}
