package handoff

import (
	"io"
	"net/http"
	"strconv"
	"time"
)

// A Problem is the error in an HTTP response, {"error": Problem}. Clients of OpenAI act on type, code and param.
type Problem struct {
	Code    Code    `json:"code"`
	Message string  `json:"message"`
	Type    string  `json:"type"`  // invalid_request_error, rate_limit_error or server_error
	Param   *string `json:"param"` // the part of the request that is wrong; null: all of it, or none
	Next    string  `json:"next,omitempty"`
	Reason  Reason  `json:"reason,omitempty"` // why a machine is not there
	Why     string  `json:"why,omitempty"`    // Reason in words
	Detail  string  `json:"detail,omitempty"`
}

// Problem returns the error for an HTTP response, without its detail.
func (e *Error) Problem() Problem {
	p := Problem{
		Code: e.Code, Message: e.Spoken(), Type: problemType(e.Meaning().HTTP), Next: e.NextStep(),
		Reason: e.Reason, Why: e.Why,
	}
	if e.Param != "" {
		p.Param = new(e.Param)
	}
	return p
}

// Reply answers an HTTP request with the error: status, the headers that go with its code, and {"error": [Problem]}.
// detail says that the client may see the error's detail. A WWW-Authenticate header that is set already, even to
// nothing, is left as it is.
func (e *Error) Reply(w http.ResponseWriter, detail bool) {
	p := e.Problem()
	if detail {
		p.Detail = e.Detail
	}
	body := Encode(map[string]Problem{"error": p})
	h := w.Header()
	_, set := h["Www-Authenticate"]
	if !set && (e.Code == CodeUnauthorized || e.Code == CodeNoKey || e.Code == CodeSecretOver) {
		h.Set("WWW-Authenticate", "Bearer")
	}
	if e.Retry > 0 {
		h.Set("Retry-After", strconv.Itoa(int((e.Retry+time.Second-1)/time.Second)))
	}
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(e.Meaning().HTTP)
	_, _ = io.WriteString(w, body) // a client that left cannot be told
}

// problemType returns the type that OpenAI gives to errors with a status.
func problemType(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status < http.StatusInternalServerError:
		return "invalid_request_error"
	}
	return "server_error"
}

// Malformed returns an error about one part of a client's request, a path such as "session.type".
func Malformed(param, what string) *Error {
	return &Error{Code: CodeMalformed, Subject: what, Param: param}
}
