package realtime

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// BenchmarkHop is what a frame of the caller's sound costs between a read and a write that cost next to nothing: in a
// call, and in a relay that does no more than the library does. One alone has all of its memory in the CPU's cache; 400
// in turn do not. cpu-ns/op is the time of the processor, which is meaningful on a busy machine, too: compare it within
// one run, with -cpu 1.
func BenchmarkHop(b *testing.B) {
	null := devNull(b)
	for _, relays := range []int{1, 400} {
		for name, relay := range map[string]func(*testing.B, *film) (run func()){"library": bareHop, "call": callHop} {
			b.Run(fmt.Sprint(name, "/", relays), func(b *testing.B) {
				var all []func()
				for range relays {
					f := newFilm(null)
					f.left, f.yields = (b.N+relays-1)/relays, relays > 1
					all = append(all, relay(b, f))
				}
				runtime.GC()
				var running sync.WaitGroup
				b.ReportAllocs()
				b.ResetTimer()
				began := processorTime(b)
				for _, run := range all {
					running.Go(run)
				}
				running.Wait()
				b.ReportMetric(float64(processorTime(b)-began)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

// bareHop reads into a buffer that it uses again, and writes.
func bareHop(b *testing.B, f *film) (run func()) {
	near, far, event := upgraded(b, f), upgraded(b, newFilm(f.null)), make([]byte, 4<<10)
	return func() {
		for {
			kind, from, err := near.NextReader()
			if err != nil {
				return
			}
			n, _ := io.ReadFull(from, event)
			_ = far.WriteMessage(kind, event[:n])
		}
	}
}

func callHop(b *testing.B, f *film) (run func()) {
	c, client := filmedCall(b, f)
	return func() { client.Run(c.takeFrom(client)) }
}

// filmedCall returns a call whose session has begun, without its loop, and its client's leg.
func filmedCall(b *testing.B, f *film) (*Call, *socket) {
	leg := func(f *film) *socket {
		out := newPromptConn(f)
		return newSocket(upgraded(b, out), out, writeLimit, nopLog())
	}
	client, model := leg(f), leg(newFilm(f.null))
	model.client = true
	c := newCall(someone, ours, "rtc_bench", client, model, nopLog())
	c.renewal.enable(nil) // as every call through us: the caller's sound is kept
	c.takeFrom(model)([]byte(freshSession))
	c.look()
	return c, client
}

// A film is a connection from which the same frame comes a number of times, and to which everything can be written.
type film struct {
	net.Conn
	null   *os.File
	frame  []byte
	at     int  // bytes of it that were read
	left   int  // frames
	yields bool // the others go on before each read
}

// twentyMs is an event of the caller's sound.
var twentyMs = []byte(`{"type":"input_audio_buffer.append","audio":"` + strings.Repeat("A", 1280) + `"}`)

// newFilm returns a film of a frame of 20 ms, which plays 0 times.
func newFilm(null *os.File) *film {
	return &film{null: null, frame: appendFrame(nil, wholeText, twentyMs, true)}
}

// devNull takes whatever is written.
func devNull(b *testing.B) *os.File {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = null.Close() })
	return null
}

func (f *film) Read(p []byte) (int, error) {
	if f.left == 0 {
		return 0, io.EOF
	}
	if f.yields {
		runtime.Gosched()
	}
	n := copy(p, f.frame[f.at:])
	if f.at += n; f.at == len(f.frame) {
		f.at, f.left = 0, f.left-1
	}
	return n, nil
}

func (f *film) Write(p []byte) (int, error)           { return f.null.Write(p) }
func (f *film) SyscallConn() (syscall.RawConn, error) { return f.null.SyscallConn() }
func (f *film) SetDeadline(time.Time) error           { return nil }
func (f *film) SetReadDeadline(time.Time) error       { return nil }
func (f *film) SetWriteDeadline(time.Time) error      { return nil }
func (f *film) Close() error                          { return nil }

// upgraded is the server's side of a WebSocket over a connection.
func upgraded(b *testing.B, over net.Conn) *websocket.Conn {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header = http.Header{"Connection": {"upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
		"Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}}
	upgrader := websocket.Upgrader{WriteBufferPool: &sync.Pool{}}
	conn, err := upgrader.Upgrade(hijacked{httptest.NewRecorder(), over}, r, nil)
	if err != nil {
		b.Fatal(err)
	}
	return conn
}

// hijacked answers a request on a connection, with buffers as a server has.
type hijacked struct {
	http.ResponseWriter
	conn net.Conn
}

func (h hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return h.conn, bufio.NewReadWriter(bufio.NewReader(h.conn), bufio.NewWriter(h.conn)), nil
}

// processorTime is what this process has used of the processor, in nanoseconds.
func processorTime(b *testing.B) int64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
}

// BenchmarkCallMemory is the memory of a call with its sockets while the caller's sound comes: all, and without the
// sound that is kept for another session of the model. Stacks are not counted.
func BenchmarkCallMemory(b *testing.B) {
	const calls, frames = 100, 100 // more than are kept
	null := devNull(b)
	for name, keeps := range map[string]bool{"all": true, "no sound": false} {
		b.Run(name, func(b *testing.B) {
			var bytes float64
			for b.Loop() {
				before, kept := liveHeap(), make([]*Call, calls)
				for i := range kept {
					c, client := filmedCall(b, newFilm(null))
					c.legs.canRenew = keeps
					for range frames {
						c.takeFrom(client)(append([]byte(nil), twentyMs...))
					}
					kept[i] = c
				}
				bytes += (liveHeap() - before) / calls
				runtime.KeepAlive(kept)
			}
			b.ReportMetric(bytes/float64(b.N), "B/call")
		})
	}
}

// liveHeap returns how many bytes are reachable.
func liveHeap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
