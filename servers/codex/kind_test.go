package codex

import (
	"fmt"
	"slices"
	"testing"

	"switchboard/servers"
)

// rows notes the rows of which something was said.
type rows []string

func (r *rows) Bad(row, format string, args ...any) {
	*r = append(*r, row+": "+fmt.Sprintf(format, args...))
}

func (r *rows) OneOf(row, word string, known ...string) {
	if !slices.Contains(known, word) {
		*r = append(*r, row+": "+word)
	}
}

func TestCheckSettings(t *testing.T) {
	for name, c := range map[string]struct {
		s    servers.Settings
		want []string
	}{
		"an address":    {servers.Settings{URL: "ws://127.0.0.1:4500", Sandbox: "read-only", Approval: "never", Ceiling: "workspace-write"}, nil},
		"a child":       {servers.Settings{Command: []string{"codex", "app-server"}, Env: []string{"LANG", "A_B=c"}}, nil},
		"a socket":      {servers.Settings{Unix: "/run/codex.sock"}, nil},
		"two ways":      {servers.Settings{Unix: "/run/codex.sock", URL: "ws://127.0.0.1:1"}, []string{": needs one of url, unix and command"}},
		"nothing":       {servers.Settings{}, []string{": needs one of url, unix and command"}},
		"both":          {servers.Settings{URL: "ws://127.0.0.1:1", Command: []string{"codex"}}, []string{": needs one of url, unix and command"}},
		"another word":  {servers.Settings{URL: "ws://127.0.0.1:1", Sandbox: "readonly"}, []string{"sandbox: readonly"}},
		"too loose":     {servers.Settings{URL: "ws://127.0.0.1:1", Sandbox: "danger-full-access", Ceiling: "read-only"}, []string{"sandbox: danger-full-access is looser than the ceiling read-only, so no new session could run"}},
		"in the clear":  {servers.Settings{URL: "ws://10.0.0.5:1"}, []string{"url: ws:// to another machine goes in the clear: use wss:// or a tunnel, or set allow_plaintext: true"}},
		"our variables": {servers.Settings{Command: []string{"codex"}, Env: []string{"A", "SWITCHBOARD_KEY"}}, []string{"env[1]: SWITCHBOARD_KEY is Switchboard's own, and what an agent runs could read it"}},
	} {
		t.Run(name, func(t *testing.T) {
			var said rows
			Kind().Check(c.s, &said)
			if !slices.Equal(said, c.want) {
				t.Errorf("said %q, want %q", []string(said), c.want)
			}
		})
	}
}

func TestThreadIDs(t *testing.T) {
	for id, want := range map[string]bool{thread1: true, "": false, "new": false, thread1 + "0": false, "auth refactor": false} {
		if got := Kind().IsThread(id); got != want {
			t.Errorf("%q is a thread's id: %v", id, got)
		}
	}
}
