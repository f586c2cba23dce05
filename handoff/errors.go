package handoff

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Code is a reason that callers, pages and clients can act on. Its row in the vocabulary maps it to a
// spoken phrase, an HTTP status and a WebSocket close code: there is no second mapping.
type Code string

// The codes.
const (
	CodeUnknownServer    Code = "unknown_server"
	CodeAmbiguousServer  Code = "ambiguous_server"
	CodeUnknownSession   Code = "unknown_session"
	CodeAmbiguousSession Code = "ambiguous_session"
	CodeSessionGone      Code = "session_gone"
	CodeSessionArchived  Code = "session_archived"
	CodeSessionInUse     Code = "session_in_use"
	CodeSessionMismatch  Code = "session_mismatch"
	CodeSessionElsewhere Code = "session_elsewhere"
	CodeTokenRefused     Code = "token_refused"
	CodeOutdated         Code = "outdated"
	CodeUnreachable      Code = "unreachable"
	CodeBusy             Code = "busy"
	CodeIdle             Code = "idle"
	CodeRefused          Code = "refused"
	CodeUnsupported      Code = "unsupported"
	CodeNoGoal           Code = "no_goal"
	CodeJoined           Code = "joined"
	CodeUnknownStart     Code = "unknown_start"
	CodeStoreDown        Code = "store_down"
	CodeAgentGone        Code = "agent_gone"
	CodeAgentEnded       Code = "agent_ended"
	CodeTurnGone         Code = "turn_gone"
	CodeAgentFailed      Code = "agent_failed"
	CodeUnread           Code = "unread"
	CodeContextFull      Code = "context_full"
	CodeModelLimit       Code = "model_limit"
	CodeModelRefused     Code = "model_refused"
	CodeNotSignedIn      Code = "not_signed_in"
	CodeOverloaded       Code = "overloaded"
	CodeMalformed        Code = "malformed"
	CodeTooLarge         Code = "too_large"
	CodeSettings         Code = "settings_wrong"
	CodeUnauthorized     Code = "invalid_api_key" // as OpenAI names it
	CodeNoKey            Code = "missing_key"
	CodeSecretOver       Code = "client_secret_over"
	CodeLoginOver        Code = "login_over"
	CodeForbidden        Code = "forbidden"
	CodeNotFound         Code = "not_found"
	CodeAttached         Code = "attached"
	CodeNotPending       Code = "not_pending"
	CodeWorkEnded        Code = "work_ended"
	CodeNotBegun         Code = "not_begun"
	CodePaused           Code = "paused"
	CodeConflict         Code = "conflict"
	CodeTakenOver        Code = "taken_over"
	CodeTooDeep          Code = "too_deep"
	CodeVoiceUnreachable Code = "voice_unreachable"
	CodeVoiceKey         Code = "voice_key_refused"
	CodeVoiceModel       Code = "voice_model_unknown"
	CodeVoiceLimit       Code = "voice_limited"
	CodeVoiceGone        Code = "voice_gone"
	CodeSlowClient       Code = "slow_client"
	CodeSoundFormat      Code = "sound_format"
	CodeShutdown         Code = "shutdown"
	CodeInternal         Code = "internal"
	CodeNeedsTap         Code = "needs_tap"
	CodeNoConsent        Code = "no_consent"
	CodeNotGranted       Code = "not_granted"
	CodeNotAsked         Code = "not_asked"
	CodeLimited          Code = "rate_limit_exceeded" // as OpenAI names it
)

// Asks reports whether the caller is asked whether to begin work that ended with the code, since it was not begun.
func (c Code) Asks() bool { return c == CodeNotBegun || c == CodePaused }

// Unbegun reports whether work that failed with the code was never begun, so that a new request does it once.
func (c Code) Unbegun() bool {
	switch c {
	case CodeUnknownServer, CodeAmbiguousServer, CodeUnknownSession, CodeAmbiguousSession, CodeSessionGone,
		CodeSessionArchived, CodeSessionInUse, CodeSessionMismatch, CodeSessionElsewhere, CodeTokenRefused, CodeOutdated,
		CodeUnreachable, CodeUnsupported, CodeNoGoal, CodeStoreDown, CodeOverloaded, CodeNotGranted, CodeLimited, CodeMalformed,
		CodeTooLarge, CodeConflict, CodeTooDeep, CodeIdle:
		return true
	}
	return c.Asks()
}

// A Meaning is what a code means to a person and on each wire.
type Meaning struct {
	Spoken string // %s is the error's subject: a machine, a session, an argument
	Next   string // what to do now
	HTTP   int
	Close  int // WebSocket close code; 0: the code never ends a socket
}

// Vocabulary holds the meaning of every code. Set once.
var Vocabulary = map[Code]Meaning{
	CodeUnknownServer: {
		"I don't know a machine called %s.", "Name one of the machines there are.", http.StatusNotFound, 0,
	},
	CodeAmbiguousServer: {"%s could be more than one machine.", "Ask which one is meant.", http.StatusConflict, 0},
	CodeUnknownSession: {
		"I can't find the session %s.", "Look through the list of sessions, and name it by its title or its id.",
		http.StatusNotFound, 0,
	},
	CodeAmbiguousSession: {
		"%s could be more than one session.", "Ask which one is meant, or pass its id.", http.StatusConflict, 0,
	},
	CodeSessionGone: {
		"The session %s no longer exists.", "Ask whether to start a new one; nothing was run.", http.StatusGone, 0,
	},
	CodeSessionArchived: {
		"The session %s is archived.", "Unarchive it on its machine first; nothing was run.", http.StatusConflict, 0,
	},
	CodeSessionInUse: {
		"The session %s is open in another program on that machine.",
		"Close it there, or ask for a new session; nothing was run.", http.StatusConflict, 0,
	},
	CodeSessionMismatch: {
		"%s gave me another session than the one I asked for, so I ran nothing.",
		"Look through the list of sessions and try again.", http.StatusBadGateway, 0,
	},
	CodeSessionElsewhere: {
		"The session %s is not in that project.", "Name the place it is in, if that is meant; nothing was run.",
		http.StatusConflict, 0,
	},
	CodeTokenRefused: {
		"%s did not accept Switchboard's token.",
		"Correct token_file or token_env of that machine in Switchboard's configuration; nothing was run.",
		http.StatusBadGateway, 0,
	},
	// The subject is the sentence.
	CodeOutdated: {
		"%s.", "Update it on that machine and start its agent server again; nothing was run.", http.StatusBadGateway, 0,
	},
	CodeUnreachable: {
		"%s is not answering.", "Check that its agent server runs; try again later.", http.StatusServiceUnavailable, 0,
	},
	CodeBusy: {
		"The session on %s is still working.", "Wait for its result; nothing new was started.", http.StatusConflict, 0,
	},
	CodeIdle: {
		"Nothing runs in the session %s right now.", "Read the session, or give it work.", http.StatusConflict, 0,
	},
	CodeRefused:     {"%s refused that.", "What it said is shown with the work.", http.StatusForbidden, 0},
	CodeUnsupported: {"%s can't do that.", "Do without it; nothing was run.", http.StatusNotImplemented, 0},
	CodeNoGoal: {
		"The work on %s can't have a goal of its own.", "Ask for it without a goal; nothing was run.", http.StatusConflict, 0,
	},
	CodeJoined: {
		"Somebody else's work had just begun on %s, so it went into that.", "Its result comes with theirs.",
		http.StatusConflict, 0,
	},
	CodeUnknownStart: {
		"I lost %s while handing over, so I can't tell whether the work started.", "Look at the session before asking again.",
		http.StatusBadGateway, 0,
	},
	CodeStoreDown: {
		"I can't write anything down right now, so I did nothing: %s.", "Try again in a moment; work that runs goes on.",
		http.StatusServiceUnavailable, 0,
	},
	CodeAgentGone: {
		"I lost the connection to %s while it was working.", "The work may go on there; look at the session.",
		http.StatusBadGateway, 0,
	},
	CodeAgentEnded: {
		"I lost %s while it was working, and its work ended with it.",
		"Ask for the rest again; the session tells how far it came.", http.StatusBadGateway, 0,
	},
	CodeTurnGone: {
		"The session on %s does not hold that work any more, so I can't tell how it ended.",
		"Look at the session before asking again.", http.StatusBadGateway, 0,
	},
	CodeAgentFailed: {"The work on %s failed.", "What the agent reported is shown with the work.", http.StatusBadGateway, 0},
	CodeUnread: {
		"The work on %s is done, but I can't read what came of it.", "Read that session, or ask there what came of the work.",
		http.StatusBadGateway, 0,
	},
	CodeContextFull: {
		"The session on %s has grown too long for its model.", "Ask for less at once, or for a new session.",
		http.StatusUnprocessableEntity, 0,
	},
	CodeModelLimit: {
		"The model behind the work on %s takes no more right now.",
		"Try again later; the account there may have reached its limit.", http.StatusTooManyRequests, 4506,
	},
	CodeModelRefused: {
		"The model behind the work on %s refused the request.",
		"What it said is shown with the work; its login or its settings may need a look.", http.StatusBadGateway, 0,
	},
	CodeNotSignedIn: {
		"The agent on %s is not signed in, or its login has ended.",
		"Sign in on that machine (`codex login`; for Claude Code `claude`, then /login), and ask again.",
		http.StatusBadGateway, 0,
	},
	CodeOverloaded: {
		"%s has too much to do right now.", "Try again in a moment; nothing was started.", http.StatusServiceUnavailable, 0,
	},
	CodeMalformed: {
		"I didn't understand that request: %s.", "Correct it and try again.", http.StatusBadRequest, 4400,
	},
	CodeTooLarge: {
		"That request is too long: %s.", "Shorten it and try again.", http.StatusRequestEntityTooLarge, 1009,
	},
	CodeSettings: {
		"The settings would be wrong, and all stays as it was: %s", "Correct the file and have it read again.",
		http.StatusUnprocessableEntity, 0,
	},
	CodeUnauthorized: {
		"That key is not valid.",
		"`switchboard login` prints a link that logs in; `switchboard key NAME` makes a key for a program.",
		http.StatusUnauthorized, 4401,
	},
	CodeSecretOver: {
		"That client secret has ended, or there never was one.",
		"Make another with POST /v1/realtime/client_secrets, with a key.", http.StatusUnauthorized, 4401,
	},
	CodeLoginOver: {
		"That link or code no longer works: each works once, within ten minutes.",
		"`switchboard login` prints a new link; a device that is logged in shows a new code in its settings.",
		http.StatusForbidden, 0,
	},
	CodeNoKey: {
		"That request brings no key: %s.",
		"Send it as `Authorization: Bearer KEY`, or for a WebSocket of a browser as the subprotocol " +
			"`openai-insecure-api-key.KEY`; `switchboard key NAME` makes one.",
		http.StatusUnauthorized, 4401,
	},
	CodeForbidden: {
		"That is not allowed: %s.", "Open the page at an address that Switchboard knows (public_url).", http.StatusForbidden,
		4403,
	},
	CodeNotFound: {"There is no %s.", "Check the name or the address.", http.StatusNotFound, 4404},
	CodeAttached: {
		"I am in that call already.", "Leave it as it is, or end my part in it first with DELETE /fleet/calls/ID.",
		http.StatusConflict, 0,
	},
	CodeNotPending: {
		"That question is no longer open.", "Somebody answered it, it was withdrawn, or the work ended.", http.StatusConflict,
		0,
	},
	CodeWorkEnded: {"That work has ended already.", "How it ended is shown with the work.", http.StatusConflict, 0},
	CodeNotBegun: {
		"What you asked for on %s was not begun, because I was restarted.", "Ask whether to do it now.", http.StatusConflict,
		0,
	},
	CodePaused: {
		"What waited on %s is paused, because the work before it was stopped.", "Ask whether to go on with it or to drop it.",
		http.StatusConflict, 0,
	},
	CodeConflict: {
		"I was asked two different things under one name, so I did only the first.", "Ask again under a new name.",
		http.StatusConflict, 0,
	},
	CodeTooDeep: {
		"Agents have asked each other for work twice already, so I began no more.",
		"Do the work yourself, or tell your user what is left to do.", http.StatusConflict, 0,
	},
	CodeTakenOver: {
		"Somebody else has taken care of that already.", "Look at the session before asking again.", http.StatusConflict, 0,
	},
	CodeVoiceUnreachable: {
		"The voice model at %s is not answering.", "Check model.url and its key.", http.StatusBadGateway, 4502,
	},
	CodeVoiceKey: {
		"The voice model at %s did not accept Switchboard's own key for it.",
		"Your key is good. Whoever runs Switchboard corrects OPENAI_API_KEY, or what model.key_env names.",
		http.StatusUnauthorized, 4504,
	},
	CodeVoiceModel: {
		"There is no voice model %s.", "Ask for one that is there, or correct model.url and model.name.", http.StatusNotFound,
		4505,
	},
	CodeVoiceLimit: {
		"The voice model at %s takes no more calls right now.",
		"Try again later; Switchboard's account there may have reached its limit.", http.StatusTooManyRequests, 4506,
	},
	CodeVoiceGone: {
		"The voice model ended the call.", "Call again; work goes on meanwhile.", http.StatusBadGateway, 4503,
	},
	CodeSlowClient: {
		"The connection is too slow for this call.", "Call again.", http.StatusServiceUnavailable, 4008,
	},
	CodeSoundFormat: {
		"The voice model speaks %s, which does not fit the sound of this call.",
		"Use a model with PCM16 or G.711, or call over WebSocket.", http.StatusBadGateway, 4415,
	},
	CodeShutdown: {
		"Switchboard is shutting down.", "Call again in a moment.", http.StatusServiceUnavailable, 1012,
	},
	CodeNeedsTap: {
		"That needs a tap on the page: %s.", "Open the page and answer there; it waits.", http.StatusForbidden, 0,
	},
	CodeNoConsent: {
		"I need a clear answer: %s.", "Ask again, naming the machine and what would be done.", http.StatusConflict, 0,
	},
	CodeNotGranted: {
		"This key may not do that: %s.", "Use a key that may; Switchboard's configuration says what each may do.",
		http.StatusForbidden, 4403,
	},
	CodeNotAsked: {
		"Shall I do that?",
		"Nothing was done: the caller did not ask for it. Say in one sentence who suggests what, as in \"laptop suggests " +
			"…\", and ask: shall I? Call it again only after the caller has said so.", http.StatusConflict, 0,
	},
	CodeLimited: {
		"That is more than is allowed: %s.", "Try again later; work that runs goes on.", http.StatusTooManyRequests, 4429,
	},
	CodeInternal: {
		"Something went wrong on my side.", "Switchboard's log says more.", http.StatusInternalServerError, 1011,
	},
}

// An Error is a failure with a code of the vocabulary.
type Error struct {
	Code    Code
	Subject string   // fills %s of the spoken phrase; may be said aloud
	Choices []string // names that can be said: candidates, or what there is
	Near    bool     // Choices are names that are similar to the unknown one
	Param   string   // the part of a client's request that is wrong, as a path: "session.type"; "": all of it
	Detail  string   // for the log and the page, never spoken; no secrets

	Program string // of [CodeSessionInUse]: the name of the program that has the session open; "": not known

	Retry time.Duration // time until another try may succeed; 0: not known

	// Reason, Why and Next say why the machine that Subject names is not there. The code that dials a machine sets the
	// reason, and the fleet the words.
	Reason Reason // "": the code says everything
	Why    string // a clause about the machine, such as "nothing is listening there"
	Next   string // what to do, instead of the [Meaning]'s Next
}

// Fault returns an error with a code and its subject.
func Fault(code Code, subject, detail string) *Error {
	return &Error{Code: code, Subject: subject, Detail: detail}
}

// Because returns an error with a code and its subject, and with the detail of the error that caused it. The cause's
// code is left out, since people read the detail.
func Because(code Code, subject string, err error) *Error {
	return Fault(code, subject, AsError(err).Detail)
}

// Error returns the code, the subject and the detail.
func (e *Error) Error() string {
	s := string(e.Code)
	if e.Subject != "" {
		s += " " + e.Subject
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Meaning returns the code's row of [Vocabulary].
func (e *Error) Meaning() Meaning {
	if m, ok := Vocabulary[e.Code]; ok {
		return m
	}
	return Vocabulary[CodeInternal]
}

// NextStep returns what to do now.
func (e *Error) NextStep() string {
	if e.Code == CodeStoreDown {
		return cmp.Or(e.Next, storeNext[e.About()])
	}
	return cmp.Or(e.Next, e.Meaning().Next)
}

// About returns what the sentence about the error is about; "" has no name.
func (e *Error) About() string {
	if e.Code == CodeStoreDown && storeNext[e.Subject] == "" { // of an earlier life, whose reason is not known any more
		return WhyStoreAway
	}
	return e.Subject
}

// Spoken returns the sentence a person hears, with up to three choices and how many more there are.
func (e *Error) Spoken() string {
	s := strings.Replace(e.Meaning().Spoken, "%s", cmp.Or(e.About(), "it"), 1)
	if n := min(len(e.Choices), 3); n > 0 {
		said := e.Choices[:n]
		if more := len(e.Choices) - n; more > 0 {
			said = append(slices.Clone(said), strconv.Itoa(more)+" more")
		}
		if e.Near {
			return s + " Did you mean " + strings.Join(said, ", or ") + "?"
		}
		s += " There is " + ListWords(said) + "."
	}
	return s
}

// AsError returns err as an [*Error]; anything else becomes an internal one that keeps its text as detail.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: CodeInternal, Detail: err.Error()}
}

// CodeOf returns the code of an error; "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	return AsError(err).Code
}

// Reasons why an answer to a question does not count, or must be given on the page. They can be said after the phrase
// of a code.
const (
	WhyBeyond  = "it would allow more than this one act"
	WhyOld     = "the answer is too old"
	WhyMore    = "you went on speaking"
	WhySecret  = "it asks for a secret, which is typed there and never said"
	WhyNoWords = "it takes no words by voice"
	WhyLong    = "it is too long to be said whole"
	WhyPerson  = "a person has to decide it each time"
	WhyLink    = "it asks to open a link, which is shown there"

	WhyNoApprove = "this key may not answer for you"
	WhyTheirs    = "whether work that somebody else began may be stopped"
)

// WhyNoMode is why an agent refuses all work: a clause about its machine, for [Error.Why].
const WhyNoMode = "its agent has no mode that asks"
