package simulator

import (
	"crypto/rand"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/tidwall/gjson"
	"go.uber.org/zap"
)

// keep makes a call one that can be joined; nil: it is over.
func (m *Model) keep(id string, c *conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls[id] = c; c == nil {
		delete(m.calls, id)
	}
}

// join lets a second socket into a call. It gets the session, and what follows but for sound; what it sends counts as
// the caller's own client's. It ends with the call, and the call not with it.
func (m *Model) join(w http.ResponseWriter, r *http.Request, id string) {
	m.mu.Lock()
	call := m.calls[id]
	m.mu.Unlock()
	if call == nil {
		refuseHTTP(w, http.StatusNotFound, "invalid_request_error", "No session found for the provided call_id")
		return
	}
	ws, err := m.upgrader.Upgrade(w, r, nil)
	if err != nil { // it has been answered
		m.log.Debug("voice simulator refused a connection", zap.Error(err))
		return
	}
	c := m.overSocket(ws)
	var wg sync.WaitGroup
	wg.Go(c.read)
	wg.Go(func() { c.write(func() { _ = ws.NetConn().Close() }) })
	c.end = ending{code: websocket.CloseNormalClosure, text: "the call has ended"}
	for in := call.let(func(s *session) { call.welcome(s, c) }); in; {
		select {
		case frame, ok := <-c.in:
			in = ok && call.let(func(s *session) { call.takeBeside(s, c, frame) })
		case <-call.done:
			in = false
		case <-r.Context().Done():
			in = false
		}
	}
	call.let(func(*session) {
		call.others = slices.DeleteFunc(call.others, func(o *conn) bool { return o == c })
	})
	c.deadline.Store(time.Now().Add(endWait).UnixNano())
	close(c.done)
	close(c.out)
	wg.Wait()
	_ = ws.Close()
}

// let has the run loop act on the session; false: it has ended.
func (c *conn) let(act func(*session)) bool {
	select {
	case c.acts <- act:
		return true
	case <-c.done:
		return false
	}
}

// welcome lets a socket join the call: it begins with the session.
func (c *conn) welcome(s *session, other *conn) {
	c.others = append(c.others, other)
	s.emit("session.created", fields{"session": s.object()})
	_ = other.send(s.out[len(s.out)-1])
	s.out = s.out[:len(s.out)-1]
}

// takeBeside takes a frame of a socket that joined the call. An error is for who made it.
func (c *conn) takeBeside(s *session, from *conn, frame []byte) {
	if c.rtc != nil && gjson.GetBytes(frame, "type").String() == bufferClear {
		_ = c.rtc.Send(frame) // one that has gone plays nothing
		return
	}
	s.receive(time.Now(), frame)
	s.out = slices.DeleteFunc(s.out, func(event []byte) bool {
		return gjson.GetBytes(event, "type").String() == "error" && from.send(event)
	})
}

// reflect gives the sockets beside the call's own what they get of an event: no sound, but when that begins and stops.
// One that is too slow misses it.
func (c *conn) reflect(frame []byte) {
	if len(c.others) == 0 {
		return
	}
	switch kind := gjson.GetBytes(frame, "type").String(); kind {
	case "response.output_audio.delta":
		if id := gjson.GetBytes(frame, "response_id").String(); c.sounds != id {
			c.sounds = id
			c.tellOthers(bufferEvent(bufferStarted, id))
		}
	case "response.done":
		c.tellOthers(frame)
		id := gjson.GetBytes(frame, "response.id").String()
		if c.sounds != id {
			return
		}
		c.sounds = ""
		switch {
		case c.rtc != nil: // it tells by itself, once it has played that
		case gjson.GetBytes(frame, "response.status").String() == "cancelled":
			c.tellOthers(bufferEvent(bufferCleared, id))
		default:
			c.tellOthers(bufferEvent(bufferStopped, id))
		}
	default:
		c.tellOthers(frame)
	}
}

func (c *conn) tellOthers(frame []byte) {
	for _, o := range c.others {
		_ = o.send(frame)
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
	return []byte(`{"type":"` + kind + `","event_id":"event_` + rand.Text()[:16] + `","response_id":"` + response + `"}`)
}
