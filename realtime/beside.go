package realtime

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"sync"

	"github.com/gorilla/websocket"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// maxBeside bounds the sockets beside a call's own client. Who comes later is refused.
const maxBeside = 4

// serveBeside serves GET /v1/realtime?call_id=: one more socket on a call of this caller, which sees what the client
// sees, and whose events count as the client's. The call goes on without it, and ends it. It returns when the
// socket or the call has ended.
func (f *Front) serveBeside(w http.ResponseWriter, r *http.Request, grant handoff.Grant, id string, answered func()) {
	c, fault := f.enterBeside(grant, id)
	if fault != nil {
		fault.Reply(w, true)
		return
	}
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		c.besides--
	}()
	if !websocket.IsWebSocketUpgrade(r) {
		handoff.Fault(handoff.CodeMalformed, "this address speaks WebSocket", "the request is not an upgrade").Reply(w, true)
		return
	}
	s := f.upgrade(w, r, at(id), c.log)
	if s == nil {
		return
	}
	answered()
	f.counts.beginBeside()
	defer f.counts.endBeside(s)
	c.carryBeside(s)
}

// enterBeside finds a call that one more socket may join, and counts it.
func (f *Front) enterBeside(grant handoff.Grant, id string) (*Call, *handoff.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.calls[id]
	switch {
	case c == nil || !c.grant.MayJoin(grant):
		return nil, &handoff.Error{Code: handoff.CodeNotFound, Subject: "such call", Param: "call_id"}
	case c.besides >= maxBeside:
		return nil, &handoff.Error{Code: handoff.CodeLimited, Subject: "more sockets on this call", Param: "call_id"}
	}
	c.besides++
	return c, nil
}

// carryBeside carries a socket until it or the call has ended.
func (c *Call) carryBeside(s *socket) {
	c.do(func() { c.welcome(s) })
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { s.Run(func(event []byte) { c.do(func() { c.fromBeside(s, event) }) }) })
	select {
	case <-s.Ending():
		c.do(func() { c.leave(s) })
	case <-c.past:
		s.Close(c.cause)
	}
}

// welcome lets a socket take part: it begins with the session as the client sees it.
func (c *Call) welcome(l leg) {
	c.others = append(slices.Clip(c.others), l)
	if c.shown != "" {
		l.Send(events.Encode(events.Object{"type": events.TypeSessionCreated, "event_id": c.ids.Next(), "session": json.RawMessage(c.shown)}))
	}
}

// leave lets a socket go.
func (c *Call) leave(l leg) {
	c.others = slices.DeleteFunc(slices.Clone(c.others), func(o leg) bool { return o == l })
}

// fromBeside handles an event of a socket beside the client. The sound of a call in a browser is not its to set.
func (c *Call) fromBeside(l leg, event []byte) {
	c.asker = l
	defer func() { c.asker = nil }()
	if c.playback.told && !handoff.TooDeep(event) && events.IsObject(event) {
		switch events.PeekType(event) {
		case events.TypePlayed, events.TypeFormats, events.TypeOpened, events.TypeOpening:
			return
		case events.TypeOutputClear: // what plays is with the client's leg, or with the provider
			if c.attached == nil {
				c.toLeg(event)
				return
			}
		case events.TypeSessionUpdate:
			event = events.Remove(events.Remove(event, "session.audio.input.format"), "session.audio.output.format")
		}
	}
	c.fromClient(event)
}

// reply answers whoever sent the event that is handled: no other client of the call made it, and some end with any
// error that they are told.
func (c *Call) reply(event []byte) {
	switch l := c.asker; {
	case l == nil:
		c.toLeg(event)
	case !l.Send(event):
		c.leave(l)
	}
}

// toOthers sends what the client sees to the sockets beside it. One that does not keep up ends alone.
func (c *Call) toOthers(event []byte) {
	for _, l := range c.others {
		if !l.Send(bytes.Clone(event)) { // each has its own
			c.leave(l)
		}
	}
}
