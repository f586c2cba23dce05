package simulator

import (
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

// Bounds of a WebSocket.
const (
	// bytes of one frame of a client; OpenAI takes 15 MiB of audio. One frame is read ahead, then TCP slows the client
	maxFrame = 16 << 20
	// frames to send; when it is full the client is disconnected as too slow, since no event may be lost
	outbox    = 4096
	maxUnsent = 64 << 20         // bytes of these frames, with the same policy
	writeWait = 10 * time.Second // bounds the write of one frame
	endWait   = time.Second      // at the end, for unsent frames, and for the client's close frame
)

// A far is the far end of a call: a [socket] or a [Browser]. Send is called by the run loop of the call alone.
type far interface {
	// Run passes the client's events to take, in order, until the client has gone or end is called.
	Run(take func(event []byte))
	// Send enqueues an event; false: the far end is too slow, or has gone.
	Send(event []byte) bool
	// end writes what was sent, and then a close frame with the ending unless its code is 0.
	end(ending)
}

// A browser ends without a close frame.
type browser struct{ Browser }

func (b browser) end(ending) { b.Close() }

// A socket is a WebSocket.
type socket struct {
	ws     *websocket.Conn // Set once
	out    chan []byte     // Set once: frames to write
	unsent atomic.Int64    // bytes in out
	over   chan struct{}   // closed by end
	ending ending          // Set once, before over
	last   time.Time       // Set once, before over: when writing ends
	wrote  chan struct{}   // closed when the writer has ended
}

func newSocket(ws *websocket.Conn) *socket {
	ws.SetReadLimit(maxFrame)
	// The library's own answer to a ping ends the connection if a busy machine delays it by a second.
	ws.SetPingHandler(func(data string) error {
		_ = ws.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeWait)) // reading finds the error
		return nil
	})
	return &socket{ws: ws, out: make(chan []byte, outbox), over: make(chan struct{}), wrote: make(chan struct{})}
}

// Run implements [far]. It also writes.
func (s *socket) Run(take func(event []byte)) {
	go s.write()
	for {
		_, frame, err := s.ws.ReadMessage()
		if errors.Is(err, websocket.ErrReadLimit) { // read what still comes, or a reset would overtake the close frame
			_ = s.ws.SetReadDeadline(time.Now().Add(2 * endWait))
			_, _ = io.Copy(io.Discard, s.ws.NetConn())
		}
		if err != nil {
			_ = s.ws.NetConn().Close()
			return
		}
		take(frame)
	}
}

func (s *socket) Send(event []byte) bool {
	if s.unsent.Add(int64(len(event))) > maxUnsent {
		return false
	}
	select {
	case s.out <- event:
		return true
	default:
		return false
	}
}

// end returns when all was written. The client has endWait to answer with a close frame of its own; what it still sends
// is read and dropped, so that no reset overtakes our last frames.
func (s *socket) end(e ending) {
	s.ending, s.last = e, time.Now().Add(endWait)
	close(s.over)
	_ = s.ws.NetConn().SetWriteDeadline(s.last) // also of a write that waits now
	<-s.wrote
}

// write writes frames until the end, then a close frame.
func (s *socket) write() {
	defer close(s.wrote)
	for over := false; !over || len(s.out) > 0; {
		var frame []byte
		select {
		case frame = <-s.out:
		case <-s.over:
			if over = true; len(s.out) == 0 {
				continue
			}
			frame = <-s.out
		}
		s.unsent.Add(-int64(len(frame)))
		until := time.Now().Add(writeWait)
		if over {
			until = s.last
		}
		_ = s.ws.SetWriteDeadline(until)
		if s.ws.WriteMessage(websocket.TextMessage, frame) != nil {
			_ = s.ws.NetConn().Close() // which ends Run
			return
		}
	}
	if s.ending.code == 0 {
		_ = s.ws.NetConn().Close()
		return
	}
	_ = s.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(s.ending.code, s.ending.text),
		time.Now().Add(endWait))
	_ = s.ws.SetReadDeadline(time.Now().Add(endWait))
}
