package web

import (
	"slices"
	"testing"
	"time"

	"switchboard/handoff"
)

// waiting fills a world with work that runs and three pieces that wait for it, w1 to w3.
func waiting(w *world) {
	w.records = w.records[:1]
	for i, id := range []string{"w1", "w2", "w3"} {
		behind := handoff.Record{
			ID: id, Server: "bigpc", ThreadID: "t-auth", Title: "auth refactor", Why: "continued", Prompt: "Step " + id, Waits: "ours",
			State: handoff.StatusAccepted, CreatedAt: w.records[0].CreatedAt.Add(time.Duration(i+1) * time.Second),
		}
		w.records = slices.Insert(w.records, 0, behind) // the newest first
	}
}

// moved has the page hear that what waits has another order.
func (w *world) moved(feed *testFeed, ids ...string) {
	w.change(func(w *world) {
		for i := range w.records {
			if at := slices.Index(ids, w.records[i].ID); at >= 0 {
				w.records[i].Place = at + 1
				feed.Publish(handoff.PageEvent{Kind: handoff.PageHandoff, Handoff: w.records[i].ID, Record: new(w.records[i])})
			}
		}
	})
}

const linesOfWork = `[...document.querySelectorAll("#cards .card")].map((c) => c.id.slice(5)).join(" ")`

// What waits is put in another order by buttons and by keys; its line tells its turn. What was moved comes before what
// nobody has moved, and work that was paused and went on is shown once.
func TestPageReordersWhatWaits(t *testing.T) {
	t.Parallel()
	w := newScene()
	waiting(w)
	twin := handoff.Record{
		ID: "old", Server: "bigpc", ThreadID: "t-else", Prompt: "Step w1", State: handoff.StatusDelivered, WentOn: true,
		Outcome: handoff.OutcomeCancelled, CreatedAt: time.Now().Add(-time.Hour), EndedAt: new(time.Now()),
	}
	w.records = append(w.records, twin)
	feed := w.feed("owner")
	p := loggedIn(t, w, 1280, 900, nil)
	p.Until(linesOfWork + ` === "h1 w1 w2 w3"`)
	if eval[bool](p, cardOf("old")+" !== null") {
		t.Error("what was paused and went on as work of its own has a line of its own, too")
	}
	p.Until(cardOf("w2") + `.querySelector(".line-came").textContent === "2 of 3 in line"`)
	offers := func(id string, want ...string) {
		t.Helper()
		p.openLine(id)
		got := eval[[]string](p, `[...`+cardOf(id)+`.querySelectorAll(".card-foot > button")].filter((b) => b.checkVisibility()).map((b) => b.textContent)`)
		if !slices.Equal(got, want) {
			t.Errorf("%s offers %q, want %q", id, got, want)
		}
	}
	offers("w1", "Open the session", "Reword", "Begin now", "Move down", "Move to the end")
	offers("w2", "Open the session", "Reword", "Begin now", "Move up", "Move down")
	offers("w3", "Open the session", "Reword", "Begin now", "Move up")
	p.pressIn("w3", "Move up")
	w.logged(t, "move owner w3 w2")
	w.moved(feed, "w1", "w3", "w2")
	p.Until(linesOfWork + ` === "h1 w1 w3 w2"`)
	p.Until(`document.querySelector("#urgent").textContent === "2 of 3 in line on bigpc"`)
	p.pressIn("w1", "Move to the end")
	w.logged(t, "move owner w1 ")
	w.moved(feed, "w3", "w2", "w1")
	p.Until(linesOfWork + ` === "h1 w3 w2 w1"`)

	eval[bool](p, `(`+cardOf("w2")+`.querySelector(".line-open").focus(), true)`)
	p.Press("K") // with Shift
	w.logged(t, "move owner w2 w3")
	w.moved(feed, "w2", "w3", "w1")
	p.Until(linesOfWork + ` === "h1 w2 w3 w1"`)
	if at := eval[string](p, `document.activeElement.closest(".card").id`); at != "card-w2" {
		t.Errorf("the keyboard is at %s", at)
	}
	p.Press("J")
	w.logged(t, "move owner w2 w1")
	before := len(w.log())
	eval[bool](p, `(`+cardOf("h1")+`.querySelector(".line-open").focus(), true)`)
	p.Press("J", "K") // what runs is in no line
	eval[bool](p, frames)
	if more := w.log()[before:]; len(more) > 0 {
		t.Errorf("what runs was moved: %q", more)
	}

	newer := w.records[0]
	newer.ID, newer.Prompt, newer.Place, newer.CreatedAt = "w4", "Step w4", 0, time.Now()
	feed.Publish(handoff.PageEvent{Kind: handoff.PageHandoff, Handoff: "w4", Record: &newer})
	p.Until(linesOfWork + ` === "h1 w2 w3 w1 w4"`)

	// What was given before h1 had its session waits for it, too.
	early := newer
	early.ID, early.Prompt, early.ThreadID, early.Title, early.CreatedAt = "w5", "Step w5", "", "", time.Now()
	feed.Publish(handoff.PageEvent{Kind: handoff.PageHandoff, Handoff: "w5", Record: &early})
	p.openLine("w5")
	p.pressIn("w5", "Begin now")
	p.Shows("This stops what runs there")
	p.Click("Cancel")
	p.Until(`!document.querySelector("#confirm").open`)
	p.quiet()
}
