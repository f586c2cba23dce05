package responses

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchboard/handoff"
)

// A refusal is an error that the API returned.
type refusal struct {
	kind    refusedAs
	code    string        // of the API
	message string        // for logs and the page
	passing bool          // the same request may be answered
	after   time.Duration // when, as the API says; negative: it says nothing
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
	r := &refusal{code: code, message: handoff.ClipRunes(message, maxDetail), after: -1}
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
	r.passing = r.kind == refusedBroken || r.kind == refusedLimit
	return r
}

// longestAfter bounds how long a request waits because the API says so.
const longestAfter = 2 * time.Minute

// refusedBy returns the refusal in a response with this body. Its status and headers say whether it passes, and when.
func refusedBy(res *http.Response, data []byte) *refusal {
	var body struct {
		Error wireFault `json:"error"`
	}
	if !handoff.TooDeep(data) {
		_ = json.Unmarshal(data, &body) // otherwise the status is all that is known
	}
	r := refused(res.StatusCode, text(body.Error.Code), cmp.Or(text(body.Error.Message), res.Status))
	r.after = retryAfter(res.Header)
	switch said := res.Header.Get("X-Should-Retry"); {
	case said == "true" || said == "false":
		r.passing = said == "true"
	default:
		r.passing = res.StatusCode >= http.StatusInternalServerError || slices.Contains([]int{
			http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests}, res.StatusCode)
	}
	r.passing = r.passing && r.after <= longestAfter
	return r
}

// retryAfter returns how long the API wants a request to wait, negative if it does not say.
func retryAfter(h http.Header) time.Duration {
	for _, c := range []struct {
		header string
		unit   time.Duration
	}{{"Retry-After-Ms", time.Millisecond}, {"Retry-After", time.Second}} {
		said := h.Get(c.header)
		if n, err := strconv.ParseFloat(said, 64); err == nil && n >= 0 {
			return time.Duration(min(n, float64(24*time.Hour/c.unit)) * float64(c.unit))
		}
		if at, err := http.ParseTime(said); err == nil {
			return max(time.Until(at), 0)
		}
	}
	return -1
}

// maxDetail bounds the message of the API in our errors, in runes.
const maxDetail = 300

// asRefusal returns the refusal in an error, nil if the API did not refuse.
func asRefusal(err error) *refusal {
	r, _ := errors.AsType[*refusal](err)
	return r
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
