package codex

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/handoff"
	"switchboard/servers"
)

func tryStart(t *testing.T, at handoff.Attached) async[handoff.TurnID] {
	return tryStartAs(t, at, "m1")
}

func tryStartAs(t *testing.T, at handoff.Attached, id string) async[handoff.TurnID] {
	return call(func() (handoff.TurnID, error) {
		return at.Agent.Start(t.Context(), handoff.Turn{ID: id, Input: handoff.TextInput("fix it")})
	})
}

func TestStartSendsThePromptVerbatim(t *testing.T) {
	withThread(t, "", func(t *testing.T, f *fake, link *servers.Link, at handoff.Attached) {
		turn := handoff.Turn{ID: "01-ours", Input: handoff.TextInput(" fix <b>\n\"it\"\x00 "), Context: []handoff.Context{
			{Key: "spoken", Value: "may be misheard", Trusted: true}, {Key: "last_words", Value: "please"},
			{Key: handoff.DisableResponseThreading, Value: "true", Trusted: true}, // a setting for others
		}}
		s := call(func() (handoff.TurnID, error) { return at.Agent.Start(t.Context(), turn) })
		frame := f.expect("turn/start")
		var got turnStartParams
		must(t, json.Unmarshal(frame.Params, &got))
		want := turnStartParams{
			ThreadID: thread1, Input: []userInput{{Type: "text", Text: handoff.InputText(turn.Input)}},
			ClientUserMessageID: "01-ours",
			AdditionalContext: map[string]contextEntry{"spoken": {"may be misheard", "application"},
				"last_words": {"please", "untrusted"}},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		for _, field := range []string{"approvalPolicy", "sandbox", "cwd", "model"} {
			if strings.Contains(string(frame.Params), field) {
				t.Errorf("turn/start overrides %s", field)
			}
		}
		f.reply(frame, `{"turn":`+turnJSON(turn1, "inProgress", false)+`}`)
		if id := s.get(t); id != turn1 {
			t.Errorf("turn %s", id)
		}
	})
}

// span is where a trace stands.
type span string

func (s span) Begin(string) handoff.Span   { return s }
func (s span) End(handoff.Code, ...string) {}
func (s span) Parent() string              { return string(s) }

// TestStartTellsItsTrace: a start within a trace has its span, and another start has none.
func TestStartTellsItsTrace(t *testing.T) {
	for parent, want := range map[span]string{"00-a-b-01": `{"traceparent":"00-a-b-01"}`, "": ""} {
		withThread(t, "", func(t *testing.T, f *fake, _ *servers.Link, at handoff.Attached) {
			s := call(func() (handoff.TurnID, error) {
				ctx := handoff.WithSpan(t.Context(), parent)
				return at.Agent.Start(ctx, handoff.Turn{ID: "m1", Input: handoff.TextInput("fix it")})
			})
			frame := f.expect("turn/start")
			if string(frame.Trace) != want {
				t.Errorf("it told %s, want %s", frame.Trace, want)
			}
			f.reply(frame, `{"turn":`+turnJSON(turn1, "inProgress", false)+`}`)
			s.get(t)
		})
	}
}

// TestStartLoadsOnce: a refused start of an unloaded thread ran nothing and is sent again, once.
func TestStartLoadsOnce(t *testing.T) {
	withThread(t, "", func(t *testing.T, f *fake, link *servers.Link, at handoff.Attached) {
		s := tryStart(t, at)
		f.refuse(f.expect("turn/start"), -32600, "thread not found: "+thread1)
		f.reply(f.expect("thread/resume"), threadJSON(thread1, idle, ""))
		f.reply(f.expect("turn/start"), `{"turn":`+turnJSON(turn1, "inProgress", false)+`}`)
		s.get(t)
		f.turnCompleted(turn1, "completed")
		synctest.Wait()

		s = tryStart(t, at)
		f.refuse(f.expect("turn/start"), -32600, "thread not found: "+thread1)
		f.reply(f.expect("thread/resume"), threadJSON(thread1, idle, ""))
		f.refuse(f.expect("turn/start"), -32600, "thread not found: "+thread1)
		s.wantCode(t, handoff.CodeSessionGone)

		s = tryStart(t, at)
		f.refuse(f.expect("turn/start"), -32600, "thread not found: "+thread1)
		f.gone()
		s.wantCode(t, handoff.CodeSessionGone)
		f.quiet()
	})
}

func TestStartRefused(t *testing.T) {
	for _, c := range []struct {
		wire int
		text string
		code handoff.Code
	}{
		{codeOverloaded, "Server overloaded; retry later.", handoff.CodeOverloaded},
		{-32600, "something else", handoff.CodeRefused},
	} {
		withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
			s := tryStart(t, attach(t, f, link, ""))
			f.refuse(f.expect("turn/start"), c.wire, c.text)
			s.wantCode(t, c.code)
			sleep(time.Minute)
			f.quiet() // never repeated
		})
	}
}

// TestStartOfAnArchivedThread: an archived or deleted thread has lost its subscribers, also when somebody restores and
// opens it. It is resumed before a start: else the turn's messages would not come here.
func TestStartOfAnArchivedThread(t *testing.T) {
	for _, method := range []string{"thread/archived", "thread/deleted"} {
		withThread(t, turnJSON(turn2, "completed", true), func(t *testing.T, f *fake, link *servers.Link, at handoff.Attached) {
			f.notify(method, fmt.Sprintf(`{"threadId":%q}`, thread1))
			synctest.Wait()
			s := tryStart(t, at)
			f.reply(f.expect("thread/resume"), threadJSON(thread1, idle, turnJSON(turn2, "completed", true)))
			f.reply(f.expect("turn/start"), `{"turn":`+turnJSON(turn1, "inProgress", false)+`}`)
			if id := s.get(t); id != turn1 {
				t.Errorf("started %q", id)
			}
			f.notify(method, fmt.Sprintf(`{"threadId":%q}`, thread1))
			synctest.Wait()
			s = tryStartAs(t, at, "m2")
			f.refuse(f.expect("thread/resume"), -32600,
				"session "+thread1+" is archived. Run `codex unarchive "+thread1+"` to unarchive it first.")
			s.wantCode(t, handoff.CodeSessionArchived)
			f.quiet()
		})
	}
}

func TestStartTooLarge(t *testing.T) {
	withThread(t, "", func(t *testing.T, f *fake, link *servers.Link, at handoff.Attached) {
		long := handoff.Turn{Input: handoff.TextInput(strings.Repeat("é", maxInput+1))}
		call(func() (handoff.TurnID, error) { return at.Agent.Start(t.Context(), long) }).wantCode(t, handoff.CodeTooLarge)
		f.quiet()
		long.Input = handoff.TextInput(strings.Repeat("é", maxInput))
		s := call(func() (handoff.TurnID, error) { return at.Agent.Start(t.Context(), long) })
		f.say(`{"id":%s,"error":{"code":-32602,"message":"x","data":{"input_error_code":"input_too_large","max_chars":1048576}}}`, f.expect("turn/start").ID)
		s.wantCode(t, handoff.CodeTooLarge)
	})
}

// TestStartUnknown: once the bytes may have been sent, it is not known whether the turn runs.
func TestStartUnknown(t *testing.T) {
	for name, play := range map[string]func(f *fake, frame sent, leave func()){
		"lost":      func(f *fake, _ sent, _ func()) { f.close() },
		"silence":   func(*fake, sent, func()) { sleep(startTimeout) },
		"nonsense":  func(f *fake, frame sent, _ func()) { f.reply(frame, `{"turn":{}}`) },
		"cancelled": func(_ *fake, _ sent, leave func()) { leave() },
	} {
		t.Run(name, func(t *testing.T) {
			withThread(t, "", func(t *testing.T, f *fake, _ *servers.Link, at handoff.Attached) {
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				s := call(func() (handoff.TurnID, error) {
					return at.Agent.Start(ctx, handoff.Turn{Input: handoff.TextInput("x")})
				})
				play(f, f.expect("turn/start"), leave)
				s.wantCode(t, handoff.CodeUnknownStart)
				f.quiet()
			})
		})
	}
}

// TestStartNotSent: if the bytes were certainly not sent, no turn runs.
func TestStartNotSent(t *testing.T) {
	withThread(t, "", func(t *testing.T, f *fake, link *servers.Link, at handoff.Attached) {
		f.close()
		<-link.Done
		tryStart(t, at).wantCode(t, handoff.CodeUnreachable)
		must(t, at.Agent.Close())
	})
}

// TestStartBusy: no start is sent while a turn runs: the server would put the prompt into that turn.
func TestStartBusy(t *testing.T) {
	withThread(t, "", func(t *testing.T, f *fake, link *servers.Link, at handoff.Attached) {
		f.turnStarted(turn2) // somebody else's
		synctest.Wait()
		tryStart(t, at).wantCode(t, handoff.CodeBusy)
		f.quiet()
		f.status(idle)
		synctest.Wait()
		start(t, f, at)
		f.turnCompleted(turn1, "completed")
		synctest.Wait()
		s := tryStart(t, at) // and where loading the thread again tells so
		f.refuse(f.expect("turn/start"), -32600, "thread not found: "+thread1)
		f.reply(f.expect("thread/resume"), threadJSON(thread1, active, turnJSON(turn2, "inProgress", false)))
		s.wantCode(t, handoff.CodeBusy)
		f.quiet()
	})
}

// TestStartsOneAtATime: the second of two starts sees the first one's turn.
func TestStartsOneAtATime(t *testing.T) {
	withThread(t, "", func(t *testing.T, f *fake, link *servers.Link, at handoff.Attached) {
		one, two := tryStart(t, at), tryStart(t, at)
		f.reply(f.expect("turn/start"), `{"turn":`+turnJSON(turn1, "inProgress", false)+`}`)
		synctest.Wait()
		f.quiet()
		var started, busy int
		for _, s := range []async[handoff.TurnID]{one, two} {
			if r := <-s.done; r.err == nil {
				started++
			} else if handoff.AsError(r.err).Code == handoff.CodeBusy {
				busy++
			}
		}
		if started != 1 || busy != 1 {
			t.Errorf("started %d busy %d", started, busy)
		}
	})
}

func TestSteerAndInterrupt(t *testing.T) {
	withThread(t, "", func(t *testing.T, f *fake, link *servers.Link, at handoff.Attached) {
		id := start(t, f, at)
		controls := at.Agent.(handoff.Controls)

		steer := callErr(func() error { return controls.Steer(t.Context(), id, handoff.TextInput("in blue")) })
		frame := f.expect("turn/steer")
		var p turnSteerParams
		if err := json.Unmarshal(frame.Params, &p); err != nil || p.ExpectedTurnID != turn1 || p.Input[0].Text != "in blue" {
			t.Errorf("turn/steer %s", frame.Params)
		}
		f.reply(frame, `{"turnId":"`+turn1+`"}`)
		steer.get(t)

		interrupt := callErr(func() error { return controls.Interrupt(t.Context(), id) })
		f.reply(f.expect("turn/interrupt"), `{}`)
		interrupt.get(t)

		for _, text := range []string{"no active turn to steer", "expected active turn id `a` but found `b`",
			"thread not found: " + thread1} {
			steer = callErr(func() error { return controls.Steer(t.Context(), id, handoff.TextInput("x")) })
			f.refuse(f.expect("turn/steer"), -32600, text)
			steer.wantCode(t, handoff.CodeNotPending)
		}
		callErr(func() error { return controls.Interrupt(t.Context(), "") }).wantCode(t, handoff.CodeNotPending)
		f.quiet() // an empty id would interrupt whatever runs
		interrupt = callErr(func() error { return controls.Interrupt(t.Context(), id) })
		f.expect("turn/interrupt")
		f.close()
		interrupt.wantCode(t, handoff.CodeAgentGone)
	})
}

// TestSteerNotSent: if the agent was closed, or the connection is lost, the steer was certainly not sent.
func TestSteerNotSent(t *testing.T) {
	for name, leave := range map[string]func(f *fake, link *servers.Link, at handoff.Attached){
		"let go": func(f *fake, _ *servers.Link, at handoff.Attached) {
			c := callErr(at.Agent.Close)
			f.reply(f.expect("thread/unsubscribe"), `{"status":"unsubscribed"}`)
			c.get(f.t)
		},
		"lost": func(f *fake, link *servers.Link, _ handoff.Attached) { f.close(); <-link.Done },
	} {
		t.Run(name, func(t *testing.T) {
			withThread(t, "", func(t *testing.T, f *fake, link *servers.Link, at handoff.Attached) {
				id := start(t, f, at)
				leave(f, link, at)
				callErr(func() error {
					return at.Agent.(handoff.Controls).Steer(t.Context(), id, handoff.TextInput("x"))
				}).wantCode(t, handoff.CodeUnreachable)
				f.quiet()
			})
		})
	}
}

// TestInterruptBeforeItShows: a turn cannot be interrupted for a moment after its acknowledgement. It is interrupted
// after its first message.
func TestInterruptBeforeItShows(t *testing.T) {
	const none = "no active turn to interrupt"
	for name, c := range map[string]struct {
		play func(f *fake)
		code handoff.Code
	}{
		"it shows itself": {func(f *fake) {
			f.turnStarted(turn1)
			f.reply(f.expect("turn/interrupt"), `{}`)
		}, ""},
		"it has ended then": {func(f *fake) {
			f.turnCompleted(turn1, "completed")
			f.refuse(f.expect("turn/interrupt"), -32600, none)
		}, handoff.CodeNotPending},
		"it never does": {func(*fake) { sleep(startGrace) }, handoff.CodeNotPending},
		"it is lost":    {func(f *fake) { f.close() }, handoff.CodeNotPending},
	} {
		t.Run(name, func(t *testing.T) {
			withThread(t, watermark, func(t *testing.T, f *fake, link *servers.Link, at handoff.Attached) {
				start(t, f, at)
				r := record(t.Context(), at.Agent, turn1)
				i := callErr(func() error { return at.Agent.(handoff.Controls).Interrupt(t.Context(), turn1) })
				f.refuse(f.expect("turn/interrupt"), -32600, none)
				f.quiet()
				c.play(f)
				if c.code != "" {
					i.wantCode(t, c.code)
				} else {
					i.get(t)
					f.turnCompleted(turn1, "interrupted")
					want(t, r.lines(), "started", `ended interrupted "" ""`)
					tryInterrupt := callErr(func() error { return at.Agent.(handoff.Controls).Interrupt(t.Context(), turn1) })
					f.refuse(f.expect("turn/interrupt"), -32600, none)
					tryInterrupt.wantCode(t, handoff.CodeNotPending)
				}
			})
		})
	}
}
