package simulator

import (
	"context"
	"crypto/rand"
	"io"
	"mime"
	"mime/multipart"
	"net/http"

	"github.com/gorilla/websocket"
	"github.com/tidwall/gjson"

	"switchboard/handoff"
)

// A Browser is the far end of a WebRTC call: it gives and takes events of the protocol, with its sound among them, as a
// WebSocket would.
type Browser interface {
	// Run passes the events of the browser to take, in order, until the browser has gone or Close is called. When the
	// sound of a response was played, it also passes output_audio_buffer.stopped or cleared, with only a response_id.
	Run(take func(event []byte))
	// Send enqueues an event; false: the browser is too slow, or has gone. An output_audio_buffer.clear stops the
	// browser's sound.
	Send(event []byte) bool
	// Close ends the call once everything was sent, and returns when Run has.
	Close()
}

// An Answer answers an SDP offer. The caller must call the browser's Run. An error is the answer to the offer.
type Answer func(ctx context.Context, offer string) (answer string, b Browser, err *handoff.Error)

// maxOffer bounds an offer with the session that comes along, in bytes.
const maxOffer = 256 << 10

// offered serves POST /v1/realtime/calls: an SDP offer, raw or in a form with a session. The call outlives the request,
// is counted in open, and ends with the context calls.
func (m *Model) offered(calls context.Context, open *gate, w http.ResponseWriter, r *http.Request) {
	offer, session, err := readOffer(http.MaxBytesReader(w, r.Body, maxOffer), r.Header.Get("Content-Type"))
	if err != nil {
		refuseHTTP(w, http.StatusBadRequest, "invalid_request_error", "The offer cannot be read: "+err.Error())
		return
	}
	if gjson.GetBytes(session, "model").String() == "" && r.URL.Query().Get("model") == "" {
		refuseHTTP(w, http.StatusBadRequest, "invalid_request_error", "You must provide a model parameter.")
		return
	}
	first := newSettings()
	if session != nil {
		var f *fault
		if first, f = first.patch(session, false); f != nil {
			refuseHTTP(w, http.StatusBadRequest, "invalid_request_error", f.message)
			return
		}
	}
	if !open.enter() {
		refuseHTTP(w, http.StatusServiceUnavailable, "server_error", shuttingDown)
		return
	}
	answer, browser, fault := m.answer(r.Context(), offer)
	if fault != nil {
		open.inside.Done()
		refuseHTTP(w, http.StatusBadRequest, "invalid_request_error", fault.Error())
		return
	}
	id := "rtc_" + rand.Text()
	c := m.newConn()
	c.rtc = browser
	m.keep(id, c) // before anybody knows the id
	go func() {   // Serve waits for it
		defer open.inside.Done()
		m.converse(calls, c, id, first)
	}()
	w.Header().Set("Content-Type", "application/sdp")
	w.Header().Set("Location", "/v1/realtime/calls/"+id)
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, answer)
}

// readOffer reads the offer, and the session in its form; nil: there is none.
func readOffer(body io.Reader, kind string) (offer string, session []byte, err error) {
	kind, params, err := mime.ParseMediaType(kind)
	if err != nil || kind != "multipart/form-data" {
		raw, err := io.ReadAll(body)
		return string(raw), nil, err
	}
	form, err := multipart.NewReader(body, params["boundary"]).ReadForm(maxOffer)
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = form.RemoveAll() }()
	part := func(name string) string {
		if all := form.Value[name]; len(all) > 0 {
			return all[0]
		}
		return ""
	}
	if text := part("session"); text != "" {
		if !readable(text) || !gjson.Parse(text).IsObject() {
			return "", nil, errSession
		}
		session = []byte(text)
	}
	return part("sdp"), session, nil
}

var errSession = handoff.Fault(handoff.CodeMalformed, "the session is not a JSON object", "")

// hangUp serves POST /v1/realtime/calls/{id}/hangup.
func (m *Model) hangUp(w http.ResponseWriter, r *http.Request) {
	if c := m.find(w, r.PathValue("id")); c != nil {
		c.do(func(s *session) { s.close(Close{Code: websocket.CloseNormalClosure, Reason: "hung up"}) })
	}
}

// listen passes events of a browser to the run loop until the browser has gone.
func (c *conn) listen() {
	defer close(c.in)
	c.rtc.Run(func(event []byte) {
		select {
		case c.in <- event:
		case <-c.done:
		}
	})
}

// play sends the frames of the run loop to a browser, then ends its call.
func (c *conn) play(lost context.CancelFunc) {
	for frame := range c.out {
		c.unsent.Add(-int64(len(frame)))
		if !c.rtc.Send(frame) {
			lost()
			continue
		}
	}
	c.rtc.Close()
}
