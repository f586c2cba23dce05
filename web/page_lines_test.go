package web

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
)

// busyDay fills a world with a day's work on three machines: so many pieces that run, and so many that are over.
func busyDay(w *world, running, over int) {
	finished(w, over)
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	machines := []string{"bigpc", "laptop", "attic"}
	w.servers = nil
	for _, name := range machines {
		w.servers = append(w.servers, handoff.ServerInfo{Name: name, Kind: "codex", Health: handoff.HealthUp, Simulated: true})
	}
	prompts := []string{"Explain the invoice PDF export", "Test the checkout page", "Rename the mailer", "Remove dead code in the login form on mobile Safari", "Update the dependencies and run everything"}
	var busy []handoff.Record
	for i := range running {
		busy = append(busy, handoff.Record{
			ID: fmt.Sprint("r", i), Server: machines[i%3], ThreadID: fmt.Sprint("t", i), Title: prompts[i%5], Why: "new", Prompt: fmt.Sprintf("%s (%d)", prompts[i%5], i),
			State: handoff.StatusStarted, CreatedAt: now.Add(-time.Duration(i*37+5) * time.Second),
			Items: []handoff.RecordItem{{ID: "i1", Kind: handoff.ItemReasoning, Text: "I run the whole suite.", State: "done"}, {ID: "i2", Kind: handoff.ItemCommand, Text: "go test ./...", State: "running", Output: "ok shop/cart"}},
		})
	}
	for i := range w.records {
		w.records[i].ThreadID = fmt.Sprint(w.records[i].ThreadID, i/4)
		w.records[i].Prompt = fmt.Sprintf("%s, part %d", prompts[i%5], i)
	}
	w.records = append(busy, w.records...)
}

// What waits stands below what it waits for, in its turn. It is dropped, not stopped, and can be worded anew
// and begun at once.
func TestPageQueue(t *testing.T) {
	t.Parallel()
	w := newScene()
	now := time.Now()
	w.questions = nil
	w.records = w.records[:1]
	for i, prompt := range []string{"Then run the tests.", "Then push."} {
		w.records = append([]handoff.Record{{ID: fmt.Sprint("w", i), Server: "bigpc", ThreadID: "t-auth", Prompt: prompt, Waits: "ours", State: handoff.StatusAccepted, CreatedAt: now.Add(time.Duration(i) * time.Second)}}, w.records...)
	}
	feed := w.feed("owner")
	p := loggedIn(t, w, 1280, 800, nil)
	p.Until(shownWork + ` === "h1+; w0; w1"`)
	if got := eval[string](p, `[...document.querySelectorAll(".line-stop")].map((b) => b.textContent).join()`); got != "Stop,Drop,Drop" {
		t.Errorf("it offers %s", got)
	}
	p.openLine("w0")
	p.Until(cardOf("w0") + `.querySelector(".card-foot").checkVisibility()`)
	p.Scheme("light")
	p.Picture("queue")
	drop := func(id string) {
		w.change(func(w *world) {
			for i := range w.records {
				if w.records[i].ID == id {
					w.records[i].State, w.records[i].Outcome, w.records[i].Waits, w.records[i].EndedAt = handoff.StatusDelivered, handoff.OutcomeCancelled, "", new(time.Now())
				}
			}
		})
	}
	p.pressIn("w0", "Reword")
	p.Until(`document.activeElement.value === "Then run the tests."`)
	eval[bool](p, `(document.activeElement.value = "Then run the slow tests.", true)`)
	drop("w0") // which is what stopping it will do
	p.Press("\r")
	w.logged(t, "stop owner w0")
	w.logged(t, "Then run the slow tests.")
	w.logged(t, "move owner h1 w1") // in its turn
	gone := w.records[1]
	feed.Publish(handoff.PageEvent{Kind: handoff.PageHandoff, Handoff: "w0", Record: &gone})
	// Words of work that had begun meanwhile are not given twice.
	third := handoff.Record{ID: "w2", Server: "bigpc", ThreadID: "t-auth", Prompt: "And deploy.", Waits: "ours", State: handoff.StatusAccepted, CreatedAt: now.Add(time.Minute)}
	w.change(func(w *world) { w.records = append([]handoff.Record{third}, w.records...) })
	feed.Publish(handoff.PageEvent{Kind: handoff.PageHandoff, Handoff: "w2", Record: &third})
	p.openLine("w1")
	w.change(func(w *world) {
		w.records[1].State, w.records[1].Outcome, w.records[1].EndedAt = handoff.StatusDelivered, handoff.OutcomeInterrupted, new(time.Now())
	})
	p.pressIn("w1", "Reword")
	p.Press("\r")
	p.Shows("It had begun already, and was stopped.")
	if strings.Contains(strings.Join(w.log(), "\n"), "Then push.") {
		t.Error("work that had begun was given again")
	}
	p.pressIn("w1", "Cancel") // its words are still there
	p.pressIn("w1", "Begin now")
	p.Shows("This stops what runs there")
	p.Click("Cancel")
	p.Until(`!document.querySelector("#confirm").open`)
	p.quiet()
}
