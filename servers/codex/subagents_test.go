package codex

import (
	"fmt"
	"testing"
	"testing/synctest"

	"switchboard/handoff"
	"switchboard/servers"
)

const (
	subagent1 = "01a1fddb-2178-7df3-a846-91aafd6b8f29"
	subagent2 = "01a1fddb-2178-7df3-a846-91aafd6b8f30"
)

// spawns is the item that names a subagent.
func spawns(id string) string {
	return fmt.Sprintf(`{"type":"collabAgentToolCall","id":"spawn","tool":"spawnAgent","status":"completed","receiverThreadIds":[%q]}`, id)
}

// subagentAsks asks for permission in a subagent's thread.
func (f *fake) subagentAsks(id int, subagent, method, more string) {
	f.say(`{"id":%d,"method":%q,"params":{"threadId":%q,"turnId":"its-own"%s}}`, id, method, subagent, more)
}

// TestSubagentAsks: a question of our turn's subagent, or of a subagent of that, is a question of our turn. Its
// decision to stop stops the turn.
func TestSubagentAsks(t *testing.T) {
	withTurn(t, func(t *testing.T, f *fake, at handoff.Attached, r *recorder) {
		f.turnStarted(turn1)
		f.subagentAsks(4, subagent1, askCommand, commandMore) // of somebody else's, for all that is known
		f.item("item/completed", turn1, spawns(subagent1))
		f.notify("item/completed", fmt.Sprintf(`{"threadId":%q,"turnId":"its-own","item":%s}`, subagent1, spawns(subagent2)))
		f.notify("item/started",
			fmt.Sprintf(`{"threadId":%q,"turnId":"its-own","item":{"type":"fileChange","id":"e","changes":[{"path":"/a.go"}]}}`,
				subagent2))
		f.subagentAsks(5, subagent2, askFileChange, `,"itemId":"e"`)
		f.subagentAsks(6, subagent1, askCommand, commandMore)
		qs := questionsOf(r)
		if len(qs) != 2 || qs[0].Turn != turn1 || len(qs[0].Changes) != 1 || qs[0].Changes[0] != "/a.go" ||
			qs[1].Turn != turn1 {
			t.Fatalf("questions %+v", qs)
		}
		decide(t, at, qs[0].ID, handoff.DecisionDecline).get(t)
		if a := f.expect(""); string(a.ID) != "5" || string(a.Result) != `{"decision":"decline"}` {
			t.Errorf("answered %s %s", a.ID, a.Result)
		}
		f.notify("serverRequest/resolved", fmt.Sprintf(`{"threadId":%q,"requestId":5}`, subagent2))
		stop := decide(t, at, qs[1].ID, handoff.DecisionStop)
		if a := f.expect(""); string(a.ID) != "6" || string(a.Result) != `{"decision":"cancel"}` {
			t.Errorf("answered %s %s", a.ID, a.Result)
		}
		f.reply(f.expect("turn/interrupt"), `{}`)
		stop.get(t)
		f.notify("serverRequest/resolved", fmt.Sprintf(`{"threadId":%q,"requestId":6}`, subagent1))
		f.turnCompleted(turn1, "interrupted")
		want(t, r.lines(), "started", `done other spawn "collabAgentToolCall"`,
			`question 5 file_change "May these files be changed?" changes ["/a.go"] [accept accept_for_session decline stop]`,
			`question 6 command "May this command run?" command "/bin/bash -lc 'rm x'" [accept accept_for_session decline stop]`,
			"closed 5", "closed 6", `ended interrupted "" ""`)
	})
}

// TestSubagentEditIsItsOwn: a subagent's question shows the files of its own edit and no others, since its risk depends
// on them.
func TestSubagentEditIsItsOwn(t *testing.T) {
	withTurn(t, func(t *testing.T, f *fake, at handoff.Attached, r *recorder) {
		f.turnStarted(turn1)
		f.item("item/completed", turn1, spawns(subagent1))
		f.notify("item/started",
			fmt.Sprintf(`{"threadId":%q,"turnId":"its-own","item":{"type":"fileChange","id":"e","changes":[{"path":"/a.go"}]}}`,
				subagent1))
		f.subagentAsks(5, subagent1, askFileChange, `,"itemId":"another"`)
		if qs := questionsOf(r); len(qs) != 1 || qs[0].Turn != turn1 || len(qs[0].Changes) != 0 {
			t.Errorf("questions %+v", qs)
		}
		f.turnCompleted(turn1, "completed")
		r.lines()
	})
}

// TestSubagentOfSomebodyElse: questions of subagents of a turn that is not followed here are not ours.
func TestSubagentOfSomebodyElse(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
		attach(t, f, link, turnJSON(turn2, "inProgress", false))
		f.item("item/completed", turn2, spawns(subagent1))
		f.subagentAsks(0, subagent1, askCommand, commandMore)
		f.quiet()
		c := link.Conn.(*connection)
		for i := range 3 * maxSubagents {
			f.item("item/completed", turn2, spawns(fmt.Sprint("subagent-", i)))
		}
		synctest.Wait()
		if len(c.subagents) != maxSubagents {
			t.Errorf("%d subagents are known", len(c.subagents))
		}
	})
}

// TestSubagentAsksAgain: on another connection the working subagents are subscribed to again, and their questions come
// again.
func TestSubagentAsksAgain(t *testing.T) {
	withThread(t, turnJSON(turn1, "inProgress", false), func(t *testing.T, f *fake, link *servers.Link, at handoff.Attached) {
		r := record(t.Context(), at.Agent, turn1)
		f.reply(f.expect("thread/items/list"),
			`{"data":[`+entryOf(turn1, spawns(subagent2))+`,`+entryOf(turn1, spawns(subagent1))+`],"nextCursor":null}`)
		for _, id := range []string{subagent1, subagent2} {
			status := idle
			if id == subagent1 {
				status = active
			}
			f.reply(f.expect("thread/read"), threadJSON(id, status, "none"))
			if id == subagent1 {
				f.reply(f.expect("thread/resume"), threadJSON(id, status, turnJSON("its-own", "inProgress", false)))
				f.subagentAsks(3, subagent1, askCommand, commandMore)
			}
		}
		if qs := questionsOf(r); len(qs) != 1 || qs[0].Turn != turn1 {
			t.Errorf("questions %+v", qs)
		}
		f.quiet()
		f.turnCompleted(turn1, "completed")
		r.lines()
		f.unsubscribes(subagent1, subagent2)
		left := callErr(at.Agent.Close)
		f.unsubscribes(thread1)
		left.get(t)
		if n := len(link.Conn.(*connection).subagents); n != 0 {
			t.Errorf("%d subagents are known of a session that was left", n)
		}
	})
}

// unsubscribes expects that threads are left, in this order.
func (f *fake) unsubscribes(threads ...string) {
	f.t.Helper()
	for _, id := range threads {
		frame := f.expect("thread/unsubscribe")
		if string(frame.Params) != fmt.Sprintf(`{"threadId":%q}`, id) {
			f.t.Errorf("left %s, not %s", frame.Params, id)
		}
		f.reply(frame, `{"status":"unsubscribed"}`)
	}
}

// TestSubagentIsLeft: a subagent is unsubscribed when its turn has ended, and subscribed again when it goes on for
// another turn.
func TestSubagentIsLeft(t *testing.T) {
	withTurn(t, func(t *testing.T, f *fake, at handoff.Attached, r *recorder) {
		f.turnStarted(turn1)
		f.item("item/completed", turn1, spawns(subagent1))
		f.quiet()
		f.turnCompleted(turn1, "completed")
		r.lines()
		f.unsubscribes(subagent1)
		f.subagentAsks(5, subagent1, askCommand, commandMore) // nobody here waits for it
		f.quiet()

		s := tryStartAs(t, at, "m2")
		f.reply(f.expect("turn/start"), `{"turn":`+turnJSON(turn2, "inProgress", false)+`}`)
		r = record(t.Context(), at.Agent, s.get(t))
		f.turnStarted(turn2)
		f.item("item/completed", turn2, spawns(subagent1))
		f.reply(f.expect("thread/resume"), threadJSON(subagent1, active, turnJSON("its-own", "inProgress", false)))
		f.subagentAsks(6, subagent1, askCommand, commandMore)
		if qs := questionsOf(r); len(qs) != 1 || qs[0].Turn != turn2 {
			t.Errorf("questions %+v", qs)
		}
		left := callErr(at.Agent.Close) // the turn runs on
		f.unsubscribes(thread1)
		left.get(t)
		f.unsubscribes(subagent1)
		f.quiet()
	})
}
