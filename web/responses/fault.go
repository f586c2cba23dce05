package responses

import (
	"net/http"
	"strconv"
	"time"

	"switchboard/handoff"
)

// A fault is an error in the form of OpenAI's API.
type fault struct {
	Status  int             `json:"-"`
	Message string          `json:"message"`
	Type    string          `json:"type"`
	Param   *string         `json:"param"`
	Code    *string         `json:"code"`
	Final   bool            `json:"-"` // repeating the request would not help, so SDKs are told not to
	Retry   time.Duration   `json:"-"` // when repeating may help; 0: unknown
	replied func(told bool) // called after the reply, with whether the client got it; nil: nothing
}

// bad returns a fault for an invalid request. param and code may be "".
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

func contextTooLarge() *fault {
	return bad("", "input", "Instructions and what was said before have at most "+strconv.Itoa(maxContext)+" bytes.")
}

// notFound returns a fault for something that does not exist.
func notFound(code, param, message string) *fault {
	f := bad(code, param, message)
	f.Status = http.StatusNotFound
	return f
}

func missing(id string) *fault {
	return notFound("", "", "Response with id '"+handoff.Clip(id, 80)+"' not found.")
}

func (f *fault) isMissing() bool { return f != nil && f.Status == http.StatusNotFound }

// busy returns a fault for a conflict that will pass; repeating the request at once does not help.
func busy(code, message string) *fault {
	f := bad(code, "", message)
	f.Status, f.Final = http.StatusConflict, true
	return f
}

// faultOf returns any error as a fault.
func faultOf(err error) *fault {
	e := handoff.AsError(err)
	if e.Code == handoff.CodeConflict {
		return bad("idempotency_key_reused", "", "That Idempotency-Key came with another request.")
	}
	p := e.Problem()
	f := &fault{
		Status: e.Meaning().HTTP, Message: p.Message, Type: p.Type, Param: p.Param, Code: new(string(e.Code)), Retry: e.Retry,
	}
	if p.Next != "" {
		f.Message += " " + p.Next
	}
	switch e.Code {
	case handoff.CodeUnsupported: // permanent for this server
		f.Status, f.Type = http.StatusBadRequest, "invalid_request_error"
	case handoff.CodeLimited, handoff.CodeOverloaded, handoff.CodeUnreachable, handoff.CodeStoreDown, handoff.CodeShutdown:
	default:
		f.Final = true // SDKs repeat 409 and 5xx by themselves
	}
	return f
}

// reply answers with the fault.
func (f *fault) reply(w http.ResponseWriter) {
	if f.Final {
		w.Header().Set("X-Should-Retry", "false")
	}
	if f.Retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((f.Retry+time.Second-1)/time.Second)))
	}
	writeJSON(w, f.Status, map[string]*fault{"error": f})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(handoff.Encode(v))) // the client may have left
}
