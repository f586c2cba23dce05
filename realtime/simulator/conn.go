package simulator

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"github.com/tidwall/gjson"
	"go.uber.org/zap"
)

// Bounds of a connection.
const (
	// bytes a client may send at once; OpenAI takes 15 MiB of audio. One frame is read ahead, then TCP slows the client
	maxFrame = 16 << 20
	// frames to send; when full the client is too slow and is disconnected, since every event counts
	outbox    = 4096
	maxUnsent = 64 << 20         // bytes of them, with the same end
	writeWait = 10 * time.Second // for one frame
	endWait   = time.Second      // for unsent frames when the connection ends, and for the client's close frame
)

// conn is one connection: a reader, a writer and the run loop that owns the session.
type conn struct {
	ws    *websocket.Conn      // Set once; read and written by one goroutine each; nil: it is a browser
	rtc   Browser              // Set once; nil: it is a WebSocket
	now   <-chan Event         // Set once
	walls <-chan time.Duration // Set once
	in    chan []byte          // Set once: reader to run loop, closed by the reader
	out   chan []byte          // Set once: run loop to writer, closed by converse

	done     chan struct{}       // closed when the run loop has ended: the reader drops what still comes
	unsent   atomic.Int64        // bytes in out
	deadline atomic.Int64        // unix nanoseconds for all writes, 0 is none
	acts     chan func(*session) // what others do to the call. Set once
	others   []*conn             // sockets that joined it. Owned by the run loop
	sounds   string              // the response whose sound they know of. Owned by the run loop
	end      ending              // written before out is closed, then read by the writer
	broken   error               // of reading; written before in is closed
}

func (m *Model) newConn() *conn {
	return &conn{
		now: m.now, walls: m.walls, in: make(chan []byte), out: make(chan []byte, outbox), done: make(chan struct{}),
		acts: make(chan func(*session)),
	}
}

// overSocket makes the connection of a WebSocket.
func (m *Model) overSocket(ws *websocket.Conn) *conn {
	ws.SetReadLimit(maxFrame)
	// The library's own answer to a ping ends the connection if a busy machine keeps it from that for a second.
	ws.SetPingHandler(func(data string) error {
		_ = ws.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeWait)) // reading tells of a failure
		return nil
	})
	c := m.newConn()
	c.ws = ws
	return c
}

// converse runs the call of this id until it ends, by either side or by the context. It begins with these settings.
func (m *Model) converse(ctx context.Context, c *conn, id string, first settings) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m.keep(id, c)
	defer m.keep(id, nil)
	m.log.Debug("voice simulator connected")
	var wg sync.WaitGroup
	if c.ws != nil {
		wg.Go(c.read)
		wg.Go(func() { c.write(cancel) })
	} else {
		wg.Go(c.listen)
		wg.Go(func() { c.play(cancel) })
	}
	s := newSession(m.mind(), time.Now(), first)
	s.hurry, s.drawn = m.hurry, m.drawn
	c.end = c.run(ctx, s)
	c.deadline.Store(time.Now().Add(endWait).UnixNano())
	if c.ws != nil {
		_ = c.ws.NetConn().SetWriteDeadline(time.Now().Add(endWait)) // also for the write that waits now
	}
	close(c.done)
	close(c.out)
	wg.Wait()
	if c.ws != nil {
		_ = c.ws.Close()
	}
	m.log.Debug("voice simulator disconnected", zap.Int("code", c.end.code), zap.String("reason", c.end.text))
}

// run owns the session.
func (c *conn) run(ctx context.Context, s *session) ending {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if !c.flush(s) {
			return ending{code: closeTooSlow, text: "too slow"}
		}
		if s.end != nil {
			return *s.end
		}
		timer.Reset(time.Until(s.wake()))
		select {
		case <-ctx.Done():
			return ending{code: closeGoingAway, text: "going away"}
		case frame, ok := <-c.in:
			if !ok && errors.Is(c.broken, websocket.ErrReadLimit) {
				return ending{code: websocket.CloseMessageTooBig, text: "too large"}
			}
			if !ok {
				return ending{code: closeGoingAway, text: "client has gone"}
			}
			c.take(s, frame)
		case act := <-c.acts:
			act(s)
		case e := <-c.now:
			s.happen(time.Now(), e)
		case left := <-c.walls:
			s.lasts(time.Now(), left)
		case <-timer.C:
			s.advance(time.Now())
		}
	}
}

// take handles a frame of the client. What a browser has played only the sockets beside it are told: the browser knows.
func (c *conn) take(s *session, frame []byte) {
	if c.rtc != nil {
		switch kind := gjson.GetBytes(frame, "type").String(); kind {
		case bufferStopped, bufferCleared:
			c.tellOthers(bufferEvent(kind, gjson.GetBytes(frame, "response_id").String()))
			return
		}
	}
	s.receive(time.Now(), frame)
}

// flush hands what the session wants to send to the writer; false means that the client is too slow.
func (c *conn) flush(s *session) bool {
	for _, frame := range s.out {
		if !c.send(frame) {
			return false
		}
		c.reflect(frame)
	}
	s.out = nil
	return true
}

func (c *conn) send(frame []byte) bool {
	if c.unsent.Add(int64(len(frame))) > maxUnsent {
		return false
	}
	select {
	case c.out <- frame:
		return true
	default:
		return false
	}
}

// read moves frames to the run loop until the socket ends.
func (c *conn) read() {
	for c.broken == nil {
		var frame []byte
		if _, frame, c.broken = c.ws.ReadMessage(); c.broken != nil {
			break
		}
		select {
		case c.in <- frame:
		case <-c.done:
		}
	}
	close(c.in)
	if errors.Is(c.broken, websocket.ErrReadLimit) {
		// What the client still sends is read, or a reset would overtake the close frame.
		_ = c.ws.SetReadDeadline(time.Now().Add(2 * endWait))
		_, _ = io.Copy(io.Discard, c.ws.NetConn())
	}
}

// write sends what the run loop gives, then says good-bye. The client has endWait to do the same; what
// it still sends is read and dropped, so that closing does not reset the connection under our last words.
func (c *conn) write(lost context.CancelFunc) {
	broken := false
	for frame := range c.out {
		c.unsent.Add(-int64(len(frame)))
		if broken {
			continue
		}
		until := time.Now().Add(writeWait)
		if d := c.deadline.Load(); d != 0 && d < until.UnixNano() {
			until = time.Unix(0, d)
		}
		_ = c.ws.SetWriteDeadline(until)
		if c.ws.WriteMessage(websocket.TextMessage, frame) != nil {
			broken = true
			lost()
			continue
		}
	}
	if c.end.code == 0 || broken {
		_ = c.ws.Close()
		return
	}
	_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(c.end.code, c.end.text),
		time.Now().Add(endWait))
	_ = c.ws.SetReadDeadline(time.Now().Add(endWait))
}
