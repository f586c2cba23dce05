package handoff

import "net/http"

// A Problem is an error as HTTP answers it, {"error": Problem}. Clients of OpenAI act on type, code and param.
type Problem struct {
	Code    Code    `json:"code"`
	Message string  `json:"message"`
	Type    string  `json:"type"`  // invalid_request_error, rate_limit_error or server_error
	Param   *string `json:"param"` // what of the request is wrong; null for all of it, or none of it
	Next    string  `json:"next,omitempty"`
	Detail  string  `json:"detail,omitempty"`
}

// Problem returns the error for an answer of HTTP, without its detail.
func (e *Error) Problem() Problem {
	meaning := e.Meaning()
	p := Problem{Code: e.Code, Message: e.Spoken(), Type: problemType(meaning.HTTP), Next: meaning.Next}
	if e.Param != "" {
		p.Param = new(e.Param)
	}
	return p
}

// problemType sorts statuses as OpenAI does.
func problemType(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status < http.StatusInternalServerError:
		return "invalid_request_error"
	}
	return "server_error"
}

// Malformed returns an error about one part of a client's request.
func Malformed(param, what string) *Error {
	return &Error{Code: CodeMalformed, Subject: what, Param: param}
}
