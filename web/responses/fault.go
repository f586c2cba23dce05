package responses

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"switchboard/handoff"
)

// A fault is an error as OpenAI's clients read it.
type fault struct {
	Status  int           `json:"-"`
	Message string        `json:"message"`
	Type    string        `json:"type"`
	Param   *string       `json:"param"`
	Code    *string       `json:"code"`
	Final   bool          `json:"-"` // the same request has no better luck: SDKs are told not to try again
	Retry   time.Duration `json:"-"` // after which it may; 0: nobody knows
}

// bad is a fault of the request. param and code may be "".
func bad(code, param, message string) *fault {
	f := &fault{Status: http.StatusBadRequest, Message: message, Type: "invalid_request_error"}
	if code != "" {
		f.Code = &code
	}
	if param != "" {
		f.Param = &param
	}
	return f
}

func unsupported(param, message string) *fault { return bad("unsupported_parameter", param, message) }

func missing(id string) *fault {
	return notFound("", "", "Response with id '"+handoff.Clip(id, 80)+"' not found.")
}

// notFound is a fault of what a request names.
func notFound(code, param, message string) *fault {
	f := bad(code, param, message)
	f.Status = http.StatusNotFound
	return f
}

func noPrevious(id string) *fault {
	return bad(
		"previous_response_not_found", "previous_response_id",
		"Previous response with id '"+handoff.Clip(id, 80)+"' not found.",
	)
}

// busy is a fault that passes, though not by asking again at once.
func busy(code, message string) *fault {
	f := bad(code, "", message)
	f.Status, f.Final = http.StatusConflict, true
	return f
}

// faultOf is any error as a fault.
func faultOf(err error) *fault {
	e := handoff.AsError(err)
	p := e.Problem()
	f := &fault{
		Status: e.Meaning().HTTP, Message: p.Message, Type: p.Type, Param: p.Param, Code: new(string(e.Code)), Retry: e.Retry,
	}
	if p.Next != "" {
		f.Message += " " + p.Next
	}
	switch e.Code {
	case handoff.CodeUnsupported: // of this server, for ever
		f.Status, f.Type = http.StatusBadRequest, "invalid_request_error"
	case handoff.CodeLimited, handoff.CodeOverloaded, handoff.CodeUnreachable, handoff.CodeStoreDown, handoff.CodeShutdown:
	default:
		f.Final = true // SDKs repeat 409 and 5xx by themselves
	}
	return f
}

// reply answers with the fault.
func (f *fault) reply(w http.ResponseWriter) {
	h := w.Header()
	if f.Final {
		h.Set("X-Should-Retry", "false")
	}
	if f.Retry > 0 {
		h.Set("Retry-After", strconv.Itoa(int((f.Retry+time.Second-1)/time.Second)))
	}
	writeJSON(w, f.Status, map[string]*fault{"error": f})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(encode(v))) // a client that left cannot be told
}

func encode(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic("responses: " + err.Error()) // texts, numbers and JSON that was read always marshal
	}
	return string(data)
}
