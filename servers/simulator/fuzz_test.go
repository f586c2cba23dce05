package simulator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
)

// FuzzFrame: on any message of a client, a machine neither panics nor ends the connection.
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
		m := newMachine(Machine{Name: "bigpc"}, Config{Speed: 1, Log: zap.NewNop()})
		c := newConn(m, nil)
		m.do(func() { m.conns = append(m.conns, c) })
		m.handleMessage(c, []byte(`{"id":0,"method":"initialize","params":{"clientInfo":{"name":"fuzz","version":"1"},`+
			`"capabilities":{"experimentalApi":true}}}`))
		m.handleMessage(c, data)
		if err := c.Lost(); err != nil {
			t.Fatalf("the connection was ended: %v", err)
		}
	})
}

// TestUnsentIsBounded: the messages that wait for a slow reader are bounded, in bytes as well.
func TestUnsentIsBounded(t *testing.T) {
	m := newMachine(Machine{Name: "bigpc"}, Config{Speed: 1, Log: zap.NewNop()})
	c, n := newConn(m, nil), 0
	for c.send(make([]byte, maxFrame)); c.Lost() == nil; c.send(make([]byte, maxFrame)) {
		n++
	}
	if n != maxUnsentBytes/maxFrame || m.tooSlow != 1 {
		t.Errorf("%d large messages are unsent, %d connections were cut", n, m.tooSlow)
	}
}
