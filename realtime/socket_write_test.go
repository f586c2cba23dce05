package realtime

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/tidwall/gjson"

	"switchboard/realtime/outbound"
	"switchboard/realtime/rtc/rtctest"
)

// socketKinds make sockets that do not run, with their far ends: a client's, and a model's over TLS.
var socketKinds = map[string]func(*testing.T) (*socket, *websocket.Conn){"client": newSocketPair,
	"model over TLS": newModelPair}

// bothKinds runs a test on each of them.
func bothKinds(t *testing.T, test func(*testing.T, *socket, *websocket.Conn)) {
	for name, pair := range socketKinds {
		t.Run(name, func(t *testing.T) {
			s, far := pair(t)
			test(t, s, far)
		})
	}
}

func newSocketPair(t *testing.T) (*socket, *websocket.Conn) {
	return newClientPair(t, httptest.NewServer)
}

// newClientPair returns the server's socket.
func newClientPair(t *testing.T, serve func(http.Handler) *httptest.Server) (*socket, *websocket.Conn) {
	t.Helper()
	sockets := make(chan *socket, 1)
	server := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hijacked := hijacker{ResponseWriter: w}
		if conn, err := (&websocket.Upgrader{}).Upgrade(&hijacked, r, nil); err == nil {
			sockets <- newSocket(conn, hijacked.conn, patience, nopLog())
		}
	}))
	t.Cleanup(server.Close)
	dialer := websocket.Dialer{}
	if server.TLS != nil {
		dialer.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig
	}
	far, _, err := dialer.Dial(socketURL(server), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = far.Close() })
	s := <-sockets
	t.Cleanup(s.Abandon)
	if server.TLS == nil {
		narrow(t, s.out.Conn, far.NetConn())
	}
	return s, far
}

// newModelPair returns the socket that dialled.
func newModelPair(t *testing.T) (*socket, *websocket.Conn) {
	t.Helper()
	fars := make(chan *websocket.Conn, 1)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil); err == nil {
			fars <- conn
		}
	}))
	t.Cleanup(server.Close)
	var prompt *promptConn
	dialer := websocket.Dialer{
		TLSClientConfig: server.Client().Transport.(*http.Transport).TLSClientConfig,
		NetDialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			if err == nil {
				prompt = newPromptConn(conn)
			}
			return prompt, err
		},
	}
	conn, _, err := dialer.Dial(socketURL(server), nil)
	if err != nil {
		t.Fatal(err)
	}
	s, far := newSocket(conn, prompt, patience, nopLog()), <-fars
	s.client = true
	narrow(t, s.out.Conn, far.NetConn())
	t.Cleanup(s.Abandon)
	t.Cleanup(func() { _ = far.Close() })
	return s, far
}

func numbered(n, bytes int) []byte {
	return fmt.Appendf(nil, `{"type":"x","n":%d,"pad":"%s"}`, n, strings.Repeat("A", bytes))
}

// wantNumbered reads the events from one number on to before another, and checks their order.
func wantNumbered(t *testing.T, conn *websocket.Conn, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		if got := gjson.Get(expect(t, conn, "x"), "n").Int(); got != int64(n) {
			t.Fatalf("event %d came as number %d", got, n)
		}
	}
}

// stuff sends and flushes until the far end takes no more at once, and returns how many events that were.
func stuff(t *testing.T, s *socket) (events int) {
	t.Helper()
	for ; !s.out.pending(); events++ {
		if !s.Send(numbered(events, 1<<20)) {
			t.Fatal("it ended")
		}
		s.Flush()
	}
	return events
}

// Flush writes itself, and a goroutine that may wait writes what the far end does not take at once.
func TestFlushNeverWaits(t *testing.T) {
	bothKinds(t, func(t *testing.T, s *socket, far *websocket.Conn) {
		s.Send([]byte(`{"type":"first"}`))
		if s.Flush(); s.Bytes() > 0 || s.out.pending() {
			t.Error("it was not written at once")
		}
		expect(t, far, "first")
		events := stuff(t, s)
		s.Send(numbered(events, 1))
		if s.Flush(); s.Bytes() == 0 {
			t.Error("it was written into the middle of another")
		}
		wantNumbered(t, far, 0, events+1)
		go s.Run(func([]byte) {})
		s.End(nil)
		expectClose(t, far, websocket.CloseNormalClosure)
		s.Close(nil)
	})
}

// One flush is enough for everything that waits, also for what needs several writes and for what the far end takes
// later.
func TestOneFlushWritesAll(t *testing.T) {
	bothKinds(t, func(t *testing.T, s *socket, far *websocket.Conn) {
		const small, large = 3, 2 * maxBatches
		for n := range small {
			s.Send(numbered(n, maxBatch))
		}
		if s.Flush(); !s.out.pending() && s.Bytes() > 0 {
			t.Error("it stopped after one write")
		}
		wantNumbered(t, far, 0, small)
		rtctest.Eventually(t, "end of the write", func() bool { return !s.out.pending() })
		for n := range large {
			s.Send(numbered(small+n, maxBatch))
		}
		s.Flush()
		wantNumbered(t, far, small, small+large)
	})
}

// Pings and pongs are written between frames, never inside one.
func TestPingAfterTheRest(t *testing.T) {
	bothKinds(t, func(t *testing.T, s *socket, far *websocket.Conn) {
		pinged := make(chan struct{}, 1)
		far.SetPingHandler(func(string) error { pinged <- struct{}{}; return nil })
		events := stuff(t, s)
		s.Probe()
		s.Flush()
		s.Send(numbered(events, 1))
		s.Flush()
		wantNumbered(t, far, 0, events+1)
		rtctest.Take(t, pinged, "the ping at the far end")
	})
}

// deadlines keeps when a write ends.
type deadlines struct {
	net.Conn
	last atomic.Pointer[time.Time]
}

func (d *deadlines) SetWriteDeadline(at time.Time) error {
	d.last.Store(&at)
	return d.Conn.SetWriteDeadline(at)
}

// A deadline is only for writes that wait: with one that is left behind, the next write would have to wait, too.
func TestNoDeadlineIsLeftBehind(t *testing.T) {
	s, far := newSocketPair(t)
	d := &deadlines{Conn: s.out.Conn}
	s.out.Conn = d
	events := stuff(t, s)
	wantNumbered(t, far, 0, events)
	rtctest.Eventually(t, "end of the write", func() bool { return !s.out.pending() })
	if at := d.last.Load(); at == nil || !at.IsZero() {
		t.Errorf("the last deadline is %v", at)
	}
	if err := s.out.SetWriteDeadline(time.Unix(1, 0)); err != nil { // as the library does
		t.Fatal(err)
	}
	s.Send(numbered(events, 1))
	s.Flush()
	wantNumbered(t, far, events, events+1)
}

// A socket that ends writes the rest of a frame before its close frame.
func TestFarewellAfterTheRest(t *testing.T) {
	bothKinds(t, func(t *testing.T, s *socket, far *websocket.Conn) {
		events := stuff(t, s)
		s.Send(numbered(events, 1))
		s.End(nil)
		s.out.endWritesAt(time.Now().Add(patience)) // the machine may be busy
		go s.Run(func([]byte) {})
		wantNumbered(t, far, 0, events+1)
		expectClose(t, far, websocket.CloseNormalClosure)
		s.Close(nil)
	})
}

// A far end that closes in the middle of a frame gets the rest of the frame before the answer, which has its own close
// code.
func TestCloseIsAnsweredAfterTheRest(t *testing.T) {
	bothKinds(t, func(t *testing.T, s *socket, far *websocket.Conn) {
		events := stuff(t, s)
		if err := far.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(4001, "enough"),
			time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.conn.NextReader(); !websocket.IsCloseError(err, 4001) {
			t.Fatalf("read %v", err)
		}
		s.End(nil) // as Run does then
		s.out.endWritesAt(time.Now().Add(patience))
		go s.Run(func([]byte) {})
		time.Sleep(2 * outbound.CloseGrace) // the far end is slow, and out was given the time for it
		wantNumbered(t, far, 0, events)
		expectClose(t, far, 4001)
		s.Close(nil)
	})
}

// The caller of Flush has its own far end to read from, so it does not write for others for long.
func TestFlushEnds(t *testing.T) {
	s, far := newSocketPair(t)
	rounds, goOn := 0, make(chan struct{})
	s.out.tryWrite = func(fd uintptr) bool {
		if rounds++; rounds < 10*maxBatches {
			s.Send(numbered(rounds, 1)) // another brings more meanwhile
		}
		if rounds > maxBatches {
			<-goOn // it is another who writes
		}
		return s.out.tryPiece(fd)
	}
	s.Send(numbered(0, 1))
	flushed := make(chan struct{}, 1)
	go func() {
		s.Flush()
		flushed <- struct{}{}
	}()
	rtctest.Take(t, flushed, "end of the flush")
	close(goOn)
	wantNumbered(t, far, 0, 10*maxBatches)
}

// With TLS above the connection, as a server has it, nothing can be written without waiting: a goroutine writes all.
func TestFlushOverTLS(t *testing.T) {
	s, far := newClientPair(t, httptest.NewTLSServer)
	if s.out.direct != nil {
		t.Fatal("TLS is written to as a file")
	}
	for n := range 100 {
		s.Send(numbered(n, n))
		s.Flush()
	}
	wantNumbered(t, far, 0, 100)
	go s.Run(func([]byte) {})
	s.End(nil)
	expectClose(t, far, websocket.CloseNormalClosure)
	s.Close(nil)
}

// A call whose far ends keep up has two readers, its loop and the router's goroutine, and nothing of HTTP.
func TestGoroutinesOfACall(t *testing.T) {
	h := newHouse(t)
	h.call("")
	const calls, each = 10, 4
	before := runtime.NumGoroutine() // with as much of the first call as has begun
	for range calls {
		<-h.model.header
		<-h.model.query
		h.call("")
	}
	rtctest.Eventually(t, "end of what begins a call",
		func() bool { return runtime.NumGoroutine() <= before+(calls+1)*each })
}

// Both far ends, the router and the clock act at the same time: each direction keeps its order, and sound does not
// overtake other events.
func TestBothEndsAtOnce(t *testing.T) {
	const rounds = 300
	h := newHouse(t)
	client, model := h.call("")
	send(t, model, began("r1", ""))
	var writing sync.WaitGroup
	defer writing.Wait()
	writing.Go(func() {
		for n := range rounds {
			_ = client.WriteMessage(websocket.TextMessage, []byte(`{"type":"input_audio_buffer.append","audio":"AAAA"}`))
			_ = client.WriteMessage(websocket.TextMessage,
				fmt.Appendf(nil, `{"type":"conversation.item.delete","item_id":"i","n":%d}`, n))
		}
	})
	writing.Go(func() {
		for n := range rounds {
			_ = model.WriteMessage(websocket.TextMessage, []byte(audio("r1", 20*time.Millisecond)))
			_ = model.WriteMessage(websocket.TextMessage,
				fmt.Appendf(nil, `{"type":"response.output_text.delta","response_id":"r1","n":%d}`, n))
		}
	})
	expect(t, client, "response.created")
	for far, kinds := range map[*websocket.Conn][2]string{
		client: {"response.output_audio.delta", "response.output_text.delta"},
		model:  {"input_audio_buffer.append", "conversation.item.delete"},
	} {
		writing.Go(func() {
			for n := range rounds {
				expect(t, far, kinds[0])
				if got := gjson.Get(expect(t, far, kinds[1]), "n").Int(); got != int64(n) {
					t.Errorf("%s %d came as number %d", kinds[1], got, n)
				}
			}
		})
	}
}

// All events of a far end are handled before its end: a model that refuses says why, and closes.
func TestWhatCameIsTakenFirst(t *testing.T) {
	bothKinds(t, func(t *testing.T, s *socket, far *websocket.Conn) {
		if err := far.WriteMessage(websocket.TextMessage, []byte(`{"type":"why"}`)); err != nil {
			t.Fatal(err)
		}
		_ = far.NetConn().Close()
		rtctest.Eventually(t, "failure of a write", func() bool {
			s.Send([]byte(`{"type":"x"}`))
			s.Flush()
			s.out.mu.Lock()
			defer s.out.mu.Unlock()
			return s.out.err != nil
		})
		var took []string
		s.Run(func(event []byte) { took = append(took, string(event)) })
		if len(took) != 1 {
			t.Errorf("of what came was taken %q", took)
		}
	})
}

// A far end that never answers our close has not vanished: we left. One whose connection breaks has.
func TestWhoWasLeftHasNotVanished(t *testing.T) {
	bothKinds(t, func(t *testing.T, s *socket, far *websocket.Conn) {
		go s.Run(func([]byte) {})
		s.Close(nil)
		if s.Vanished() {
			t.Error("it vanished")
		}
	})
	bothKinds(t, func(t *testing.T, s *socket, far *websocket.Conn) {
		go s.Run(func([]byte) {})
		_ = far.NetConn().Close()
		<-s.done
		if !s.Vanished() {
			t.Error("it has not vanished")
		}
	})
}

// A goroutine that writes the rest may begin while the socket ends: the end waits for it, whenever it began. The race
// detector would find a mistake.
func TestEndBesideAWriter(t *testing.T) {
	for range 20 {
		s, far := newSocketPair(t)
		var work sync.WaitGroup
		work.Go(func() { s.Run(func([]byte) {}) })
		work.Go(func() {
			for s.Send(numbered(0, 1<<20)) {
				s.Flush()
			}
		})
		time.Sleep(20 * time.Millisecond) // it orders nothing, which is the point
		_ = far.NetConn().Close()
		work.Wait()
	}
}
