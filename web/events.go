package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"switchboard/handoff"
)

// Feeds returns the feed of a caller. It is the same feed as long as the caller has open work, calls or streams, and
// for a short time after; a later feed continues with higher ids.
type Feeds interface {
	Feed(g handoff.Grant) *handoff.Feed
}

// Bounds of open event streams. More are refused, so that a page that does not close its streams cannot take all
// connections.
const (
	maxStreams = 16   // of a caller: enough for several tabs on several devices. Each key has its own, and so has the page
	maxOfKey   = 1000 // of all callers of a key
)

// A streamShare is what may have [maxStreams] event streams, so that no program takes those of a person: a caller with
// one key, or with logins by that key, or by links. Without a caller, it is all of a key.
type streamShare struct {
	caller        handoff.Caller
	key           string
	login, linked bool
}

// streams serves the event streams: that of all the caller's work, and those of single pieces of work.
type streams struct {
	router Router        // Set once
	times  *deadlines    // Set once
	closed chan struct{} // Set once: closed when the server closes
	life   string        // Set once: random, so that event ids of another process never match

	mu      sync.Mutex
	open    map[streamShare]int // Guarded by mu
	refused uint64              // Guarded by mu: streams refused because there were too many
}

// sharesOf returns what a stream of a grant counts to: a caller's share, and that of the key.
func sharesOf(g handoff.Grant) (mine, all streamShare) {
	login := strings.HasPrefix(g.By, grantorLogin+" ")
	return streamShare{g.Caller, g.Key, login, g.Linked}, streamShare{key: g.Key}
}

// enter counts a new stream, and reports whether the holder of the grant may have one more.
func (s *streams) enter(g handoff.Grant) bool {
	mine, all := sharesOf(g)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[mine] >= maxStreams || !mine.login && s.open[all] >= maxOfKey {
		s.refused++
		return false
	}
	s.open[mine]++
	s.open[all]++
	return true
}

func (s *streams) leave(g handoff.Grant) {
	mine, all := sharesOf(g)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, share := range []streamShare{mine, all} {
		if s.open[share]--; s.open[share] == 0 {
			delete(s.open, share)
		}
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
	if !s.enter(g) {
		return handoff.Fault(handoff.CodeOverloaded, "Switchboard", "too many event streams")
	}
	defer s.leave(g)
	sub, start, missed := s.subscribe(s.router.Feed(g), r.Header.Get("Last-Event-ID"))
	defer sub.Stop()
	if g.Page && g.AllowsServers() {
		sub.MarkPage()
	}
	out := s.openStream(w, start)
	write := func(e handoff.PageEvent) bool {
		if e.Question != nil { // which may be closed by now
			e.Question = cmp.Or(s.offered(g, e.Question.ID), e.Question)
		}
		return !s.maySee(g, e) || out.line(e.ID, wireEvent(e))
	}
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

// offered returns an open question as a grant sees it, or nil.
func (s *streams) offered(g handoff.Grant, id handoff.QuestionID) *handoff.RecordQuestion {
	all := s.router.Questions(g)
	if i := slices.IndexFunc(all, func(q handoff.RecordQuestion) bool { return q.ID == id }); i >= 0 {
		return &all[i]
	}
	return nil
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
