package web

import (
	"testing"
	"time"

	"switchboard/handoff"
)

// A session that another program has open is told where somebody meets it, with what can be done: among what needs
// them, in the list of sessions and in the session itself.
func TestPageHeldSession(t *testing.T) {
	t.Parallel()
	w := newScene()
	now := time.Now()
	held := handoff.Record{
		ID: "f1", Server: "bigpc", ThreadID: "t-flaky", Title: "upload test", Prompt: "Find out why.", State: handoff.StatusDelivered, Outcome: handoff.OutcomeFailed, CreatedAt: now, EndedAt: &now,
		Error: &handoff.RecordError{Code: handoff.CodeSessionInUse, Message: "The session upload test is open in another program on that machine."},
	}
	w.records, w.questions = []handoff.Record{held, w.records[0]}, nil
	p := loggedIn(t, w, 1280, 800, nil)
	p.Shows("The session upload test is open in another program on that machine. Close it there and do it again, or go on in a copy.")
	p.Scheme("light")
	p.look("held")
	p.Click("Go on in a copy…")
	w.logged(t, "Find out why.")
	p.Click("Sessions")
	p.Shows("bigpc · /home/me/src/api · main · yesterday · open in another program")
	const row = `[...document.querySelectorAll("#sessions .row")].find((r) => r.textContent.includes("upload test"))`
	p.Until(row + ` && ![...document.querySelectorAll("#sessions .row")].find((r) => r.textContent.includes("auth refactor")).textContent.includes("another program")`)
	p.Hit(row + `.querySelector(".row-open")`)
	p.Shows("Another program has it open. Close it there, or continue it here: you are asked whether to go on in a copy.")
	p.look("held-reader")
	p.Click("Close")
	// While the copy is offered it is open there, too; when newer work went on there, it is not any more.
	began := held
	began.ID, began.State, began.Outcome, began.EndedAt, began.Error, began.CreatedAt = "f2", handoff.StatusAccepted, "", nil, nil, now.Add(time.Second)
	question := handoff.RecordQuestion{ID: "copy:f2", Handoff: "f2", Server: "bigpc", Kind: handoff.QuestionCopy, Reason: "It is open in another program on that machine.", Decisions: []handoff.Decision{handoff.DecisionAccept, handoff.DecisionDecline}, Asked: now}
	w.feed("owner").Publish(handoff.PageEvent{Kind: "question", Question: &question})
	w.feed("owner").Publish(handoff.PageEvent{Kind: "handoff", Record: &began})
	p.Until(`document.title.startsWith("(1)") && ` + row + `.textContent.includes("another program")`)
	w.feed("owner").Publish(handoff.PageEvent{Kind: "closed", Closed: question.ID})
	p.Until(`!` + row + `.textContent.includes("another program")`)
	p.quiet()
}
