package responses

import (
	"testing"

	"switchboard/handoff"
	"switchboard/handoff/threads"
)

// The lines of a thread leave out the context that Switchboard gave the agent.
func TestReadLine(t *testing.T) {
	for name, row := range map[string]struct {
		item threads.Item
		want string
	}{
		"words": {threads.Item{JSON: userItem(handoff.TextInput("Run the tests."))}, "Run the tests."},
		"words in brackets": {threads.Item{JSON: userItem(handoff.TextInput("[see below]\nRun them."))},
			"[see below]\nRun them."},
		"caller's words": {threads.Item{JSON: contextItem(handoff.Context{Key: "caller_words", Value: "run the tests"})}, ""},
		"trusted context": {threads.Item{JSON: contextItem(handoff.Context{Key: "spoken", Value: "It is spoken.",
			Trusted: true})}, ""},
	} {
		line, ok := readLine(row.item)
		if ok != (row.want != "") || ok && (line.Text != row.want || line.Role != "user") {
			t.Errorf("%s: %q, %v", name, line, ok)
		}
	}
}
