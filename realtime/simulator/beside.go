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

// keep adds a call, so that it can be joined; a nil conn removes it.
func (m *Model) keep(id string, c *conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls[id] = c; c == nil {
		delete(m.calls, id)
	}
}

// find returns an open call. If there is none it answers the request and returns nil.
func (m *Model) find(w http.ResponseWriter, id string) *conn {
	m.mu.Lock()
	call := m.calls[id]
	m.mu.Unlock()
	if call == nil {
		refuseHTTP(w, http.StatusNotFound, "invalid_request_error", "No session found for the provided call_id")
	}
	return call
}

// join adds a second socket to a call. It gets the session, and then all events but sound; its own events count as the
// client's. It ends with the call, but the call does not end with it.
func (m *Model) join(w http.ResponseWriter, r *http.Request, id string) {
	call := m.find(w, id)
	if call == nil {
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
	for in := call.do(func(s *session) { call.welcome(s, c) }); in; {
		select {
		case frame, ok := <-c.in:
			in = ok && call.do(func(s *session) { call.takeBeside(s, c, frame) })
		case <-call.done:
			in = false
		case <-r.Context().Done():
			in = false
		}
	}
	call.do(func(*session) {
		call.others = slices.DeleteFunc(call.others, func(o *conn) bool { return o == c })
	})
	c.deadline.Store(time.Now().Add(endWait).UnixNano())
	close(c.done)
	close(c.out)
	wg.Wait()
	_ = ws.Close()
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

// welcome adds a socket to the call. It first gets the session.
func (c *conn) welcome(s *session, other *conn) {
	c.others = append(c.others, other)
	s.emit("session.created", fields{"session": s.settings})
	_ = other.send(s.out[len(s.out)-1])
	s.out = s.out[:len(s.out)-1]
}

// takeBeside handles a frame of a socket that joined the call. Only that socket gets an error about it.
func (c *conn) takeBeside(s *session, from *conn, frame []byte) {
	if c.rtc != nil && gjson.GetBytes(frame, "type").String() == bufferClear {
		_ = c.rtc.Send(frame) // a browser that has gone plays nothing
		return
	}
	s.receive(time.Now(), frame)
	s.out = slices.DeleteFunc(s.out, func(event []byte) bool {
		return gjson.GetBytes(event, "type").String() == "error" && from.send(event)
	})
}

// copyToOthers sends an event to the sockets that joined the call; in place of sound, they get events when it begins
// and stops. A socket that is too slow misses the event.
func (c *conn) copyToOthers(frame []byte) {
	if len(c.others) == 0 {
		return
	}
	switch kind := gjson.GetBytes(frame, "type").String(); kind {
	case "response.output_audio.delta":
		if id := gjson.GetBytes(frame, "response_id").String(); c.soundingResponse != id {
			c.soundingResponse = id
			c.tellOthers(bufferEvent(bufferStarted, id))
		}
	case "response.done":
		c.tellOthers(frame)
		id := gjson.GetBytes(frame, "response.id").String()
		if c.soundingResponse != id {
			return
		}
		c.soundingResponse = ""
		switch {
		case c.rtc != nil: // the browser reports it once it has played all
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
	return []byte(`{"type":"` + kind + `","event_id":"event_` + rand.Text()[:16] +
		`","response_id":"` + response + `"}`)
}
