package codex

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/jsonrpc"
)

// A refusal is the meaning of an error response of the server, where something depends on it.
type refusal int

const (
	refusedOther      refusal = iota
	refusedUnloaded           // the thread is not in the server's memory, or not there at all
	refusedGone               // there is no such thread to resume
	refusedNeverRan           // the thread exists but has no turns to list
	refusedItems              // the thread's items can be listed only with their turns, or it never ran
	refusedArchived           // the thread is archived
	refusedInUse              // another process has the thread open
	refusedOverloaded         // too many requests; try again later
	refusedUnknown            // the server has no such method, or does not offer it to us
	refusedClosing            // the server is unloading the thread; it can be resumed after that
)

// codeOverloaded is the only error code of the server with a meaning of its own.
const codeOverloaded = -32001

// refusals maps parts of error messages, in lower case, to their meaning and the code of the error. The first match
// counts. The wording is that of Codex 0.169.0 and 0.171.0: add a row when a release changes it.
var refusals = []struct {
	text string
	is   refusal
	code handoff.Code
}{
	{"unknown variant `thread/", refusedUnknown, handoff.CodeUnsupported},
	{"requires experimentalapi capability", refusedUnknown, handoff.CodeUnsupported},
	{"invalid request:", refusedOther, handoff.CodeRefused}, // it lists all methods: the rows below must not match it
	{"no rollout found for thread id", refusedGone, handoff.CodeSessionGone},
	{" is archived", refusedArchived, handoff.CodeSessionArchived},
	{"already has an active writer", refusedInUse, handoff.CodeSessionInUse},
	{"invalid thread id", refusedOther, handoff.CodeUnknownSession},
	{"invalid session id", refusedOther, handoff.CodeUnknownSession},
	{"thread not found", refusedUnloaded, handoff.CodeSessionGone}, // turn/start and turn/steer, if it is not loaded
	{"thread not loaded", refusedGone, handoff.CodeSessionGone},    // thread/read, of a thread that is nowhere
	{"list_turns is not supported", refusedNeverRan, handoff.CodeSessionGone},
	{"thread/items/list is not supported", refusedItems, handoff.CodeSessionGone},
	{"is not materialized yet", refusedNeverRan, handoff.CodeSessionGone},
	{"ephemeral threads do not support", refusedNeverRan, handoff.CodeSessionGone},
	{"turn not found", refusedOther, handoff.CodeNotFound},
	{"was not found in the source thread", refusedOther, handoff.CodeNotFound}, // 0.150
	{"identifies an in-progress turn", refusedOther, handoff.CodeBusy},
	{"no active turn", refusedOther, handoff.CodeNotPending},
	{"expected active turn id", refusedOther, handoff.CodeNotPending},
	{"server overloaded", refusedOverloaded, handoff.CodeOverloaded},
	{"is closing; retry", refusedClosing, handoff.CodeOverloaded},
}

// classify reads an error response.
func classify(e *jsonrpc.Error) (refusal, handoff.Code) {
	if e.Code == codeOverloaded {
		return refusedOverloaded, handoff.CodeOverloaded
	}
	var data struct {
		InputErrorCode string `json:"input_error_code"`
	}
	if json.Unmarshal(e.Data, &data) == nil && data.InputErrorCode == "input_too_large" {
		return refusedOther, handoff.CodeTooLarge
	}
	text := strings.ToLower(e.Message)
	for _, row := range refusals {
		if strings.Contains(text, row.text) {
			return row.is, row.code
		}
	}
	return refusedOther, handoff.CodeRefused
}

// refusedAs reports whether err is an error response with this meaning.
func refusedAs(err error, is refusal) bool {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		return false
	}
	got, _ := classify(e)
	return got == is
}

// holderOf returns the program that has a session open; "": not known. Machines that joined add it to the error.
func holderOf(e *jsonrpc.Error) string {
	var data struct {
		Holder string `json:"holder"`
	}
	_ = json.Unmarshal(e.Data, &data) // errors of an app-server itself have no holder
	if !programName.MatchString(data.Holder) {
		return ""
	}
	return data.Holder
}

// programName matches a program's name that may be spoken.
var programName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9 ]{0,29}$`)

// unnamedSession stands in a spoken sentence for the title of a session whose title is not known.
const unnamedSession = "you named"

// A naming has the names of a server and a session for errors. Ids are never spoken.
type naming struct {
	server  string
	session string // its title, or ""
}

// subject returns the subject of an error with a code.
func (n naming) subject(code handoff.Code) string {
	switch code {
	case handoff.CodeSessionGone, handoff.CodeSessionArchived, handoff.CodeSessionInUse, handoff.CodeUnknownSession:
		if n.session == "" {
			return unnamedSession
		}
		return n.session
	case handoff.CodeTooLarge:
		return "the request"
	case handoff.CodeNotFound:
		return "such point in that session"
	}
	return n.server
}

// fill sets the subject of an error, if it has none.
func (n naming) fill(fault *handoff.Error) *handoff.Error {
	fault.Subject = cmp.Or(fault.Subject, n.subject(fault.Code))
	return fault
}

// fault translates an error of a peer. A request that was not sent gets the code unsent, and one that was not answered
// the code unanswered: only the caller knows what the request may have done.
func (n naming) fault(err error, unsent, unanswered handoff.Code) *handoff.Error {
	if e, ok := errors.AsType[*handoff.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		_, code := classify(e)
		fault := handoff.Fault(code, n.subject(code), handoff.ClipRunes(e.Message, maxDetail))
		if code == handoff.CodeSessionInUse {
			fault.Program = holderOf(e)
		}
		return fault
	}
	code := unanswered
	if servers.NotSent(err) {
		code = unsent
	}
	switch {
	case errors.Is(err, servers.ErrTooMany):
		code = handoff.CodeOverloaded
	case errors.Is(err, servers.ErrTooLarge):
		code = handoff.CodeTooLarge
	}
	return handoff.Fault(code, n.subject(code), handoff.ClipRunes(err.Error(), maxDetail))
}

// maxDetail bounds a quotation of the server, in runes. The error for an unknown method lists all methods.
const maxDetail = 300

// modelFaults are the codes for failures of the model. Other failures of a turn are the agent's. Set once.
var modelFaults = map[string]handoff.Code{
	"contextWindowExceeded": handoff.CodeContextFull,

	"sessionBudgetExceeded":     handoff.CodeModelLimit,
	"usageLimitExceeded":        handoff.CodeModelLimit,
	"rateLimitExceeded":         handoff.CodeModelLimit,
	"flexUnavailable":           handoff.CodeModelLimit,
	"serverOverloaded":          handoff.CodeModelLimit,
	"policyCapacityUnavailable": handoff.CodeModelLimit,

	"modelNotFound":               handoff.CodeModelRefused,
	"cyberPolicy":                 handoff.CodeModelRefused,
	"misalignmentPolicyViolation": handoff.CodeModelRefused,
	"inferenceHookDenied":         handoff.CodeModelRefused,
	"unauthorized":                handoff.CodeNotSignedIn,
	"badRequest":                  handoff.CodeModelRefused,
}

// code returns the code for the failure of a turn, or "". Failures of HTTP requests have a status beside
// their word.
func (e *wireError) code() handoff.Code {
	var word string
	if json.Unmarshal(e.Info, &word) == nil {
		return modelFaults[word]
	}
	var failed map[string]struct {
		Status int `json:"httpStatusCode"`
	}
	_ = json.Unmarshal(e.Info, &failed) // empty if it fails
	for _, f := range failed {
		switch f.Status {
		case http.StatusTooManyRequests:
			return handoff.CodeModelLimit
		case http.StatusUnauthorized:
			return handoff.CodeNotSignedIn
		case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound:
			return handoff.CodeModelRefused
		}
	}
	return ""
}
