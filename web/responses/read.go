package responses

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"switchboard/handoff"
)

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
		if from = *params.After + 1; from < 1 {
			return bad("invalid_value", "starting_after", "'starting_after' is the sequence_number of an event.")
		}
	}
	doc, l, f := a.find(r.Context(), g, id)
	switch {
	case f != nil:
		return f
	case !params.Stream:
		writeJSON(w, http.StatusOK, doc.Response)
		a.markHeard(w, r, g, doc)
		return nil
	case !doc.Streamed || !doc.Response.Background:
		return bad("invalid_mode", "stream",
			"Only a response that was made with 'background' and 'stream' can be streamed again, as long as Switchboard runs.")
	case l == nil:
		return bad("stream_expired", "stream", "The events of this response are not kept any more; the response itself is.")
	}
	if _, _, _, ok := l.read(from); !ok {
		return bad("stream_expired", "starting_after",
			"The events after that one are not kept any more; the response itself is.")
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
	if f := a.keepSession(r.Context(), g, doc); f != nil {
		return f
	}
	if l != nil {
		l.applying.Lock() // so that the end of the response is not stored after this
		defer l.applying.Unlock()
	}
	// Without this document, the response would be made of its handoff again.
	if err := a.documents.store(g.Caller, id, []byte(deleted), keptFor); err != nil {
		return faultOf(handoff.StoreDown(err))
	}
	a.live.drop(g.Caller, id)
	writeJSON(w, http.StatusOK, map[string]any{"id": id, "object": "response", "deleted": true})
	a.markHeard(w, r, g, doc)
	return nil
}

// cancel answers POST /v1/responses/{id}/cancel. Later events of the handoff change nothing.
func (a *API) cancel(w http.ResponseWriter, r *http.Request, g handoff.Grant, id string, _ []byte) *fault {
	doc, l, f := a.find(r.Context(), g, id)
	switch {
	case f != nil:
		return f
	case g.May(handoff.ActStop) != nil: // before it says how the response stands
		return faultOf(g.May(handoff.ActStop))
	case !doc.Response.Background:
		return bad("", "", "Cannot cancel a synchronous response.")
	}
	if l != nil {
		if f := l.cancel(r.Context(), g); f != nil {
			return f
		}
		doc = l.now()
	}
	if doc.Response.Status != cancelled { // it may have ended just before
		return bad("", "", "Cannot cancel a completed response.")
	}
	writeJSON(w, http.StatusOK, doc.Response)
	if l != nil && handoff.Written(w, r) {
		l.wasTold()
	}
	return nil
}

// inputItems answers GET /v1/responses/{id}/input_items with one page of a list, newest first unless order is asc.
func (a *API) inputItems(w http.ResponseWriter, r *http.Request, g handoff.Grant, id string, _ []byte) *fault {
	doc, _, f := a.find(r.Context(), g, id)
	if f != nil {
		return f
	}
	query, limit, items := r.URL.Query(), 20, slices.Clone(doc.Input)
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 100 {
			return bad("invalid_value", "limit", "'limit' is a number from 1 to 100.")
		}
		limit = n
	}
	switch query.Get("order") {
	case "", "desc":
		slices.Reverse(items)
	case "asc":
	default:
		return bad("invalid_value", "order", "'order' is asc or desc.")
	}
	if after := query.Get("after"); after != "" {
		at := slices.IndexFunc(items, func(raw json.RawMessage) bool { return idOf(raw) == after })
		if at < 0 {
			return bad("invalid_value", "after", "'after' is the id of an item in this list.")
		}
		items = items[at+1:]
	}
	shown := append([]json.RawMessage{}, items[:min(limit, len(items))]...)
	list := map[string]any{
		"object": "list", "data": shown, "first_id": nil, "last_id": nil, "has_more": len(shown) < len(items),
	}
	if n := len(shown); n > 0 {
		list["first_id"], list["last_id"] = idOf(shown[0]), idOf(shown[n-1])
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}

// models answers GET /v1/models and GET /v1/models/{model}: the machines, and their projects.
func (a *API) models(w http.ResponseWriter, r *http.Request, g handoff.Grant, _ string, _ []byte) *fault {
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
	}
	name, all := r.PathValue("model"), []model{}
	for _, s := range a.cfg.Directory.Servers(r.Context(), g) {
		for _, project := range append([]string{""}, s.Projects...) {
			one := model{modelOf(s.Name, project), "model", a.began.Unix(), s.Kind}
			if one.ID == name {
				writeJSON(w, http.StatusOK, one)
				return nil
			}
			all = append(all, one)
		}
	}
	if name != "" {
		_, f := a.findModel(r.Context(), g, name)
		return f
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": all})
	return nil
}
