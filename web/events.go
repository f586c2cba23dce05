package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"switchboard/handoff"
)

// maxStreams is how many event streams one caller may have open: enough for several tabs on several devices. More are
// refused, so that a page that does not close its streams cannot take all connections.
const maxStreams = 16

// streams serves the event streams: that of all the caller's work, and those of single pieces of work.
type streams struct {
	router Router        // Set once
	auth   *auth         // Set once
	times  *deadlines    // Set once
	closed chan struct{} // Set once: closed when the server closes
	life   string        // Set once: random, so that event ids of another process never match

	mu      sync.Mutex
	open    map[handoff.Caller]int // Guarded by mu
	refused uint64                 // Guarded by mu: streams refused because there were too many
}

// enter counts a new stream of a caller, and reports whether the caller may have one more.
func (s *streams) enter(c handoff.Caller) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[c] >= maxStreams {
		s.refused++
		return false
	}
	s.open[c]++
	return true
}

func (s *streams) leave(c handoff.Caller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[c]--; s.open[c] == 0 {
		delete(s.open, c)
	}
}

// parse returns the number of an event id "life-number", and false for an id of another process.
func (s *streams) parse(id string) (uint64, bool) {
	text, ok := strings.CutPrefix(id, s.life+"-")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil
}

// feed streams the events of all the caller's work as Server-Sent Events. A client can reconnect with the id of its
// last event. If it has none, or the backlog does not reach back to it, the stream begins with `event: reset`, which
// tells the client to read everything again.
func (s *streams) feed(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	if !s.enter(g.Caller) {
		return handoff.Fault(handoff.CodeOverloaded, "Switchboard", "too many event streams")
	}
	defer s.leave(g.Caller)
	sub, start, missed := s.subscribe(s.router.Feed(g), r.Header.Get("Last-Event-ID"))
	defer sub.Stop()

	out := s.openStream(w, start)
	write := func(e handoff.PageEvent) bool { return !s.maySee(g, e) || out.line(e.ID, wireEvent(e)) }
	pass(s, r, out, missed, sub.Events, write) // a client that fell behind reconnects with its last id
	return nil
}

// openStream begins an answer of Server-Sent Events with its first lines.
func (s *streams) openStream(w http.ResponseWriter, start string) eventWriter {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy must not delay events to collect them
	w.WriteHeader(http.StatusOK)
	out := eventWriter{w: w, control: http.NewResponseController(w), life: s.life, patience: s.times.event}
	out.raw("retry: 1000\n" + start + "\n")
	return out
}

// subscribe subscribes to a feed after the client's last event. start is a reset event if the client has to read
// everything again; missed are the events since.
func (s *streams) subscribe(f *handoff.Feed, id string) (
	sub *handoff.FeedListener, start string, missed []handoff.PageEvent,
) {
	if after, ok := s.parse(id); ok {
		sub, missed, complete := f.Listen(after)
		if complete {
			return sub, "", missed
		}
		sub.Stop()
	}
	// The reset has the id from before the subscription, so that no event is lost between the two.
	at := f.Last()
	sub, missed, _ = f.Listen(at)
	return sub, fmt.Sprintf("id: %s-%d\nevent: reset\ndata: {}\n", s.life, at), missed
}

// eventWriter writes to one stream. Its methods return false if the client has left or takes nothing.
type eventWriter struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	life     string
	patience time.Duration // for one write
}

// wireEvent returns an event as it is sent: its record has no items, because each item has an event of its own.
func wireEvent(e handoff.PageEvent) any {
	if e.Record == nil {
		return e
	}
	return struct {
		handoff.PageEvent
		Record brief `json:"record"`
	}{e, briefOf(*e.Record)}
}

// line writes an event with its id.
func (o eventWriter) line(id uint64, event any) bool {
	data, err := json.Marshal(event)
	if err != nil {
		return false
	}
	return o.raw(fmt.Sprintf("id: %s-%d\ndata: %s\n\n", o.life, id, data))
}

func (o eventWriter) raw(text string) bool {
	_ = o.control.SetWriteDeadline(time.Now().Add(o.patience)) // fails for a writer that has no deadlines
	if _, err := o.w.Write([]byte(text)); err != nil || o.control.Flush() != nil {
		return false
	}
	_ = o.control.SetWriteDeadline(time.Time{}) // over HTTP/2, a deadline ends the stream even between two writes
	return true
}

// maySee reports whether a grant allows the work or the server that an event is about.
func (s *streams) maySee(g handoff.Grant, e handoff.PageEvent) bool {
	switch {
	case g.AllowsServers():
		return true
	case e.Question != nil:
		return g.AllowsServer(e.Question.Server)
	case e.Record != nil:
		_, err := s.router.Handoff(g, e.Record.ID)
		return err == nil
	case e.Handoff != "":
		_, err := s.router.Handoff(g, e.Handoff)
		return err == nil
	}
	return true
}
