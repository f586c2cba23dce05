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

// maxStreams is how many event streams one caller may hold: some tabs on some devices. More are refused,
// so that a page that forgets to close them cannot take every connection.
const maxStreams = 16

// streams are the event streams: of all that is the caller's, and of one piece of work.
type streams struct {
	router Router        // Set once
	auth   *auth         // Set once
	times  *deadlines    // Set once
	closed chan struct{} // Set once: closed when the server closes
	life   string        // Set once: event ids of another process never match

	mu      sync.Mutex
	open    map[handoff.Caller]int // Guarded by mu
	refused uint64                 // Guarded by mu: streams refused because there were too many
}

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

// parse reads an event id that we gave out: "life-number". One of another process does not parse.
func (s *streams) parse(id string) (uint64, bool) {
	text, ok := strings.CutPrefix(id, s.life+"-")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil
}

// feed streams what happens to the caller's work as Server-Sent Events. Each has an id to come back
// with. A client that brings none, or one that the backlog does not reach, first gets `event: reset`: it
// reads everything anew.
func (s *streams) feed(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	if !s.enter(g.Caller) {
		return handoff.Fault(handoff.CodeOverloaded, "Switchboard", "too many event streams")
	}
	defer s.leave(g.Caller)
	sub, start, missed := s.begin(s.router.Feed(g), r.Header.Get("Last-Event-ID"))
	defer sub.Stop()

	out := s.openStream(w, start)
	write := func(e handoff.PageEvent) bool { return !s.hears(g, e) || out.line(e.ID, written(e)) }
	pass(s, r, out, missed, sub.Events, write) // who fell behind comes back with its last id
	return nil
}

// openStream begins an answer of Server-Sent Events with its first lines.
func (s *streams) openStream(w http.ResponseWriter, start string) eventWriter {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy that collects would show everything late
	w.WriteHeader(http.StatusOK)
	out := eventWriter{w: w, control: http.NewResponseController(w), life: s.life, patience: s.times.event}
	out.raw("retry: 1000\n" + start + "\n")
	return out
}

// begin subscribes after the event the client knows. start is a reset event where it must read anew.
func (s *streams) begin(f *handoff.Feed, id string) (
	sub *handoff.FeedListener, start string, missed []handoff.PageEvent,
) {
	if after, ok := s.parse(id); ok {
		sub, missed, complete := f.Listen(after)
		if complete {
			return sub, "", missed
		}
		sub.Stop()
	}
	// The reset carries the id from before the subscription, so nothing falls between the two.
	at := f.Last()
	sub, missed, _ = f.Listen(at)
	return sub, fmt.Sprintf("id: %s-%d\nevent: reset\ndata: {}\n", s.life, at), missed
}

// eventWriter writes to one stream. False means that the client has gone or takes nothing.
type eventWriter struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	life     string
	patience time.Duration // for one write
}

// written is an event as it goes out: its record without items, for each of them comes as an event of its own.
func written(e handoff.PageEvent) any {
	if e.Record == nil {
		return e
	}
	return struct {
		handoff.PageEvent
		Record brief `json:"record"`
	}{e, briefOf(*e.Record)}
}

// line writes an event with the number to come back with.
func (o eventWriter) line(id uint64, event any) bool {
	data, err := json.Marshal(event)
	if err != nil {
		return false
	}
	return o.raw(fmt.Sprintf("id: %s-%d\ndata: %s\n\n", o.life, id, data))
}

func (o eventWriter) raw(text string) bool {
	_ = o.control.SetWriteDeadline(time.Now().Add(o.patience)) // a writer without deadlines fails on its own
	if _, err := o.w.Write([]byte(text)); err != nil || o.control.Flush() != nil {
		return false
	}
	_ = o.control.SetWriteDeadline(time.Time{}) // over HTTP/2 one that passes ends the stream, also between two writes
	return true
}

// hears reports whether an event is about what a grant may know of.
func (s *streams) hears(g handoff.Grant, e handoff.PageEvent) bool {
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
