package realtime

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/gorilla/websocket"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// codeBeta is OpenAI's own word for it: the protocol had a beta with other names and another session, which ended in
// May 2026, and who still asks for it is refused.
const codeBeta = "beta_api_shape_disabled"

// betaHint tells what to do instead.
const betaHint = "The beta of the Realtime API has ended. Leave OpenAI-Beta away, and use a client that speaks the API as it is now."

// asksBeta reports whether a client asks for the beta: by a header, or in a browser by a subprotocol.
func asksBeta(r *http.Request) bool {
	return strings.Contains(r.Header.Get("OpenAI-Beta"), "realtime=v1") || slices.Contains(websocket.Subprotocols(r), "openai-beta.realtime-v1")
}

// refuseBeta tells it on the socket, as OpenAI does: a browser cannot read why an upgrade was refused.
func (f *Front) refuseBeta(w http.ResponseWriter, r *http.Request) {
	fault := handoff.Malformed("OpenAI-Beta", betaHint)
	if !websocket.IsWebSocketUpgrade(r) {
		fault.Reply(w, true)
		return
	}
	s := f.upgrade(w, r, nil, f.log)
	if s == nil {
		return
	}
	s.Send(events.Error("event_beta", events.Fault{Kind: "invalid_request_error", Code: codeBeta, Message: betaHint}))
	var running sync.WaitGroup
	running.Go(func() { s.Run(func([]byte) {}) }) // nobody hears what it says
	s.Close(fault)
	running.Wait()
}
