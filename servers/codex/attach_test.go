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

func TestAttach(t *testing.T) {
	for name, c := range map[string]struct {
		status, turns   string
		running, newest handoff.TurnID
	}{
		"rests":          {idle, turnJSON(turn1, "completed", true), "", turn1},
		"runs":           {active, turnJSON(turn2, "inProgress", false) + "," + turnJSON(turn1, "completed", true), turn2, turn2},
		"interrupted":    {idle, turnJSON(turn1, "interrupted", true), "", turn1},
		"has no turns":   {idle, "", "", ""},
		"failed at last": {`{"type":"systemError"}`, turnJSON(turn1, "failed", true), "", turn1},
	} {
		t.Run(name, bubble(func(t *testing.T) {
			f, link := startFake(t, Config{})
			a := attaching(t, link)
			resume := f.expect("thread/resume")
			var p threadResumeParams
			if err := json.Unmarshal(resume.Params, &p); err != nil || p.ThreadID != thread1 || !p.ExcludeTurns ||
				p.InitialTurnsPage.Limit == 0 {
				t.Errorf("thread/resume %s", resume.Params)
			}
			f.reply(resume, threadJSON(thread1, c.status, c.turns))
			at := a.get(t)
			if at.Running != c.running || at.Newest != c.newest || at.Target.Thread != thread1 ||
				at.Title != "fix the login page please" {
				t.Errorf("attached %+v", at)
			}
			f.quiet()
		}))
	}
}

// TestAttachDoubt: at its begin and end a turn may be reported as interrupted, although it runs or has completed.
func TestAttachDoubt(t *testing.T) {
	for name, c := range map[string]struct {
		reads   []string
		running handoff.TurnID
		took    time.Duration
	}{
		"completed after 100 ms": {[]string{turnJSON(turn1, "completed", true)}, "", 100 * time.Millisecond},
		"runs":                   {[]string{turnJSON(turn1, "inProgress", false)}, turn1, 100 * time.Millisecond},
		"runs after 500 ms": {[]string{turnJSON(turn1, "interrupted", false), turnJSON(turn1, "inProgress", false)},
			turn1, 500 * time.Millisecond},
		"cut by a crash": {[]string{turnJSON(turn1, "interrupted", false), turnJSON(turn1, "interrupted", false)}, "",
			500 * time.Millisecond},
	} {
		t.Run(name, bubble(func(t *testing.T) {
			f, link := startFake(t, Config{})
			begin := time.Now()
			a := attaching(t, link)
			f.reply(f.expect("thread/resume"), threadJSON(thread1, idle, turnJSON(turn1, "interrupted", false)))
			for i, page := range c.reads {
				sleep(rereadDelays[i])
				f.turns(page)
			}
			if at := a.get(t); at.Running != c.running || at.Newest != turn1 {
				t.Errorf("attached %+v", at)
			}
			if took := time.Since(begin); took != c.took {
				t.Errorf("took %v", took)
			}
		}))
	}
}

// TestAttachDoubtHearsLater: messages that come while the turn is read again are newer than the reading.
func TestAttachDoubtHearsLater(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
		a := attaching(t, link)
		f.reply(f.expect("thread/resume"), threadJSON(thread1, idle, turnJSON(turn1, "interrupted", false)))
		sleep(rereadDelays[0])
		frame := f.expect("thread/turns/list")
		f.turnStarted(turn2)
		f.reply(frame, `{"data":[`+turnJSON(turn1, "completed", true)+`]}`)
		if at := a.get(t); at.Running != turn2 || at.Newest != turn2 {
			t.Errorf("attached %+v", at)
		}
	})
}

// TestAttachHearsLater: messages after the response are newer than the snapshot in it.
func TestAttachHearsLater(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
		a := attaching(t, link)
		resume := f.expect("thread/resume")
		f.say(`{"id":%s,"result":%s}`+"\n"+`{"method":"turn/completed","params":{"threadId":%q,"turn":%s}}`,
			resume.ID, threadJSON(thread1, active, turnJSON(turn1, "inProgress", false)), thread1, turnJSON(turn1, "completed",
				true))
		a.get(t)
		for _, running := range []handoff.TurnID{"", turn2} {
			synctest.Wait()
			again, err := link.Conn.Attach(t.Context(), thread1)
			if err != nil || again.Running != running {
				t.Errorf("attached %+v %v, want %q running", again, err, running)
			}
			f.turnStarted(turn2)
		}
	})
}

func TestAttachRefused(t *testing.T) {
	for text, code := range map[string]handoff.Code{
		"no rollout found for thread id " + thread1:                                            handoff.CodeSessionGone,
		"thread not found: " + thread1:                                                         handoff.CodeSessionGone,
		"session " + thread1 + " is archived. Run `codex unarchive x` to unarchive it first.":  handoff.CodeSessionArchived,
		"thread " + thread1 + " already has an active writer":                                  handoff.CodeSessionInUse,
		"invalid thread id: invalid character: expected an optional prefix of `urn:uuid:`":     handoff.CodeUnknownSession,
		"invalid session id: invalid length: expected length 32 for simple format, found 0":    handoff.CodeUnknownSession,
		"Invalid request: unknown variant `thread/resume`, expected one of `thread not found`": handoff.CodeUnsupported,
		"Invalid request: unknown variant `x`, expected one of `thread not found`":             handoff.CodeRefused,
	} {
		withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
			a := attaching(t, link)
			if strings.HasPrefix(text, "no rollout") {
				f.gone()
			} else {
				f.refuse(f.expect("thread/resume"), -32600, text)
			}
			named := code == handoff.CodeSessionInUse || code == handoff.CodeSessionArchived
			if named { // it is there, and its name can be read
				f.reply(f.expect("thread/read"), threadJSON(thread1, idle, "none"))
			}
			if e := a.wantCode(t, code); e.Subject == "" || e.Subject == thread1 || named && e.Subject == unnamedSession {
				t.Errorf("%s: subject %q", text, e.Subject)
			}
			f.quiet()
			if n := len(link.Conn.(*connection).threads); n != 0 {
				t.Errorf("%d threads kept", n)
			}
		})
	}
}

func TestAttachMismatch(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
		a := attaching(t, link)
		f.reply(f.expect("thread/resume"), threadJSON(turn2, idle, ""))
		left := f.expect("thread/unsubscribe")
		var p threadParams
		if err := json.Unmarshal(left.Params, &p); err != nil || p.ThreadID != turn2 {
			t.Errorf("left %s", left.Params)
		}
		f.reply(left, `{"status":"unsubscribed"}`)
		a.wantCode(t, handoff.CodeSessionMismatch)
		f.quiet()
	})
}

func TestAttachLost(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
		a := attaching(t, link)
		f.expect("thread/resume")
		f.close()
		a.wantCode(t, handoff.CodeUnreachable)
		<-link.Done
		attaching(t, link).wantCode(t, handoff.CodeUnreachable)
	})
}

// TestAttachShared: one subscription serves all attachments of a thread, and ends with the last one.
func TestAttachShared(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
		get := func() (handoff.Attached, error) { return link.Conn.Attach(t.Context(), thread1) }
		one, two := call(get), call(get)
		f.reply(f.expect("thread/resume"), threadJSON(thread1, idle, turnJSON(turn1, "completed", true)))
		first, second := one.get(t), two.get(t)
		f.quiet()
		if second.Newest != turn1 || first.Title != second.Title {
			t.Errorf("attached %+v and %+v", first, second)
		}
		for range 2 { // closing twice counts once
			must(t, first.Agent.Close())
		}
		f.quiet()
		closed := callErr(second.Agent.Close)
		unsubscribe := f.expect("thread/unsubscribe")
		third := call(get) // waits until that is over
		f.quiet()
		f.reply(unsubscribe, `{"status":"unsubscribed"}`)
		closed.get(t)
		f.reply(f.expect("thread/resume"), threadJSON(thread1, idle, ""))
		third.get(t)
		call(func() (handoff.TurnID, error) {
			return first.Agent.Start(t.Context(), handoff.Turn{Input: handoff.TextInput("x")})
		}).
			wantCode(t, handoff.CodeUnreachable)
	})
}

func TestCloseIsBounded(t *testing.T) {
	withThread(t, "", func(t *testing.T, f *fake, link *servers.Link, at handoff.Attached) {
		begin := time.Now()
		if err := at.Agent.Close(); err == nil {
			t.Error("no error")
		}
		if took := time.Since(begin); took != detachTimeout {
			t.Errorf("took %v", took)
		}
		if n := len(link.Conn.(*connection).threads); n != 0 {
			t.Errorf("%d threads kept", n)
		}
	})
}

func TestCancelledAttachUnsubscribes(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
		ctx, cancel := context.WithCancel(t.Context())
		a := call(func() (handoff.Attached, error) { return link.Conn.Attach(ctx, thread1) })
		f.reply(f.expect("thread/resume"), threadJSON(thread1, idle, turnJSON(turn1, "interrupted", false)))
		synctest.Wait()
		cancel() // while it waits before reading again
		f.reply(f.expect("thread/unsubscribe"), `{"status":"unsubscribed"}`)
		a.wantCode(t, handoff.CodeUnreachable)
	})
}

func TestCreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, link := startFake(t, Config{Model: "m", Approval: "untrusted", Sandbox: "read-only"})
		a := call(func() (handoff.Attached, error) { return link.Conn.Create(t.Context(), "/src") })
		begin := f.expect("thread/start")
		if string(begin.Params) != `{"cwd":"/src","model":"m","approvalPolicy":"untrusted","sandbox":"read-only"}` {
			t.Errorf("thread/start %s", begin.Params)
		}
		f.reply(begin, fmt.Sprintf(`{"thread":{"id":%q,"preview":"","status":%s},"approvalPolicy":"untrusted","sandbox":{"type":"readOnly"}}`, thread1, idle))
		at := a.get(t)
		if at.Target.Thread != thread1 || at.Running != "" || at.Title != "" {
			t.Errorf("created %+v", at)
		}
		start(t, f, at)
	})
}

func TestCreateLeavesDefaults(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
		a := call(func() (handoff.Attached, error) { return link.Conn.Create(t.Context(), "") })
		begin := f.expect("thread/start")
		if string(begin.Params) != `{}` {
			t.Errorf("thread/start %s", begin.Params)
		}
		f.refuse(begin, -32600, "failed to load configuration: Model provider `zzz` not found")
		a.wantCode(t, handoff.CodeRefused)
	})
}
