package codex

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/jsonrpc"
)

// A meaning is what classify returns.
type meaning struct {
	is   refusal
	code handoff.Code
}

func meaningOf(e *jsonrpc.Error) meaning {
	is, code := classify(e)
	return meaning{is, code}
}

// Set once.
var (
	other     = meaning{refusedOther, handoff.CodeRefused}
	gone      = meaning{refusedGone, handoff.CodeSessionGone}
	unloaded  = meaning{refusedUnloaded, handoff.CodeSessionGone}
	neverRan  = meaning{refusedNeverRan, handoff.CodeSessionGone}
	noTurn    = meaning{refusedOther, handoff.CodeNotPending}
	overloads = meaning{refusedOverloaded, handoff.CodeOverloaded}
)

// TestClassify holds the table against every error that was recorded, and against those seen since.
func TestClassify(t *testing.T) {
	want := map[string]meaning{
		"no rollout found for thread id":         gone,
		"thread not loaded":                      gone,
		"thread not found":                       unloaded,
		"is archived":                            {refusedArchived, handoff.CodeSessionArchived},
		"no active turn":                         noTurn,
		"expected active turn id":                noTurn,
		"list_turns is not supported yet":        neverRan,
		"thread/items/list is not supported yet": neverRan,
		"ephemeral threads do not support":       neverRan,
		"invalid thread id":                      {refusedOther, handoff.CodeUnknownSession},
		"turn not found":                         {refusedOther, handoff.CodeNotFound},
		"identifies an in-progress turn":         {refusedOther, handoff.CodeBusy},
	}
	seen := map[string]bool{}
	for _, name := range transcripts {
		for _, l := range readTranscript(t, name) {
			m, _ := jsonrpc.Parse(l.Msg)
			if l.Dir != "<" || m.Error == nil {
				continue
			}
			expect := other
			for part, is := range want {
				if strings.Contains(m.Error.Message, part) && !strings.HasPrefix(m.Error.Message, "Invalid request") {
					expect, seen[part] = is, true
				}
			}
			if got := meaningOf(m.Error); got != expect {
				t.Errorf("%q is %v, want %v", handoff.ClipRunes(m.Error.Message, 80), got, expect)
			}
		}
	}
	for _, part := range []string{"no rollout found for thread id", "thread not found", "no active turn",
		"expected active turn id", "thread not loaded"} {
		if !seen[part] {
			t.Errorf("%q was not recorded", part)
		}
	}
}

func TestClassifyMore(t *testing.T) {
	for _, c := range []struct {
		e    jsonrpc.Error
		want meaning
	}{
		{jsonrpc.Error{Code: -32001, Message: "Server overloaded; retry later."}, overloads},
		{jsonrpc.Error{Code: -32001}, overloads},
		{jsonrpc.Error{Code: -32602, Message: "x", Data: json.RawMessage(`{"input_error_code":"input_too_large"}`)},
			meaning{refusedOther, handoff.CodeTooLarge}},
		{jsonrpc.Error{Code: -32600, Message: "thread 01a already has an active writer"},
			meaning{refusedInUse, handoff.CodeSessionInUse}},
		{jsonrpc.Error{Code: -32600, Message: "failed to resume: no rollout found for thread id 01a"}, gone},
		{jsonrpc.Error{Code: -32600, Message: "Thread Not Found: 01a"}, unloaded},
		{jsonrpc.Error{Code: -32600, Message: "Invalid request: unknown variant `x`, expected one of `thread not found`"},
			other},
		{jsonrpc.Error{Code: -32600, Message: "thread 01a is closing; retry thread/resume after the thread is closed"},
			meaning{refusedClosing, handoff.CodeOverloaded}},
		{jsonrpc.Error{}, other},
	} {
		if got := meaningOf(&c.e); got != c.want {
			t.Errorf("%v is %v, want %v", &c.e, got, c.want)
		}
	}
}

func TestFaults(t *testing.T) {
	n := naming{server: "bigpc"}
	for _, c := range []struct {
		err     error
		code    handoff.Code
		subject string
	}{
		{&servers.NotSentError{Cause: errors.New("x")}, handoff.CodeUnreachable, "bigpc"},
		{&servers.UnansweredError{Cause: errors.New("x")}, handoff.CodeUnknownStart, "bigpc"},
		{&servers.NotSentError{Cause: servers.ErrTooMany}, handoff.CodeOverloaded, "bigpc"},
		{&servers.NotSentError{Cause: servers.ErrTooLarge}, handoff.CodeTooLarge, "the request"},
		{&jsonrpc.Error{Code: -32600, Message: "no rollout found for thread id 1"}, handoff.CodeSessionGone, "you named"},
		{&jsonrpc.Error{Code: -32603, Message: "boom"}, handoff.CodeRefused, "bigpc"},
		{handoff.Fault(handoff.CodeBusy, "bigpc", ""), handoff.CodeBusy, "bigpc"},
	} {
		got := n.fault(c.err, handoff.CodeUnreachable, handoff.CodeUnknownStart)
		if got.Code != c.code || got.Subject != c.subject {
			t.Errorf("%v: %v", c.err, got)
		}
	}
	named := naming{"bigpc", "auth refactor"}.fault(&jsonrpc.Error{Message: "session 1 is archived."}, "", "")
	if named.Spoken() != "The session auth refactor is archived." {
		t.Errorf("says %q", named.Spoken())
	}
}

// FuzzClassify: whatever a server writes has a code of the vocabulary, a bounded detail, and the same
// meaning whatever id stands in it.
func FuzzClassify(f *testing.F) {
	for _, row := range refusals {
		f.Add(-32600, row.text+": 01a1fad6", []byte(`{"input_error_code":"x"}`))
	}
	f.Fuzz(func(t *testing.T, code int, text string, data []byte) {
		e := &jsonrpc.Error{Code: code, Message: text, Data: data}
		fault := naming{server: "x"}.fault(e, handoff.CodeUnreachable, handoff.CodeUnreachable)
		if _, ok := handoff.Vocabulary[fault.Code]; !ok || len([]rune(fault.Detail)) > maxDetail {
			t.Errorf("%q: %v", text, fault)
		}
		e2 := &jsonrpc.Error{Code: code, Message: text + " 01a1fad6-4251-7f03-9342-b774b1666951", Data: data}
		if meaningOf(e) != other && meaningOf(e) != meaningOf(e2) {
			t.Errorf("%q changes its meaning", text)
		}
	})
}
