package responses

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
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
	"POST /v1/conversations":             (*API).talk,
	"GET /v1/conversations/{id}":         (*API).talk,
	"DELETE /v1/conversations/{id}":      (*API).talk,

	// Routes of OpenAI's API that this one does not have, with what to use instead.
	"POST /v1/responses/input_tokens": notOffered(
		"The agents count their tokens themselves: 'usage' of a response tells what it took."),
	"POST /v1/responses/compact": notOffered(
		"The agents compact their sessions themselves: go on from a response by 'previous_response_id'."),
	"POST /v1/chat/completions": notOffered(
		"There are no chat completions: the machines are models of the Responses API, POST /v1/responses."),
	"GET /v1/responses":           notOffered("There is no WebSocket mode: POST here, with 'stream'."),
	"POST /v1/conversations/{id}": notOffered("A conversation keeps the metadata that it was created with."),
	"GET /v1/conversations/{id}/items": notOffered(
		"A conversation is a session of its machine, which has its items: GET a response has what it said."),
	"POST /v1/conversations/{id}/items": notOffered(
		"Give items when the conversation is created, or as the input of its next response."),
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
	case !req.Background:
		return a.await(w, r, l)
	}
	resp := l.now().Response
	writeJSON(w, http.StatusOK, resp)
	switch told := handoff.Written(w, r); {
	case told && ended(resp.Status):
		l.wasTold()
	case told:
		l.answered(lostFor)
	}
	return nil
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
		events, over, changed, ok := l.read(from)
		if !ok {
			a.slow.Add(1)
			return nil
		}
		if len(events) > 0 || from == 0 {
			extend(w)
		}
		for _, e := range events {
			if _, err := w.Write(e); err != nil {
				return nil
			}
		}
		from += len(events)
		switch written := handoff.Written(w, r); {
		case over && written:
			l.wasTold()
			return nil
		case over, control.Flush() != nil:
			return nil
		case written && l.background:
			l.answered(lostFor)
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
				f := faultOf(e)
				// It has no field "error", which openai-go would take for a broken stream. The client may have left.
				_, _ = fmt.Fprintf(w, "event: error\ndata: %s\n\n", handoff.Encode(map[string]any{
					"type": "error", "sequence_number": from, "code": f.Code, "message": f.Message, "param": f.Param,
				}))
				_ = control.Flush()
			}
			return nil
		case <-closing:
			if l.background { // the response goes on, and the client can get it later
				return nil
			}
			closing = nil
			l.lost(r.Context(), handoff.Fault(handoff.CodeShutdown, "", ""))
		}
	}
}
