package responses

import (
	"errors"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3/responses"

	"switchboard/handoff"
)

// A refusal is what a server that is asked says no with.
type refusal struct {
	kind    refusedAs
	code    string // the server's own
	message string // for logs and the page
}

// refusedAs is what a refusal means to us.
type refusedAs int

const (
	refusedOther  refusedAs = iota // the request itself
	refusedForgot                  // it does not know the response that was named
	refusedFull                    // the context is full
	refusedLimit                   // too much at once, or the account's limit
	refusedKey                     // the key
	refusedBroken                  // the server's own fault; it may work again
)

// Error returns the server's code and message.
func (r *refusal) Error() string { return r.code + ": " + r.message }

// refusedCodes is what the codes of servers mean. Set once.
var refusedCodes = map[string]refusedAs{
	"previous_response_not_found": refusedForgot,
	"context_length_exceeded":     refusedFull,
	"rate_limit_exceeded":         refusedLimit,
	"insufficient_quota":          refusedLimit,
	"invalid_api_key":             refusedKey,
	"server_error":                refusedBroken,
	"server_is_overloaded":        refusedBroken,
	"slow_down":                   refusedBroken,
	"timeout":                     refusedBroken,
}

// refused reads what a server says. status is 0 in a stream. Servers that give no code are known by their words.
func refused(status int, code, message string) *refusal {
	r := &refusal{code: code, message: handoff.ClipRunes(message, maxDetail)}
	words := strings.ToLower(message)
	kind, known := refusedCodes[code]
	switch {
	case known:
		r.kind = kind
	case strings.Contains(words, "previous response") && strings.Contains(words, "not found"):
		r.kind = refusedForgot
	case strings.Contains(words, "context window"), strings.Contains(words, "maximum context length"):
		r.kind = refusedFull
	case status == http.StatusTooManyRequests:
		r.kind = refusedLimit
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		r.kind = refusedKey
	case status >= http.StatusInternalServerError:
		r.kind = refusedBroken
	}
	return r
}

// maxDetail bounds what an error quotes of a server, in runes.
const maxDetail = 300

// asRefusal finds what a server said in an error, nil when it said nothing.
func asRefusal(err error) *refusal {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r
	}
	if e, ok := errors.AsType[*responses.Error](err); ok {
		return refused(e.StatusCode, e.Code, e.Message)
	}
	return nil
}

// codes is what each refusal means in the vocabulary of [handoff].
var codes = map[refusedAs]handoff.Code{
	refusedOther:  handoff.CodeModelRefused,
	refusedForgot: handoff.CodeModelRefused,
	refusedFull:   handoff.CodeContextFull,
	refusedLimit:  handoff.CodeModelLimit,
	refusedKey:    handoff.CodeModelRefused,
	refusedBroken: handoff.CodeAgentFailed,
}
