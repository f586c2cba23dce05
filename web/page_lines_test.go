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

// A day of 45 running and 500 finished pieces of work is a list of lines of 44 pixels, of which the newest are drawn,
// and the others as one scrolls. What arrives in a rush is drawn over some frames.
func TestPageBusyDay(t *testing.T) {
	t.Parallel()
	w := newWorld()
	busyDay(w, 45, 500)
	_, base := serve(t, w, withVoice)
	p := openTab(t, startChromium(t, true), 1440, 900)
	p.Do(atFirst(`window.stalls = []; new PerformanceObserver((l) => window.stalls.push(...l.getEntries().map((e) => e.duration))).observe({ type: "longtask", buffered: true })`))
	p.loggedIn(base)
	p.Until(`document.querySelectorAll("#cards .card").length === 45`)
	if got := eval[string](p, `[...document.querySelectorAll("#cards .card")].filter((c) => Math.round(c.getBoundingClientRect().height) !== 44).map((c) => c.id).join()`); got != "" {
		t.Errorf("not 44 pixels high: %s", got)
	}
	first := eval[string](p, `((c) => [".line-machine", ".line-asked", ".line-came", ".pill", ".line-stop"].map((s) => c.querySelector(s).textContent).join("; "))(document.querySelector("#card-r1"))`)
	if first != "laptop; Test the checkout page (1); $ go test ./...; Working; Stop" {
		t.Errorf("a line tells %q", first)
	}
	if drawn := eval[int](p, `document.querySelectorAll("#finished > *").length`); drawn > 100 {
		t.Errorf("%d finished pieces and headings are drawn at first", drawn)
	}
	for _, size := range [][2]int64{{1440, 900}, {1024, 768}, {768, 1024}, {390, 844}, {360, 640}} {
		p.Size(size[0], size[1])
		for _, scheme := range []string{"light", "dark"} {
			p.Scheme(scheme)
			eval[bool](p, `(document.querySelector("[data-go=work]").click(), document.querySelector(".work .scroll").scrollTo(0, 0), `+frames+`)`)
			p.look(fmt.Sprintf("busy-%d-%s", size[0], scheme))
		}
		eval[bool](p, `(document.querySelector("#finished").scrollIntoView(), `+frames+`)`)
		p.look(fmt.Sprintf("busy-%d-finished", size[0]))
	}
	p.Size(1440, 900)
	p.Scheme("light")
	p.axe("a busy day")
	// As one scrolls, there is the rest.
	p.Until(`(document.querySelector(".work .scroll").scrollTo(0, 0), document.querySelector(".work .scroll").scrollTo(0, 1e6), document.querySelectorAll("#finished .card").length === 500)`)
	eval[bool](p, `(document.querySelector(".work .scroll").scrollTo(0, 0), window.stalls.length = 0, true)`)
	feed := w.feed("owner")
	for i := range 100 {
		r := handoff.Record{ID: fmt.Sprint("n", i), Server: "bigpc", Prompt: fmt.Sprintf("More work, %d", i), State: handoff.StatusStarted, CreatedAt: time.Now()}
		feed.Publish(handoff.PageEvent{Kind: handoff.PageHandoff, Handoff: r.ID, Record: &r})
	}
	p.Until(`document.querySelectorAll("#cards .card").length === 145`)
	t.Logf("stalls while 100 arrive: %v", eval[[]float64](p, `stalls`))
	p.quiet()
}

// Work opens by its line, whole and by itself where there is little of it, and what is inside is not made before.
func TestPageLineOpens(t *testing.T) {
	t.Parallel()
	w := newWorld()
	busyDay(w, 5, 5)
	p := loggedIn(t, w, 1280, 800, nil)
	p.Until(`document.querySelectorAll("#cards .card.folded").length === 5 && !document.querySelector("#cards .card-foot")`)
	p.openLine("r2")
	p.Until(cardOf("r2") + `.querySelector(".output")?.checkVisibility()`)
	if got := eval[bool](p, cardOf("r2")+`.querySelector(".card-prompt").checkVisibility()`); got {
		t.Error("the request is told twice")
	}
	eval[bool](p, `(`+cardOf("r2")+`.querySelector(".line-peek").click(), true)`)
	p.Until(`!` + cardOf("r2") + `.querySelector(".card-body").checkVisibility()`)
	p.quiet()
}

// Words that were added to running work are a line of its card with what became of them, and no finished work.
func TestPageAddedWordsBelongToTheirWork(t *testing.T) {
	t.Parallel()
	w := newScene()
	feed := w.feed("owner")
	p := loggedIn(t, w, 1280, 800, nil)
	cards := eval[int](p, `document.querySelectorAll(".card").length`)
	added := handoff.Record{ID: "a1", Server: "bigpc", ThreadID: "t-auth", Title: "auth refactor", Why: handoff.WhyAdded, Prompt: "And compare with last week.", State: handoff.StatusStarted, CreatedAt: time.Now()}
	feed.Publish(handoff.PageEvent{Kind: handoff.PageHandoff, Handoff: "a1", Record: &added})
	p.Until(cardOf("h1") + `.querySelector(".added").textContent === "Added: “And compare with last week.” on its way"`)
	added.State, added.Outcome, added.EndedAt = handoff.StatusDelivered, handoff.OutcomeResult, new(time.Now())
	feed.Publish(handoff.PageEvent{Kind: handoff.PageHandoff, Handoff: "a1", Record: &added})
	p.Until(cardOf("h1") + `.querySelector(".added").textContent === "Added: “And compare with last week.” heard just now"`)
	if got := eval[string](p, `document.querySelectorAll(".card").length + document.querySelector("#urgent").textContent`); !strings.HasPrefix(got, fmt.Sprint(cards)) || strings.Contains(got, "Done") {
		t.Errorf("it is told as work of its own: %q", got)
	}
	p.quiet()
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

// Tries of the same stack on one line, tests that fail do not read Done, and what was declined is not green.
func TestPageOutcomesTellTheTruth(t *testing.T) {
	t.Parallel()
	w := newWorld()
	finished(w, 6)
	at := time.Now().Add(-time.Hour)
	fault := &handoff.RecordError{Code: handoff.CodeAgentFailed, Message: "The agent stopped working."}
	w.records[0].Prompt, w.records[0].ThreadID = "Push it.", "t-push"
	w.records[0].Answers = []handoff.RecordAnswer{{Kind: handoff.QuestionCommand, Command: "git push", Decision: handoff.DecisionDecline, By: handoff.ByPage, At: at}}
	w.records[3].Prompt = "Deploy."
	w.records = append(w.records, handoff.Record{ID: "try1", Server: "laptop", ThreadID: "t-notes", Prompt: "Deploy.", State: handoff.StatusDelivered, Outcome: handoff.OutcomeFailed, Error: fault, CreatedAt: at, EndedAt: &at})
	p := loggedIn(t, w, 1280, 800, nil)
	p.Until(`document.querySelectorAll(".card").length === 6`)
	pill := func(id string) string {
		return eval[string](p, `((s) => s.textContent + " " + s.dataset.tone)(`+cardOf(id)+`.querySelector(".pill"))`)
	}
	if got := pill("f0") + "; " + pill("f4"); got != "Declined flat; Tests fail warn" {
		t.Errorf("they read %s", got)
	}
	p.Until(cardOf("f3") + `.querySelector(".line-came").textContent === "attempt 2 · Result 3."`)
	p.openLine("f3")
	p.Until(cardOf("f3") + `.querySelector(".added[aria-label='Earlier attempts']").textContent === "Attempt 1, 1 hour ago: The agent stopped working."`)
	p.quiet()
}
