package realtime

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
)

// relayKinds are what [BenchmarkPaced] compares, each in a process of its own: ours, a copy of bytes that knows
// nothing, which is the floor, and as little as a relay of frames can do with gorilla.
var relayKinds = map[string]func(model string) http.Handler{"ours": relayOurs, "gorilla": relayFrames}

const relayVariable = "SWITCHBOARD_TEST_RELAY"

// TestRelayProcess is such a process: it prints its two addresses, relays until its input ends, and tells on the second
// what it has allocated.
func TestRelayProcess(t *testing.T) {
	kind, model := os.Getenv(relayVariable), os.Getenv(relayVariable+"_MODEL")
	if kind == "" {
		t.Skip("it is started by BenchmarkPaced")
	}
	door, stats := listen(t), listen(t)
	if kind == "copy" {
		go copyAll(door, model)
	} else {
		go func() { _ = http.Serve(door, relayKinds[kind](model)) }()
	}
	go func() {
		_ = http.Serve(stats, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/live":
				debug.FreeOSMemory()
			case "/allocs", "/heap", "/goroutine":
				_ = pprof.Lookup(r.URL.Path[1:]).WriteTo(w, 0)
				return
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			_, _ = fmt.Fprintln(w, m.Mallocs, m.HeapAlloc+m.StackInuse)
		}))
	}()
	fmt.Println(door.Addr(), stats.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

func listen(t *testing.T) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func relayOurs(model string) http.Handler {
	front, err := NewFront(Config{ModelURL: model, Router: &listener{}, Tools: ours})
	if err != nil {
		panic(err)
	}
	go func() { _ = front.Run(context.Background()) }()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { front.ServeWebSocket(w, r, someone) })
}

// relayFrames keeps one buffer a direction, and writes a frame as soon as it has read it.
func relayFrames(model string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		far, _, err := (&websocket.Dialer{ReadBufferSize: 4 << 10, WriteBufferSize: 4 << 10}).Dial(model, nil)
		if err != nil {
			return
		}
		near, err := (&websocket.Upgrader{ReadBufferSize: 4 << 10, WriteBufferSize: 4 << 10}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		go relayOne(near, far)
		relayOne(far, near)
	})
}

func relayOne(from, to *websocket.Conn) {
	defer func() { _, _ = from.Close(), to.Close() }()
	buffer := make([]byte, 0, 4<<10)
	for {
		_, r, err := from.NextReader()
		if err != nil {
			return
		}
		for buffer = buffer[:0]; err == nil; {
			if len(buffer) == cap(buffer) {
				buffer = append(buffer, 0)[:len(buffer)]
			}
			var n int
			n, err = r.Read(buffer[len(buffer):cap(buffer)])
			buffer = buffer[:len(buffer)+n]
		}
		if err != io.EOF || to.WriteMessage(websocket.TextMessage, buffer) != nil {
			return
		}
	}
}

// copyAll copies every connection's bytes to the model and back, through TLS where that is the model's.
func copyAll(l net.Listener, model string) {
	for {
		near, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			far, err := dialCopy(model)
			if err != nil {
				_ = near.Close()
				return
			}
			go copyOne(near, far)
			copyOne(far, near)
		}()
	}
}

func dialCopy(model string) (net.Conn, error) {
	scheme, at, _ := strings.Cut(model, "://")
	if scheme == "wss" {
		return tls.Dial("tcp", at, nil)
	}
	return net.Dial("tcp", at)
}

// copyOne reads and writes, and leaves splice out: frames pass through no relay unseen.
func copyOne(to, from net.Conn) {
	defer func() { _, _ = from.Close(), to.Close() }()
	_, _ = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, 4<<10))
}
