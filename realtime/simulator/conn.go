package simulator

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"time"

	"github.com/gorilla/websocket"
	"github.com/tidwall/gjson"
	"go.uber.org/zap"
)

// A conn is one call: a connection with its run loop, which owns the session.
type conn struct {
	far     far                 // Set once
	direct  bool                // Set once: the far end is a browser, which tells what it has played
	in      chan []byte         // Set once: from the far end; closed when that has gone
	actions chan func(*session) // Set once: what other goroutines do in the run loop
	done    chan struct{}       // closed when the run loop has ended

	others   []far  // Owned by the run loop: sockets that joined the call
	sounding string // Owned by the run loop: the response whose sound others were told of
}

func newConn(f far) *conn {
	_, direct := f.(browser)
	return &conn{far: f, direct: direct, in: make(chan []byte), actions: make(chan func(*session)),
		done: make(chan struct{})}
}

// converse runs a call with this id until either side or the context ends it. It begins with these settings.
func (m *Model) converse(ctx context.Context, c *conn, id string, first settings) {
	m.keep(id, c)
	defer m.keep(id, nil)
	m.Log.Debug("voice simulator connected")
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(c.in)
		c.far.Run(func(event []byte) {
			select {
			case c.in <- event:
			case <-c.done:
			}
		})
	}()
	s := newSession(m.decider(), time.Now(), first)
	s.words, s.hurry, s.manner = m.Words, m.Hurry, m.Manner
	end := c.run(ctx, s, m)
	close(c.done)
	c.far.end(end)
	<-read
	m.Log.Debug("voice simulator disconnected", zap.Int("code", end.code), zap.String("reason", end.text))
}

// run is the loop that owns the session.
func (c *conn) run(ctx context.Context, s *session, m *Model) ending {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		for _, frame := range s.out {
			if !c.far.Send(frame) {
				return ending{code: closeTooSlow, text: "too slow"}
			}
			c.copyToOthers(frame)
		}
		if s.out = nil; s.end != nil {
			return *s.end
		}
		timer.Reset(time.Until(s.wake()))
		select {
		case <-ctx.Done():
			return ending{code: closeGoingAway, text: "going away"}
		case frame, ok := <-c.in:
			if !ok {
				return ending{code: closeGoingAway, text: "client has gone"}
			}
			c.take(s, frame)
		case act := <-c.actions:
			act(s)
		case e := <-m.Events:
			s.happen(time.Now(), e)
		case left := <-m.Walls:
			s.setLimit(time.Now(), left)
		case <-timer.C:
			s.advance(time.Now())
		}
	}
}

// take handles a frame of the client. A browser's report of what it has played is only passed on to the other sockets.
func (c *conn) take(s *session, frame []byte) {
	if c.direct {
		switch kind := gjson.GetBytes(frame, "type").String(); kind {
		case bufferStopped, bufferCleared:
			c.tellOthers(bufferEvent(kind, gjson.GetBytes(frame, "response_id").String()))
			return
		}
	}
	s.receive(time.Now(), frame)
}

// do has the run loop call act; false: the loop has ended.
func (c *conn) do(act func(*session)) bool {
	select {
	case c.actions <- act:
		return true
	case <-c.done:
		return false
	}
}

// join adds a second socket to a call. It gets the session, and then all events but sound; its own events count as the
// client's. It ends with the call, but the call does not end with it.
func (m *Model) join(w http.ResponseWriter, r *http.Request, id string) {
	c := m.find(w, id)
	if c == nil {
		return
	}
	ws, err := m.upgrader.Upgrade(w, r, nil)
	if err != nil { // it has been answered
		m.Log.Debug("voice simulator refused a connection", zap.Error(err))
		return
	}
	other := newSocket(ws)
	ctx, gone := context.WithCancel(r.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-c.done:
		case <-ctx.Done():
		}
		other.end(ending{code: websocket.CloseNormalClosure, text: "the call has ended"})
	}()
	c.do(func(s *session) { c.welcome(s, other) })
	other.Run(func(frame []byte) { c.do(func(s *session) { c.takeBeside(s, other, frame) }) })
	c.do(func(*session) {
		c.others = slices.DeleteFunc(c.others, func(o far) bool { return o == other })
	})
	gone()
	<-ended
}

// welcome adds a socket to the call. It first gets the session.
func (c *conn) welcome(s *session, other far) {
	c.others = append(c.others, other)
	s.emit("session.created", fields{"session": s.settings})
	_ = other.Send(s.out[len(s.out)-1])
	s.out = s.out[:len(s.out)-1]
}

// takeBeside handles a frame of a socket that joined the call. Only that socket gets an error about it.
func (c *conn) takeBeside(s *session, from far, frame []byte) {
	if c.direct && gjson.GetBytes(frame, "type").String() == bufferClear {
		_ = c.far.Send(frame) // a browser that has gone plays nothing
		return
	}
	s.receive(time.Now(), frame)
	s.out = slices.DeleteFunc(s.out, func(event []byte) bool {
		return gjson.GetBytes(event, "type").String() == "error" && from.Send(event)
	})
}

// copyToOthers sends an event to the sockets that joined the call; in place of sound, they get events when it begins
// and stops. A socket that is too slow misses the event.
func (c *conn) copyToOthers(frame []byte) {
	if len(c.others) == 0 {
		return
	}
	switch gjson.GetBytes(frame, "type").String() {
	case "response.output_audio.delta":
		if id := gjson.GetBytes(frame, "response_id").String(); c.sounding != id {
			c.sounding = id
			c.tellOthers(bufferEvent(bufferStarted, id))
		}
		return
	case "response.done":
		defer c.soundEnds(gjson.GetBytes(frame, "response"))
	}
	c.tellOthers(frame)
}

// soundEnds tells the other sockets that the sound of a response is over, unless a browser will report that once it has
// played all.
func (c *conn) soundEnds(response gjson.Result) {
	id, kind := response.Get("id").String(), bufferStopped
	if c.sounding != id {
		return
	}
	if response.Get("status").String() == "cancelled" {
		kind = bufferCleared
	}
	if c.sounding = ""; !c.direct {
		c.tellOthers(bufferEvent(kind, id))
	}
}

func (c *conn) tellOthers(frame []byte) {
	for _, o := range c.others {
		_ = o.Send(frame)
	}
}

// Events about the sound that a provider plays itself.
const (
	bufferStarted = "output_audio_buffer.started"
	bufferStopped = "output_audio_buffer.stopped"
	bufferCleared = "output_audio_buffer.cleared"
	bufferClear   = "output_audio_buffer.clear"
)

func bufferEvent(kind, response string) []byte {
	return []byte(`{"type":"` + kind + `","event_id":"event_` + rand.Text()[:16] +
		`","response_id":"` + response + `"}`)
}
