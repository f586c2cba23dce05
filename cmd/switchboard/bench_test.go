package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"switchboard/handoff"
	machines "switchboard/servers/simulator"
)

// The benchmark here measures what Switchboard adds, over sockets, between a voice model and an agent that
// are themselves as good as free. Switchboard is a process of its own, as it is where it serves. Each
// figure is a median, and the same in hops. A hop is one way through a TCP relay that only copies, in a process of its
// own, in the same run: what the least that could stand in Switchboard's place would take.

// BenchmarkStart is from the voice model's finished function call to the turn/start on the agent's wire, with the
// one step of the ledger on the way, and back: from the end of the turn on that wire to the answer on the voice
// model's, with another step. Each is a hop at the least and the plainest write of the store, which
// BenchmarkLedger/10-apart of its package measures: at a call's pace a row takes SQLite about one hop, and a field
// takes Redis one and a half.
func BenchmarkStart(b *testing.B) {
	for _, store := range stores {
		b.Run(store.name, func(b *testing.B) {
			l := newLab(b, store.begin(b))
			p := l.r.call()
			n := 0
			for b.Loop() {
				n++
				prompt := fmt.Sprintf("job %d takes 20", n)
				p.say(fmt.Sprintf(`codex {"server":"bigpc","prompt":%q}`, prompt))
				called := l.next(b, l.called)
				l.took = append(l.took, l.next(b, l.started).Sub(called))
				ended := l.next(b, l.ended)
				l.back = append(l.back, l.next(b, l.answered).Sub(ended))
				l.hop(b)
				p.hear(fmt.Sprintf("job %d is done", n))
			}
			l.report(b, p)
			back := quantile(l.back, 0.5)
			b.ReportMetric(float64(back)/float64(quantile(l.hops, 0.5)), "back-hops/op")
			b.ReportMetric(float64(back.Microseconds()), "back-median-µs/op")
		})
	}
}

// messageSize is about that of a function call and of a turn/start, in bytes.
const messageSize = 512

// A lab is a service with instruments on both sides.
type lab struct {
	r       *child
	in, out net.Conn // of the relay

	called, started, ended, answered chan time.Time // Set once: what happened when

	took, back, hops []time.Duration // Owned by the benchmark
}

func newLab(b *testing.B, redis string) *lab {
	b.Helper()
	l := &lab{}
	for _, c := range []*chan time.Time{&l.called, &l.started, &l.ended, &l.answered} {
		*c = make(chan time.Time, 256)
	}
	voice := newVoiceTap(b, hurriedVoice(b, 1000).URL)
	voice.watch = func(toModel bool, e tapEvent) {
		switch {
		case !toModel && e.Type == "response.output_item.done" && e.Item.Type == "function_call":
			l.called <- time.Now()
		case toModel && e.Item.Type == "function_call_output":
			l.answered <- time.Now()
		}
	}
	l.r = newSite(b, voice.URL, redis, map[string]string{"bigpc": l.machine(b)}).start()
	l.r.up("bigpc")
	l.startRelay(b)
	return l
}

// machine serves an agent that is watched.
func (l *lab) machine(b *testing.B) string {
	b.Helper()
	world := machines.NewWorld(machines.Config{Script: jobSteps})
	at := loopback(b)
	background(b, func(ctx context.Context) error { return world.Serve(ctx, "bigpc", watched{at, l}) })
	return "ws://" + at.Addr().String()
}

// A watched listener tells what passes on its connections.
type watched struct {
	net.Listener
	lab *lab
}

func (w watched) Accept() (net.Conn, error) {
	conn, err := w.Listener.Accept()
	return watchedConn{conn, w.lab}, err
}

type watchedConn struct {
	net.Conn
	lab *lab
}

func (c watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if bytes.Contains(unmasked(p[:n]), []byte(`"turn/start"`)) {
		c.lab.started <- time.Now()
	}
	return n, err
}

func (c watchedConn) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("turn/completed")) {
		c.lab.ended <- time.Now()
	}
	return c.Conn.Write(p)
}

// unmasked returns the text in a client's WebSocket frames (RFC 6455, 5.2), as far as they are there whole.
func unmasked(p []byte) []byte {
	var text []byte
	for len(p) > 6 && p[1]&0x80 != 0 {
		n, p2 := int(p[1]&0x7f), p[2:]
		if n == 126 {
			n, p2 = int(p[2])<<8|int(p[3]), p[4:]
		}
		if len(p2) < 4+n {
			break
		}
		for i := range n {
			text = append(text, p2[4+i]^p2[i%4])
		}
		p = p2[4+n:]
	}
	return text
}

// next waits for the next of something.
func (l *lab) next(b *testing.B, of chan time.Time) time.Time {
	b.Helper()
	select {
	case at := <-of:
		return at
	case <-time.After(patience):
		b.Fatalf("waited in vain; log:\n%s", l.r.logs.tail(5000))
		return time.Time{}
	}
}

// relayEnv makes the test binary be a dumb relay, between two connections to the address that it names.
const relayEnv = "TEST_SWITCHBOARD_RELAY"

// relay copies what comes on one connection to the other, until the first ends.
func relay(to string) {
	var ends [2]net.Conn
	for i := range ends {
		conn, err := net.Dial("tcp", to)
		if err != nil {
			panic(err)
		}
		ends[i] = conn
	}
	_, _ = io.Copy(struct{ io.Writer }{ends[1]}, struct{ io.Reader }{ends[0]}) // read and write: no splice
}

// startRelay begins what a hop is measured with.
func (l *lab) startRelay(b *testing.B) {
	b.Helper()
	at := loopback(b)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), relayEnv+"="+at.Addr().String())
	must(b, cmd.Start())
	for _, end := range []*net.Conn{&l.in, &l.out} {
		conn, err := at.Accept()
		must(b, err)
		*end = conn
	}
	b.Cleanup(func() { _ = l.in.Close(); _ = cmd.Wait(); _ = l.out.Close(); _ = at.Close() })
}

// hop measures some messages through the relay. They come 20 ms apart, as those of a call do: a connection in full
// swing is ten times as fast, because nobody has to be woken.
func (l *lab) hop(b *testing.B) {
	b.Helper()
	message := make([]byte, messageSize)
	for range 3 {
		time.Sleep(20 * time.Millisecond)
		began := time.Now()
		_, err := l.in.Write(message)
		must(b, err)
		_, err = io.ReadFull(l.out, message)
		must(b, err)
		l.hops = append(l.hops, time.Since(began))
	}
}

// report gives the medians, and checks that nothing went wrong.
func (l *lab) report(b *testing.B, p *phone) {
	b.Helper()
	took, hop := quantile(l.took, 0.5), quantile(l.hops, 0.5)
	b.ReportMetric(float64(took)/float64(hop), "hops/op")
	b.ReportMetric(float64(took.Microseconds()), "median-µs/op")
	b.ReportMetric(float64(quantile(l.took, 0.99).Microseconds()), "p99-µs/op")
	b.ReportMetric(float64(hop.Nanoseconds())/1000, "hop-µs")
	p.hangUp()
	for _, w := range l.r.handoffs() {
		if w.Outcome == handoff.OutcomeFailed {
			b.Errorf("work failed: %+v", w.Error)
		}
	}
}

func quantile(all []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
