package codex

import (
	"reflect"
	"testing"

	"go.uber.org/zap"

	"switchboard/servers"
	"switchboard/servers/transport"
)

// TestCounters: what a connection counted is there while it lives and after its end, and nothing is left out.
func TestCounters(t *testing.T) {
	counters := &Counters{Server: "bigpc"}
	var ends []func()
	for range 2 {
		c := &connection{peer: &peer{Outbox: &servers.Outbox{}}}
		for i, n := range []interface{ Add(uint64) uint64 }{
			&c.peer.malformed, &c.peer.late, &c.peer.tooLong, &c.peer.Full, &c.tally.forgotten, &c.tally.GivenUp,
			&c.tally.Deltas, &c.tally.unasked, &c.tally.resubscriptions,
		} {
			n.Add(uint64(i + 1))
		}
		c.tally.Bytes.Add(9)
		ends = append(ends, counters.begin(c))
	}
	if fields := reflect.TypeFor[codexCount]().NumField(); fields != 9 {
		t.Fatalf("%d counters, 9 are looked at here", fields)
	}
	look := func(held float64) {
		t.Helper()
		want := []float64{2, 4, 6, 8, 10, 12, 14, 16, 18, held}
		i := 0
		for m := range counters.Metrics {
			if m.Value != want[i] || m.Labels[0].Value != "bigpc" {
				t.Errorf("%s is %v, want %v", m.Name, m.Value, want[i])
			}
			i++
		}
	}
	look(18)
	ends[0]()
	look(9)
	ends[1]()
	look(0)
	(*Counters)(nil).begin(nil)()
}

// What a kind shows of a server is counted when it is looked at: it is given before anything was.
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
