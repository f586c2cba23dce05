package codex

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/servers"
)

func tryQueue(t *testing.T, at handoff.Attached) async[struct{}] {
	return callErr(func() error {
		return at.Agent.(handoff.Queuer).Queue(t.Context(), handoff.Turn{ID: "m1", Input: handoff.TextInput("then this")})
	})
}

func tryAwait(ctx context.Context, at handoff.Attached) async[handoff.TurnID] {
	return call(func() (handoff.TurnID, error) { return at.Agent.(handoff.Awaiter).Await(ctx, "m1") })
}

const queued = `{"queuedSubmission":{"id":"q","clientUserMessageId":"m1"}}`

// queueHas answers a reading of the queue.
func (f *fake) queueHas(clients ...string) {
	f.t.Helper()
	var data strings.Builder
	for i, c := range clients {
		if i > 0 {
			data.WriteString(",")
		}
		data.WriteString(fmt.Sprintf(`{"id":"q%d","clientUserMessageId":%q}`, i, c))
	}
	f.reply(f.expect("thread/queue/list"), `{"data":[`+data.String()+`],"nextCursor":null}`)
}

// TestQueue: what is queued while a turn runs begins after it, and is followed from its first update.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, link := startFake(t, Config{})
		at := attach(t, f, link, "")
		f.turnStarted(turn2)
		f.take()
		q := tryQueue(t, at)
		frame := f.expect("thread/queue/add")
		var p queueAddParams
		if err := json.Unmarshal(frame.Params, &p); err != nil || p.ThreadID != thread1 || p.ClientUserMessageID != "m1" || p.Input[0].Text != "then this" {
			t.Errorf("thread/queue/add %s", frame.Params)
		}
		f.reply(frame, queued)
		q.get(t)
		w := tryAwait(t.Context(), at)
		f.queueHas("other", "m1")
		sleep(awaitEvery) // it looks again now and then
		f.queueHas("m1")
		f.turnCompleted(turn2, "completed")
		f.turnStarted(turn1)
		f.ask(3, askCommand, turn1, commandMore)
		f.item("item/started", turn1, userSays("m1"))
		id := w.get(t)
		if id != turn1 {
			t.Fatalf("began as %s", id)
		}
		r := record(t.Context(), at.Agent, id)
		f.take()
		f.turnCompleted(turn1, "completed")
		want(t, r.lines(), "started", `question 3 command "May this command run?" command "/bin/bash -lc 'rm x'" [accept accept_for_session decline stop]`,
			"closed 3", `ended completed "" ""`)
		f.quiet()
	})
}

// TestQueueIsNotThere: a server without a queue is asked once in a connection.
func TestQueueIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, link := startFake(t, Config{})
		at := attach(t, f, link, "")
		q := tryQueue(t, at)
		f.refuse(f.expect("thread/queue/add"), -32600, "Invalid request: unknown variant `thread/queue/add`, expected one of `initialize`")
		q.wantCode(t, handoff.CodeUnsupported)
		tryQueue(t, at).wantCode(t, handoff.CodeUnsupported)
		f.quiet()
	})
}

// TestQueueIsOneTry: the same id twice would be queued twice.
func TestQueueIsOneTry(t *testing.T) {
	for name, c := range map[string]struct {
		play func(f *fake, frame sent)
		code handoff.Code
	}{
		"overloaded": {func(f *fake, frame sent) { f.refuse(frame, codeOverloaded, "Server overloaded; retry later.") }, handoff.CodeOverloaded},
		"lost":       {func(f *fake, _ sent) { f.close() }, handoff.CodeUnknownStart},
		"nonsense":   {func(f *fake, frame sent) { f.reply(frame, `{}`) }, handoff.CodeUnknownStart},
		"silence":    {func(*fake, sent) { sleep(startTimeout) }, handoff.CodeUnknownStart},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, link := startFake(t, Config{})
				q := tryQueue(t, attach(t, f, link, ""))
				c.play(f, f.expect("thread/queue/add"))
				q.wantCode(t, c.code)
				sleep(time.Minute)
				f.quiet()
			})
		})
	}
}

// TestQueueLoadsOnce: a refusal for an unloaded thread queued nothing.
func TestQueueLoadsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, link := startFake(t, Config{})
		q := tryQueue(t, attach(t, f, link, ""))
		f.refuse(f.expect("thread/queue/add"), -32600, "thread not found: "+thread1)
		f.reply(f.expect("thread/resume"), threadJSON(thread1, idle, ""))
		f.reply(f.expect("thread/queue/add"), queued)
		q.get(t)
	})
}

// TestAwaitNudges: the server holds its queue back after an interrupt; work of ours in it is begun when the
// thread has rested a while, once.
func TestAwaitNudges(t *testing.T) {
	for name, c := range map[string]struct {
		play func(f *fake)
		code handoff.Code
	}{
		"at once idle": {func(f *fake) {
			f.queueHas("m0", "m1")
			sleep(restGrace)
			f.queueHas("m0", "m1")
			frame := f.expect("thread/queue/start")
			if string(frame.Params) != `{"threadId":"`+thread1+`","queuedSubmissionId":"q1"}` {
				t.Errorf("%s", frame.Params)
			}
			f.reply(frame, `{"turn":`+turnJSON(turn1, "inProgress", false)+`}`)
		}, ""},
		"after an interrupt": {func(f *fake) {
			f.queueHas("m1")
			sleep(restGrace)
			f.quiet() // it is not its time
			f.status(idle)
			f.turnCompleted("t3", "interrupted")
			f.queueHas("m1")
			sleep(restGrace)
			f.queueHas("m1")
			f.reply(f.expect("thread/queue/start"), `{"turn":`+turnJSON(turn1, "inProgress", false)+`}`)
		}, ""},
		"it begins by itself": {func(f *fake) {
			f.queueHas("m1")
			sleep(restGrace / 2)
			f.status(active)
			f.turnStarted(turn1)
			f.item("item/started", turn1, userSays("m1"))
		}, ""},
		"it was faster": {func(f *fake) {
			f.queueHas("m1")
			sleep(restGrace)
			f.queueHas("m1")
			f.refuse(f.expect("thread/queue/start"), -32600, "queued submission not found")
			sleep(restGrace)
			f.queueHas()
			f.items(entryOf(turn1, userSays("m1")))
		}, ""},
		"lost while it begins": {func(f *fake) {
			f.queueHas("m1")
			sleep(restGrace)
			f.queueHas("m1")
			f.expect("thread/queue/start")
			f.close()
		}, handoff.CodeAgentGone},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, link := startFake(t, Config{})
				at := attach(t, f, link, watermark)
				if name == "after an interrupt" {
					f.turnStarted("t3")
					f.take()
				}
				w := tryAwait(t.Context(), at)
				c.play(f)
				r := <-w.done
				if (r.err == nil) != (c.code == "") || r.err == nil && r.value != turn1 || r.err != nil && handoff.AsError(r.err).Code != c.code {
					t.Errorf("%q, %v", r.value, r.err)
				}
			})
		})
	}
}

// TestUnqueue takes work back that has not begun.
func TestUnqueue(t *testing.T) {
	for name, c := range map[string]struct {
		play func(f *fake)
		code handoff.Code
	}{
		"queued": {func(f *fake) {
			f.queueHas("m0", "m1")
			frame := f.expect("thread/queue/delete")
			if string(frame.Params) != `{"threadId":"`+thread1+`","queuedSubmissionId":"q1"}` {
				t.Errorf("%s", frame.Params)
			}
			f.reply(frame, `{}`)
		}, ""},
		"begun": {func(f *fake) { f.queueHas("m0") }, handoff.CodeNotPending},
		"just begun": {func(f *fake) {
			f.queueHas("m1")
			f.refuse(f.expect("thread/queue/delete"), -32600, "no such submission")
		}, handoff.CodeNotPending},
		"lost": {func(f *fake) { f.queueHas("m1"); f.expect("thread/queue/delete"); f.close() }, handoff.CodeAgentGone},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, at := again(t, idle, watermark)
				u := callErr(func() error { return at.Agent.(handoff.Unqueuer).Unqueue(t.Context(), "m1") })
				c.play(f)
				if c.code != "" {
					u.wantCode(t, c.code)
					return
				}
				u.get(t)
				f.quiet()
			})
		})
	}
}

// TestAwaitAgain: on a new connection, what was queued has begun, ended, or is nowhere.
func TestAwaitAgain(t *testing.T) {
	mine := entryOf(turn1, userSays("m1"))
	for name, c := range map[string]struct {
		play func(f *fake)
		turn handoff.TurnID
		code handoff.Code
	}{
		"it began": {func(f *fake) { f.queueHas(); f.items(mine, entryOf(turn1, says("a", "x", "null"))) }, turn1, ""},
		"it is on its way": {func(f *fake) {
			f.queueHas("m0")
			f.items()
			sleep(awaitAgain)
			f.queueHas()
			f.items(mine)
		}, turn1, ""},
		"it has done much":  {func(f *fake) { f.queueHas(); f.didMuch(turn1); f.turns(begunBy(turn1, "m1")) }, turn1, ""},
		"it joined another": {func(f *fake) { f.queueHas(); f.items(entryOf(turn1, userSays("desk")), mine) }, turn1, handoff.CodeJoined},
		"somebody took it out": {func(f *fake) {
			for i := range maxNotFound {
				if i > 0 {
					sleep(awaitAgain)
				}
				f.queueHas("m0")
				f.items(entryOf(turn2, userSays("m0")))
			}
		}, "", handoff.CodeNotPending},
		"it cannot be read at first": {func(f *fake) {
			f.refuse(f.expect("thread/queue/list"), -32600, "not now")
			sleep(awaitEvery)
			f.queueHas()
			f.items(mine)
		}, turn1, ""},
		"the connection is lost": {func(f *fake) { f.queueHas("m1"); synctest.Wait(); f.close() }, "", handoff.CodeAgentGone},
		"the thread was archived": {func(f *fake) {
			f.queueHas("m1")
			f.notify("thread/archived", `{"threadId":"`+thread1+`"}`)
			f.refuse(f.expect("thread/queue/list"), -32600, "session "+thread1+" is archived. Run `codex unarchive "+thread1+"` to unarchive it first.")
		}, "", handoff.CodeSessionArchived},
		"the thread was deleted": {func(f *fake) {
			f.queueHas("m1")
			f.notify("thread/deleted", `{"threadId":"`+thread1+`"}`)
			f.refuse(f.expect("thread/queue/list"), -32603, "failed to read thread: invalid thread-store request: no rollout found for thread id "+thread1)
		}, "", handoff.CodeSessionGone},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, at := again(t, idle, watermark)
				w := tryAwait(t.Context(), at)
				c.play(f)
				r := <-w.done
				if r.value != c.turn || (r.err == nil) != (c.code == "") || r.err != nil && handoff.AsError(r.err).Code != c.code {
					t.Errorf("%q, %v", r.value, r.err)
				}
				if n := len(at.Agent.(*agent).thread.awaited); n != 0 {
					t.Errorf("%d still wait", n)
				}
			})
		})
	}
}

// TestAwaitIsLeft: who stops waiting changes nothing.
func TestAwaitIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, at := again(t, idle, watermark)
		ctx, cancel := context.WithCancel(t.Context())
		w := tryAwait(ctx, at)
		f.queueHas("m1")
		cancel()
		if r := <-w.done; r.err == nil {
			t.Error("no error")
		}
		f.quiet()
	})
}

// TestFork: the copy is attached under its own id; nothing runs in it, whatever its source does.
func TestFork(t *testing.T) {
	const copyID = turn2
	fork := func(t *testing.T, link *servers.Link) async[handoff.Attached] {
		return call(func() (handoff.Attached, error) { return link.Conn.(servers.Forker).Fork(t.Context(), thread1) })
	}
	synctest.Test(t, func(t *testing.T) {
		f, link := startFake(t, Config{Sandbox: "workspace-write"}) // of new threads, not of copies
		a := fork(t, link)
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
		{"Invalid request: unknown variant `thread/fork`, expected one of `initialize`", handoff.CodeUnsupported},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, link := startFake(t, Config{})
			a := fork(t, link)
			f.refuse(f.expect("thread/fork"), -32600, c.refusal)
			a.wantCode(t, c.code)
			if n := len(link.Conn.(*Conn).threads); n != 0 {
				t.Errorf("%d threads kept", n)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		f, link := startFake(t, Config{})
		a := fork(t, link)
		f.reply(f.expect("thread/fork"), threadJSON(thread1, idle, "none"))
		f.reply(f.expect("thread/unsubscribe"), `{"status":"unsubscribed"}`)
		a.wantCode(t, handoff.CodeSessionMismatch)
	})
}

const inputMore = `,"questions":[{"id":"q1","question":"Which env?","isSecret":false,"options":[{"label":"Staging"},{"label":"prod"}]}%s]`

// TestReply answers in words what asks for words.
func TestReply(t *testing.T) {
	second := `,{"id":"q2","question":"Why?","options":null}`
	for name, c := range map[string]struct {
		more, words, answer string
		code                handoff.Code
	}{
		"an option":          {"", "staging", `{"answers":{"q1":{"answers":["Staging"]}}}`, ""},
		"own words":          {"", " the third one ", `{"answers":{"q1":{"answers":["the third one"]}}}`, ""},
		"two":                {second, "prod\nbecause", `{"answers":{"q1":{"answers":["prod"]},"q2":{"answers":["because"]}}}`, ""},
		"one is missing":     {second, "prod", "", handoff.CodeMalformed},
		"nothing":            {"", "", "", handoff.CodeMalformed},
		"a secret":           {`,{"id":"q2","question":"Password?","isSecret":true}`, "a\nb", `{"answers":{"q1":{"answers":["a"]},"q2":{"answers":["b"]}}}`, ""},
		"what is no command": {"command", "yes", "", handoff.CodeMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, _, at, r := running(t)
				f.turnStarted(turn1)
				if c.more == "command" {
					f.ask(0, askCommand, turn1, commandMore)
				} else {
					f.ask(0, askInput, turn1, fmt.Sprintf(inputMore, c.more))
				}
				q := questionsOf(r)[0]
				reply := callErr(func() error { return at.Agent.(handoff.Replier).Reply(t.Context(), q.ID, c.words) })
				if c.code != "" {
					reply.wantCode(t, c.code)
					f.quiet()
					return
				}
				if got := f.expect(""); string(got.Result) != c.answer {
					t.Errorf("answered %s", got.Result)
				}
				reply.get(t)
				callErr(func() error { return at.Agent.(handoff.Replier).Reply(t.Context(), q.ID, c.words) }).wantCode(t, handoff.CodeNotPending)
			})
		})
	}
}
