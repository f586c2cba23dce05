package realtime

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"switchboard/handoff"
)

// ServeWebSocket serves GET /v1/realtime?model= to a client that was authenticated as grant, and returns
// when the call has ended. Host and Origin were checked before. The model is reached before the upgrade,
// so that its failure is an HTTP error.
func (f *Front) ServeWebSocket(w http.ResponseWriter, r *http.Request, grant handoff.Grant) {
	done := make(chan struct{})
	fault := f.launch(r.Context(), func(ctx context.Context) {
		defer close(done)
		f.serveWebSocket(ctx, w, r, grant)
	})
	if fault != nil {
		writeError(w, fault)
		return
	}
	<-done
}

func (f *Front) serveWebSocket(ctx context.Context, w http.ResponseWriter, r *http.Request, grant handoff.Grant) {
	query := r.URL.Query()
	if query.Get("intent") == "transcription" {
		writeError(w, handoff.Malformed("intent", "a session that only transcribes has no voice that could hand anything over; leave intent away, or ask the model's own server"))
		return
	}
	if query.Has("call_id") {
		writeError(w, handoff.Fault(handoff.CodeNotFound, "such call", "a running call cannot be joined by a second socket"))
		return
	}
	if !websocket.IsWebSocketUpgrade(r) {
		writeError(w, handoff.Fault(handoff.CodeMalformed, "this address speaks WebSocket", "the request is not an upgrade"))
		return
	}
	pass, fault := f.quota.enter(r.Context(), grant)
	if fault != nil {
		writeError(w, fault)
		return
	}
	defer pass.leave()
	dialing, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(ctx, cancel)
	first, named := opening(grant.Session)
	model, fault := f.dialModel(dialing, cmp.Or(named, query.Get("model")), r.Header)
	stop()
	cancel()
	if ctx.Err() != nil { // the dial was cut, and is not to blame
		if fault == nil {
			model.Abandon()
		}
		writeError(w, handoff.Fault(handoff.CodeShutdown, "", ""))
		return
	}
	if fault != nil {
		f.log.Warn("voice model unreachable", zap.String("code", string(fault.Code)), zap.String("detail", fault.Detail))
		writeError(w, fault)
		return
	}
	upgrader := websocket.Upgrader{
		Subprotocols: []string{"realtime"}, CheckOrigin: func(*http.Request) bool { return true },
		ReadBufferSize: frameBuffer, WriteBufferSize: frameBuffer, WriteBufferPool: &f.buffers,
	}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil { // it has answered the client
		f.log.Debug("upgrade refused", zap.Error(err))
		model.Abandon()
		return
	}
	client := newSocket(conn, f.bound, f.patient, f.log)
	call := f.admit(grant, newCallID(), client, model)
	call.opening = first
	// How the call ended was logged by the call.
	_ = f.serve(ctx, call, client, model, pass)
}

// writeError answers a request with an error of the vocabulary.
func writeError(w http.ResponseWriter, e *handoff.Error) {
	w.Header().Set("Content-Type", "application/json")
	if e.Retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((e.Retry+time.Second-1)/time.Second)))
	}
	w.WriteHeader(e.Meaning().HTTP)
	problem := e.Problem()
	problem.Detail = e.Detail
	// The client may be gone; nobody is left to tell.
	_ = json.NewEncoder(w).Encode(map[string]handoff.Problem{"error": problem})
}
