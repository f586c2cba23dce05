package web

import (
	"io"
	"net/http"
	"time"
)

// deadlines bound how long a client can keep us waiting. Streams and sockets may last longer: a stream sets a new
// deadline for each write, and a socket is taken over from net/http.
type deadlines struct {
	header  time.Duration // for the header of a request
	body    time.Duration // for its body, after the header
	rest    time.Duration // for the rest of the body of a request that is refused
	answer  time.Duration // from the header of a request to the last byte of its answer
	idle    time.Duration // between two requests of a connection
	unkeyed time.Duration // between two requests of a connection that has had none with a key or a login
	event   time.Duration // for one write to a stream
	beat    time.Duration // between two heartbeats of a quiet stream; proxies cut quiet ones after 30 s or more
	asks    time.Duration // see [Server.whileGranted]; what it ends is to end within 15 s
}

// usual are the deadlines outside of tests. answer is long enough for the slowest handler, which asks every machine,
// and for a reader on a slow connection.
var usual = deadlines{
	header: 10 * time.Second, body: 15 * time.Second, rest: time.Second, answer: 2 * time.Minute,
	idle: 2 * time.Minute, unkeyed: 5 * time.Second,
	event: 10 * time.Second, beat: 15 * time.Second, asks: 10 * time.Second,
}

// apply sets the timeouts of net/http. Its read timeout counts from the first byte of a request, and also bounds a body
// that no handler reads.
func (d deadlines) apply(h *http.Server) {
	h.ReadHeaderTimeout, h.ReadTimeout, h.WriteTimeout, h.IdleTimeout = d.header, d.header+d.body, d.answer, d.idle
	watch(h, d.unkeyed)
}

// maxRest is how many bytes are read and discarded of an unwanted body: as many as the largest body of any route,
// because that may be sent to a wrong path.
const maxRest = maxResponse

// takeRest reads the rest of the body of a request that is refused, within bounds. Some clients read the answer only
// when they have sent all, and closing a connection with unread data would lose the answer.
func (d deadlines) takeRest(w http.ResponseWriter, r *http.Request) {
	// A client that sent Expect has not sent its body yet, and over HTTP/2 a refusal ends only one stream.
	if r.ContentLength > maxRest || r.Header.Get("Expect") != "" || r.ProtoMajor > 1 {
		return
	}
	if http.NewResponseController(w).SetReadDeadline(time.Now().Add(d.rest)) != nil {
		return // the read below would have no bound
	}
	if n, err := io.CopyN(io.Discard, r.Body, maxRest); n < maxRest && err == io.EOF {
		arrived(w)
	}
}

// arrived removes the read deadline of a request whose body has arrived; otherwise it would end a handler that takes
// longer.
func arrived(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // fails for a writer that has no deadlines
}
