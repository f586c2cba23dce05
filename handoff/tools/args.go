package tools

import (
	"fmt"
	"strings"

	"switchboard/handoff"
)

// Bounds of arguments, in bytes.
const (
	maxName  = 256     // a spoken or written name
	maxQuery = 1 << 10 // words to search for
	maxReply = 2000    // an answer in words that was spoken
)

// Arguments are those of one tool. What may be given, and what is wrong with it, is the business of Check.
type Arguments interface{ arguments() }

// CodexArguments are the arguments of [Codex].
type CodexArguments struct {
	Server string `json:"server"`
	Thread string `json:"thread_id,omitempty"`
	Prompt string `json:"prompt"`
	Begin  string `json:"begin,omitempty"` // an earlier request that was not begun: its words and its place count instead
}

// NextArguments are the arguments of [QueueNext]: work that comes after the running one.
type NextArguments struct{ CodexArguments }

// AsideArguments are the arguments of [RunOnServer]: a side question.
type AsideArguments struct{ CodexArguments }

// ServersArguments are the arguments of [ListServers].
type ServersArguments struct{}

// SessionsArguments are the arguments of [ListSessions].
type SessionsArguments struct {
	Server string `json:"server,omitempty"`
	Query  string `json:"query,omitempty"`
	Limit  int    `json:"limit,omitempty"` // 0: the default
}

// ReadArguments are the arguments of [ReadSession].
type ReadArguments struct {
	Server string `json:"server"`
	Thread string `json:"thread_id"`
	Limit  int    `json:"limit,omitempty"` // lines; 0: the default
}

// StopArguments are the arguments of [StopWork].
type StopArguments struct {
	Server string `json:"server,omitempty"` // "": not named; see [StopArguments.All]
	Drop   string `json:"drop,omitempty"`   // an earlier request that was not begun, and shall not be; nothing else is stopped
}

// StatusArguments are the arguments of [Status].
type StatusArguments struct{}

// AnswerArguments are the arguments of [AnswerAgent]: either a decision or a text.
type AnswerArguments struct {
	Question string           `json:"question,omitempty"`
	Decision handoff.Decision `json:"decision,omitempty"` // accept, decline or stop
	Text     string           `json:"text,omitempty"`
}

// UpdatesArguments are the arguments of [SetUpdates].
type UpdatesArguments struct {
	Level handoff.SpeechLevel `json:"level"`
}

// SilenceArguments are the arguments of [RemainSilent].
type SilenceArguments struct{}

func (CodexArguments) arguments()    {}
func (ServersArguments) arguments()  {}
func (SessionsArguments) arguments() {}
func (ReadArguments) arguments()     {}
func (StopArguments) arguments()     {}
func (StatusArguments) arguments()   {}
func (AnswerArguments) arguments()   {}
func (UpdatesArguments) arguments()  {}
func (SilenceArguments) arguments()  {}

// Check trims the names and tells what is wrong.
func (a *CodexArguments) Check() error {
	if strings.TrimSpace(a.Prompt) == "" {
		return handoff.Fault(handoff.CodeMalformed, "the prompt is empty", "")
	}
	if len(a.Prompt) > handoff.MaxPrompt {
		return tooLarge("the prompt", len(a.Prompt), handoff.MaxPrompt)
	}
	return names(&a.Server, &a.Thread, &a.Begin)
}

// Check finds nothing.
func (*ServersArguments) Check() error { return nil }

// Check trims the name, bounds how many there shall be, and tells what is wrong.
func (a *SessionsArguments) Check() error {
	a.Limit = clamp(a.Limit, handoff.DefaultSessions, handoff.MaxSessions)
	if len(a.Query) > maxQuery {
		return tooLarge("the query", len(a.Query), maxQuery)
	}
	return names(&a.Server)
}

// Check trims the names, bounds how many lines there shall be, and tells what is wrong.
func (a *ReadArguments) Check() error {
	a.Limit = clamp(a.Limit, handoff.DefaultReadLines, handoff.MaxReadLines)
	if strings.TrimSpace(a.Thread) == "" {
		return handoff.Fault(handoff.CodeMalformed, "thread_id is empty", "")
	}
	return names(&a.Server, &a.Thread)
}

// Check trims the names and tells what is wrong.
func (a *StopArguments) Check() error { return names(&a.Server, &a.Drop) }

// All reports whether the work on every machine is meant.
func (a StopArguments) All() bool {
	switch strings.ToLower(a.Server) {
	case "all", "everything", "every machine", "all of them", "both":
		return true
	}
	return false
}

// Check finds nothing.
func (*StatusArguments) Check() error { return nil }

// Check trims the words and tells what is wrong.
func (a *AnswerArguments) Check() error {
	a.Text = strings.TrimSpace(a.Text)
	switch a.Decision {
	case "", handoff.DecisionAccept, handoff.DecisionDecline, handoff.DecisionStop:
	default:
		return handoff.Fault(handoff.CodeMalformed, "decision must be accept, decline or stop", "")
	}
	if (a.Decision == "") == (a.Text == "") {
		return handoff.Fault(handoff.CodeMalformed, "there must be either a decision or a text", "")
	}
	if len(a.Text) > maxReply {
		return tooLarge("the text", len(a.Text), maxReply)
	}
	return names(&a.Question)
}

// Check reports whether there is such a level.
func (a *UpdatesArguments) Check() error {
	if _, ok := handoff.ParseSpeechLevel(string(a.Level)); !ok || a.Level == "" {
		return handoff.Fault(handoff.CodeMalformed, "level must be quiet, milestones or chatty", "")
	}
	return nil
}

// Check finds nothing.
func (*SilenceArguments) Check() error { return nil }

// names trims names and bounds them.
func names(all ...*string) error {
	for _, name := range all {
		if *name = strings.TrimSpace(*name); len(*name) > maxName {
			return handoff.Fault(handoff.CodeTooLarge, "a name", fmt.Sprintf("at most %d bytes", maxName))
		}
	}
	return nil
}

func tooLarge(what string, size, most int) error {
	return handoff.Fault(handoff.CodeTooLarge, what, fmt.Sprintf("%d bytes, at most %d", size, most))
}

func clamp(n, zero, most int) int {
	if n <= 0 {
		return zero
	}
	return min(n, most)
}
