package codex

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"switchboard/handoff"
	"switchboard/servers"
)

// TestFork: the copy is attached with its own id, and no turn runs in it, even if one runs in the source.
func TestFork(t *testing.T) {
	const copyID = turn2
	fork := func(t *testing.T, link *servers.Link, last handoff.TurnID) async[handoff.Attached] {
		return call(func() (handoff.Attached, error) { return link.Conn.(servers.Forker).Fork(t.Context(), thread1, last) })
	}
	synctest.Test(t, func(t *testing.T) {
		f, link := startFake(t, Config{Sandbox: "workspace-write"}) // of new threads, not of copies
		a := fork(t, link, "")
		frame := f.expect("thread/fork")
		if string(frame.Params) != `{"threadId":"`+thread1+`","excludeTurns":true}` {
			t.Errorf("thread/fork %s", frame.Params)
		}
		f.reply(frame, threadJSON(copyID, idle, "none"))
		f.turns(turnJSON(turn1, "interrupted", false))
		at := a.get(t)
		if at.Target.Thread != copyID || at.Running != "" || at.Newest != turn1 || at.Workspace != "/src" || at.Title == "" {
			t.Errorf("%+v", at)
		}
		f.quiet()
		s := tryStart(t, at)
		f.reply(f.expect("turn/start"), `{"turn":`+turnJSON("t3", "inProgress", false)+`}`)
		s.get(t)
	})
	for _, c := range []struct {
		refusal string
		code    handoff.Code
	}{
		{"no rollout found for thread id " + thread1, handoff.CodeSessionGone},
		{"turn not found: " + turn1, handoff.CodeNotFound},
		{"lastTurnId '" + turn1 + "' identifies an in-progress turn", handoff.CodeBusy},
		{"Invalid request: unknown variant `thread/fork`, expected one of `initialize`", handoff.CodeUnsupported},
	} {
		withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
			a := fork(t, link, turn1)
			frame := f.expect("thread/fork")
			if string(frame.Params) != `{"threadId":"`+thread1+`","lastTurnId":"`+turn1+`","excludeTurns":true}` {
				t.Errorf("thread/fork %s", frame.Params)
			}
			f.refuse(frame, -32600, c.refusal)
			a.wantCode(t, c.code)
			if n := len(link.Conn.(*connection).threads); n != 0 {
				t.Errorf("%d threads kept", n)
			}
		})
	}
	withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
		a := fork(t, link, "")
		f.reply(f.expect("thread/fork"), threadJSON(thread1, idle, "none"))
		f.reply(f.expect("thread/unsubscribe"), `{"status":"unsubscribed"}`)
		a.wantCode(t, handoff.CodeSessionMismatch)
	})
}

const inputMore = `,"questions":[{"id":"q1","question":"Which env?","isSecret":false,"options":[{"label":"Staging"},{"label":"prod"}]}%s]`

// reply answers a question in words, as a router does.
func reply(at handoff.Attached, q handoff.Question, words string) error {
	answers, err := q.Read(handoff.Reply{Words: words})
	if err != nil {
		return err
	}
	return at.Agent.(handoff.Replier).Reply(context.Background(), q.ID, answers)
}

// TestReply answers questions in words.
func TestReply(t *testing.T) {
	second := `,{"id":"q2","question":"Why?","options":null}`
	for name, c := range map[string]struct {
		more, words, answer string
		code                handoff.Code
	}{
		"an option":      {"", "staging", `{"answers":{"q1":{"answers":["Staging"]}}}`, ""},
		"own words":      {"", " the third one ", `{"answers":{"q1":{"answers":["the third one"]}}}`, ""},
		"two":            {second, "prod\nbecause", `{"answers":{"q1":{"answers":["prod"]},"q2":{"answers":["because"]}}}`, ""},
		"one is missing": {second, "prod", "", handoff.CodeMalformed},
		"nothing":        {"", "", "", handoff.CodeMalformed},
		"a secret": {`,{"id":"q2","question":"Password?","isSecret":true}`, "a\nb",
			`{"answers":{"q1":{"answers":["a"]},"q2":{"answers":["b"]}}}`, ""},
		"a form":                          {"form", "two, one\nskip", `{"action":"accept","content":{"which":["b","a"]}}`, ""},
		"a form of a tool to be approved": {"tool", "one\nskip", "", handoff.CodeMalformed},
		"what is no command":              {"command", "yes", "", handoff.CodeMalformed},
	} {
		t.Run(name, bubble(func(t *testing.T) {
			f, at, r := running(t)
			f.turnStarted(turn1)
			form := `,"mode":"form","message":"Please say","requestedSchema":{"properties":{"which":{"type":"array",` +
				`"items":{"anyOf":[{"const":"a","title":"one"},{"const":"b","title":"two"}]}},"why":{"type":"string"}}}`
			switch c.more {
			case "command":
				f.ask(0, askCommand, turn1, commandMore)
			case "form":
				f.ask(0, askElicitation, turn1, form)
			case "tool":
				f.ask(0, askElicitation, turn1, form+`,"_meta":{"tool_name":"x"}`)
			default:
				f.ask(0, askInput, turn1, fmt.Sprintf(inputMore, c.more))
			}
			q := questionsOf(r)[0]
			given := callErr(func() error { return reply(at, q, c.words) })
			if c.code != "" {
				given.wantCode(t, c.code)
				f.quiet()
				return
			}
			if got := f.expect(""); string(got.Result) != c.answer {
				t.Errorf("answered %s", got.Result)
			}
			given.get(t)
			callErr(
				func() error { return reply(at, q, c.words) },
			).wantCode(t, handoff.CodeNotPending)
		}))
	}
}
