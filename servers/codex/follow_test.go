package codex

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/turns"
)

// running is a started turn and its recorder.
func running(t *testing.T) (*fake, handoff.Attached, *recorder) {
	t.Helper()
	f, link := startFake(t, Config{})
	at := attach(t, f, link, turnJSON(turn2, "completed", true))
	return f, at, record(t.Context(), at.Agent, start(t, f, at))
}

func TestFollow(t *testing.T) {
	withTurn(t, func(t *testing.T, f *fake, at handoff.Attached, r *recorder) {
		f.turnStarted(turn1)
		f.item("item/started", turn1,
			`{"type":"userMessage","id":"u","clientId":"m1","content":[{"type":"text","text":"fix it"}]}`)
		f.messageStarted(turn1, "a")
		f.delta(turn1, "a", "I'll ")
		f.delta(turn1, "a", "look.")
		f.messageDone(turn1, "a", "I'll look.")
		f.item("item/started", turn1,
			`{"type":"commandExecution","id":"c","command":"/bin/bash -lc 'go test'","status":"inProgress","aggregatedOutput":null,"exitCode":null}`)
		f.notify("item/commandExecution/outputDelta",
			fmt.Sprintf(`{"threadId":%q,"turnId":%q,"itemId":"c","delta":"FAIL\n"}`, thread1, turn1))
		f.item("item/completed", turn1,
			`{"type":"commandExecution","id":"c","command":"/bin/bash -lc 'go test'","status":"failed","aggregatedOutput":"FAIL\n","exitCode":1}`)
		f.item("item/started", turn1,
			`{"type":"fileChange","id":"e","changes":[{"path":"/a.go"},{"path":"/b.go"}],"status":"inProgress"}`)
		f.item("item/completed", turn1,
			`{"type":"fileChange","id":"e","changes":[{"path":"/a.go"},{"path":"/b.go"}],"status":"completed"}`)
		f.item("item/completed", turn1, `{"type":"reasoning","id":"r","summary":["one","two"],"content":[]}`)
		f.item("item/completed", turn1,
			`{"type":"dynamicToolCall","id":"d","tool":"go","namespace":null,"status":"completed"}`)
		f.item("item/completed", "01a1f-other", `{"type":"agentMessage","id":"x","text":"another turn"}`)
		f.messageDone(turn1, "z", "Fixed.")
		f.status(idle)
		f.turnCompleted(turn1, "completed")
		want(t, r.lines(), "started", `item message a ""`, `delta a "I'll look."`, `done message a "I'll look."`,
			`item command c "go test"`, `delta c "FAIL\n"`, `done command c "go test" output "FAIL\n" exit 1 failed`,
			`item file_change e "/a.go\n/b.go"`, `done file_change e "/a.go\n/b.go"`,
			`done reasoning r "one\n\ntwo"`, `done tool d "go"`,
			`done message z "Fixed."`,
			`ended completed "Fixed." ""`)
		<-r.done
		f.quiet()
	})
}

// TestFollowEarly: events of a turn may come before the response that names it.
func TestFollowEarly(t *testing.T) {
	withThread(t, "", func(t *testing.T, f *fake, link *servers.Link, at handoff.Attached) {
		s := tryStart(t, at)
		frame := f.expect("turn/start")
		f.turnStarted(turn1)
		f.messageDone(turn1, "a", "Done already.")
		f.turnCompleted(turn1, "completed")
		f.reply(frame, `{"turn":`+turnJSON(turn1, "inProgress", false)+`}`)
		id := s.get(t)
		sleep(time.Minute) // called late, it still gets what was kept
		want(t, record(t.Context(), at.Agent, id).lines(), "started", `done message a "Done already."`,
			`ended completed "Done already." ""`)
		s = tryStart(t, at) // and the thread does not count as busy
		f.reply(f.expect("turn/start"), `{"turn":`+turnJSON(turn2, "inProgress", false)+`}`)
		s.get(t)
	})
}

func TestFollowLosesTheConnection(t *testing.T) {
	withTurn(t, func(t *testing.T, f *fake, at handoff.Attached, r *recorder) {
		f.turnStarted(turn1)
		f.messageDone(turn1, "a", "half")
		f.close()
		want(t, r.lines(), "started", `done message a "half"`, "error agent_gone")
	})
}

func TestFollowOfADetachedAgent(t *testing.T) {
	withTurn(t, func(t *testing.T, f *fake, at handoff.Attached, r *recorder) {
		f.turnStarted(turn1)
		want(t, r.lines(), "started")
		closed := callErr(at.Agent.Close)
		f.reply(f.expect("thread/unsubscribe"), `{"status":"unsubscribed"}`)
		closed.get(t)
		want(t, r.lines(), "started", "error agent_gone")
	})
}

// TestFollowIsLeft: leaving Follow does not touch the turn, and another Follow goes on from there.
func TestFollowIsLeft(t *testing.T) {
	withThread(t, "", func(t *testing.T, f *fake, link *servers.Link, at handoff.Attached) {
		id := start(t, f, at)
		ctx, cancel := context.WithCancel(t.Context())
		r := record(ctx, at.Agent, id)
		f.turnStarted(turn1)
		want(t, r.lines(), "started")
		second := record(t.Context(), at.Agent, id)
		want(t, second.lines(), "error internal") // two would take each other's updates
		cancel()
		want(t, r.lines(), "started", "error internal")
		f.messageDone(turn1, "a", "one")
		f.messageDone(turn1, "b", "two")
		for u, err := range at.Agent.Follow(t.Context(), id) {
			if err != nil || describe(u) != `done message a "one"` {
				t.Errorf("%v %v", u, err)
			}
			break
		}
		f.turnCompleted(turn1, "completed")
		want(t, record(t.Context(), at.Agent, id).lines(), `done message b "two"`, `ended completed "two" ""`)
		f.quiet()
	})
}

// TestFollowReadsAfterRest: the thread is idle, and the end of the turn does not come.
func TestFollowReadsAfterRest(t *testing.T) {
	items := `{"data":[{"turnId":"` + turn1 +
		`","item":{"type":"agentMessage","id":"b","text":"All done.","phase":"final_answer"}},` +
		`{"turnId":"` + turn1 + `","item":{"type":"agentMessage","id":"a","text":"Looking.","phase":"commentary"}}]}`
	for name, c := range map[string]struct {
		reads []string // newest turn at each reading
		items bool
		end   []string
	}{
		"completed": {[]string{turnJSON(turn1, "completed", true)}, true,
			[]string{`done message b "All done."`, `ended completed "All done." ""`}},
		"interrupted": {[]string{turnJSON(turn1, "interrupted", true)}, true,
			[]string{`done message b "All done."`, `ended interrupted "All done." ""`}},
		"crashed": {[]string{turnJSON(turn1, "interrupted", false), turnJSON(turn1, "interrupted", false),
			turnJSON(turn1, "interrupted", false), turnJSON(turn1, "interrupted", false)}, true,
			[]string{`done message b "All done."`, `ended interrupted "All done." "nobody stopped it" agent_ended`}},
		"not what it seemed": {[]string{turnJSON(turn1, "interrupted", false), turnJSON(turn1, "completed", true)}, true,
			[]string{`done message b "All done."`, `ended completed "All done." ""`}},
		"runs on": {[]string{turnJSON(turn1, "inProgress", false), turnJSON(turn1, "completed", true)}, true,
			[]string{`done message b "All done."`, `ended completed "All done." ""`}},
		"not there": {[]string{turnJSON(turn2, "completed", true), "", turnJSON(turn2, "completed", true)}, false,
			[]string{"error turn_gone"}},
	} {
		t.Run(name, bubble(func(t *testing.T) {
			f, _, r := running(t)
			f.turnStarted(turn1)
			f.messageDone(turn1, "a", "Looking.")
			f.delta(turn1, "b", "All d")
			f.status(idle)
			sleep(restGrace - time.Millisecond)
			f.quiet()
			for _, page := range c.reads {
				sleep(5 * time.Second)
				f.turns(page)
			}
			if c.items {
				f.reply(f.expect("thread/items/list"), items)
			}
			want(t, r.lines(), append([]string{"started", `done message a "Looking."`, `delta b "All d"`}, c.end...)...)
			<-r.done
		}))
	}
}

// TestFollowEndWithinGrace: in the usual order, idle and then the end, the thread is not read.
func TestFollowEndWithinGrace(t *testing.T) {
	withTurn(t, func(t *testing.T, f *fake, at handoff.Attached, r *recorder) {
		f.turnStarted(turn1)
		f.status(idle)
		sleep(restGrace / 2)
		f.turnCompleted(turn1, "completed")
		want(t, r.lines(), "started", `ended completed "" ""`)
		sleep(time.Minute)
		f.quiet()
	})
}

// TestFollowNothingComes: a start was acknowledged, and no message comes.
func TestFollowNothingComes(t *testing.T) {
	withTurn(t, func(t *testing.T, f *fake, at handoff.Attached, r *recorder) {
		sleep(startGrace)
		f.turns(turnJSON(turn1, "inProgress", false))
		want(t, r.lines(), "started")
		sleep(time.Hour) // a running turn is never given up for being quiet
		f.quiet()
		f.turnCompleted(turn1, "completed")
		want(t, r.lines(), "started", `ended completed "" ""`)
	})
}

// TestNobodyReads: a turn without a follower neither stops the connection nor loses updates other than deltas.
func TestNobodyReads(t *testing.T) {
	withThread(t, "", func(t *testing.T, f *fake, link *servers.Link, at handoff.Attached) {
		id := start(t, f, at)
		f.turnStarted(turn1)
		const items = 600
		for i := range items {
			item := fmt.Sprintf("m%d", i)
			f.messageStarted(turn1, item)
			for range 4 {
				f.delta(turn1, item, strings.Repeat("x", 1000))
				f.delta(turn1, "c"+item, "y")
			}
			f.messageDone(turn1, item, "done")
		}
		list := listing(t, link, 1)
		f.reply(f.expect("thread/list"), `{"data":[]}`)
		list.get(t)
		f.turnCompleted(turn1, "completed")
		var done, ended int
		for u, err := range at.Agent.Follow(t.Context(), id) {
			must(t, err)
			switch u.(type) {
			case handoff.ItemDone:
				done++
			case handoff.TurnEnded:
				ended++
			}
		}
		if done != items || ended != 1 {
			t.Errorf("%d items done, %d ends", done, ended)
		}
	})
}

// TestFollowerFarBehind: at the hard bound the turn is given up, and its follower gets an error and may follow again.
func TestFollowerFarBehind(t *testing.T) {
	withThread(t, "", func(t *testing.T, f *fake, link *servers.Link, at handoff.Attached) {
		id := start(t, f, at)
		f.turnStarted(turn1)
		big := strings.Repeat("x", 1<<20)
		heard := link.Conn.(*connection).threads[thread1]
		next, stop := iter.Pull2(at.Agent.Follow(t.Context(), id))
		defer stop()
		if u, _, _ := next(); u != (handoff.Started{Turn: turn1}) {
			t.Fatalf("heard %v", u)
		}
		for i := range 9 { // as if the server had sent them
			item := &wireItem{Type: typeAgentMessage, ID: fmt.Sprintf("m%d", i), Text: big}
			heard.handle(noteItemCompleted, &note{TurnID: turn1, Item: item})
		}
		if _, err, _ := next(); err == nil || handoff.AsError(err).Code != handoff.CodeAgentGone {
			t.Fatalf("followed on: %v", err)
		}
		stop()

		r := record(t.Context(), at.Agent, id) // follows again: the turn is read
		f.items(entryOf(turn1, says("m8", "The last.", "null")))
		f.ask(3, askCommand, turn1, commandMore)
		f.messageDone(turn1, "m9", "Done.")
		f.turnCompleted(turn1, "completed")
		want(t, r.lines(), "started", `done message m8 "The last."`,
			`question 3 command "May this command run?" command "/bin/bash -lc 'rm x'" [accept accept_for_session decline stop]`,
			`done message m9 "Done."`, "closed 3", `ended completed "Done." ""`)
	})
}

// TestFollowerFarBehindAtTheEnd: a turn that was given up and has ended is read.
func TestFollowerFarBehindAtTheEnd(t *testing.T) {
	withThread(t, "", func(t *testing.T, f *fake, link *servers.Link, at handoff.Attached) {
		id := start(t, f, at)
		f.turnStarted(turn1)
		synctest.Wait()
		heard := link.Conn.(*connection).threads[thread1]
		for i := range turns.HardUpdates + 1 {
			heard.handle(noteItemCompleted, &note{TurnID: turn1, Item: &wireItem{Type: typeReasoning, ID: fmt.Sprint(i)}})
		}
		f.turnCompleted(turn1, "completed")
		synctest.Wait()
		r := record(t.Context(), at.Agent, id)
		f.items(entryOf(turn1, says("a", "All of it.", "null")))
		f.turns(turnJSON(turn1, "completed", true))
		f.items(entryOf(turn1, says("a", "All of it.", "null")))
		want(t, r.lines(), "started", `done message a "All of it."`, `ended completed "All of it." ""`)
	})
}

// TestTurnsAreForgotten: of many turns of others in a thread only some are kept, but ours is.
func TestTurnsAreForgotten(t *testing.T) {
	withThread(t, "", func(t *testing.T, f *fake, link *servers.Link, at handoff.Attached) {
		id := start(t, f, at)
		f.turnCompleted(turn1, "failed")
		for i := range 3 * maxTurns {
			other := fmt.Sprintf("other%d", i)
			f.turnStarted(other)
			if i%2 == 0 {
				f.turnCompleted(other, "completed")
			}
		}
		synctest.Wait()
		c := link.Conn.(*connection)
		if n := len(c.threads[thread1].turns); n != maxTurns {
			t.Errorf("%d turns kept", n)
		}
		if c.tally.forgotten.Load() == 0 {
			t.Error("not counted")
		}
		want(t, record(t.Context(), at.Agent, id).lines(), "started", `ended failed "" ""`)
	})
}
