package realtime

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/tidwall/gjson"

	"switchboard/realtime/outbound"
	"switchboard/realtime/rtc/rtctest"
)

// newSocketPair returns a socket that nobody runs, and its far end.
func newSocketPair(t *testing.T) (*socket, *websocket.Conn) {
	t.Helper()
	conns := make(chan *websocket.Conn, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil); err == nil {
			conns <- conn
		}
	}))
	t.Cleanup(server.Close)
	far, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(server.URL, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = far.Close() })
	s := newSocket(<-conns, outbound.MaxBytes, patience, nopLog())
	t.Cleanup(s.Abandon)
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
	for ; s.rest == nil; events++ {
		if !s.Send(numbered(events, 256<<10)) {
			t.Fatal("it ended")
		}
		s.Flush()
	}
	return events
}

// Who flushes writes itself, and what the far end does not take at once waits for the goroutine that may wait.
func TestFlushNeverWaits(t *testing.T) {
	s, far := newSocketPair(t)
	s.Send([]byte(`{"type":"first"}`))
	if s.Flush(); s.Waits() || len(s.Ready()) != 0 {
		t.Error("it was not written at once")
	}
	expect(t, far, "first")
	events := stuff(t, s)
	if len(s.Ready()) != 1 {
		t.Error("nobody was told of the rest")
	}
	s.Send(numbered(events, 1)) // it does not overtake the rest
	if s.Flush(); !s.Waits() {
		t.Error("it was written into the middle of another")
	}
	go s.Run(func([]byte) {})
	wantNumbered(t, far, 0, events+1)
	s.Close(nil)
	expectClose(t, far, websocket.CloseNormalClosure)
}

// What is not an event stands between frames, never in one, and what was sent meanwhile is not forgotten.
func TestPingAfterTheRest(t *testing.T) {
	s, far := newSocketPair(t)
	pinged := make(chan struct{}, 1)
	far.SetPingHandler(func(string) error { pinged <- struct{}{}; return nil })
	events := stuff(t, s)
	<-s.Ready()
	s.Send(numbered(events, 1))
	wrote := make(chan error, 1)
	go func() { wrote <- s.inTurn(s.ping) }()
	wantNumbered(t, far, 0, events)
	if err := rtctest.Take(t, wrote, "the ping"); err != nil || len(s.Ready()) != 1 {
		t.Errorf("%v, %d tokens", err, len(s.Ready()))
	}
	s.Flush()
	wantNumbered(t, far, events, events+1)
	rtctest.Take(t, pinged, "the ping at the far end")
}

// A deadline is for those who wait: none is left behind.
func TestFlushAfterADeadline(t *testing.T) {
	s, far := newSocketPair(t)
	if err := s.inTurn(func() error { return s.conn.NetConn().SetWriteDeadline(time.Unix(1, 0)) }); err != nil {
		t.Fatal(err)
	}
	s.Send(numbered(0, 1))
	if s.Flush(); s.rest != nil {
		t.Error("it was left to another")
	}
	wantNumbered(t, far, 0, 1)
}

// A socket that ends says the rest of what it began before it says goodbye.
func TestFarewellAfterTheRest(t *testing.T) {
	s, far := newSocketPair(t)
	events := stuff(t, s)
	<-s.Ready() // nobody comes to it any more
	s.End(nil)
	go s.Run(func([]byte) {})
	wantNumbered(t, far, 0, events)
	expectClose(t, far, websocket.CloseNormalClosure)
	s.Close(nil)
}

// A far end that closes in the middle of a frame gets the rest of it before the answer, which is what it said.
func TestCloseIsAnsweredAfterTheRest(t *testing.T) {
	s, far := newSocketPair(t)
	events := stuff(t, s)
	<-s.Ready()
	if err := far.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(4001, "enough"), time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	wantNumbered(t, far, 0, events-1) // there is room again
	if err := s.read(func([]byte) {}); !websocket.IsCloseError(err, 4001) {
		t.Fatalf("read %v", err)
	}
	go s.Run(func([]byte) {})
	wantNumbered(t, far, events-1, events)
	expectClose(t, far, 4001)
	s.Close(nil)
}

// Who flushes has its own far end to read from: it does not write for others for long.
func TestFlushEnds(t *testing.T) {
	s, far := newSocketPair(t)
	go func() {
		for {
			if _, _, err := far.ReadMessage(); err != nil {
				return
			}
		}
	}()
	rounds := 0
	s.attempt = func(fd uintptr) bool {
		if rounds++; rounds <= 10*maxBatches {
			s.Send(numbered(rounds, 1)) // another brings more meanwhile
		}
		return s.writeOnce(fd)
	}
	s.Send(numbered(0, 1))
	if s.Flush(); rounds > maxBatches || len(s.Ready()) != 1 {
		t.Errorf("wrote %d times, %d tokens", rounds, len(s.Ready()))
	}
}

// Over TLS a record is put through whole, which may wait: then the goroutine that may wait does it.
func TestFlushOverTLS(t *testing.T) {
	s, far := newSocketPair(t)
	for _, conn := range []net.Conn{tls.Client(s.conn.NetConn(), nil), &headConn{Conn: tls.Client(s.conn.NetConn(), nil)}} {
		if directOf(conn) != nil {
			t.Errorf("a %T is written to as a file", conn)
		}
	}
	if directOf(&headConn{Conn: s.conn.NetConn()}) == nil {
		t.Error("what bounds the answer to a handshake hides the connection")
	}
	s.direct = nil
	s.Send(numbered(0, 1))
	if s.Flush(); !s.Waits() || len(s.Ready()) != 1 {
		t.Error("it was written by who must not wait")
	}
	go s.Run(func([]byte) {})
	wantNumbered(t, far, 0, 1)
	s.Close(nil)
}

// Both far ends, the router and the clock bring something at the same time: each direction keeps its order, and an event
// that is looked at is not overtaken by sound.
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
			_ = client.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"type":"conversation.item.delete","item_id":"i","n":%d}`, n))
		}
	})
	writing.Go(func() {
		for n := range rounds {
			_ = model.WriteMessage(websocket.TextMessage, []byte(audio("r1", 20*time.Millisecond)))
			_ = model.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"type":"response.output_text.delta","response_id":"r1","n":%d}`, n))
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
