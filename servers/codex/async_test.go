package codex

import (
	"fmt"
	"strings"
	"testing"

	"switchboard/handoff"
	"switchboard/servers"
)

// asyncItem is a message with questions, as recorded from 0.171.
const asyncItem = `{"type":"agentMessage","id":"call_1_0","text":"Which database?\n- SQLite\n- Postgres\n\nWhat name?",` +
	`"phase":"final_answer","delivery":"async","questions":[{"title":"Which database?","options":["SQLite","Postgres"]},` +
	`{"title":"What name?","options":null}]}`

// askedAsync returns the one question that was reported.
func askedAsync(t *testing.T, r *recorder, turn handoff.TurnID) handoff.Question {
	t.Helper()
	qs := questionsOf(r)
	if len(qs) != 1 || qs[0].Turn != turn || qs[0].Kind != handoff.QuestionInput || !qs[0].Words || len(qs[0].Asks) != 2 ||
		len(qs[0].Asks[0].Options) != 2 || qs[0].Asks[1].Text != "What name?" {
		t.Fatalf("questions %+v", qs)
	}
	return qs[0]
}

// TestAsyncQuestion: the answer to a question that the agent does not wait for goes into its turn, and closes it.
func TestAsyncQuestion(t *testing.T) {
	withTurn(t, func(t *testing.T, f *fake, at handoff.Attached, r *recorder) {
		f.turnStarted(turn1)
		f.item("item/completed", turn1, asyncItem)
		q := askedAsync(t, r, turn1)
		replied := callErr(func() error {
			return at.Agent.(handoff.Replier).Reply(t.Context(), q.ID, [][]string{{"SQLite"}, {"notes"}})
		})
		frame := f.expect("turn/steer")
		if !strings.Contains(string(frame.Params), `"Which database? SQLite\nWhat name? notes"`) {
			t.Errorf("steered %s", frame.Params)
		}
		f.item("item/completed", turn1, `{"type":"userMessage","id":"u","clientId":"`+steerID+`","content":[]}`)
		f.reply(frame, `{"turnId":"`+turn1+`"}`)
		replied.get(t)
		f.messageDone(turn1, "b", "Made.")
		f.turnCompleted(turn1, "completed")
		lines := r.lines()
		want(t, lines[2:], `question "async call_1_0" input "Which database? (SQLite, Postgres)\nWhat name?" [decline stop]`,
			`closed "async call_1_0"`, `done message b "Made."`, `ended completed "Made." ""`)
	})
}

// TestAsyncQuestionEnds: what closes such a question beside an answer here.
func TestAsyncQuestionEnds(t *testing.T) {
	for name, then := range map[string]func(t *testing.T, f *fake, at handoff.Attached, q handoff.Question){
		"the turn is over": func(*testing.T, *fake, handoff.Attached, handoff.Question) {},
		"answered elsewhere": func(_ *testing.T, f *fake, _ handoff.Attached, _ handoff.Question) {
			f.item("item/completed", turn1, `{"type":"userMessage","id":"u","clientId":null,"content":[]}`)
		},
		"declined": func(t *testing.T, f *fake, at handoff.Attached, q handoff.Question) {
			decide(t, at, q.ID, handoff.DecisionDecline).get(t)
		},
		"too late": func(t *testing.T, f *fake, at handoff.Attached, q handoff.Question) {
			replied := callErr(func() error {
				return at.Agent.(handoff.Replier).Reply(t.Context(), q.ID, [][]string{{"SQLite"}, {"notes"}})
			})
			f.refuse(f.expect("turn/steer"), -32600, "no active turn to steer")
			replied.wantCode(t, handoff.CodeNotPending)
		},
	} {
		t.Run(name, func(t *testing.T) {
			withTurn(t, func(t *testing.T, f *fake, at handoff.Attached, r *recorder) {
				f.turnStarted(turn1)
				f.item("item/completed", turn1, asyncItem)
				then(t, f, at, askedAsync(t, r, turn1))
				f.quiet()
				f.turnCompleted(turn1, "completed")
				if lines := strings.Join(r.lines(), "\n"); strings.Count(lines, "\nclosed ") != 1 {
					t.Error(lines)
				}
			})
		})
	}
}

// TestAsyncQuestionLeft: the outcome of a completed turn ends with what nobody has answered, once.
func TestAsyncQuestionLeft(t *testing.T) {
	for name, c := range map[string]struct{ last, status, text string }{
		"others were said after it": {"Made.", "completed", `"Made.\n\nWhich database? (SQLite, Postgres)\nWhat name?"`},
		"it was the last":           {"", "completed", `"Which database?\n- SQLite\n- Postgres\n\nWhat name?"`},
		"somebody stopped it":       {"Made.", "interrupted", `"Made."`},
	} {
		t.Run(name, func(t *testing.T) {
			withTurn(t, func(t *testing.T, f *fake, _ handoff.Attached, r *recorder) {
				f.turnStarted(turn1)
				f.item("item/completed", turn1, asyncItem)
				f.ask(1, askAsync, turn1, "") // no server asks by words of ours
				f.ask(2, askTooLong, turn1, "")
				if c.last != "" {
					f.messageDone(turn1, "b", c.last)
				}
				f.turnCompleted(turn1, c.status)
				lines, _ := r.lines(), askedAsync(t, r, turn1)
				want(t, lines[len(lines)-1:], "ended "+c.status+" "+c.text+` ""`)
			})
		})
	}
}

// TestAsyncQuestionAgain: on another connection such a question is asked again, unless words came after it.
func TestAsyncQuestionAgain(t *testing.T) {
	for words, asked := range map[string]int{"": 1, `{"type":"userMessage","id":"u","content":[]}`: 0} {
		withThread(t, turnJSON(turn1, "inProgress", false), func(t *testing.T, f *fake, _ *servers.Link, at handoff.Attached) {
			r := record(t.Context(), at.Agent, turn1)
			entries := entryOf(turn1, asyncItem)
			if words != "" {
				entries = entryOf(turn1, words) + "," + entries
			}
			f.reply(f.expect("thread/items/list"), fmt.Sprintf(`{"data":[%s],"nextCursor":null}`, entries))
			if qs := questionsOf(r); len(qs) != asked {
				t.Errorf("questions %+v", qs)
			}
			f.turnCompleted(turn1, "completed")
			r.lines()
		})
	}
}
