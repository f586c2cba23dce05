package mcp

import (
	"net/http"
	"strings"
	"time"
)

const (
	// beat is the time between two heartbeats of a quiet stream; proxies cut quiet ones after 30 s or more.
	beat = 15 * time.Second
	// writeWithin bounds one write to a client. Between two writes an answer may wait, for a person too.
	writeWithin = 10 * time.Second
)

// A stream is the answer to an HTTP request, which may last. Each write has a deadline of its own, and heartbeats are
// sent between events that are far apart. One goroutine writes all of it.
type stream struct {
	http.ResponseWriter               // Owned by run, but for its header
	acts                chan func()   // what run is to do
	last, over          chan struct{} // closed: nothing more is to be written; run has ended
	events              bool          // Owned by run: the answer is a stream of events, which has begun
}

// newStream returns the stream of an answer. end is called when nothing more is written.
func newStream(w http.ResponseWriter, every time.Duration) (s *stream, end func()) {
	s = &stream{ResponseWriter: w, acts: make(chan func()), last: make(chan struct{}), over: make(chan struct{})}
	go s.run(every)
	return s, func() {
		close(s.last)
		<-s.over
	}
}

func (s *stream) run(every time.Duration) {
	defer close(s.over)
	control := http.NewResponseController(s.ResponseWriter)
	_ = control.SetWriteDeadline(time.Time{}) // that of the server; fails for a writer that has none
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		var act func()
		select {
		case act = <-s.acts:
		case <-s.last:
			return
		case <-tick.C:
			if !s.events {
				continue
			}
			act = func() {
				_, _ = s.ResponseWriter.Write([]byte(": alive\n\n")) // who has left is noticed by the request's context
				_ = control.Flush()
			}
		}
		_ = control.SetWriteDeadline(time.Now().Add(writeWithin))
		act()
		_ = control.SetWriteDeadline(time.Time{}) // over HTTP/2, a deadline ends the stream even between two writes
		tick.Reset(every)
	}
}

// do has run do something, and waits for it. After the end it does nothing.
func (s *stream) do(act func()) {
	done := make(chan struct{})
	select {
	case s.acts <- func() { defer close(done); act() }:
		<-done
	case <-s.over:
	}
}

// WriteHeader implements [http.ResponseWriter].
func (s *stream) WriteHeader(status int) {
	s.do(func() { s.begin(); s.ResponseWriter.WriteHeader(status) })
}

// Write implements [http.ResponseWriter]. What the library writes of a stream are whole events.
func (s *stream) Write(p []byte) (n int, err error) {
	err = http.ErrHandlerTimeout // unless it is written
	s.do(func() { s.begin(); n, err = s.ResponseWriter.Write(p) })
	return n, err
}

// begin notes what the answer is when its header is about to be sent.
func (s *stream) begin() {
	if s.events {
		return
	}
	if s.events = strings.HasPrefix(s.Header().Get("Content-Type"), "text/event-stream"); s.events {
		s.Header().Set("X-Accel-Buffering", "no") // nginx passes events on as they come
	}
}

// FlushError implements the flushing of [http.ResponseController].
func (s *stream) FlushError() (err error) {
	err = http.ErrHandlerTimeout
	s.do(func() { err = http.NewResponseController(s.ResponseWriter).Flush() })
	return err
}
