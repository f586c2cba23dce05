package codex

import (
	"testing"

	"go.uber.org/zap"

	"switchboard/servers"
	"switchboard/servers/jsonrpc"
	"switchboard/servers/transport"
)

// TestCounters: each metric has the count that its name says.
func TestCounters(t *testing.T) {
	counters := newCounters("bigpc")
	c := &connection{peer: jsonrpc.NewPeer(jsonrpc.Config{})}
	for i, n := range []interface{ Add(uint64) uint64 }{
		&c.peer.Malformed, &c.peer.Late, &c.peer.LeftOut, &c.peer.Full, &c.tally.forgotten, &c.tally.GivenUp,
		&c.tally.Deltas, &c.tally.unasked, &c.tally.resubscriptions,
	} {
		n.Add(uint64(i + 1))
	}
	c.tally.Bytes.Add(10)
	counters.Begin(c)
	is := 0.0
	for m := range counters.Metrics {
		if is++; m.Value != is || m.Labels[0].Value != "bigpc" {
			t.Errorf("%s is %v, want %v", m.Name, m.Value, is)
		}
	}
}

// The metrics of a server are read when they are shown, though the iterator is made before.
func TestKindCounts(t *testing.T) {
	way := &transport.Child{Command: []string{"sh", "-c", "echo no JSON; read request"}}
	dial, counted := Kind().Dial(servers.Spec{Name: "bigpc", Own: &Config{Way: way}}, zap.NewNop())
	if _, err := dial(t.Context()); err == nil {
		t.Fatal("it shook hands")
	}
	for m := range counted {
		if m.Name == "switchboard_codex_frames_malformed_total" && m.Value != 1 {
			t.Errorf("%v malformed frames are shown, want 1", m.Value)
		}
	}
}
