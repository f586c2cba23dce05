package mcp

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"switchboard/handoff"
	"switchboard/handoff/tools"
)

// How a call of a tool ended, for /metrics.
const (
	callDone    = "done"
	callRunning = "running" // the work goes on, and the client can wait for it
	callAsked   = "asked"   // an agent waits for an answer
	callRefused = "refused"
)

// kinds has the clients that /metrics distinguishes, by a word in their own name. All others are "other", because a
// name can be any text. Set once.
var kinds = []string{"codex", "claude", "opencode", "gemini", "cursor", "chatgpt", "inspector"}

// tally counts calls.
type tally struct {
	mu      sync.Mutex
	calls   map[called]uint64 // Guarded by mu
	clients map[string]uint64 // Guarded by mu: calls by the kind of their client
}

// called is a tool of the table, and how a call of it ended.
type called struct{ tool, outcome string }

// add counts a call.
func (t *tally) add(tool, outcome, client string) {
	kind := "other"
	if i := slices.IndexFunc(kinds, func(k string) bool { return strings.Contains(strings.ToLower(client), k) }); i >= 0 {
		kind = kinds[i]
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calls == nil {
		t.calls, t.clients = map[called]uint64{}, map[string]uint64{}
	}
	t.calls[called{tool, outcome}]++
	t.clients[kind]++
}

// Metrics yields the metrics of the front.
func (f *Front) Metrics() iter.Seq[handoff.Metric] {
	f.calls.mu.Lock()
	calls, clients := maps.Clone(f.calls.calls), maps.Clone(f.calls.clients)
	f.calls.mu.Unlock()
	if calls == nil { // the metrics exist from the start
		calls, clients = map[called]uint64{{tools.Codex, callDone}: 0}, map[string]uint64{"other": 0}
	}
	return func(yield func(handoff.Metric) bool) {
		for _, c := range slices.SortedFunc(maps.Keys(calls), func(a, b called) int {
			return cmp.Or(cmp.Compare(a.tool, b.tool), cmp.Compare(a.outcome, b.outcome))
		}) {
			if !yield(handoff.NewMetric("switchboard_mcp_calls_total", "Calls of tools by other agents, by how they ended.",
				calls[c], "tool", c.tool, "outcome", c.outcome)) {
				return
			}
		}
		for _, kind := range slices.Sorted(maps.Keys(clients)) {
			if !yield(handoff.NewMetric("switchboard_mcp_client_calls_total", "Calls of tools by other agents, by the kind of client.",
				clients[kind], "client", kind)) {
				return
			}
		}
	}
}

// outcome returns how a call ended.
func (c *call) outcome(result tools.Result, err error) string {
	w, work := result.(tools.WorkResult)
	switch {
	case err != nil:
		return callRefused
	case work && w.Question != nil:
		return callAsked
	case work && w.Record.Outcome == "":
		return callRunning
	}
	return callDone
}
