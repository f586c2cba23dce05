package codex

import (
	"context"
	"strings"
	"testing"

	"switchboard/handoff"
	"switchboard/servers"
)

// TestGoalThinksLong: a turn for a goal is followed and can be stopped, also while its model says nothing for long.
func TestGoalThinksLong(t *testing.T) {
	for name, stopped := range map[string]bool{"it is followed": false, "it is stopped": true} {
		t.Run(name, func(t *testing.T) {
			withTurn(t, func(t *testing.T, f *fake, at handoff.Attached, r *recorder) {
				f.turnStarted(turn1)
				f.goal(goalActive)
				f.messageDone(turn1, "a", "Not yet.")
				f.turnCompleted(turn1, "completed")
				f.turnStarted(goalTurn)
				ends := "interrupted"
				if stopped {
					stop := callErr(func() error { return at.Agent.(handoff.Controls).Interrupt(context.Background(), turn1) })
					frame := f.expect("thread/goal/set")
					f.goal(goalPaused)
					f.reply(frame, `{"goal":{}}`)
					sleep(openGrace)
					frame = f.expect("turn/interrupt")
					if !strings.Contains(string(frame.Params), goalTurn) {
						t.Errorf("interrupted %s", frame.Params)
					}
					f.reply(frame, `{}`)
					stop.get(t)
					f.turnCompleted(goalTurn, "interrupted")
				} else {
					sleep(6 * goalGrace)
					f.messageDone(goalTurn, "b", "They pass.")
					f.goal("complete")
					f.turnCompleted(goalTurn, "completed")
					ends = `completed "They pass." "" complete`
				}
				<-r.done
				if lines := r.lines(); !strings.HasPrefix(lines[len(lines)-1], "ended "+ends) {
					t.Errorf("%q", lines)
				}
				f.quiet()
			})
		})
	}
}

// TestGoalThinksLongUnheard: so is one that began while the connection was away.
func TestGoalThinksLongUnheard(t *testing.T) {
	next := turnJSON(goalTurn, "inProgress", false)
	withThread(t, next, func(t *testing.T, f *fake, _ *servers.Link, at handoff.Attached) {
		f.goal(goalActive)
		items := func(entries string) {
			f.reply(f.expect("thread/items/list"), `{"data":[`+entries+`],"nextCursor":null}`)
		}
		last := entryOf(turn1, `{"type":"agentMessage","id":"a","text":"Not yet."}`)
		r := record(t.Context(), at.Agent, turn1)
		items(last)
		f.reply(f.expect("thread/turns/list"), `{"data":[`+next+`,`+turnJSON(turn1, "completed", true)+`],"nextCursor":null}`)
		items(last)
		items("") // who began the next is not known
		sleep(openGrace)
		items("")
		items("") // what it has finished
		sleep(6 * goalGrace)
		f.messageDone(goalTurn, "b", "They pass.")
		f.goal("complete")
		f.turnCompleted(goalTurn, "completed")
		<-r.done
		if lines := r.lines(); lines[len(lines)-1] != `ended completed "They pass." "" complete` {
			t.Errorf("%q", lines)
		}
		f.quiet()
	})
}

// TestGoalStoppedByAnswer: a stop that answers the question of a later turn stops the work, also if that turn completes
// before it is interrupted.
func TestGoalStoppedByAnswer(t *testing.T) {
	withTurn(t, func(t *testing.T, f *fake, at handoff.Attached, r *recorder) {
		f.turnStarted(turn1)
		f.goal(goalActive)
		f.messageDone(turn1, "a", "Not yet.")
		f.turnCompleted(turn1, "completed")
		f.turnStarted(goalTurn)
		f.messageDone(goalTurn, "b", "One more.")
		f.ask(0, askInput, goalTurn, `,"questions":[{"id":"q","question":"Which?","options":[{"label":"A"}]}]`)
		qs := questionsOf(r)
		if len(qs) != 1 || qs[0].Turn != goalTurn {
			t.Fatalf("questions %+v", qs)
		}
		stop := decide(t, at, qs[0].ID, handoff.DecisionStop)
		f.expect("") // the answer
		frame := f.expect("thread/goal/set")
		f.goal(goalPaused)
		f.turnCompleted(goalTurn, "completed")
		f.reply(frame, `{"goal":{}}`)
		f.refuse(f.expect("turn/interrupt"), -32600, "no active turn to interrupt")
		stop.get(t)
		<-r.done
		if lines := r.lines(); !strings.HasPrefix(lines[len(lines)-1], "ended interrupted") {
			t.Errorf("%q", lines)
		}
	})
}
