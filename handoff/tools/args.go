package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"switchboard/handoff"
	"unicode/utf8"
)

// CodexArguments are the arguments of [Codex].
type CodexArguments struct {
	Server string `json:"server"`
	Thread string `json:"thread_id"`
	Prompt string `json:"prompt"`
	Begin  string `json:"begin,omitempty"` // an earlier request that was not begun: its words and its place count instead
	Next   bool   `json:"-"`               // queue_next: after the running work, never into it
}

// sessionsArguments are the arguments of [ListSessions].
type sessionsArguments struct {
	Server string `json:"server"`
	Query  string `json:"query"`
	Limit  int    `json:"limit"`
}

// readArguments are the arguments of [ReadSession].
type readArguments struct {
	Server string `json:"server"`
	Thread string `json:"thread_id"`
	Limit  int    `json:"limit"`
}

// ParseCodex reads the arguments of [Codex] and [QueueNext].
func ParseCodex(raw string) (CodexArguments, error) {
	var a CodexArguments
	if err := Parse(raw, &a, "server", "thread_id", "prompt", "begin"); err != nil {
		return a, err
	}
	a.Server, a.Thread, a.Begin = strings.TrimSpace(a.Server), strings.TrimSpace(a.Thread), strings.TrimSpace(a.Begin)
	if strings.TrimSpace(a.Prompt) == "" {
		return a, handoff.Fault(handoff.CodeMalformed, "the prompt is empty", "")
	}
	if len(a.Prompt) > handoff.MaxPrompt {
		return a, handoff.Fault(handoff.CodeTooLarge, "the prompt", fmt.Sprintf("%d bytes, at most %d", len(a.Prompt), handoff.MaxPrompt))
	}
	if max(len(a.Server), len(a.Thread), len(a.Begin)) > maxName {
		return a, handoff.Fault(handoff.CodeTooLarge, "a name", fmt.Sprintf("at most %d bytes", maxName))
	}
	return a, nil
}

// ParseSessions reads those of [ListSessions].
func ParseSessions(raw string) (sessionsArguments, error) {
	var a sessionsArguments
	if err := Parse(raw, &a, "server", "query", "limit"); err != nil {
		return a, err
	}
	a.Limit = clamp(a.Limit, handoff.DefaultSessions, handoff.MaxSessions)
	return a, nil
}

// ParseRead reads those of [ReadSession].
func ParseRead(raw string) (readArguments, error) {
	var a readArguments
	if err := Parse(raw, &a, "server", "thread_id", "limit"); err != nil {
		return a, err
	}
	if strings.TrimSpace(a.Thread) == "" {
		return a, handoff.Fault(handoff.CodeMalformed, "thread_id is empty", "")
	}
	a.Limit = clamp(a.Limit, handoff.DefaultReadLines, handoff.MaxReadLines)
	return a, nil
}

// maxName bounds a spoken or written name, in bytes.
const maxName = 256

func clamp(n, zero, most int) int {
	if n <= 0 {
		return zero
	}
	return min(n, most)
}

// Parse decodes the arguments of a function call and names the fault, so that the voice model can mend
// it. The raw text is never taken for a prompt. Policy is not among the known names, so none can pass.
func Parse(raw string, into any, known ...string) error {
	if !utf8.ValidString(raw) {
		return handoff.Fault(handoff.CodeMalformed, "the arguments are not valid UTF-8", "")
	}
	if strings.TrimSpace(raw) == "" {
		raw = "{}"
	}
	if handoff.TooDeep([]byte(raw)) { // first: parsers recurse
		return handoff.Fault(handoff.CodeMalformed, fmt.Sprintf("the arguments nest deeper than %d", handoff.MaxDepth), "")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(raw), &fields); err != nil {
		return handoff.Fault(handoff.CodeMalformed, "the arguments are not a JSON object", err.Error())
	}
	for name := range fields {
		if !slices.Contains(known, name) {
			return handoff.Fault(handoff.CodeMalformed, fmt.Sprintf("there is no argument %.40q; there are %s", name, strings.Join(known, ", ")), "")
		}
	}
	d := json.NewDecoder(bytes.NewReader([]byte(raw)))
	if err := d.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return handoff.Fault(handoff.CodeMalformed, fmt.Sprintf("the argument %s must be a %s, not a %s", e.Field, wanted(e.Type.Kind().String()), e.Value), "")
		}
		return handoff.Fault(handoff.CodeMalformed, "the arguments are not a JSON object", err.Error())
	}
	return nil
}

func wanted(kind string) string {
	if kind == "int" {
		return "whole number"
	}
	return kind
}
