package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// A cutter stands before a machine and cuts its connections at random bytes.
type cutter struct {
	at    string // ws:// address
	proxy *toxiproxy.Proxy
}

// newCutter starts a proxy. It passes everything until it is told to cut.
func newCutter(t *testing.T, name, upstream string) *cutter {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	c := &cutter{proxy: toxiproxy.NewProxy(server, name, "127.0.0.1:0", strings.TrimPrefix(upstream, "ws://"))}
	must(t, c.proxy.Start())
	t.Cleanup(c.proxy.Stop)
	c.at = "ws://" + c.proxy.Listen
	return c
}

// cut ends each connection after so many more bytes in a direction, for a while.
func (c *cutter) cut(ctx context.Context, t *testing.T, direction string, bytes int, during time.Duration) {
	c.toxic(t, "limit_data", direction, fmt.Sprintf(`{"bytes":%d}`, bytes))
	pause(ctx, during)
	c.proxy.Toxics.ResetToxics(context.WithoutCancel(ctx))
}

// toxic has something happen to what passes in a direction, until the toxics are reset.
func (c *cutter) toxic(t *testing.T, kind, direction, attributes string) {
	text := fmt.Sprintf(`{"type":%q,"stream":%q,"attributes":%s}`, kind, direction, attributes)
	if _, err := c.proxy.Toxics.AddToxicJson(strings.NewReader(text)); err != nil {
		t.Error(err)
	}
}

// drop ends all connections, and takes new ones.
func (c *cutter) drop(t *testing.T) {
	c.proxy.Stop()
	if err := c.proxy.Start(); err != nil {
		t.Error(err)
	}
}

// run cuts until ctx ends: a while of ends after some bytes, from a few to ten thousand, in one direction
// or the other, then a while of peace: a quarter of rest to seven quarters of it.
func (c *cutter) run(ctx context.Context, t *testing.T, random *rand.Rand, rest time.Duration) {
	for ctx.Err() == nil {
		direction := []string{"upstream", "downstream"}[random.IntN(2)]
		bytes := int(math.Exp(random.Float64() * math.Log(10_000)))
		c.cut(ctx, t, direction, bytes, time.Duration(20+random.IntN(400))*time.Millisecond)
		pause(ctx, rest/4+time.Duration(random.Int64N(int64(rest*3/2))))
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// TestProofCuts: the sockets to the agents are cut at random bytes while work is handed over and done.
// Whatever an agent began it began once, its result is told once, and every request has one outcome.
func TestProofCuts(t *testing.T) { t.Parallel(); onBothStores(t, proofCuts) }

func proofCuts(t *testing.T, store string) {
	jobs, calls := scale(20, 200), scale(4, 10)
	f := newFarm(t)
	ctx, cancel := context.WithCancel(t.Context())
	at := map[string]string{}
	cutting := make(chan struct{})
	for i, name := range []string{"bigpc", "laptop"} {
		cutter := newCutter(t, name, f.at[name])
		at[name] = cutter.at
		go func() {
			cutter.run(ctx, t, rand.New(rand.NewPCG(uint64(i), 3)), 800*time.Millisecond)
			cutting <- struct{}{}
		}()
	}
	s := newSite(t, f.voice.URL, store, at)
	c := s.start()
	w := newShift(t, c, f, calls, 1, "bigpc", "laptop")
	w.takes = func(job int) int { return job * 37 % 1000 }
	w.run(jobs, scale(2*time.Minute, 15*time.Minute))
	cancel()
	<-cutting
	<-cutting
	w.told()
	f.check(t)
	t.Logf("%d jobs in %d calls over %d connections: %v; %d turns begun", jobs, calls, f.connections(), w.figures(), len(f.turns()))
}
