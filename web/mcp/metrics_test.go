package mcp

import (
	"fmt"
	"testing"

	"switchboard/handoff/tools"
)

// TestMetrics: calls are counted by tool and outcome, and by the kind of their client; a client's own name is never a
// label.
func TestMetrics(t *testing.T) {
	f := &Front{}
	show := func() (all []string) {
		for m := range f.Metrics() {
			all = append(all, fmt.Sprint(m.Name[len("switchboard_mcp_"):], m.Labels, " ", m.Value))
		}
		return all
	}
	if got, want := fmt.Sprint(show()), "[calls_total[{tool codex} {outcome done}] 0 client_calls_total[{client other}] 0]"; got != want {
		t.Errorf("at first %s", got)
	}
	for _, client := range []string{"codex-mcp-client", "Claude Code", "mcp", "", `x"} 1`, "my-secret-project"} {
		f.calls.add(tools.Codex, callDone, client)
	}
	f.calls.add(tools.Codex, callRefused, "codex")
	f.calls.add(Wait, callRunning, "codex")
	want := "[calls_total[{tool codex} {outcome done}] 6 calls_total[{tool codex} {outcome refused}] 1 " +
		"calls_total[{tool wait} {outcome running}] 1 client_calls_total[{client claude}] 1 " +
		"client_calls_total[{client codex}] 3 client_calls_total[{client other}] 4]"
	if got := fmt.Sprint(show()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
