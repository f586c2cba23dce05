package web

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
)

// finished fills a world with work that is over: n pieces in two sessions on two machines, a minute apart, the newest
// first.
func finished(w *world, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.servers = []handoff.ServerInfo{{Name: "bigpc", Kind: "codex", Health: handoff.HealthUp}, {Name: "laptop", Kind: "codex", Health: handoff.HealthUp}}
	w.records = nil
	for i := range n {
		server, thread, title := "bigpc", "t-auth", "auth refactor"
		if i%2 == 1 {
			server, thread, title = "laptop", "t-notes", "release notes"
		}
		at := now.Add(-time.Duration(i+1) * time.Minute)
		w.records = append(w.records, handoff.Record{
			ID: fmt.Sprint("f", i), Server: server, ThreadID: thread, Title: title, Prompt: fmt.Sprintf("Job %d.", i), State: handoff.StatusDelivered,
			Outcome: handoff.OutcomeResult, Text: fmt.Sprintf("Result %d.", i), CreatedAt: at, EndedAt: new(at.Add(10 * time.Second)),
		})
	}
	w.records[2].Outcome, w.records[2].Text = handoff.OutcomeInterrupted, ""
	w.records[4].Items = []handoff.RecordItem{{ID: "c", Kind: handoff.ItemCommand, Text: "go test ./...", Exit: new(1), State: "failed", Output: "FAIL"}}
}

// shownWork is what the list shows, headings and lines, from above.
const shownWork = `[...document.querySelectorAll(".cards > *")].map((e) => e.classList.contains("group") ? "# " + e.textContent.trim() : e.id.slice(5) + (e.classList.contains("folded") ? "" : "+")).join("; ")`

// TestPageFinishedWork: what is over is a line each, by session, the newest first; it opens, is found, narrowed, put
// away and brought back. What an empty search field says is not cut off on a phone, upright or across.
func TestPageFinishedWork(t *testing.T) {
	t.Parallel()
	w := newWorld()
	finished(w, 25)
	feed := w.feed("owner")
	p := loggedIn(t, w, 390, 844, nil)
	eval[bool](p, `(document.querySelector("[data-go=work]").click(), true)`)
	p.Until(`document.querySelectorAll(".card.folded").length === 25`)
	var even, odd []string
	for i := range 25 {
		if i%2 == 0 {
			even = append(even, fmt.Sprint("f", i))
		} else {
			odd = append(odd, fmt.Sprint("f", i))
		}
	}
	want := "# bigpc auth refactor; " + strings.Join(even, "; ") + "; # laptop release notes; " + strings.Join(odd, "; ")
	if got := eval[string](p, shownWork); got != want {
		t.Errorf("the list is %s, want %s", got, want)
	}
	if high := eval[float64](p, `Math.max(...[...document.querySelectorAll(".card.folded")].map((c) => c.getBoundingClientRect().height))`); high > 44 {
		t.Errorf("a line is %v pixels high", high)
	}
	p.Picture("finished")
	tones := eval[string](p, `["f0", "f2", "f4"].map((id) => { const s = document.querySelector("#card-" + id + " .pill"); return s.textContent + " " + s.dataset.tone; }).join("; ")`)
	if tones != "Done good; Stopped flat; Tests fail warn" {
		t.Errorf("outcomes read %q", tones)
	}
	p.openLine("f4")
	p.Until(cardOf("f4") + `.querySelector(".line-peek").getAttribute("aria-expanded") === "true"`)
	p.Picture("finished-open")
	p.axe("finished work")
	p.openLine("f0")
	eval[bool](p, `(`+cardOf("f4")+`.querySelector(".line-peek").click(), true)`)
	p.Until(`!` + cardOf("f4") + `.querySelector(".card-body").checkVisibility()`)

	find := func(label, value, event, want string) {
		t.Helper()
		eval[bool](p, fmt.Sprintf(`(() => { const f = [...document.querySelectorAll(".work-tools label")].find((l) => l.querySelector(".sr").textContent === %q).querySelector("input");
		  f.value = %q; f.dispatchEvent(new Event(%q)); return true; })()`, label, value, event))
		p.Until(shownWork + ` === ` + fmt.Sprintf("%q", want))
	}
	find("Find work", "result 24", "input", "f24")
	p.Shows("1 of 25")
	find("Find work", "nothing like this", "input", "")
	p.Shows("No matches.")
	find("Find work", "", "input", strings.Replace(want, "f0", "f0+", 1))
	find("Find work", "failed", "input", "f4")
	find("Find work", "stopped", "input", "f2")
	find("Find work", "laptop done", "input", "# laptop release notes; "+strings.Join(odd, "; "))
	find("Find work", "", "input", strings.Replace(want, "f0", "f0+", 1))

	for _, place := range []string{"sessions", "history", "work"} {
		eval[bool](p, fmt.Sprintf(`(document.querySelector('[data-go="%s"]').click(), true)`, place))
		for _, size := range [][2]int64{{390, 844}, {844, 390}, {667, 375}} {
			p.Size(size[0], size[1])
			p.Until(fmt.Sprintf(`document.querySelector("#%s-search").checkVisibility()`, place))
			if room := eval[float64](p, fmt.Sprintf(`((e, is, pen) => {
			  pen.font = is.font;
			  return e.clientWidth - parseFloat(is.paddingLeft) - parseFloat(is.paddingRight) - pen.measureText(e.placeholder).width;
			})(...((e) => [e, getComputedStyle(e), document.createElement("canvas").getContext("2d")])(document.querySelector("#%s-search")))`, place)); room < 0 {
				t.Errorf("%s at %v: %v pixels too long", place, size, -room)
			}
		}
	}
	p.Size(390, 844)
	p.putsAway(w, feed)
	p.quiet()
}

// putsAway: what runs stands above, and stays open when it ends while somebody looks; what is over is put away and
// brought back, on every device.
func (p *tab) putsAway(w *world, feed *testFeed) {
	p.T.Helper()
	runs := handoff.Record{ID: "r", Server: "laptop", ThreadID: "t-notes", Title: "release notes", Prompt: "Go on.", State: handoff.StatusStarted, CreatedAt: time.Now()}
	feed.Publish(handoff.PageEvent{Kind: handoff.PageHandoff, Handoff: "r", Record: &runs})
	p.Until(shownWork + `.startsWith("r+; # bigpc auth refactor; f0+")`)
	desk := openTab(p.T, startChromium(p.T, true), 1280, 844)
	desk.loggedIn(p.base())
	desk.Until(shownWork + `.includes("; f24")`)
	p.Click("Clear finished")
	p.Until(shownWork + ` === "r+"`)
	desk.Until(shownWork + ` === ""`) // where what runs is not known: it is not in the list
	p.Until(`document.querySelector(".toast")?.textContent.includes("It stays in the history.")`)
	p.Click("Undo")
	p.Until(shownWork + `.includes("; f24")`)
	desk.Until(shownWork + `.includes("; f24")`)
	desk.quiet()
	p.Click("Clear finished")
	p.Until(shownWork + ` === "r+"`)
	eval[bool](p, `(document.querySelector("#card-r").focus(), true)`)
	waitFor(p.T, func() bool { // it was put away twice, and brought back between
		log := strings.Join(w.log(), "\n")
		return strings.Count(log, "put owner "+clearedID) == 3
	})
	runs.State, runs.Outcome, runs.Text, runs.EndedAt = handoff.StatusCompleted, handoff.OutcomeResult, "Gone on.", new(time.Now())
	feed.Publish(handoff.PageEvent{Kind: handoff.PageHandoff, Handoff: "r", Record: &runs})
	p.Until(shownWork + ` === "r+"`)
	p.Until(`document.activeElement.id === "card-r"`) // it moved, and the keyboard with it
	w.change(func(w *world) { w.records = append([]handoff.Record{runs}, w.records...) })
	p.open(p.base() + "/?again") // on every device, and after a reload
	p.Until(shownWork + ` === "r"`)
}

// TestPagePausedWork: what waited behind stopped work stands with what is open, and is continued or dropped. Tries of
// the same stack on one line, tests that fail do not read Done, and what was declined is not green.
func TestPagePausedWork(t *testing.T) {
	t.Parallel()
	w := newWorld()
	finished(w, 6)
	at := time.Now().Add(-time.Hour)
	fault := &handoff.RecordError{Code: handoff.CodeAgentFailed, Message: "The agent stopped working."}
	w.records[1].Prompt, w.records[1].ThreadID = "Push it.", "t-push"
	w.records[1].Answers = []handoff.RecordAnswer{{Kind: handoff.QuestionCommand, Command: "git push", Decision: handoff.DecisionDecline, By: handoff.ByPage, At: at}}
	w.records[3].Prompt = "Deploy."
	w.records = append(w.records, handoff.Record{ID: "try1", Server: "laptop", ThreadID: "t-notes", Prompt: "Deploy.", State: handoff.StatusDelivered, Outcome: handoff.OutcomeFailed, Error: fault, CreatedAt: at, EndedAt: &at})
	w.records[0].Outcome, w.records[0].Paused, w.records[0].Text = handoff.OutcomeCancelled, true, ""
	w.records[0].Error = &handoff.RecordError{Code: handoff.CodePaused, Message: "What waited on bigpc is paused, because the work before it was stopped.", Next: "Ask."}
	feed := w.feed("owner")
	p := loggedIn(t, w, 390, 844, nil)
	eval[bool](p, `(document.querySelector("[data-go=work]").click(), true)`)
	p.Until(shownWork + `.startsWith("f0+")`)
	p.Until(cardOf("f0") + `.querySelector(".pill").textContent === "Paused"`)
	p.Shows("paused, because the work before it was stopped")
	p.Picture("paused")
	pill := func(id string) string {
		return eval[string](p, `((s) => s.textContent + " " + s.dataset.tone)(`+cardOf(id)+`.querySelector(".pill"))`)
	}
	if got := pill("f1") + "; " + pill("f4"); got != "Declined flat; Tests fail warn" {
		t.Errorf("they read %s", got)
	}
	p.Until(cardOf("f3") + `.querySelector(".line-came").textContent === "attempt 2 · Result 3."`)
	p.openLine("f3")
	p.Until(cardOf("f3") + `.querySelector(".added[aria-label='Earlier attempts']").textContent === "Attempt 1, 1 hour ago: The agent stopped working."`)
	p.pressIn("f0", "Continue")
	p.Shows("Resumed on bigpc.")
	p.pressIn("f0", "Drop")
	p.Shows("Dropped.")
	dropped := w.records[0]
	dropped.Paused, dropped.Error = false, nil
	feed.Publish(handoff.PageEvent{Kind: handoff.PageHandoff, Handoff: "f0", Record: &dropped})
	p.Until(shownWork + `.startsWith("# bigpc auth refactor; f0")`)
	log := strings.Join(w.log(), "\n")
	if !strings.Contains(log, "f0  ") || !strings.Contains(log, "stop owner f0") {
		t.Errorf("asked %s", log)
	}
	p.quiet()
}
