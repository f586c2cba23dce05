package codex

import (
	"fmt"
	"strings"
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

// starts is the item that names a subagent with multi_agent_v2, as recorded from 0.171.
func starts(id, path string) string {
	return fmt.Sprintf(`{"type":"subAgentActivity","id":"call_1","kind":"started","agentThreadId":%q,"agentPath":%q}`, id, path)
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
			`item file_change `+subagent2+`/e "/a.go" by subagent`,
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
			`{"data":[`+entryOf(turn1, spawns(subagent1))+`,`+entryOf(turn1, spawns(subagent2))+`],"nextCursor":null}`)
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
		f.unsubscribes(subagent2)
		f.childEnds("completed", "")
		r.lines()
		f.unsubscribes(subagent1)
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

// TestSubagentByActivity: a subagent that is named by its activity alone asks as its turn, its doings are items of the
// turn under its name, and an interrupt of the turn reaches it.
func TestSubagentByActivity(t *testing.T) {
	withTurn(t, func(t *testing.T, f *fake, at handoff.Attached, r *recorder) {
		own := func(method, more string) {
			f.notify(method, fmt.Sprintf(`{"threadId":%q,"turnId":"its-own",%s}`, subagent1, more))
		}
		f.turnStarted(turn1)
		f.item("item/started", turn1, starts(subagent1, "/root/child"))
		f.item("item/started", turn1, `{"type":"collabAgentToolCall","id":"call_2","tool":"wait","receiverThreadIds":[]}`)
		own("turn/started", `"turn":{"id":"its-own","status":"inProgress"}`)
		own("item/completed", `"item":{"type":"agentMessage","id":"m","text":"for its parent"}`)
		own("item/started", `"item":{"type":"commandExecution","id":"call_3","command":"touch x"}`)
		f.subagentAsks(0, subagent1, askCommand, commandMore)
		qs := questionsOf(r)
		if len(qs) != 1 || qs[0].Turn != turn1 {
			t.Fatalf("questions %+v", qs)
		}
		decide(t, at, qs[0].ID, handoff.DecisionAccept).get(t)
		if a := f.expect(""); string(a.ID) != "0" || string(a.Result) != `{"decision":"accept"}` {
			t.Errorf("answered %s %s", a.ID, a.Result)
		}
		f.notify("serverRequest/resolved", fmt.Sprintf(`{"threadId":%q,"requestId":0}`, subagent1))
		own("item/completed", `"item":{"type":"commandExecution","id":"call_3","command":"touch x","exitCode":0}`)
		stop := callErr(func() error { return at.Agent.(handoff.Controls).Interrupt(t.Context(), turn1) })
		for _, want := range []string{thread1, subagent1} {
			frame := f.expect("turn/interrupt")
			if !strings.Contains(string(frame.Params), want) {
				t.Errorf("interrupted %s, not %s", frame.Params, want)
			}
			f.reply(frame, `{}`)
		}
		stop.get(t)
		f.turnCompleted(turn1, "interrupted")
		own("turn/completed", `"turn":{"id":"its-own","status":"interrupted"}`)
		want(t, r.lines(), "started", `item other call_1 "subagent child started"`, `item other call_2 "collabAgentToolCall"`,
			`item command `+subagent1+`/call_3 "touch x" by child`,
			`question 0 command "May this command run?" command "/bin/bash -lc 'rm x'" [accept accept_for_session decline stop]`,
			"closed 0", `done command `+subagent1+`/call_3 "touch x" exit 0 by child`, `ended interrupted "" ""`)
	})
}

// childSays is what a subagent's own thread tells.
func (f *fake) childSays(method, more string) {
	f.notify(method, fmt.Sprintf(`{"threadId":%q,"turnId":"its-own",%s}`, subagent1, more))
}

func (f *fake) childBegins() {
	f.item("item/completed", turn1, starts(subagent1, "/root/child"))
	f.childSays("turn/started", `"turn":{"id":"its-own","status":"inProgress"}`)
}

// childEnds ends the turn of a subagent, as recorded from 0.171: its parent hears of it in a turn that is over.
func (f *fake) childEnds(status, text string) {
	f.childSays("turn/completed",
		fmt.Sprintf(`"turn":{"id":"its-own","status":%q,"items":[{"type":"agentMessage","id":"m","text":%q}]}`, status, text))
	f.item("item/completed", turn1,
		fmt.Sprintf(`{"type":"subAgentActivity","id":"x","kind":"completed","agentThreadId":%q,"agentPath":"/root/child"}`, subagent1))
}

// TestSubagentOutlives: a subagent that works on when its turn is over asks as that turn. The end comes when it has
// ended, and has the words of both. Only then it is left.
func TestSubagentOutlives(t *testing.T) {
	withTurn(t, func(t *testing.T, f *fake, at handoff.Attached, r *recorder) {
		f.turnStarted(turn1)
		f.childBegins()
		f.subagentAsks(0, subagent1, askCommand, commandMore)
		f.messageDone(turn1, "a", "My child works on it.")
		f.status(idle)
		f.turnCompleted(turn1, "completed")
		f.subagentAsks(1, subagent1, askCommand, commandMore)
		qs := questionsOf(r)
		if len(qs) != 2 || qs[1].Turn != turn1 {
			t.Fatalf("questions %+v", qs)
		}
		for i, q := range qs {
			decide(t, at, q.ID, handoff.DecisionAccept).get(t)
			f.expect("")
			f.notify("serverRequest/resolved", fmt.Sprintf(`{"threadId":%q,"requestId":%d}`, subagent1, i))
		}
		f.childSays("item/completed", `"item":{"type":"agentMessage","id":"c","text":"a comment"}`)
		f.quiet()
		f.childEnds("completed", "The file is made.")
		lines := r.lines()
		want(t, lines[len(lines)-2:], `done message `+subagent1+`/m "The file is made." by child`,
			`ended completed "My child works on it.\n\nThe file is made." ""`)
		f.unsubscribes(subagent1)
		f.quiet()
	})
}

// TestSubagentOutlivesUnheard: whether a subagent works is looked at when its turn is found to be over, and again and
// again until it does not.
func TestSubagentOutlivesUnheard(t *testing.T) {
	withThread(t, turnJSON(turn1, "completed", true), func(t *testing.T, f *fake, _ *servers.Link, at handoff.Attached) {
		r := record(t.Context(), at.Agent, turn1)
		said := `{"type":"agentMessage","id":"a","text":"My child works on it."}`
		items := `{"data":[` + entryOf(turn1, starts(subagent1, "/root/child")) + `,` + entryOf(turn1, said) + `],"nextCursor":null}`
		f.reply(f.expect("thread/items/list"), items)
		f.reply(f.expect("thread/read"), threadJSON(subagent1, active, "none"))
		f.reply(f.expect("thread/resume"), threadJSON(subagent1, active, turnJSON("its-own", "inProgress", false)))
		f.reply(f.expect("thread/turns/list"), `{"data":[`+turnJSON(turn1, "completed", true)+`],"nextCursor":null}`)
		f.reply(f.expect("thread/items/list"), items)
		f.subagentAsks(3, subagent1, askCommand, commandMore)
		if qs := questionsOf(r); len(qs) != 1 || qs[0].Turn != turn1 {
			t.Fatalf("questions %+v", qs)
		}
		sleep(restGrace)
		f.reply(f.expect("thread/read"), threadJSON(subagent1, idle, "none")) // its end was not heard
		lines := r.lines()
		want(t, lines[len(lines)-2:], "closed 3", `ended completed "My child works on it." ""`)
		f.unsubscribes(subagent1)
	})
}

// TestSubagentOutlivesStopped: a stop reaches the subagents of a turn that is over.
func TestSubagentOutlivesStopped(t *testing.T) {
	withTurn(t, func(t *testing.T, f *fake, at handoff.Attached, r *recorder) {
		f.turnStarted(turn1)
		f.childBegins()
		f.turnCompleted(turn1, "completed")
		r.lines() // what came is read
		stop := callErr(func() error { return at.Agent.(handoff.Controls).Interrupt(t.Context(), turn1) })
		f.refuse(f.expect("turn/interrupt"), -32600, "no active turn to interrupt")
		frame := f.expect("turn/interrupt")
		if !strings.Contains(string(frame.Params), subagent1) {
			t.Errorf("interrupted %s", frame.Params)
		}
		f.reply(frame, `{}`)
		stop.get(t)
		f.childEnds("interrupted", "")
		lines := r.lines()
		want(t, lines[len(lines)-1:], `ended interrupted "" ""`)
	})
}

// TestSubagentWithGoal: a subagent that works on while its parent goes on with a goal asks as the turn that runs, also
// what it asked before.
func TestSubagentWithGoal(t *testing.T) {
	withTurn(t, func(t *testing.T, f *fake, at handoff.Attached, r *recorder) {
		f.turnStarted(turn1)
		f.childBegins()
		f.goal(goalActive)
		f.subagentAsks(0, subagent1, askCommand, commandMore)
		r.lines() // it is asked as the first turn
		f.messageDone(turn1, "a", "Not yet.")
		f.turnCompleted(turn1, "completed")
		f.turnStarted(goalTurn)
		f.messageDone(goalTurn, "b", "Done.")
		f.subagentAsks(1, subagent1, askCommand, commandMore)
		qs := questionsOf(r)
		if len(qs) != 3 || qs[1].ID != qs[0].ID || qs[1].Turn != goalTurn || qs[2].Turn != goalTurn {
			t.Fatalf("questions %+v", qs)
		}
		f.goal("complete")
		f.turnCompleted(goalTurn, "completed")
		decide(t, at, qs[0].ID, handoff.DecisionAccept).get(t)
		f.expect("")
		f.childEnds("completed", "The file is made.")
		lines := r.lines()
		want(t, lines[len(lines)-1:], `ended completed "Done.\n\nThe file is made." "" complete`)
	})
}
