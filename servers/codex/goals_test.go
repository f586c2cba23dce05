package codex

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/jsonrpc"
	"switchboard/servers/trees"
)

const goalTurn = "01a22400-736a-7492-927d-f5ddb7bd5b1a"

// goal tells the goal of the thread.
func (f *fake) goal(status string) {
	f.notify(noteGoal, fmt.Sprintf(`{"threadId":%q,"goal":{"objective":"make the tests pass","status":%q}}`, thread1, status))
}

// TestGoalGoesOn: the turns that Codex begins for a goal are one work with the turn that was started: their questions
// are asked, more words go into the one that runs, and there is one end.
func TestGoalGoesOn(t *testing.T) {
	withTurn(t, func(t *testing.T, f *fake, at handoff.Attached, r *recorder) {
		f.turnStarted(turn1)
		f.goal(goalActive)
		f.messageDone(turn1, "a", "Not yet.")
		f.status(idle)
		f.turnCompleted(turn1, "completed")
		f.turnStarted(goalTurn)
		f.messageDone(goalTurn, "b", "One more.")
		f.ask(0, askCommand, goalTurn, commandMore)
		qs := questionsOf(r)
		if len(qs) != 1 || qs[0].Turn != goalTurn {
			t.Fatalf("questions %+v", qs)
		}
		decided := decide(t, at, qs[0].ID, handoff.DecisionAccept)
		f.expect("")
		decided.get(t)
		steer := callErr(func() error {
			return at.Agent.(handoff.Controls).Steer(t.Context(), turn1, handoff.TextInput("and the docs"))
		})
		frame := f.expect("turn/steer")
		if !strings.Contains(string(frame.Params), `"expectedTurnId":"`+goalTurn+`"`) {
			t.Errorf("steered %s", frame.Params)
		}
		f.reply(frame, `{"turnId":"`+goalTurn+`"}`)
		steer.get(t)
		f.notify("serverRequest/resolved", fmt.Sprintf(`{"threadId":%q,"requestId":0}`, thread1))
		f.messageDone(goalTurn, "c", "They pass.")
		f.goal("complete")
		f.status(idle)
		f.turnCompleted(goalTurn, "completed")
		want(t, r.lines(), "started", `done message a "Not yet."`, "handoff.GoesOn", "started", `done message b "One more."`,
			`question 0 command "May this command run?" command "/bin/bash -lc 'rm x'" [accept accept_for_session decline stop]`,
			"closed 0", `done message c "They pass."`, `ended completed "They pass." "" complete`)
		<-r.done
		f.quiet()
	})
}

// TestGoalEnds: what ends the work between two turns.
func TestGoalEnds(t *testing.T) {
	for name, c := range map[string]struct {
		then func(f *fake)
		ends string
	}{
		"somebody else goes on": {func(f *fake) {
			f.turnStarted(goalTurn)
			f.item("item/started", goalTurn, `{"type":"userMessage","id":"u","clientId":null,"content":[]}`)
			f.messageDone(goalTurn, "b", "for somebody else")
		}, "completed"},
		"it is blocked":     {func(f *fake) { f.goal("blocked") }, `completed "Not yet." "" blocked`},
		"it costs too much": {func(f *fake) { f.goal("budgetLimited") }, `completed "Not yet." "" limited`},
		"it is gone":        {func(f *fake) { f.notify(noteGoalCleared, fmt.Sprintf(`{"threadId":%q}`, thread1)) }, "completed"},
		"nothing comes":     {func(*fake) {}, "completed"},
		"the turn stops": {func(f *fake) {
			f.turnStarted(goalTurn)
			f.messageDone(goalTurn, "b", "x")
			f.turnCompleted(goalTurn, "interrupted")
		}, "interrupted"},
		"the next one ends": {func(f *fake) { f.turnStarted(goalTurn); f.turnCompleted(goalTurn, "failed") }, "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			withTurn(t, func(t *testing.T, f *fake, _ handoff.Attached, r *recorder) {
				f.turnStarted(turn1)
				f.goal(goalActive)
				f.messageDone(turn1, "a", "Not yet.")
				f.turnCompleted(turn1, "completed")
				c.then(f)
				<-r.done
				lines := r.lines()
				if last := lines[len(lines)-1]; !strings.HasPrefix(last, "ended "+c.ends) ||
					slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "somebody else") }) {
					t.Errorf("%q", lines)
				}
			})
		})
	}
}

// TestGoalLeft: once nobody follows a goal any more, more words do not wait for its next turn.
func TestGoalLeft(t *testing.T) {
	withThread(t, "", func(t *testing.T, f *fake, _ *servers.Link, at handoff.Attached) {
		s := pursuing(t, f, at, "null")
		f.reply(f.expect("turn/start"), `{"turn":`+turnJSON(turn1, "inProgress", false)+`}`)
		f.turnStarted(turn1)
		f.item("item/started", turn1, `{"type":"userMessage","id":"u","clientId":"m1","content":[]}`)
		f.reply(f.expect("thread/goal/set"), `{"goal":{}}`)
		ctx, leave := context.WithCancel(t.Context())
		r := record(ctx, at.Agent, s.get(t))
		f.turnCompleted(turn1, "completed")
		r.lines() // what came is read
		leave()
		<-r.done
		steer := callErr(func() error {
			return at.Agent.(handoff.Controls).Steer(t.Context(), turn1, handoff.TextInput("and the docs"))
		})
		f.refuse(f.expect("turn/steer"), -32600, "no active turn to steer")
		steer.wantCode(t, handoff.CodeNotPending)
	})
}

// TestGoalStopped: the goal is paused before its turn is interrupted; between two turns, none runs any more.
func TestGoalStopped(t *testing.T) {
	for name, between := range map[string]bool{"in a turn": false, "between two": true} {
		t.Run(name, func(t *testing.T) {
			withTurn(t, func(t *testing.T, f *fake, at handoff.Attached, r *recorder) {
				f.turnStarted(turn1)
				f.goal(goalActive)
				f.messageDone(turn1, "a", "Not yet.")
				f.turnCompleted(turn1, "completed")
				if !between {
					f.turnStarted(goalTurn)
					f.messageDone(goalTurn, "b", "Not yet.")
				}
				r.lines() // what came is read
				stop := callErr(func() error { return at.Agent.(handoff.Controls).Interrupt(context.Background(), turn1) })
				frame := f.expect("thread/goal/set")
				if want := fmt.Sprintf(`{"threadId":%q,"status":"paused"}`, thread1); string(frame.Params) != want {
					t.Errorf("set %s", frame.Params)
				}
				f.goal(goalPaused)
				f.reply(frame, `{"goal":{}}`)
				frame = f.expect("turn/interrupt")
				if between {
					f.refuse(frame, -32600, "no active turn to interrupt")
				} else {
					if !strings.Contains(string(frame.Params), goalTurn) {
						t.Errorf("interrupted %s", frame.Params)
					}
					f.reply(frame, `{}`)
					f.turnCompleted(goalTurn, "interrupted")
				}
				stop.get(t)
				<-r.done
				if lines := r.lines(); !strings.HasPrefix(lines[len(lines)-1], "ended interrupted") {
					t.Errorf("%q", lines)
				}
				f.quiet()
			})
		})
	}
}

// TestGoalStoppedAsItsTurnEnds: a turn that completes by itself while its goal is paused was the last of a stopped
// work, unless the goal was reached by then. The next work in the session is not stopped by that.
func TestGoalStoppedAsItsTurnEnds(t *testing.T) {
	for status, ends := range map[string]string{goalPaused: "interrupted", "complete": "completed"} {
		t.Run(status, func(t *testing.T) {
			withTurn(t, func(t *testing.T, f *fake, at handoff.Attached, r *recorder) {
				f.turnStarted(turn1)
				f.goal(goalActive)
				f.messageDone(turn1, "a", "Not yet.")
				r.lines() // what came is read
				stop := callErr(func() error { return at.Agent.(handoff.Controls).Interrupt(context.Background(), turn1) })
				frame := f.expect("thread/goal/set")
				f.turnCompleted(turn1, "completed")
				f.goal(status)
				f.reply(frame, `{"goal":{}}`)
				f.refuse(f.expect("turn/interrupt"), -32600, "no active turn to interrupt")
				if status == goalPaused {
					stop.get(t)
				} else {
					stop.wantCode(t, handoff.CodeNotPending)
				}
				<-r.done
				if lines := r.lines(); !strings.HasPrefix(lines[len(lines)-1], "ended "+ends) {
					t.Errorf("%q", lines)
				}
			})
		})
	}
}

// TestGoalMissed: what went on with a goal while nobody here listened is followed from the turn that was started, up to
// the end of the goal or to the turn that runs. A turn of somebody else's ends the work.
func TestGoalMissed(t *testing.T) {
	said := func(turn, id, text string) string {
		return entryOf(turn, fmt.Sprintf(`{"type":"agentMessage","id":%q,"text":%q}`, id, text))
	}
	for name, c := range map[string]struct {
		goal, status, first string // of the goal; of the next turn, and its first item
		ends                string
	}{
		"it runs":       {goalActive, "inProgress", said(goalTurn, "b", "One more."), "ended completed \"They pass.\" \"\" complete"},
		"it is reached": {"complete", "completed", said(goalTurn, "b", "They pass."), "ended completed \"They pass.\" \"\" complete"},
		"somebody else": {"complete", "completed", entryOf(goalTurn, `{"type":"userMessage","id":"u","content":[]}`),
			"ended completed \"Not yet.\" \"\""},
		"none": {"", "completed", said(goalTurn, "b", "They pass."), "ended completed \"Not yet.\" \"\""},
	} {
		t.Run(name, func(t *testing.T) {
			next := turnJSON(goalTurn, c.status, c.status == "completed")
			withThread(t, next, func(t *testing.T, f *fake, _ *servers.Link, at handoff.Attached) {
				if c.goal != "" {
					f.goal(c.goal)
				}
				items := func(entries string) {
					f.reply(f.expect("thread/items/list"), `{"data":[`+entries+`],"nextCursor":null}`)
				}
				turns := func() {
					f.reply(f.expect("thread/turns/list"), `{"data":[`+next+`,`+turnJSON(turn1, "completed", true)+`],"nextCursor":null}`)
				}
				r := record(t.Context(), at.Agent, turn1)
				items(said(turn1, "a", "Not yet."))
				turns()
				items(said(turn1, "a", "Not yet."))
				if c.goal != "" {
					items(c.first) // who began the next
				}
				switch name {
				case "it runs":
					items(c.first)
					f.messageDone(goalTurn, "c", "They pass.")
					f.goal("complete")
					f.turnCompleted(goalTurn, "completed")
				case "it is reached":
					items(c.first)
					turns()
					items(c.first)
				}
				if lines := r.lines(); lines[len(lines)-1] != c.ends || strings.HasPrefix(name, "it ") != slices.Contains(lines, "handoff.GoesOn") {
					t.Errorf("%q", lines)
				}
				f.quiet()
			})
		})
	}
}

// TestRecordedGoal: in the recording, the turns that Codex began by itself have no message of a user, and all others
// have one.
func TestRecordedGoal(t *testing.T) {
	th := &thread{id: "", gate: make(chan struct{}, 1), tally: new(tally), changed: func() {}}
	byUser := map[handoff.TurnID]bool{}
	for _, l := range readTranscript(t, "w-goal-0.171") {
		m, ok := jsonrpc.Parse(l.Msg)
		var n note
		ok = ok && json.Unmarshal(m.Params, &n) == nil
		if !ok || m.ID != nil || n.ThreadID == "" {
			continue
		}
		th.handle(m.Method, &n)
		for _, k := range th.turns {
			if k.opened {
				byUser[k.id] = k.byUser
			}
		}
	}
	of := map[bool]int{}
	for _, by := range byUser {
		of[by]++
	}
	if of[true] != 2 || of[false] < 4 || th.goal.Status != goalActive {
		t.Errorf("of users, of the goal: %v, and the goal is %+v", of, th.goal)
	}
}

// pursuing starts a turn whose words are a goal, and answers whether the thread has one.
func pursuing(t *testing.T, f *fake, at handoff.Attached, has string) async[handoff.TurnID] {
	s := call(func() (handoff.TurnID, error) {
		return at.Agent.(handoff.Pursuer).Pursue(t.Context(), handoff.Turn{ID: "m1", Input: handoff.TextInput("make the tests pass")})
	})
	f.reply(f.expect("thread/goal/get"), `{"goal":`+has+`}`)
	return s
}

// TestPursue: a goal is set while the turn that has its words runs, and counts from before that: the next turn is
// followed whenever it begins. What becomes of a goal that is refused then is told at the end, and nothing is started
// twice. After a turn that somebody stopped meanwhile, none begins.
func TestPursue(t *testing.T) {
	const paused = `{"objective":"x","status":"paused"}`
	for name, c := range map[string]struct {
		has     string
		before  func(f *fake) // the answer to thread/goal/set
		refused bool
		after   func(f *fake)
		ends    string
	}{
		"it goes on": {"null", func(f *fake) { f.goal(goalActive) }, false, func(f *fake) {
			f.turnCompleted(turn1, "completed")
			f.turnStarted(goalTurn)
			f.messageDone(goalTurn, "b", "They pass.")
			f.goal("complete")
			f.turnCompleted(goalTurn, "completed")
		}, `completed "They pass." "" complete`},
		"the turn completes first": {paused, func(f *fake) { f.turnCompleted(turn1, "completed") }, false, func(f *fake) {
			f.goal(goalActive)
			f.turnStarted(goalTurn)
			f.messageDone(goalTurn, "b", "They pass.")
			f.goal("complete")
			f.turnCompleted(goalTurn, "completed")
		}, `completed "They pass." "" complete`},
		"it is refused": {paused, func(*fake) {}, true, func(f *fake) { f.turnCompleted(turn1, "completed") },
			`completed "Not yet." ""`},
		"it is refused once the turn has completed": {"null", func(f *fake) { f.turnCompleted(turn1, "completed") }, true,
			func(*fake) {}, `completed "Not yet." ""`},
		"somebody stops the turn": {"null", func(f *fake) { f.turnCompleted(turn1, "interrupted") }, false, func(f *fake) {
			frame := f.expect("thread/goal/set")
			if want := fmt.Sprintf(`{"threadId":%q,"status":"paused"}`, thread1); string(frame.Params) != want {
				f.t.Errorf("set %s", frame.Params)
			}
			f.reply(frame, `{"goal":{}}`)
		}, "interrupted"},
	} {
		t.Run(name, func(t *testing.T) {
			withThread(t, "", func(t *testing.T, f *fake, _ *servers.Link, at handoff.Attached) {
				s := pursuing(t, f, at, c.has)
				f.reply(f.expect("turn/start"), `{"turn":`+turnJSON(turn1, "inProgress", false)+`}`)
				f.turnStarted(turn1)
				f.item("item/started", turn1, `{"type":"userMessage","id":"u","clientId":"m1","content":[]}`)
				f.messageDone(turn1, "a", "Not yet.")
				frame := f.expect("thread/goal/set")
				want := fmt.Sprintf(`{"threadId":%q,"objective":"make the tests pass","status":"active","origin":"user"}`, thread1)
				if string(frame.Params) != want {
					t.Errorf("set %s", frame.Params)
				}
				if c.before(f); c.refused {
					f.refuse(frame, -32600, "no")
				} else {
					f.reply(frame, `{"goal":{}}`)
				}
				synctest.Wait()
				if c.ends == "interrupted" {
					c.after(f)
				}
				r := record(t.Context(), at.Agent, s.get(t))
				if c.ends != "interrupted" {
					c.after(f)
				}
				<-r.done
				if lines := r.lines(); !strings.HasPrefix(lines[len(lines)-1], "ended "+c.ends) {
					t.Errorf("%q", lines)
				}
				f.quiet()
			})
		})
	}
}

// TestPursueRefused: where a thread can have no goal, or works for one, nothing is started.
func TestPursueRefused(t *testing.T) {
	for name, refuse := range map[string]func(f *fake, frame sent){
		"another goal": func(f *fake, frame sent) { f.reply(frame, `{"goal":{"objective":"x","status":"active"}}`) },
		"no goals":     func(f *fake, frame sent) { f.refuse(frame, -32600, "goals feature is disabled") },
		"an old one": func(f *fake, frame sent) {
			f.refuse(frame, -32600, "Invalid request: unknown variant `thread/goal/get`")
		},
		"a machine": func(f *fake, frame sent) { f.refuse(frame, -32600, trees.RefusedMethod) },
		"a loss":    func(f *fake, _ sent) { f.close() },
	} {
		t.Run(name, func(t *testing.T) {
			withThread(t, "", func(t *testing.T, f *fake, _ *servers.Link, at handoff.Attached) {
				s := call(func() (handoff.TurnID, error) {
					return at.Agent.(handoff.Pursuer).Pursue(t.Context(), handoff.Turn{ID: "m1", Input: handoff.TextInput("x")})
				})
				code := handoff.CodeNoGoal
				if name == "a loss" {
					code = handoff.CodeUnreachable
				}
				refuse(f, f.expect("thread/goal/get"))
				if e := s.wantCode(t, code); strings.Contains(e.Detail, "variant") {
					t.Errorf("it lists methods: %s", e.Detail)
				}
				f.quiet()
			})
		})
	}
	withThread(t, "", func(t *testing.T, f *fake, _ *servers.Link, at handoff.Attached) {
		s := call(func() (handoff.TurnID, error) {
			long := handoff.TextInput(strings.Repeat("é", maxObjective+1))
			return at.Agent.(handoff.Pursuer).Pursue(t.Context(), handoff.Turn{ID: "m1", Input: long})
		})
		f.reply(f.expect("thread/goal/get"), `{"goal":null}`)
		s.wantCode(t, handoff.CodeNoGoal)
		f.quiet()
	})
}

// TestPursueStopped: a stop that comes while the goal is being set pauses it after that.
func TestPursueStopped(t *testing.T) {
	withThread(t, "", func(t *testing.T, f *fake, _ *servers.Link, at handoff.Attached) {
		s := pursuing(t, f, at, "null")
		f.reply(f.expect("turn/start"), `{"turn":`+turnJSON(turn1, "inProgress", false)+`}`)
		f.turnStarted(turn1)
		f.item("item/started", turn1, `{"type":"userMessage","id":"u","clientId":"m1","content":[]}`)
		set := f.expect("thread/goal/set")
		stop := callErr(func() error { return at.Agent.(handoff.Controls).Interrupt(t.Context(), turn1) })
		f.quiet()
		f.reply(set, `{"goal":{}}`)
		s.get(t)
		frame := f.expect("thread/goal/set")
		if !strings.Contains(string(frame.Params), goalPaused) {
			t.Errorf("set %s", frame.Params)
		}
		f.reply(frame, `{"goal":{}}`)
		f.reply(f.expect("turn/interrupt"), `{}`)
		stop.get(t)
	})
}
