package realtime

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// ServeWebSocket serves GET /v1/realtime?model= to a client that was authenticated as grant, and returns once the
// request is answered: the call goes on in Run, and keeps nothing of the request. Host and Origin were checked before.
// The model is dialled before the upgrade, so that its failure is an HTTP error.
func (f *Front) ServeWebSocket(w http.ResponseWriter, r *http.Request, grant handoff.Grant) {
	f.launch(w, r, func(ctx context.Context, w http.ResponseWriter, r *http.Request, answered func()) *handoff.Error {
		var carry func()
		var fault *handoff.Error
		var answering sync.WaitGroup
		// In a goroutine of its own: dialing and upgrading need a large stack, which this one would keep for the whole
		// call.
		answering.Go(func() { carry, fault = f.openWebSocket(ctx, w, r, grant) })
		answering.Wait()
		if carry == nil {
			return fault
		}
		answered()
		carry()
		return nil
	})
}

// openWebSocket upgrades the request, and returns a function that carries the socket until it ends. If that is nil,
// there is no socket, and a nil fault means that the client was told why.
func (f *Front) openWebSocket(
	ctx context.Context, w http.ResponseWriter, r *http.Request, grant handoff.Grant,
) (carry func(), fault *handoff.Error) {
	if asksBeta(r) {
		f.refuseBeta(w, r)
		return nil, nil
	}
	query := r.URL.Query()
	if query.Get("intent") == "transcription" {
		return nil, handoff.Malformed("intent", "a session that only transcribes has no voice that could hand "+
			"anything over; leave intent away, or ask the model's own server")
	}
	if id := query.Get("call_id"); query.Get(paramRejoin) == "1" && query.Has("call_id") {
		return f.openRejoined(w, r, grant, id)
	} else if query.Has("call_id") {
		return f.openBeside(w, r, grant, id)
	}
	if !websocket.IsWebSocketUpgrade(r) {
		return nil, noUpgrade()
	}
	grant = withLanguage(r, grant)
	pass, fault := f.enter(r.Context(), grant)
	if fault != nil {
		return nil, fault
	}
	defer func() {
		if carry == nil {
			pass.leave()
		}
	}()
	dialing, cancel := whileBoth(r.Context(), ctx)
	first, named := opening(grant.Session)
	model, fault := f.provider.dialModel(dialing, cmp.Or(named, query.Get("model")), r.Header)
	cancel()
	if ctx.Err() != nil { // the shutdown cut the dial
		if fault == nil {
			model.Abandon()
		}
		return nil, handoff.Fault(handoff.CodeShutdown, "", "")
	}
	if fault != nil {
		f.logUnreachable(fault)
		return nil, fault
	}
	id, hold := newCallID(f.config.Instance), f.holdOf(r, grant)
	var call *Call
	// The call is admitted before the answer: a client that has read the id may use it at once.
	client := f.upgrade(w, r, locationOf(id), f.log, func(client *socket) {
		call = f.admit(grant, id, hold, client, model, func(c *Call) {
			c.renewal.enable(f.provider.sessionOpener(cmp.Or(named, query.Get("model")), r.Header))
			c.legs.takesOurs = tellsOurs(query)
			// Without our events the client could not be told to stop the sound.
			c.hearing.yielding.lowers = query.Get(paramLowers) == "1" && c.legs.takesOurs
			// A browser cannot read the headers of the upgrade.
			if c.legs.takesOurs {
				client.Send(events.Encode(events.Object{
					"type": events.TypeCall, "event_id": c.ids.Next(), "call_id": id,
				}))
			}
			if c.session.opening = first; first != nil {
				c.filter.AwaitOpening()
			}
		})
	})
	if client == nil {
		model.Abandon()
		return nil, nil
	}
	return func() {
		defer pass.leave()
		_ = f.serve(ctx, call, client, model, pass) // how the call ended was logged by the call
	}, nil
}

// tellsOurs reports whether a client asks for events of ours.
func tellsOurs(query url.Values) bool { return query.Get("events") == "handoff" }

// locationOf returns the header with which the answer to an upgrade names the call of the socket.
func locationOf(id string) http.Header { return http.Header{"Location": {callPath + id}} }

func noUpgrade() *handoff.Error {
	return handoff.Fault(handoff.CodeMalformed, "this address speaks WebSocket", "the request is not an upgrade")
}

// upgrade makes a socket of a request; nil: it was no valid upgrade, and the client was told. ready, if not nil, is
// called with the socket before the client has its answer. The HTTP edge has checked the Origin.
func (f *Front) upgrade(
	w http.ResponseWriter, r *http.Request, answer http.Header, log *zap.Logger, ready func(*socket),
) *socket {
	if !websocket.IsWebSocketUpgrade(r) {
		noUpgrade().Reply(w, true)
		return nil
	}
	upgrader := websocket.Upgrader{
		Subprotocols: []string{"realtime"}, CheckOrigin: func(*http.Request) bool { return true },
		ReadBufferSize: readBuffer, WriteBufferPool: &f.buffers,
	}
	hijacked := hijacker{ResponseWriter: w, holdAnswer: true}
	conn, err := upgrader.Upgrade(&hijacked, r, answer)
	if err != nil {
		log.Debug("upgrade refused", zap.Error(err))
		return nil
	}
	s := newSocket(conn, hijacked.conn, f.patient, log)
	if ready != nil {
		ready(s)
	}
	hijacked.conn.release()
	return s
}

// codeBeta is OpenAI's error code for clients of the beta of this protocol, which had other names and another session,
// and ended in May 2026.
const codeBeta = "beta_api_shape_disabled"

// betaHint is the message for such a client.
const betaHint = "The beta of the Realtime API has ended. Leave OpenAI-Beta away, and use a client that speaks " +
	"the API as it is now."

// asksBeta reports whether a client asks for the beta: by a header, or in a browser by a subprotocol.
func asksBeta(r *http.Request) bool {
	return strings.Contains(r.Header.Get("OpenAI-Beta"), "realtime=v1") ||
		slices.Contains(websocket.Subprotocols(r), "openai-beta.realtime-v1")
}

// refuseBeta refuses a client of the beta on the socket, as OpenAI does: a browser cannot read why an upgrade was
// refused.
func (f *Front) refuseBeta(w http.ResponseWriter, r *http.Request) {
	fault := handoff.Malformed("OpenAI-Beta", betaHint)
	if !websocket.IsWebSocketUpgrade(r) {
		fault.Reply(w, true)
		return
	}
	s := f.upgrade(w, r, nil, f.log, nil)
	if s == nil {
		return
	}
	s.Send(events.Error("event_beta", events.Fault{Kind: "invalid_request_error", Code: codeBeta, Message: betaHint}))
	var running sync.WaitGroup
	running.Go(func() { s.Run(func([]byte) {}) }) // its events are dropped
	s.Close(fault)
	running.Wait()
}
