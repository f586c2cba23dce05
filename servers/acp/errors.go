package acp

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/jsonrpc"
)

// Error codes whose meaning does not depend on the agent.
const (
	codeCancelled  = -32800
	codeAuth       = -32000
	codeNoSession  = -32002
	codeBadRequest = -32600
	codeNoMethod   = -32601
	codeBadParams  = -32602
)

// Bounds of an agent's data.
const (
	maxDetail   = 300       // runes of a quotation
	maxID       = 512       // bytes of an id
	maxQuestion = 256 << 10 // bytes of a question
)

// Bounds of a connection. Each session may have a prompt in flight, beside lists and controls. A frame beyond a bound
// fails.
const (
	maxInFlight    = 256 // requests
	maxQueued      = 128 // frames that wait for the writer
	maxQueuedBytes = 32 << 20
)

var (
	errDetached = errors.New("detached")
	errTimeout  = errors.New("timed out")
)

// errorData is the data of an error, as far as it is read.
type errorData struct {
	Reason string `json:"reason"`
	Kind   string `json:"errorKind"`
	Name   string `json:"errorName"`
}

// refusedKey matches messages of model APIs that refuse a key. An agent may pass on the message without a code.
var refusedKey = regexp.MustCompile(`(?i)\b(incorrect|invalid) (x-)?api[ -]key|\b401 unauthorized`)

func dataOf(e *jsonrpc.Error) errorData {
	var d errorData
	_ = json.Unmarshal(e.Data, &d) // zero if it fails
	return d
}

// isHeld reports whether another process has the session open.
func isHeld(e *jsonrpc.Error) bool {
	return strings.Contains(dataOf(e).Reason, "active_writer") ||
		strings.Contains(strings.ToLower(e.Message), "active writer")
}

// isBusy reports whether a mux says that a prompt of another instance runs in the session.
func isBusy(e *jsonrpc.Error) bool { return dataOf(e).Reason == "switchboard_prompt_runs" }

// fault translates an error of a peer. A request without an answer gets the code unanswered: only the caller knows what
// the request may have done.
func (c *connection) fault(err error, session string, unanswered handoff.Code) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*handoff.Error](err); ok {
		return e
	}
	code, subject := unanswered, c.cfg.Name
	e, refused := errors.AsType[*jsonrpc.Error](err)
	switch {
	case refused && isBusy(e):
		code = handoff.CodeBusy
	case refused && isHeld(e):
		code, subject = handoff.CodeSessionInUse, session
	case refused && e.Code == codeNoSession:
		code, subject = handoff.CodeSessionGone, session
	case refused && e.Code == codeNoMethod:
		code = handoff.CodeUnsupported
	case refused && e.Code == codeAuth:
		code = handoff.CodeNotSignedIn
	case refused:
		code = handoff.CodeRefused
	case errors.Is(err, servers.ErrTooMany):
		code = handoff.CodeOverloaded
	case errors.Is(err, servers.ErrTooLarge):
		code, subject = handoff.CodeTooLarge, "the request"
	case servers.NotSent(err):
		code = handoff.CodeUnreachable
	}
	if subject == "" {
		subject = "you named"
	}
	return handoff.Fault(code, subject, handoff.ClipRunes(err.Error(), maxDetail))
}

// gone returns the error for a session that does not exist.
func gone(why string) error { return handoff.Fault(handoff.CodeSessionGone, "you named", why) }

// turnCode returns the code for the error of a prompt, or "".
func turnCode(e *jsonrpc.Error) handoff.Code {
	switch {
	case dataOf(e).Kind == "rate_limit", e.Code == 429:
		return handoff.CodeModelLimit
	case e.Code == codeAuth, e.Code == 401, dataOf(e).Name == "ProviderAuthError", refusedKey.MatchString(e.Message):
		return handoff.CodeNotSignedIn
	case e.Code == 403:
		return handoff.CodeModelRefused
	}
	return ""
}
