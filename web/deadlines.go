package web

import (
	"io"
	"net/http"
	"time"
)

// deadlines bound what a client may make us wait for. Streams and sockets live beyond them: a stream
// renews its own with each write, and a socket leaves net/http.
type deadlines struct {
	header  time.Duration // for the head of a request
	body    time.Duration // for its body, after that
	rest    time.Duration // for what is left of the body of a request that is refused
	answer  time.Duration // from the head of a request to the last byte of its answer
	idle    time.Duration // between two requests
	unkeyed time.Duration // the same where no request came with a key or a login yet
	event   time.Duration // for one write to a stream
	beat    time.Duration // how often a quiet stream says that it lives; proxies cut at 30 s or more
}

// usual are the deadlines outside of tests. answer bounds the slowest handler, which asks every machine,
// and a reader on a slow line.
var usual = deadlines{
	header: 10 * time.Second, body: 15 * time.Second, rest: time.Second, answer: 2 * time.Minute,
	idle: 2 * time.Minute, unkeyed: 5 * time.Second,
	event: 10 * time.Second, beat: 15 * time.Second,
}

// apply sets what net/http itself watches. Its read timeout counts from the first byte of a request, and
// also ends the wait for a body that no handler reads.
func (d deadlines) apply(h *http.Server) {
	h.ReadHeaderTimeout, h.ReadTimeout, h.WriteTimeout, h.IdleTimeout = d.header, d.header+d.body, d.answer, d.idle
	watch(h, d.unkeyed)
}

// maxRest is how many bytes of a body are taken that is not wanted. It is the largest body that is taken anywhere, so
// that it may go to a wrong address.
const maxRest = maxResponse

// takeRest takes what is left of the body of a request that is refused, within its bounds: a client may read the answer
// only once it has sent all of it, and when a connection is closed with something unread in it, the answer is lost.
func (d deadlines) takeRest(w http.ResponseWriter, r *http.Request) {
	// One that waits to be told to go on has not begun, and over HTTP/2 a refusal ends one stream only.
	if r.ContentLength > maxRest || r.Header.Get("Expect") != "" || r.ProtoMajor > 1 {
		return
	}
	if http.NewResponseController(w).SetReadDeadline(time.Now().Add(d.rest)) != nil {
		return // it would have no bound
	}
	if n, err := io.CopyN(io.Discard, r.Body, maxRest); n < maxRest && err == io.EOF {
		arrived(w)
	}
}

// arrived lifts the read deadline of a request that is here as a whole; else it would end a handler that
// works longer.
func arrived(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // a writer without deadlines needs none
}
