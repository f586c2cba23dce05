package codex

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/servers"
)

// again is a new connection that attaches thread1 in a state.
func again(t *testing.T, status, turns string) (*fake, handoff.Attached) {
	t.Helper()
	f, link := startFake(t, Config{})
	a := attaching(t, link)
	f.reply(f.expect("thread/resume"), threadJSON(thread1, status, turns))
	return f, a.get(t)
}

// items answers a reading of items with these, oldest first.
func (f *fake) items(entries ...string) {
	f.t.Helper()
	data := ""
	for i := len(entries) - 1; i >= 0; i-- { // newest first
		if data != "" {
			data += ","
		}
		data += entries[i]
	}
	f.reply(f.expect("thread/items/list"), `{"data":[`+data+`],"nextCursor":null}`)
}

func (f *fake) turns(turns string) {
	f.t.Helper()
	f.reply(f.expect("thread/turns/list"), `{"data":[`+turns+`],"nextCursor":null}`)
}

// entryOf is an item in thread/items/list.
func entryOf(turn, item string) string { return fmt.Sprintf(`{"turnId":%q,"item":%s}`, turn, item) }

func says(id, text, phase string) string {
	return fmt.Sprintf(`{"type":"agentMessage","id":%q,"text":%q,"phase":%s}`, id, text, phase)
}

func userSays(client string) string {
	if client != "null" {
		client = fmt.Sprintf("%q", client)
	}
	return fmt.Sprintf(`{"type":"userMessage","id":"u","clientId":%s,"content":[{"type":"text","text":"fix it"}]}`, client)
}

// TestFollowAgainLive: a turn that an earlier connection started is followed here: the items that it finished
// meanwhile, then its messages, and its end once.
func TestFollowAgainLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, at := again(t, active, turnJSON(turn1, "inProgress", false))
		r := record(t.Context(), at.Agent, at.Running)
		f.delta(turn1, "c", "and so on") // of an item that began unheard
		f.items(entryOf(turn1, userSays("m1")), entryOf(turn1, says("a", "Looking.", `"commentary"`)),
			entryOf(turn1, says("b", "Found it.", "null")))
		want(t, r.lines(), "started", `done message a "Looking."`, `done message b "Found it."`, `delta c "and so on"`)
		f.messageDone(turn1, "c", "The whole, and so on")
		f.turnCompleted(turn1, "completed")
		want(t, r.lines(), "started", `done message a "Looking."`, `done message b "Found it."`, `delta c "and so on"`,
			`done message c "The whole, and so on"`, `ended completed "The whole, and so on" ""`)
		<-r.done
		f.quiet()
	})
}

// TestFollowAgainCannotRead: if missed items cannot be read, new messages are not held back for long.
func TestFollowAgainCannotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, at := again(t, active, turnJSON(turn1, "inProgress", false))
		r := record(t.Context(), at.Agent, at.Running)
		f.expect("thread/items/list")
		f.messageDone(turn1, "a", "Done.")
		sleep(catchUpTimeout)
		want(t, r.lines(), "started", `done message a "Done."`)
	})
}

// TestFollowAgainEnds: if the end comes while the items are read, it gets its text from them.
func TestFollowAgainEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, at := again(t, active, turnJSON(turn1, "inProgress", false))
		r := record(t.Context(), at.Agent, at.Running)
		frame := f.expect("thread/items/list")
		f.status(idle)
		f.turnCompleted(turn1, "completed")
		synctest.Wait()
		f.reply(frame, `{"data":[`+entryOf(turn1, says("a", "The answer.", `"final_answer"`))+`]}`)
		want(t, r.lines(), "started", `done message a "The answer."`, `ended completed "The answer." ""`)
	})
}

const final, comment = `"final_answer"`, `"commentary"`

// endedCases are turns that ended while nobody was connected. Set once.
var endedCases = map[string]struct {
	attached string   // newest turn in the snapshot
	reads    []string // each reading of the turns
	waits    []time.Duration
	items    []string
	lines    []string
	took     time.Duration
}{
	"completed": {
		turnJSON(turn1, "completed", true), []string{turnJSON(turn1, "completed", true)}, []time.Duration{0},
		[]string{says("a", "Looking.", comment), says("b", "The answer.", final), says("c", "By the way.", comment)},
		[]string{"started", `done message a "Looking."`, `done message b "The answer."`, `done message c "By the way."`,
			`ended completed "The answer." ""`}, 0,
	},
	"without a phase the last words count": {
		turnJSON(turn1, "completed", true), []string{turnJSON(turn1, "completed", true)}, []time.Duration{0},
		[]string{says("a", "One.", "null"), says("b", "Two.", "null")},
		[]string{"started", `done message a "One."`, `done message b "Two."`, `ended completed "Two." ""`}, 0,
	},
	"failed": {turnJSON(turn1, "failed", true), []string{turnJSON(turn1, "failed", true)}, []time.Duration{0}, nil,
		[]string{"started", `ended failed "" ""`}, 0},
	"interrupted by somebody": {
		turnJSON(turn1, "interrupted", true), []string{turnJSON(turn1, "interrupted", true)}, []time.Duration{0}, nil,
		[]string{"started", `ended interrupted "" ""`}, 0,
	},
	"another turn came after it": {
		turnJSON(turn2, "completed", true),
		[]string{turnJSON(turn2, "completed", true) + "," + turnJSON(turn1, "completed", true)}, []time.Duration{0},
		[]string{says("a", "Done.", "null")},
		[]string{"started", `done message a "Done."`, `ended completed "Done." ""`}, 0,
	},
	"false interrupt": {
		turnJSON(turn2, "completed", true) + "," + turnJSON(turn1, "interrupted", false),
		[]string{turnJSON(turn1, "interrupted", false), turnJSON(turn1, "interrupted", false),
			turnJSON(turn1, "completed", true)},
		[]time.Duration{0, 100 * time.Millisecond, 400 * time.Millisecond},
		[]string{says("a", "Done.", "null")},
		[]string{"started", `done message a "Done."`, `ended completed "Done." ""`}, 500 * time.Millisecond,
	},
	"the server was killed": {
		turnJSON(turn2, "completed", true) + "," + turnJSON(turn1, "interrupted", false),
		[]string{turnJSON(turn1, "interrupted", false), turnJSON(turn1, "interrupted", false),
			turnJSON(turn1, "interrupted", false), turnJSON(turn1, "interrupted", false)},
		[]time.Duration{0, 100 * time.Millisecond, 400 * time.Millisecond, 500 * time.Millisecond},
		[]string{says("a", "Half.", "null")},
		[]string{"started", `done message a "Half."`, `ended interrupted "Half." "nobody stopped it" agent_ended`},
		time.Second,
	},
}

// TestFollowAgainEnded: a turn that ended while nobody was connected is read as a whole, at once.
func TestFollowAgainEnded(t *testing.T) {
	for name, c := range endedCases {
		t.Run(name, bubble(func(t *testing.T) {
			f, at := again(t, idle, c.attached)
			begin := time.Now()
			var entries []string
			for _, item := range c.items {
				entries = append(entries, entryOf(turn1, item))
			}
			r := record(t.Context(), at.Agent, turn1)
			f.items(entries...)
			for i, page := range c.reads {
				sleep(c.waits[i])
				f.turns(page)
			}
			f.items(entries...)
			want(t, r.lines(), c.lines...)
			<-r.done
			if took := time.Since(begin); took != c.took {
				t.Errorf("took %v", took)
			}
			f.quiet()
		}))
	}
}

// TestFollowAgainEndedWithUsage: after a resume the server repeats the usage of the thread's last turn. That turn has
// ended nevertheless, and is read.
func TestFollowAgainEndedWithUsage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, at := again(t, idle, turnJSON(turn1, "completed", true))
		f.notify(noteUsage, fmt.Sprintf(`{"threadId":%q,"turnId":%q,"tokenUsage":{"total":{"inputTokens":100},"last":{"inputTokens":100}}}`, thread1, turn1))
		synctest.Wait()
		r := record(t.Context(), at.Agent, turn1)
		item := entryOf(turn1, says("a", "Done.", "null"))
		f.items(item)
		f.turns(turnJSON(turn1, "completed", true))
		f.items(item)
		want(t, r.lines(), "started", `done message a "Done."`, "usage 100 in, 0 out", `ended completed "Done." ""`)
		f.quiet()
	})
}

// TestFollowAgainQuestions: the open question of the turn is reported again, as one of this connection.
func TestFollowAgainQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, at := again(t, active, turnJSON(turn1, "inProgress", false))
		f.ask(4, askCommand, turn1, commandMore) // replayed by the server after the response
		f.quiet()
		r := record(t.Context(), at.Agent, turn1)
		f.items()
		q := questionsOf(r)
		if len(q) != 1 || lastPart(q[0].ID) != "4" {
			t.Fatalf("questions %+v", q)
		}
		decide := decide(t, at, q[0].ID, handoff.DecisionDecline)
		if answer := f.expect(""); string(answer.ID) != "4" || string(answer.Result) != `{"decision":"decline"}` {
			t.Errorf("answered %s %s", answer.ID, answer.Result)
		}
		decide.get(t)
	})
}

// TestFollowUnloaded: a thread that the server unloads while its turn is followed is loaded again.
func TestFollowUnloaded(t *testing.T) {
	withTurn(t, func(t *testing.T, f *fake, at handoff.Attached, r *recorder) {
		f.turnStarted(turn1)
		f.notify("thread/closed", fmt.Sprintf(`{"threadId":%q}`, thread1))
		sleep(restGrace)
		f.reply(f.expect("thread/resume"), threadJSON(thread1, active, turnJSON(turn1, "inProgress", false)))
		f.turns(turnJSON(turn1, "inProgress", false))
		f.messageDone(turn1, "a", "Done.")
		f.turnCompleted(turn1, "completed")
		want(t, r.lines(), "started", `done message a "Done."`, `ended completed "Done." ""`)
	})
}

// TestStartJoins: the server has put our input into somebody else's turn. That shows by the turn that ran at the start,
// or by the message that began the turn.
func TestStartJoins(t *testing.T) {
	for name, c := range map[string]struct {
		play func(f *fake, frame sent)
		code handoff.Code
		took time.Duration
	}{
		"another message began it": {func(f *fake, frame sent) {
			f.turnStarted(turn1)
			f.item("item/started", turn1, userSays("null"))
		}, handoff.CodeJoined, 0},
		"another message begins it": {func(f *fake, frame sent) { f.turnStarted(turn1) }, handoff.CodeJoined, 0},
		"ours, heard early": {func(f *fake, frame sent) {
			f.turnStarted(turn1)
			f.item("item/started", turn1, userSays("m1"))
		}, "", 0},
		"cannot be told":                  {func(f *fake, frame sent) { f.turnStarted(turn1) }, "", joinGrace},
		"another's, acknowledged to both": {func(*fake, sent) {}, handoff.CodeJoined, 0},
		"ours":                            {func(*fake, sent) {}, "", 0},
		"nothing is heard of it":          {func(*fake, sent) {}, "", joinGrace},
	} {
		t.Run(name, func(t *testing.T) {
			withThread(t, "", func(t *testing.T, f *fake, link *servers.Link, at handoff.Attached) {
				begin := time.Now()
				s := tryStart(t, at)
				frame := f.expect("turn/start")
				c.play(f, frame)
				f.reply(frame, `{"turn":`+turnJSON(turn1, "inProgress", false)+`}`)
				synctest.Wait()
				switch name {
				case "another message begins it":
					f.item("item/started", turn1, userSays("desk"))
				case "another's, acknowledged to both":
					f.turnStarted(turn1)
					f.item("item/started", turn1, userSays("desk"))
				case "ours":
					f.turnStarted(turn1)
					f.item("item/started", turn1, userSays("m1"))
				}
				r := <-s.done
				if r.value != turn1 || (r.err != nil) != (c.code != "") || r.err != nil && handoff.AsError(r.err).Code != c.code {
					t.Errorf("%s, %v", r.value, r.err)
				}
				if took := time.Since(begin); took != c.took {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

// TestStartHearsItBusy: the thread is active, though the id of its turn is not known yet.
func TestStartHearsItBusy(t *testing.T) {
	withThread(t, turnJSON(turn2, "completed", true), func(t *testing.T, f *fake, link *servers.Link, at handoff.Attached) {
		turns := func() (running, newest handoff.TurnID) {
			th := at.Agent.(*agent).thread
			th.mu.Lock()
			defer th.mu.Unlock()
			return th.running, th.newest
		}
		f.status(active)
		f.take()
		tryStart(t, at).wantCode(t, handoff.CodeBusy)
		f.quiet()
		f.turnStarted(turn1)
		f.take()
		if running, newest := turns(); running != turn1 || newest != turn1 {
			t.Errorf("running %q newest %q", running, newest)
		}
		f.status(idle)
		f.turnCompleted(turn1, "completed")
		f.take()
		if running, newest := turns(); running != "" || newest != turn1 {
			t.Errorf("running %q newest %q", running, newest)
		}
	})
}
