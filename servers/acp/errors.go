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

// Codes of errors that mean something by themselves.
const (
	codeCancelled  = -32800
	codeAuth       = -32000
	codeNoSession  = -32002
	codeBadRequest = -32600
	codeNoMethod   = -32601
	codeBadParams  = -32602
)

// Bounds of what is kept of an agent.
const (
	maxDetail        = 300 // runes of what is quoted
	maxID            = 512 // bytes of an id
	maxOpenQuestions = 256 << 10
)

// Bounds of a connection: a prompt each session may wait for its answer, and lists and controls. When there is no room
// a frame fails.
const (
	maxInFlight    = 256 // requests
	maxQueued      = 128 // frames that wait for the writer
	maxQueuedBytes = 32 << 20
)

var (
	errDetached = errors.New("detached")
	errTimeout  = errors.New("timed out")
)

// errorData is what agents put beside the words of an error.
type errorData struct {
	Reason string `json:"reason"`
	Kind   string `json:"errorKind"`
	Name   string `json:"errorName"`
}

// refusedKey matches what APIs of models say to a key that they refuse: an agent may pass on the words alone.
var refusedKey = regexp.MustCompile(`(?i)\b(incorrect|invalid) (x-)?api[ -]key|\b401 unauthorized`)

func dataOf(e *jsonrpc.Error) errorData {
	var d errorData
	_ = json.Unmarshal(e.Data, &d) // anything else says nothing
	return d
}

// isHeld reports whether another process has the session open.
func isHeld(e *jsonrpc.Error) bool {
	return strings.Contains(dataOf(e).Reason, "active_writer") || strings.Contains(strings.ToLower(e.Message), "active writer")
}

// isBusy reports whether a keeper says that a prompt of another instance runs in the session.
func isBusy(e *jsonrpc.Error) bool { return dataOf(e).Reason == "switchboard_prompt_runs" }

// fault translates an error of a peer. Unanswered requests get the code given: only the caller knows what one may have
// done.
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

// gone is the fault of a session that is not there.
func gone(why string) error { return handoff.Fault(handoff.CodeSessionGone, "you named", why) }

// turnCode is what the error of a prompt means, or "".
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
