package responses

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/threads"
	"switchboard/servers/responses/simulator"
	"switchboard/servers/responses/wire"
	"switchboard/sessions/redis"
	"switchboard/sessions/sessionstest"
	"switchboard/sessions/sqlite"
)

// BenchmarkClaims measures claims of one thread, 64 at a time: one goes on, the others become copies. The floor is the
// store in memory.
func BenchmarkClaims(b *testing.B) {
	memory := sessionstest.StartRedis(b)
	for _, store := range []struct {
		name string
		open func(b *testing.B) threads.Store
	}{
		{"floor", func(*testing.B) threads.Store { return threads.NewMemory() }},
		{"sqlite", func(b *testing.B) threads.Store {
			s, err := sqlite.Open(b.Context(), sqlite.Config{Dir: b.TempDir()})
			must(b, err)
			b.Cleanup(func() { _ = s.Close() })
			return s.Threads()
		}},
		{"redis", func(b *testing.B) threads.Store {
			s, err := redis.Open(b.Context(), redis.Config{URL: memory.URL, Prefix: newID("bench")})
			must(b, err)
			b.Cleanup(func() { _ = s.Close() })
			return s.Threads()
		}},
	} {
		b.Run(store.name, func(b *testing.B) {
			s, now, forked := store.open(b), time.Now(), atomic.Int64{}
			_, err := s.Advance(b.Context(), threads.Create{Owner: "o", Thread: "t", At: now})
			must(b, err)
			items := []threads.Item{{JSON: json.RawMessage(`{"role":"user","content":"x"}`)}}
			var next atomic.Int64
			var work sync.WaitGroup
			b.ResetTimer()
			for range 64 {
				work.Go(func() {
					for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
						id := fmt.Sprint(n)
						r, err := s.Advance(context.Background(), threads.Claim{Owner: "o", Thread: "t", Turn: "turn" + id, Copy: "copy" +
							id, Items: items, At: now})
						if err != nil {
							b.Error(err)
						}
						if r.Forked {
							forked.Add(1)
						}
					}
				})
			}
			work.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "claims/s")
			if forked.Load() != int64(b.N)-1 {
				b.Errorf("%d of %d are copies", forked.Load(), b.N)
			}
		})
	}
}

// BenchmarkTurn measures a turn of one answer, beside its upstream alone.
func BenchmarkTurn(b *testing.B) {
	f, cfg := newFake(b, func(simulator.Request) simulator.Reply {
		return simulator.Reply{Items: []simulator.Item{simulator.Say("I see what you mean.")}}
	}), benchConfig()
	cfg.URL = f.server.URL + "/v1"
	b.Run("floor", func(b *testing.B) {
		body := string(wire.Encode(object{"model": "m", "stream": true, "tool_choice": "none",
			"input": []object{{"role": "user", "content": "x"}}}))
		for b.Loop() {
			resp, err := http.Post(cfg.URL+"/responses", "application/json", strings.NewReader(body))
			must(b, err)
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	})
	b.Run("turn", func(b *testing.B) {
		server, conn := benchServer(b, cfg)
		for n := 0; b.Loop(); n++ {
			benchTurn(b, server, conn, fmt.Sprint(n))
		}
	})
}

func benchConfig() Config {
	return Config{Name: "helper", Model: Model{Name: "m"}, Threads: threads.NewMemory(),
		Workspace: stub{use: map[string]use{"look": found("x")}}, Log: zap.NewNop()}
}

func benchServer(b *testing.B, cfg Config) (*Server, *conn) {
	b.Helper()
	s := newServer(cfg)
	ctx, cancel := context.WithCancel(b.Context())
	var work sync.WaitGroup
	work.Go(func() { _ = s.Run(ctx) })
	b.Cleanup(func() { cancel(); work.Wait() })
	<-s.ready
	return s, &conn{server: s, id: "c", done: make(chan struct{})}
}

// benchTurn runs a turn in a thread of its own.
func benchTurn(b *testing.B, s *Server, c *conn, id string) {
	b.Helper()
	a, err := c.Create(b.Context(), "")
	must(b, err)
	turn, err := a.Agent.Start(b.Context(), handoff.Turn{ID: id, Input: handoff.TextInput("x")})
	must(b, err)
	for _, err := range a.Agent.Follow(b.Context(), turn) {
		must(b, err)
	}
	_ = a.Agent.Close()
}

// silent ignores everything.
type silent struct{}

func (silent) began(handoff.Item)                      {}
func (silent) delta(string, handoff.DeltaKind, string) {}
func (silent) finished(handoff.Item)                   {}

// BenchmarkDelta measures the allocations for one delta, beside decoding its JSON into the smallest type that can hold
// it.
func BenchmarkDelta(b *testing.B) {
	delta := []byte(`{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,` +
		`"delta":"word ","sequence_number":4,"logprobs":[]}`)
	b.Run("floor", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var e struct{ Type, Delta string }
			must(b, json.Unmarshal(delta, &e))
		}
	})
	b.Run("reader", func(b *testing.B) {
		r := newReader(listener{progress: silent{}, name: func(id string) string { return id },
			begin: func() error { return nil }, keep: func([]json.RawMessage) error { return nil }})
		must(b, r.take([]byte(`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m",`+
			`"role":"assistant"}}`)))
		b.ReportAllocs()
		for b.Loop() {
			must(b, r.take(delta))
		}
	})
}

// BenchmarkInput measures the bytes of input that a thread of 20 turns sends, with the whole history in each request
// and with named responses.
func BenchmarkInput(b *testing.B) {
	for _, how := range []string{Replay, ResponseIDs} {
		b.Run(how, func(b *testing.B) {
			for n := 0; b.Loop(); n++ {
				f, cfg := newFake(b, looksOnce("look")), benchConfig()
				cfg.URL, cfg.Model.Continuation, cfg.Threads = f.server.URL+"/v1", how, threads.NewMemory()
				cfg.Workspace = stub{use: map[string]use{"look": found(strings.Repeat("found ", 100))}}
				_, c := benchServer(b, cfg)
				a, err := c.Create(b.Context(), "")
				must(b, err)
				for i := range 20 {
					id, err := a.Agent.Start(b.Context(), handoff.Turn{ID: fmt.Sprint(n, "-", i), Input: handoff.TextInput("look")})
					must(b, err)
					for range a.Agent.Follow(b.Context(), id) { // to its end
					}
				}
				sent, asked := 0, len(f.Requests())
				for _, req := range f.Requests() {
					for _, it := range req.Input {
						sent += len(it)
					}
				}
				b.ReportMetric(float64(sent)/20, "input-B/turn")
				b.ReportMetric(float64(asked), "requests")
			}
		})
	}
}
