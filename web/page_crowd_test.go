package web

import (
	"fmt"
	"testing"
	"time"

	"switchboard/handoff"
)

// crowd is a busy day: 45 pieces of work run, 150 have ended, 180 failed for one reason, two questions are open.
func crowd() *world {
	w := newScene()
	asked, bigpc := w.questions[0], w.servers[0]
	busyDay(w, 45, 150)
	at := time.Now().Add(-20 * time.Minute)
	for i := range 180 {
		w.records = append(w.records, handoff.Record{
			ID: fmt.Sprint("mini", i), Server: "mini", Prompt: fmt.Sprintf("Check module %d of the shop", i), State: handoff.StatusCompleted,
			Outcome: handoff.OutcomeFailed, CreatedAt: at, EndedAt: new(at),
			Error: &handoff.RecordError{Code: handoff.CodeRefused, Message: "mini refused that.", Why: handoff.WhyNoMode, Detail: "approval: the agent has no mode that asks as untrusted says"},
		})
	}
	w.servers = append(w.servers, handoff.ServerInfo{
		Name: "mini", Kind: "acp", Health: handoff.HealthUp, Problem: handoff.WhyNoMode, Next: "In its entry, set mode: build; or approval: never, and nothing is asked.",
	}, handoff.ServerInfo{Name: "tower", Kind: "codex", Health: handoff.HealthDown, Problem: "nothing is listening there", Next: "Start its agent server there."})
	w.stickies = append(w.stickies, handoff.RecordSticky{Server: "attic", ThreadID: "t1", Title: "Find out why the nightly export of all invoices takes four hours", Why: "new", Since: at})
	bigpc.AskedThere = nil
	asked.Handoff, asked.Server, asked.Risk = "r1", "laptop", "high"
	second := inWords("q2", handoff.Ask{Text: "Which version are the release notes for?", Options: []string{"2.4", "2.4.1"}})
	second.Handoff, second.Server = "r0", "bigpc"
	w.questions = []handoff.RecordQuestion{asked, second}
	return w
}

// On a busy day the page is calm: two questions are counted, 180 failures are one line, work is seen at once on a
// phone, nothing scrolls sideways, and 100 arrivals move no row that is in sight. Work is a line of 44 pixels, whose
// inside is made when it opens; what is finished is drawn as one scrolls.
func TestPageCrowd(t *testing.T) {
	t.Parallel()
	w := crowd()
	_, base := serve(t, w, withVoice)
	feed := w.feed("owner")
	p := openTab(t, startChromium(t, true), 1440, 900)
	p.Do(atFirst(`window.moved = 0; window.movers = []; new PerformanceObserver((l) => { for (const e of l.getEntries()) { window.moved += e.value; window.movers.push(...e.sources.map((s) => (s.node?.id || s.node?.className || s.node?.nodeName) + " " + Math.round(s.previousRect.top) + " to " + Math.round(s.currentRect.top))); } }).observe({ type: "layout-shift", buffered: true })`))
	p.loggedIn(base)
	p.Until(`document.querySelectorAll("#cards .card").length === 45 && document.querySelectorAll("#finished .card").length > 20`)
	if got := eval[string](p, `[...document.querySelectorAll("#cards .card.folded")].map((c) => Math.round(c.getBoundingClientRect().height)).filter((h) => h !== 44).join() + document.querySelectorAll("#cards .folded .card-foot").length`); got != "0" {
		t.Errorf("lines that are not 44 pixels high, and insides: %s", got)
	}
	first := eval[string](p, `((c) => [".line-machine", ".line-asked", ".line-came", ".pill", ".line-stop"].map((s) => c.querySelector(s).textContent).join("; "))(document.querySelector("#card-r4"))`)
	if first != "laptop; Update the dependencies and run everything (4); $ go test ./...; Working; Stop" {
		t.Errorf("a line tells %q", first)
	}
	if drawn := eval[int](p, `document.querySelectorAll("#finished > *").length`); drawn > 100 {
		t.Errorf("%d finished pieces and headings are drawn at first", drawn)
	}
	p.openLine("r4")
	p.Until(cardOf("r4") + `.querySelector(".output")?.checkVisibility()`)
	if eval[bool](p, cardOf("r4")+`.querySelector(".card-prompt").checkVisibility()`) {
		t.Error("the request is told twice")
	}
	eval[bool](p, `(`+cardOf("r4")+`.querySelector(".line-peek").click(), true)`)
	p.Until(`!` + cardOf("r4") + `.querySelector(".card-body").checkVisibility()`)
	p.Until(`[document.querySelector("#now-count").textContent, document.querySelectorAll(".alert").length, document.querySelector(".alert-name").textContent, document.querySelector(".alert-what").textContent].join("; ") === "2; 2; 180 failed on mini; Its agent has no mode that asks."`)
	for _, size := range [][2]int64{{1440, 900}, {1024, 768}, {390, 844}, {360, 640}} {
		p.Size(size[0], size[1])
		for _, area := range []string{"talk", "work", "fleet"} {
			eval[bool](p, `(document.querySelector("[data-go=`+area+`]").click(), `+frames+`)`)
			p.look(fmt.Sprint("crowd-", size[0], "-", area))
		}
		if size[0] >= 760 {
			continue
		}
		eval[bool](p, `(document.querySelector("[data-go=work]").click(), `+frames+`)`)
		if top := eval[float64](p, `document.querySelector("#work .scroll").getBoundingClientRect().top`); top > 100 {
			t.Errorf("%v: the work begins %v pixels down", size, top)
		}
		if eval[bool](p, `document.querySelector("#cards").getBoundingClientRect().top > document.querySelector("#troubles").getBoundingClientRect().top`) {
			t.Errorf("%v: running work is below what failed", size)
		}
	}
	p.Size(1440, 900)
	eval[bool](p, `(document.querySelector("[data-go=talk]").click(), `+frames+`)`)
	p.Until(`document.querySelectorAll(".toast").length === 0`)
	eval[bool](p, `(moved = 0, movers.length = 0, true)`)
	before := len(w.records)
	for i := range 100 {
		r := w.records[before-1-i%10]
		r.ID, r.Prompt, r.CreatedAt, r.State, r.Outcome, r.Error, r.EndedAt, r.Server = fmt.Sprint("new", i), fmt.Sprint("One more, ", i), time.Now(), handoff.StatusStarted, "", nil, nil, "bigpc"
		feed.Publish(handoff.PageEvent{Kind: handoff.PageHandoff, Handoff: r.ID, Record: &r})
		if i%2 == 0 { // half of them end soon
			end := r
			end.State, end.Outcome, end.EndedAt, end.Text = handoff.StatusDelivered, handoff.OutcomeResult, new(time.Now()), "Done."
			feed.Publish(handoff.PageEvent{Kind: handoff.PageHandoff, Handoff: end.ID, Record: &end})
		}
		if i%10 == 0 {
			eval[bool](p, frames)
		}
	}
	p.Until(`document.querySelectorAll("#cards .card").length === 95`)
	eval[bool](p, frames)
	if got := eval[float64](p, `moved`); got > 0.02 {
		t.Errorf("100 arrivals shift the layout by %v: %q", got, eval[[]string](p, `movers.slice(0, 12)`))
	}
	p.Until(`document.querySelector(".news").checkVisibility()`)
	p.Picture("crowd-news")
	p.Hit(`document.querySelector(".news")`)
	p.Until(`document.querySelector("#work .scroll").scrollTop === 0 && document.querySelector(".news").hidden`)
	p.Until(`(document.querySelector(".work .scroll").scrollTo(0, 0), document.querySelector(".work .scroll").scrollTo(0, 1e6), document.querySelectorAll("#finished .card").length === 380)`)
	p.quiet()
}
