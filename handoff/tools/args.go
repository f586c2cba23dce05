package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"switchboard/handoff"
	"switchboard/handoff/wording"
)

// Bounds of arguments, in bytes.
const (
	maxName  = 256     // a spoken or written name
	maxQuery = 1 << 10 // words to search for
	maxReply = 2000    // a spoken answer in words
)

// Arguments are the parsed arguments of one tool.
type Arguments interface {
	// Do does what the tool does, as far as the grant allows: it does not find servers and work that the grant may not
	// use. A nil Result without an error means that the front answers later; see [Front].
	Do(ctx context.Context, b Backend, f Front, g handoff.Grant) (Result, error)
}

// none is for tools without arguments.
type none struct{}

// Check finds nothing wrong.
func (none) Check() error { return nil }

// CodexArguments are the arguments of [Codex].
type CodexArguments struct {
	Server string `json:"server"`
	Thread string `json:"thread_id,omitempty"`
	// FromServer and FromThread name a session that goes on in a new one elsewhere; see [handoff.Request.From].
	FromServer string `json:"from_server,omitempty"`
	FromThread string `json:"from_thread_id,omitempty"`
	Prompt     string `json:"prompt"`
	Worktree   bool   `json:"worktree,omitempty"` // see [handoff.Request.Worktree]
	Goal       bool   `json:"goal,omitempty"`     // see [handoff.Request.Goal]
	Begin      string `json:"begin,omitempty"`    // id of work that was not begun, whose words and target are used instead
}

// NextArguments are the arguments of [QueueNext]: work that comes after the running one.
type NextArguments struct{ CodexArguments }

// WatchArguments are the arguments of [Watch]: a session in which somebody else begins work.
type WatchArguments struct {
	Server string `json:"server"`
	Thread string `json:"thread_id"`
}

// AsideArguments are the arguments of [RunOnServer]: a side question.
type AsideArguments struct{ CodexArguments }

// ServersArguments are the arguments of [ListServers].
type ServersArguments struct{ none }

// SessionsArguments are the arguments of [ListSessions].
type SessionsArguments struct {
	Server string `json:"server,omitempty"`
	Query  string `json:"query,omitempty"`
	Limit  int    `json:"limit,omitempty"` // 0: the default
	Skip   int    `json:"-"`               // see [handoff.SessionQuery]; not for models
}

// ReadArguments are the arguments of [ReadSession].
type ReadArguments struct {
	Server string `json:"server"`
	Thread string `json:"thread_id"`
	Limit  int    `json:"limit,omitempty"` // lines; 0: the default
}

// NameArguments are the arguments of [NameSession].
type NameArguments struct {
	Server string `json:"server"`
	Thread string `json:"thread_id"`
	Name   string `json:"name"`
}

// TreeArguments are the arguments of [RemoveTree].
type TreeArguments struct {
	Server string `json:"server"`
	Thread string `json:"thread_id"`
}

// StopArguments are the arguments of [StopWork].
type StopArguments struct {
	Server string `json:"server,omitempty"` // "": not named; see [StopArguments.All]
	// Drop is the id of paused work, which is dropped; nothing else is stopped.
	Drop string `json:"drop,omitempty"`
	// Theirs is the id of watched work that somebody else began, which the caller wants stopped all the same.
	Theirs string `json:"theirs,omitempty"`
	// Watched is a session on Server that is watched no longer. Its work goes on.
	Watched string `json:"watched,omitempty"`
}

// StatusArguments are the arguments of [Status].
type StatusArguments struct{ none }

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
type SilenceArguments struct{ none }

// Do gives work that begins at once, or goes into the caller's work that runs there.
func (a CodexArguments) Do(ctx context.Context, _ Backend, f Front, g handoff.Grant) (Result, error) {
	return a.give(ctx, f, g, handoff.ModeNow)
}

// Do gives work that begins after the work that runs there.
func (a NextArguments) Do(ctx context.Context, _ Backend, f Front, g handoff.Grant) (Result, error) {
	return a.give(ctx, f, g, handoff.ModeNext)
}

// Do asks a side question.
func (a AsideArguments) Do(ctx context.Context, _ Backend, f Front, g handoff.Grant) (Result, error) {
	return a.give(ctx, f, g, handoff.ModeAside)
}

// Do follows work that somebody else begins.
func (a WatchArguments) Do(ctx context.Context, _ Backend, f Front, g handoff.Grant) (Result, error) {
	return f.Give(ctx, g, handoff.Request{
		Target: handoff.Target{Server: a.Server, Thread: a.Thread}, Mode: handoff.ModeWatch,
	})
}

func (a CodexArguments) give(ctx context.Context, f Front, g handoff.Grant, mode handoff.Mode) (Result, error) {
	from := handoff.Target{Server: a.FromServer, Thread: a.FromThread}
	return f.Give(ctx, g, handoff.Request{
		Target: a.Target(), From: from, Input: handoff.TextInput(a.Prompt), Mode: mode, Instead: handoff.ID(a.Begin),
		Worktree: a.Worktree, Goal: a.Goal,
	})
}

// Target returns the target of the work, not resolved.
func (a CodexArguments) Target() handoff.Target {
	return handoff.Target{Server: a.Server, Thread: a.Thread}
}

// Do gives a session a name. It needs a Resolver and a Namer.
func (a NameArguments) Do(ctx context.Context, b Backend, _ Front, g handoff.Grant) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	t, err := b.Resolver.Resolve(ctx, g, handoff.Target{Server: a.Server, Thread: a.Thread})
	if err == nil {
		err = b.Namer.RenameSession(ctx, g, t, a.Name)
	}
	if err != nil {
		return nil, err
	}
	return Answer{wording.Answer{Status: "done", Say: b.Language.Named(a.Name)}}, nil
}

// Do removes the worktree of a session. It needs Trees.
func (a TreeArguments) Do(ctx context.Context, b Backend, _ Front, g handoff.Grant) (Result, error) {
	if err := b.Trees.RemoveWorktree(ctx, g, handoff.Target{Server: a.Server, Thread: a.Thread}); err != nil {
		return nil, err
	}
	return Answer{wording.Answer{Status: "done", Say: b.Language.Okay(), Note: "The worktree is removed, and its session " +
		"has ended with it."}}, nil
}

// Do answers an open question of an agent.
func (a AnswerArguments) Do(ctx context.Context, b Backend, f Front, g handoff.Grant) (Result, error) {
	q, err := b.Questions.Question(g, a.Question)
	if err != nil {
		return nil, err
	}
	return f.Answer(ctx, g, q, a)
}

// Do sets the speech level of the caller.
func (a UpdatesArguments) Do(ctx context.Context, b Backend, _ Front, g handoff.Grant) (Result, error) {
	_ = b.Levels.SetLevel(ctx, g.Caller, a.Level) // after an error it counts all the same
	return Answer{wording.Answer{Status: "done", Say: b.Language.Okay()}}, nil
}

// Do does nothing.
func (SilenceArguments) Do(context.Context, Backend, Front, handoff.Grant) (Result, error) {
	return Answer{wording.Answer{Status: "done"}}, nil
}

// Check trims the names and reports what is wrong.
func (a *CodexArguments) Check() error {
	if strings.TrimSpace(a.Prompt) == "" {
		return handoff.Fault(handoff.CodeMalformed, "the prompt is empty", "")
	}
	if len(a.Prompt) > handoff.MaxPrompt {
		return tooLarge("the prompt", len(a.Prompt), handoff.MaxPrompt)
	}
	return names(&a.Server, &a.Thread, &a.FromServer, &a.FromThread, &a.Begin)
}

// Check trims the names and reports what is wrong.
func (a *NameArguments) Check() error {
	switch {
	case strings.TrimSpace(a.Thread) == "" || a.Thread == handoff.NewThread:
		return handoff.Fault(handoff.CodeMalformed, "thread_id names no session", "")
	case strings.TrimSpace(a.Name) == "":
		return handoff.Fault(handoff.CodeMalformed, "the name is empty", "")
	}
	return names(&a.Server, &a.Thread, &a.Name)
}

// Check trims the names and reports what is wrong.
func (a *WatchArguments) Check() error { return session(&a.Server, &a.Thread) }

// Check trims the names and reports what is wrong.
func (a *TreeArguments) Check() error { return session(&a.Server, &a.Thread) }

// session trims the names of a session that is there, and reports what is wrong.
func session(server, thread *string) error {
	if err := names(server, thread); err != nil {
		return err
	}
	if *server == "" || *thread == "" || *thread == handoff.NewThread {
		return handoff.Fault(handoff.CodeMalformed, "server and thread_id have to name a session", "")
	}
	return nil
}

// Check trims the name, bounds the limit, and reports what is wrong.
func (a *SessionsArguments) Check() error {
	a.Limit = clamp(a.Limit, handoff.DefaultSessions, handoff.MaxSessions)
	if len(a.Query) > maxQuery {
		return tooLarge("the query", len(a.Query), maxQuery)
	}
	return names(&a.Server)
}

// Check trims the names, bounds the limit, and reports what is wrong.
func (a *ReadArguments) Check() error {
	a.Limit = clamp(a.Limit, handoff.DefaultReadLines, handoff.MaxReadLines)
	if strings.TrimSpace(a.Thread) == "" {
		return handoff.Fault(handoff.CodeMalformed, "thread_id is empty", "")
	}
	return names(&a.Server, &a.Thread)
}

// Check trims the names and reports what is wrong.
func (a *StopArguments) Check() error { return names(&a.Server, &a.Drop, &a.Watched, &a.Theirs) }

// All reports whether Server means all machines.
func (a StopArguments) All() bool {
	switch strings.ToLower(a.Server) {
	case "all", "everything", "every machine", "all of them", "both":
		return true
	}
	return false
}

// Check trims the words and reports what is wrong.
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

// Check returns an error if the level is unknown.
func (a *UpdatesArguments) Check() error {
	if _, ok := handoff.ParseSpeechLevel(string(a.Level)); !ok || a.Level == "" {
		return handoff.Fault(handoff.CodeMalformed, "level must be quiet, milestones or chatty", "")
	}
	return nil
}

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

// ReadTarget reads the target from the beginning of a function call's arguments, and reports whether it is readable.
// The schema's properties come in the order server, thread_id, prompt, so that is so once the thread is complete or the
// prompt begins. The target is a guess: only the whole request counts.
func ReadTarget(partial string) (CodexArguments, bool) {
	var args CodexArguments
	d := json.NewDecoder(strings.NewReader(partial))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return CodexArguments{}, false
	}
	for {
		key, err := d.Token()
		if err != nil {
			return CodexArguments{}, false
		}
		if key == "prompt" {
			break
		}
		value, err := d.Token()
		if err != nil {
			return CodexArguments{}, false
		}
		text, isText := value.(string)
		switch {
		case key == "server" && isText:
			args.Server = text
		case key == "thread_id" && (isText || value == nil):
			args.Thread = text
		default:
			return CodexArguments{}, false
		}
		if args.Server != "" && args.Thread != "" {
			break
		}
	}
	args.Server, args.Thread = strings.TrimSpace(args.Server), strings.TrimSpace(args.Thread)
	if len(args.Server) > maxName || len(args.Thread) > maxName {
		return CodexArguments{}, false
	}
	return args, true
}
