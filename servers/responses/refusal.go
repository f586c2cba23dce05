package responses

import (
	"errors"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3/responses"

	"switchboard/handoff"
)

// A refusal is an error that the API returned.
type refusal struct {
	kind    refusedAs
	code    string // of the API
	message string // for logs and the page
}

// refusedAs is what a refusal means to us.
type refusedAs int

const (
	refusedOther  refusedAs = iota // the request itself
	refusedForgot                  // the named response is not known
	refusedFull                    // the context is full
	refusedLimit                   // a rate limit, or the account's limit
	refusedKey                     // the key is wrong
	refusedBroken                  // a failure of the API, which may pass
)

// Error returns code and message.
func (r *refusal) Error() string { return r.code + ": " + r.message }

// refusedCodes are the known codes. Set once.
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

// refused returns the refusal for an error of the API. status is 0 in a stream. Errors without a known code are
// recognized by their message or status.
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

// maxDetail bounds the message of the API in our errors, in runes.
const maxDetail = 300

// asRefusal returns the refusal in an error, nil if the API did not refuse.
func asRefusal(err error) *refusal {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r
	}
	if e, ok := errors.AsType[*responses.Error](err); ok {
		return refused(e.StatusCode, e.Code, e.Message)
	}
	return nil
}

// codes are the codes of turns that fail with each kind of refusal. Set once.
var codes = map[refusedAs]handoff.Code{
	refusedOther:  handoff.CodeModelRefused,
	refusedForgot: handoff.CodeModelRefused,
	refusedFull:   handoff.CodeContextFull,
	refusedLimit:  handoff.CodeModelLimit,
	refusedKey:    handoff.CodeModelRefused,
	refusedBroken: handoff.CodeAgentFailed,
}
