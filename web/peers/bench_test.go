package peers

import (
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// tails reports the median and the 99th percentile of the durations, direct and forwarded, and their ratios.
func tails(b *testing.B, direct, forwarded []time.Duration) {
	slices.Sort(direct)
	slices.Sort(forwarded)
	at := func(took []time.Duration, part float64) float64 {
		return float64(took[min(len(took)-1, int(part*float64(len(took))))].Microseconds()) / 1000
	}
	for name, part := range map[string]float64{"p50": 0.5, "p99": 0.99} {
		here, there := at(direct, part), at(forwarded, part)
		b.ReportMetric(here, "direct-ms-"+name)
		b.ReportMetric(there, "forwarded-ms-"+name)
		b.ReportMetric(there/here, "ratio-"+name)
	}
}

// BenchmarkForward compares a request that is served where it came in with one that is forwarded. Both run in turn, so
// that the load of the machine is the same for both.
func BenchmarkForward(b *testing.B) {
	o := newTown()
	serve := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"items":[]}`) }
	one := o.join(b, "a", serve)
	o.join(b, "b", serve)
	o.change(func() { o.homes["alice"], o.homes["bob"] = "a", "b" })
	client := &http.Client{Transport: &http.Transport{}}
	ask := func(caller string) time.Duration {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, one.base+"/fleet/servers", nil)
		must(b, err)
		r.Header.Set("Caller", caller)
		began := time.Now()
		answer, err := client.Do(r)
		must(b, err)
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		return time.Since(began)
	}
	beside(b, func() time.Duration { return ask("alice") }, func() time.Duration { return ask("bob") })
}

// BenchmarkForwardedFrame does the same with a frame of sound that a WebSocket echoes: 20 ms of PCM16 in base64.
func BenchmarkForwardedFrame(b *testing.B) {
	o := newTown()
	one := o.join(b, "a", echo)
	o.join(b, "b", echo)
	o.change(func() { o.homes["alice"], o.homes["bob"] = "a", "b" })
	frame := make([]byte, 1400)
	turn := func(conn *websocket.Conn) func() time.Duration {
		return func() time.Duration {
			began := time.Now()
			must(b, conn.WriteMessage(websocket.TextMessage, frame))
			_, _, err := conn.ReadMessage()
			must(b, err)
			return time.Since(began)
		}
	}
	beside(b, turn(one.dial(b, "alice")), turn(one.dial(b, "bob")))
}

// beside runs two benchmarks, direct and forwarded, in turn.
func beside(b *testing.B, direct, forwarded func() time.Duration) {
	for range 50 {
		direct()
		forwarded()
	}
	var here, there []time.Duration
	for b.Loop() {
		here, there = append(here, direct()), append(there, forwarded())
	}
	tails(b, here, there)
}
