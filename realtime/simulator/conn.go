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
	// bytes of one frame of a client; OpenAI takes 15 MiB of audio. One frame is read ahead, then TCP slows the client
	maxFrame = 16 << 20
	// frames to send; when it is full the client is disconnected as too slow, since no event may be lost
	outbox    = 4096
	maxUnsent = 64 << 20         // bytes of these frames, with the same policy
	writeWait = 10 * time.Second // bounds the write of one frame
	endWait   = time.Second      // at the end, for unsent frames, and for the client's close frame
)

// A conn is one connection: a reader, a writer and the run loop that owns the session.
type conn struct {
	ws           *websocket.Conn      // Set once; read and written by one goroutine each; nil: it is a browser
	rtc          Browser              // Set once; nil: it is a WebSocket
	scriptEvents <-chan Event         // Set once
	walls        <-chan time.Duration // Set once
	in           chan []byte          // Set once: reader to run loop, closed by the reader
	out          chan []byte          // Set once: run loop to writer, closed by converse

	done             chan struct{}       // closed when the run loop has ended: the reader drops later frames
	unsent           atomic.Int64        // bytes in out
	deadline         atomic.Int64        // of all writes, in Unix nanoseconds; 0: none
	actions          chan func(*session) // Set once: what other goroutines do in the run loop
	others           []*conn             // Owned by the run loop: sockets that joined the call
	soundingResponse string              // Owned by the run loop: the response whose sound others were told of
	end              ending              // written before out is closed, then read by the writer
	readErr          error               // why reading ended; written before in is closed
}

func (m *Model) newConn() *conn {
	return &conn{
		scriptEvents: m.scriptEvents, walls: m.walls,
		in: make(chan []byte), out: make(chan []byte, outbox), done: make(chan struct{}),
		actions: make(chan func(*session)),
	}
}

// overSocket makes the connection of a WebSocket.
func (m *Model) overSocket(ws *websocket.Conn) *conn {
	ws.SetReadLimit(maxFrame)
	// The library's own answer to a ping ends the connection if a busy machine delays it by a second.
	ws.SetPingHandler(func(data string) error {
		_ = ws.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeWait)) // reading finds the error
		return nil
	})
	c := m.newConn()
	c.ws = ws
	return c
}

// converse runs the call with this id until either side or the context ends it. It begins with these settings.
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
	s.hurry, s.manner = m.hurry, m.manner
	c.end = c.run(ctx, s)
	c.deadline.Store(time.Now().Add(endWait).UnixNano())
	if c.ws != nil {
		_ = c.ws.NetConn().SetWriteDeadline(time.Now().Add(endWait)) // also of a write that waits now
	}
	close(c.done)
	close(c.out)
	wg.Wait()
	if c.ws != nil {
		_ = c.ws.Close()
	}
	m.log.Debug("voice simulator disconnected", zap.Int("code", c.end.code), zap.String("reason", c.end.text))
}

// run is the loop that owns the session.
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
			if !ok && errors.Is(c.readErr, websocket.ErrReadLimit) {
				return ending{code: websocket.CloseMessageTooBig, text: "too large"}
			}
			if !ok {
				return ending{code: closeGoingAway, text: "client has gone"}
			}
			c.take(s, frame)
		case act := <-c.actions:
			act(s)
		case e := <-c.scriptEvents:
			s.happen(time.Now(), e)
		case left := <-c.walls:
			s.setLimit(time.Now(), left)
		case <-timer.C:
			s.advance(time.Now())
		}
	}
}

// take handles a frame of the client. A browser's report of what it has played is only passed on to the other sockets.
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

// flush passes the session's frames to the writer; false: the client is too slow.
func (c *conn) flush(s *session) bool {
	for _, frame := range s.out {
		if !c.send(frame) {
			return false
		}
		c.copyToOthers(frame)
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

// read passes frames to the run loop until the socket ends.
func (c *conn) read() {
	for c.readErr == nil {
		var frame []byte
		if _, frame, c.readErr = c.ws.ReadMessage(); c.readErr != nil {
			break
		}
		select {
		case c.in <- frame:
		case <-c.done:
		}
	}
	close(c.in)
	if errors.Is(c.readErr, websocket.ErrReadLimit) {
		// Read what the client still sends, or a reset would overtake the close frame.
		_ = c.ws.SetReadDeadline(time.Now().Add(2 * endWait))
		_, _ = io.Copy(io.Discard, c.ws.NetConn())
	}
}

// write sends the frames of the run loop, then a close frame. The client has endWait to answer with its own; what it
// still sends is read and dropped, so that no reset overtakes our last frames.
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
