package simulator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
)

// FuzzFrame: whatever a client says, a machine neither panics nor waits, and answers no more than was asked.
func FuzzFrame(f *testing.F) {
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(f, err)
		for line := range strings.Lines(string(text)) {
			f.Add([]byte(line))
		}
	}
	for method := range methods {
		f.Add([]byte(`{"id":1,"method":"` + method +
			`","params":{"threadId":"x","turnId":"y","input":[{"type":"text","text":"hi"}]}}`))
	}
	f.Add([]byte(`{"id":1,"method":"thread/start","params":` + strings.Repeat(`{"a":`, 20_000)))
	f.Fuzz(func(t *testing.T, data []byte) {
		m := newMachine(Machine{Name: "bigpc"}, Config{Speed: 1}, zap.NewNop())
		c := &conn{out: make(chan []byte, maxUnsent), off: make(chan struct{})}
		m.do(func() { m.conns = append(m.conns, c) })
		m.take(c, []byte(`{"id":0,"method":"initialize","params":{"clientInfo":{"name":"fuzz","version":"1"},`+
			`"capabilities":{"experimentalApi":true}}}`))
		m.take(c, data)
		for len(m.asked) > 0 {
			m.do(func() { m.handle(m.taken(<-m.asked)) })
		}
		if m.held.Load() != 0 {
			t.Fatalf("%d bytes of requests left", m.held.Load())
		}
		select {
		case <-c.off:
			t.Fatal("the connection was cut")
		default:
		}
	})
}

// TestBytesAreBounded: what waits for a machine and for a slow reader is bounded in bytes as well.
func TestBytesAreBounded(t *testing.T) {
	m := newMachine(Machine{Name: "bigpc"}, Config{Speed: 1}, zap.NewNop())
	c := &conn{out: make(chan []byte, maxUnsent), off: make(chan struct{})}
	big := asked{conn: c, args: make([]byte, maxFrame)}
	n := 0
	for m.enqueue(big) {
		n++
	}
	if n != maxAskedBytes/maxFrame || m.held.Load() > maxAskedBytes {
		t.Errorf("%d large requests wait, %d bytes", n, m.held.Load())
	}
	m.taken(<-m.asked)
	if !m.enqueue(big) {
		t.Error("what was taken still counts")
	}
	for n = 0; c.enqueue(make([]byte, maxFrame)); n++ {
	}
	if n != maxUnsentBytes/maxFrame {
		t.Errorf("%d large messages are unsent", n)
	}
	m.do(func() { m.asked = make(chan asked, 1) })
	m.take(c, []byte(`{"id":1,"method":"thread/list","params":`+strings.Repeat(`[`, 500)+strings.Repeat(`]`, 500)+`}`))
	if m.unread != 1 || len(m.asked) != 0 {
		t.Errorf("%d unread, %d asked: too deep", m.unread, len(m.asked))
	}
}
