package responses

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"switchboard/handoff"
)

const (
	writeWithin = 10 * time.Second // for one write
	beat        = 15 * time.Second // between two heartbeats of a quiet answer
)

// A route answers the requests of one pattern. id is that of the response or conversation in the path, or "".
type route func(a *API, w http.ResponseWriter, r *http.Request, g handoff.Grant, id string, body []byte) *fault

// routes has the routes of [API.Serve], by pattern.
var routes = map[string]route{
	"POST /v1/responses":                 (*API).create,
	"GET /v1/responses/{id}":             (*API).get,
	"DELETE /v1/responses/{id}":          (*API).drop,
	"POST /v1/responses/{id}/cancel":     (*API).cancel,
	"GET /v1/responses/{id}/input_items": (*API).inputItems,
	"GET /v1/models":                     (*API).models,
	"GET /v1/models/{model...}":          (*API).models,

	"POST /v1/conversations":                     (*API).conversation,
	"GET /v1/conversations/{id}":                 (*API).conversation,
	"POST /v1/conversations/{id}":                (*API).conversation,
	"DELETE /v1/conversations/{id}":              (*API).conversation,
	"GET /v1/conversations/{id}/items":           (*API).conversation,
	"POST /v1/conversations/{id}/items":          (*API).conversation,
	"GET /v1/conversations/{id}/items/{item}":    (*API).conversation,
	"DELETE /v1/conversations/{id}/items/{item}": (*API).conversation,

	// Routes of OpenAI's API that this one does not have, with what to use instead.
	"POST /v1/responses/input_tokens": notOffered(
		"The agents count their tokens themselves: 'usage' of a response tells what it took."),
	"POST /v1/responses/compact": notOffered(
		"The agents compact their sessions themselves: go on from a response by 'previous_response_id'."),
	"POST /v1/chat/completions": notOffered(
		"There are no chat completions: the machines are models of the Responses API, POST /v1/responses."),
	"GET /v1/responses": notOffered("There is no WebSocket mode: POST here, with 'stream'."),
}

func notOffered(why string) route {
	return func(*API, http.ResponseWriter, *http.Request, handoff.Grant, string, []byte) *fault {
		return bad("unsupported_endpoint", "", why)
	}
}

// Patterns returns the patterns of the routes.
func (a *API) Patterns() []string { return slices.Sorted(maps.Keys(routes)) }

// Serve answers a request, whose body is in memory, with the rights of the grant.
func (a *API) Serve(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	body, err := bodyOf(r)
	if err != nil || len(body) > maxBody {
		bad("", "", "The body did not arrive, or is too large.").reply(w)
		return nil
	}
	extend(w)
	if f := routes[r.Pattern](a, w, r, g, r.PathValue("id"), body); f != nil {
		if f.reply(w); f.replied != nil {
			f.replied(handoff.Written(w, r))
		}
	}
	return nil
}

// bodyOf returns the body of a request. It does not copy a body that is in memory, and the request no longer holds it.
func bodyOf(r *http.Request) ([]byte, error) {
	if held, ok := r.Body.(interface{ Take() []byte }); ok {
		return held.Take(), nil
	}
	return io.ReadAll(io.LimitReader(r.Body, maxBody+1))
}

// extend sets the deadline of the next write.
func extend(w http.ResponseWriter) {
	// The error is that of a writer without deadlines.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeWithin))
}

// answer answers with a response: as a stream, at once if it is in the background, or else when it has ended.
func (a *API) answer(w http.ResponseWriter, r *http.Request, l *liveResponse, req *request) *fault {
	l.enter()
	defer l.exit()
	switch {
	case req.Stream:
		return a.stream(w, r, l, 0)
	case req.Background:
		doc := l.now()
		writeJSON(w, http.StatusOK, doc.Response)
		switch told := handoff.Written(w, r); {
		case told && ended(doc.Response.Status):
			l.wasTold()
		case told:
			l.wasAnswered()
		}
		return nil
	}
	return a.await(w, r, l)
}

// await answers when the response has ended. Meanwhile it writes spaces, which JSON allows, so that the client does not
// time out.
func (a *API) await(w http.ResponseWriter, r *http.Request, l *liveResponse) *fault {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	blank := false
	for {
		_, over, changed, _ := l.read(0)
		if over {
			extend(w)
			writeJSON(w, http.StatusOK, l.now().Response)
			if handoff.Written(w, r) {
				l.wasTold()
			}
			return nil
		}
		select {
		case <-changed:
		case <-tick.C:
			extend(w)
			w.Header().Set("Content-Type", "application/json")
			if _, err := w.Write([]byte(" ")); err != nil || http.NewResponseController(w).Flush() != nil {
				return nil
			}
			blank = true
		case <-r.Context().Done():
			e := revoked(r)
			switch {
			case e == nil:
				return nil
			case blank:
				panic(http.ErrAbortHandler) // the status 200 was sent, so an error would look like a response
			}
			return faultOf(e)
		case <-a.closing:
			l.lost(r.Context(), handoff.Fault(handoff.CodeShutdown, "", ""))
		}
	}
}

// revoked returns the error if the request's context ended because its key was revoked, or nil if its client left.
func revoked(r *http.Request) *handoff.Error {
	e, _ := errors.AsType[*handoff.Error](context.Cause(r.Context()))
	return e
}

// errorFrame returns the event that ends a stream whose response goes on. It has no field "error", which openai-go
// would take for a broken stream.
func errorFrame(e *handoff.Error, seq int) []byte {
	f := faultOf(e)
	return fmt.Appendf(nil, "event: error\ndata: %s\n\n", encode(map[string]any{
		"type": "error", "sequence_number": seq, "code": f.Code, "message": f.Message, "param": f.Param,
	}))
}

// stream writes the events of a response from a number on, until its end.
func (a *API) stream(w http.ResponseWriter, r *http.Request, l *liveResponse, from int) *fault {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // a proxy must not delay events to collect them
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	tick := time.NewTicker(beat)
	defer tick.Stop()
	closing := a.closing
	for {
		frames, over, changed, ok := l.read(from)
		if !ok {
			a.counts.slow.Add(1)
			return nil
		}
		if len(frames) > 0 || from == 0 {
			extend(w)
		}
		for _, f := range frames {
			if _, err := w.Write(f); err != nil {
				return nil
			}
		}
		from += len(frames)
		switch written := handoff.Written(w, r); {
		case over && written:
			l.wasTold()
			return nil
		case over, control.Flush() != nil:
			return nil
		case written && l.background():
			l.wasAnswered()
		}
		select {
		case <-changed:
		case <-tick.C:
			extend(w)
			if _, err := io.WriteString(w, ": alive\n\n"); err != nil {
				return nil
			}
		case <-r.Context().Done():
			if e := revoked(r); e != nil {
				extend(w)
				_, _ = w.Write(errorFrame(e, from)) // the client may have left
				_ = control.Flush()
			}
			return nil
		case <-closing:
			if l.background() { // the response goes on, and the client can get it later
				return nil
			}
			closing = nil
			l.lost(r.Context(), handoff.Fault(handoff.CodeShutdown, "", ""))
		}
	}
}

// get answers GET /v1/responses/{id}. openai-go requests a stream in the body, other SDKs in the query.
func (a *API) get(w http.ResponseWriter, r *http.Request, g handoff.Grant, id string, body []byte) *fault {
	var params struct {
		Stream bool `json:"stream"`
		After  *int `json:"starting_after"`
	}
	if len(body) > 0 {
		if f := decode(body, &params); f != nil {
			return f
		}
	}
	query := r.URL.Query()
	params.Stream = params.Stream || query.Get("stream") == "true"
	if text := query.Get("starting_after"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			n = -1
		}
		params.After = &n
	}
	from := 0
	if params.After != nil {
		if *params.After < 0 {
			return bad("invalid_value", "starting_after", "'starting_after' is the sequence_number of an event.")
		}
		from = *params.After + 1
	}
	doc, l, f := a.find(r.Context(), g, id)
	if f != nil {
		return f
	}
	if !params.Stream {
		writeJSON(w, http.StatusOK, doc.Response)
		a.markHeard(w, r, g, doc)
		return nil
	}
	if !doc.Streamed || !doc.Response.Background {
		return bad(
			"invalid_mode", "stream",
			"Only a response that was made with 'background' and 'stream' can be streamed again, as long as Switchboard runs.",
		)
	}
	if l == nil {
		return bad("stream_expired", "stream", "The events of this response are not kept any more; the response itself is.")
	}
	if _, _, _, ok := l.read(from); !ok {
		return bad(
			"stream_expired",
			"starting_after",
			"The events after that one are not kept any more; the response itself is.",
		)
	}
	return a.stream(w, r, l, from)
}

// markHeard records that the outcome of a response was read, so that no call tells it. It is called when the answer to
// the request was written.
func (a *API) markHeard(w http.ResponseWriter, r *http.Request, g handoff.Grant, doc document) {
	if doc.Response.Store && ended(doc.Response.Status) && len(doc.Asked) == 0 && handoff.Written(w, r) {
		_ = a.cfg.Work.HeardForGood(r.Context(), g, doc.Run) // fails if the outcome was heard long ago
	}
}

// drop answers DELETE /v1/responses/{id}.
func (a *API) drop(w http.ResponseWriter, r *http.Request, g handoff.Grant, id string, _ []byte) *fault {
	doc, l, f := a.find(r.Context(), g, id)
	switch {
	case f != nil:
		return f
	case !ended(doc.Response.Status):
		return bad("response_in_progress", "", "Cannot delete a response that is in progress.")
	}
	if l != nil {
		l.applying.Lock() // so that the end of the response is not stored after this
		defer l.applying.Unlock()
	}
	// Without this document, the response would be made of its run again.
	if err := a.documents.store(g.Caller, id, []byte(deleted), keptFor); err != nil {
		return faultOf(handoff.StoreDown(err))
	}
	a.attempts.drop(id)
	a.live.drop(g.Caller, id)
	writeJSON(w, http.StatusOK, map[string]any{"id": id, "object": "response", "deleted": true})
	a.markHeard(w, r, g, doc)
	return nil
}

// cancel answers POST /v1/responses/{id}/cancel.
func (a *API) cancel(w http.ResponseWriter, r *http.Request, g handoff.Grant, id string, _ []byte) *fault {
	doc, l, f := a.find(r.Context(), g, id)
	switch {
	case f != nil:
		return f
	case g.May(handoff.ActStop) != nil: // before it says how the response stands
		return faultOf(g.May(handoff.ActStop))
	case !doc.Response.Background:
		return bad("", "", "Cannot cancel a synchronous response.")
	case doc.Response.Status == cancelled:
	case l == nil || ended(doc.Response.Status):
		return bad("", "", "Cannot cancel a completed response.")
	default:
		l.cancel()
		if doc = l.now(); doc.Response.Status != cancelled { // it ended just before
			return bad("", "", "Cannot cancel a completed response.")
		}
	}
	writeJSON(w, http.StatusOK, doc.Response)
	if l != nil && handoff.Written(w, r) {
		l.wasTold()
	}
	return nil
}

// inputItems answers GET /v1/responses/{id}/input_items.
func (a *API) inputItems(w http.ResponseWriter, r *http.Request, g handoff.Grant, id string, _ []byte) *fault {
	doc, _, f := a.find(r.Context(), g, id)
	if f != nil {
		return f
	}
	return page(w, r, doc.Input)
}

// page answers with one page of a list, newest first unless order is asc.
func page(w http.ResponseWriter, r *http.Request, items []json.RawMessage) *fault {
	query, limit := r.URL.Query(), 20
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 100 {
			return bad("invalid_value", "limit", "'limit' is a number from 1 to 100.")
		}
		limit = n
	}
	ids := make([]string, len(items))
	ordered := make([]json.RawMessage, len(items))
	for i := range items {
		at := len(items) - 1 - i
		switch query.Get("order") {
		case "", "desc":
		case "asc":
			at = i
		default:
			return bad("invalid_value", "order", "'order' is asc or desc.")
		}
		var it reference
		_ = json.Unmarshal(items[at], &it) // never fails for stored items
		ordered[i], ids[i] = items[at], it.ID
	}
	from := 0
	if after := query.Get("after"); after != "" {
		if from = slices.Index(ids, after) + 1; from == 0 {
			return bad("invalid_value", "after", "'after' is the id of an item in this list.")
		}
	}
	until := min(from+limit, len(ids))
	writeJSON(w, http.StatusOK, list(ordered[from:until], until < len(ids)))
	return nil
}

// list returns one page of a list in OpenAI's form.
func list(items []json.RawMessage, more bool) map[string]any {
	all := map[string]any{"object": "list", "data": items, "first_id": nil, "last_id": nil, "has_more": more}
	var first, last reference
	if n := len(items); n > 0 && json.Unmarshal(items[0], &first) == nil &&
		json.Unmarshal(items[n-1], &last) == nil {
		all["first_id"], all["last_id"] = first.ID, last.ID
	}
	return all
}

// models answers GET /v1/models and GET /v1/models/{model}: the machines, and their projects.
func (a *API) models(w http.ResponseWriter, r *http.Request, g handoff.Grant, _ string, _ []byte) *fault {
	name := r.PathValue("model")
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
	}
	all := []model{}
	for _, s := range a.cfg.Directory.Servers(r.Context(), g) {
		for _, id := range append([]string{""}, s.Projects...) {
			all = append(all, model{modelOf(s.Name, id), "model", a.began.Unix(), s.Kind})
		}
	}
	if name == "" {
		writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": all})
		return nil
	}
	for _, m := range all {
		if m.ID == name {
			writeJSON(w, http.StatusOK, m)
			return nil
		}
	}
	_, f := findModel(r.Context(), a.cfg.Directory, g, name)
	return f
}
