package web

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"switchboard/handoff"
)

// What needs the person has one number, of questions alone: in its heading, the tab's title, the app's icon and the tab
// of a phone. What went wrong is a line a cause, below the work on a phone; what was put away stays away, until a
// machine is lost anew.
func TestPageNeedsYou(t *testing.T) {
	t.Parallel()
	w := newScene()
	now := time.Now()
	failed := func(id, thread, prompt string, ago time.Duration, code handoff.Code) handoff.Record {
		at := now.Add(-ago)
		return handoff.Record{
			ID: id, Server: "bigpc", ThreadID: thread, Title: "session " + thread, Prompt: prompt, State: handoff.StatusDelivered, Outcome: handoff.OutcomeFailed, CreatedAt: at, EndedAt: new(at),
			Error: &handoff.RecordError{Code: code, Message: "The work on bigpc failed."},
		}
	}
	w.records = append(w.records,
		failed("f1", "t1", "Deploy it.", 5*time.Minute, handoff.CodeAgentFailed),
		failed("f4", "t4", "Deploy the other.", 6*time.Minute, handoff.CodeAgentFailed),
		failed("f2", "t-auth", "Run them.", 20*time.Minute, handoff.CodeAgentFailed), // newer work in its session
		failed("f3", "t3", "Long ago.", 30*time.Hour, handoff.CodeAgentFailed))
	_, base := serve(t, w, nil)
	feed := w.feed("owner")
	p := openTab(t, startChromium(t, true), 390, 844)
	p.Do(badged())
	p.loggedIn(base)
	count := func(want string) {
		t.Helper()
		p.Until(`document.querySelector("#needs-title").textContent === "Needs you (` + want + `)"`)
		p.Until(`document.title.startsWith("(` + want + `) ") && document.querySelector("#work-count").textContent === "` + want + `" && window.badge === ` + want)
	}
	count("1") // the question alone, which stands over the conversation
	p.Shows("laptop asks to run git push")
	eval[bool](p, `(document.querySelector("[data-go=work]").click(), true)`)
	rows := func() []string {
		return eval[[]string](p, `[...document.querySelectorAll(".alert")].filter((e) => e.checkVisibility()).map((e) => e.innerText.replace(/\s+/g, " "))`)
	}
	want := []string{"2 failed on bigpc The work on bigpc failed. Show Try again Dismiss all", "mini is offline Nothing answers at its address; its agent server may not run. Show Dismiss"}
	if got := rows(); !slices.Equal(got, want) {
		t.Errorf("rows: %q", got)
	}
	if order := eval[bool](p, `document.querySelector("#cards").getBoundingClientRect().bottom <= document.querySelector("#troubles").getBoundingClientRect().top`); !order {
		t.Error("on a phone, running work is below what failed")
	}
	p.Scheme("light")
	p.Picture("needs-phone")
	p.Click("3 went wrong")
	p.Until(`document.activeElement.closest("#troubles")`)
	p.Click("Show: 2 failed on bigpc")
	p.Until(`document.querySelector("#work-search").value === "failed bigpc" && document.querySelectorAll("#finished .card").length === 5`)
	p.Click("Try again: 2 failed on bigpc")
	p.Click("Try 2 again")
	w.logged(t, "bigpc t4 Deploy the other.")
	w.logged(t, "bigpc t1 Deploy it.")
	p.Click("Dismiss all: 2 failed on bigpc")
	p.Until(`document.querySelectorAll(".alert").length === 1`)
	p.Click("Dismiss: mini is offline")
	p.Until(`!document.querySelector("#troubles").checkVisibility()`)
	p.open(base + "/?again") // it stays away
	count("1")
	p.Until(`!document.querySelector("#troubles").checkVisibility()`)
	health := func(h handoff.Health) {
		w.change(func(w *world) {
			if w.servers[2].Health = h; h == handoff.HealthUp { // what is up and has a problem refuses all work
				w.servers[2].Problem = ""
			}
		})
		feed.Publish(handoff.PageEvent{Kind: handoff.PageServers})
	}
	health(handoff.HealthUp)
	p.Until(`document.querySelector("#machine-mini").closest(".machine").querySelector(".pill").textContent === "Ready"`)
	health(handoff.HealthDown)
	p.Until(`document.querySelector(".alert-name")?.textContent === "mini is offline"`)
	feed.Publish(handoff.PageEvent{Kind: handoff.PageClosed, Closed: "q1"})
	p.Until(`document.title === "Switchboard" && !document.querySelector("#work-count").checkVisibility() && window.badge === 0`)
	p.quiet()
}

// A question is seen from every place at every width, with the number on Now, and one press leads to it.
func TestPageQuestionIsSeenEverywhere(t *testing.T) {
	t.Parallel()
	w := newScene()
	p := loggedIn(t, w, 1440, 900, nil)
	for _, size := range [][2]int64{{1440, 900}, {768, 1024}, {360, 640}} {
		p.Size(size[0], size[1])
		for _, area := range []string{"talk", "work", "fleet", "sessions", "history", "settings", "help"} {
			eval[bool](p, `(document.querySelector("[data-go=`+area+`]").click(), `+frames+`)`)
			seen := `(document.querySelector(".attention").checkVisibility() || ((q) => q.checkVisibility() && q.getBoundingClientRect().top < innerHeight)(document.querySelector(".question")))`
			if !eval[bool](p, seen+` && [...document.querySelectorAll("#now-count, #work-count")].some((e) => e.checkVisibility() && e.textContent === "1")`) {
				t.Errorf("%v, %s: the question is not seen", size, area)
			}
		}
		p.Picture(fmt.Sprint("strip-", size[0]))
		p.Click("Review")
		p.Until(`document.activeElement.closest(".question").checkVisibility()`)
		if high := eval[float64](p, `document.querySelector(".question").getBoundingClientRect().height`); high > 240 { // with all that is told of the risk
			t.Errorf("%v: its card is %v pixels high", size, high)
		}
	}
	p.quiet()
}

// badged has the page keep the number on the app's icon where a test finds it.
func badged() chromedp.Action[chromedp.Void] {
	return atFirst(`window.badge = 0; navigator.setAppBadge = async (n) => { window.badge = n; }; navigator.clearAppBadge = async () => { window.badge = 0; };`)
}
