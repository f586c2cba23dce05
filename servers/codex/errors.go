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

// A refusal is what an error response of the server means to us.
type refusal int

const (
	refusedOther      refusal = iota
	refusedUnloaded           // the thread is not in the server's memory, or not there at all
	refusedGone               // there is no such thread to resume
	refusedNeverRan           // the thread exists but has no turns to list
	refusedItems              // the thread's items can be listed only with their turns, or it never ran
	refusedArchived           // the thread is archived
	refusedInUse              // another process has the thread open
	refusedBadID              // not a thread id at all
	refusedNoTurn             // the turn does not run any more
	refusedOverloaded         // too many requests; try again later
	refusedTooLarge           // the input is too long
	refusedUnknown            // the server has no such method, or not for us
	refusedNoSuchTurn         // the thread has no such turn
	refusedTurnRuns           // the turn has not ended
	refusedClosing            // the thread is just leaving the server's memory; it can be resumed after that
)

// codeOverloaded is the only error code of the server that means something by itself.
const codeOverloaded = -32001

// refusals maps what the server writes, in lower case, to what it means. First match wins. The wording is
// that of codex 0.169.0; six other projects are known to have matched too little of it.
var refusals = []struct {
	text string
	is   refusal
}{
	{"unknown variant `thread/", refusedUnknown},
	{"requires experimentalapi capability", refusedUnknown},
	{"invalid request:", refusedOther}, // lists every method name: must not be searched for the others
	{"no rollout found for thread id", refusedGone},
	{" is archived", refusedArchived},
	{"already has an active writer", refusedInUse},
	{"invalid thread id", refusedBadID},
	{"invalid session id", refusedBadID},
	{"thread not found", refusedUnloaded},
	{"thread not loaded", refusedGone},
	{"list_turns is not supported", refusedNeverRan},
	{"thread/items/list is not supported", refusedItems},
	{"is not materialized yet", refusedNeverRan},
	{"ephemeral threads do not support", refusedNeverRan},
	{"turn not found", refusedNoSuchTurn},
	{"was not found in the source thread", refusedNoSuchTurn}, // 0.150
	{"identifies an in-progress turn", refusedTurnRuns},
	{"no active turn", refusedNoTurn},
	{"expected active turn id", refusedNoTurn},
	{"server overloaded", refusedOverloaded},
	{"is closing; retry", refusedClosing},
}

// classify reads an error response.
func classify(e *jsonrpc.Error) refusal {
	if e.Code == codeOverloaded {
		return refusedOverloaded
	}
	var data struct {
		InputErrorCode string `json:"input_error_code"`
	}
	if json.Unmarshal(e.Data, &data) == nil && data.InputErrorCode == "input_too_large" {
		return refusedTooLarge
	}
	text := strings.ToLower(e.Message)
	for _, row := range refusals {
		if strings.Contains(text, row.text) {
			return row.is
		}
	}
	return refusedOther
}

// refusedAs reports whether err is an error response of this meaning.
func refusedAs(err error, is refusal) bool {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && classify(e) == is
}

// holderOf is the program that has a session open, as a machine that joined tells it; "": not known.
func holderOf(e *jsonrpc.Error) string {
	var data struct {
		Holder string `json:"holder"`
	}
	_ = json.Unmarshal(e.Data, &data) // an app-server tells none
	if !programName.MatchString(data.Holder) {
		return ""
	}
	return data.Holder
}

// programName matches the name of a program, which is said aloud.
var programName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9 ]{0,29}$`)

// codes is what each refusal means in the vocabulary of [handoff].
var codes = map[refusal]handoff.Code{
	refusedOther:      handoff.CodeRefused,
	refusedUnloaded:   handoff.CodeSessionGone,
	refusedGone:       handoff.CodeSessionGone,
	refusedNeverRan:   handoff.CodeSessionGone,
	refusedItems:      handoff.CodeSessionGone,
	refusedArchived:   handoff.CodeSessionArchived,
	refusedInUse:      handoff.CodeSessionInUse,
	refusedBadID:      handoff.CodeUnknownSession,
	refusedNoTurn:     handoff.CodeNotPending,
	refusedOverloaded: handoff.CodeOverloaded,
	refusedTooLarge:   handoff.CodeTooLarge,
	refusedUnknown:    handoff.CodeUnsupported,
	refusedNoSuchTurn: handoff.CodeNotFound,
	refusedTurnRuns:   handoff.CodeBusy,
	refusedClosing:    handoff.CodeOverloaded,
}

// unnamedSession stands where a spoken sentence names a session that we only know by its id.
const unnamedSession = "you named"

// A naming is what errors call things. Ids are never said.
type naming struct {
	server  string
	session string // its title, or ""
}

// subject returns what fills the spoken phrase of a code.
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

// fill gives a fault that names nothing its subject.
func (n naming) fill(fault *handoff.Error) *handoff.Error {
	fault.Subject = cmp.Or(fault.Subject, n.subject(fault.Code))
	return fault
}

// fault translates an error of a peer. Unsent and unanswered requests get the code given for each: only
// the caller knows what an unanswered one may have done.
func (n naming) fault(err error, unsent, unanswered handoff.Code) *handoff.Error {
	if e, ok := errors.AsType[*handoff.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		code := codes[classify(e)]
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

// maxDetail bounds what an error quotes of the server, in runes: unknown methods are answered with a list
// of all of them.
const maxDetail = 300

// modelFaults says which failures of a turn come from the model behind it. Any other is the agent's. Set once.
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

// code is what the failure of a turn means, or "". What came over HTTP has a status beside its word.
func (e *wireError) code() handoff.Code {
	var word string
	if json.Unmarshal(e.Info, &word) == nil {
		return modelFaults[word]
	}
	var failed map[string]struct {
		Status int `json:"httpStatusCode"`
	}
	_ = json.Unmarshal(e.Info, &failed) // anything else is no known failure
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
