package web

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"switchboard/handoff"
)

func TestPageLogin(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s, base := serve(t, w, nil)
	p := openTab(t, startChromium(t, true), 1280, 800)
	p.open(base + "/#login=WRONG")
	p.Shows("no longer works: each works once, within ten minutes")
	if at := eval[string](p, `location.href`); at != base+"/" {
		t.Errorf("the address bar shows %s", at)
	}
	if focus := eval[string](p, `document.activeElement.id`); focus != "login-key" {
		t.Errorf("the focus is on %q", focus)
	}
	p.EnterKey("nope")
	p.Until(`!document.querySelector("#login-form button").disabled && document.querySelector("#login-error").textContent`)
	eval[bool](p, `(document.querySelector("#login-key").value = "", true)`)
	p.EnterKey(ownerKey)
	p.Shows("No machines.")
	if eval[bool](p, `document.cookie !== ""`) {
		t.Error("there is a cookie")
	}
	p.open(base + "/?again") // the token is enough
	p.Shows("No machines.")
	w.change(func(w *world) { w.kept = nil }) // logged out from elsewhere
	p.open(base + "/?gone")
	p.Until(`document.querySelector("#login:not([hidden])")`)
	code, err := s.NewCode(t.Context(), "owner")
	if err != nil {
		t.Fatal(err)
	}
	p.open(base + "/#login=" + code)
	p.Shows("No machines.")
	if at := eval[string](p, `location.href`); at != base+"/" {
		t.Errorf("the address bar shows %s", at)
	}
}

func TestPageShowsWhatHappens(t *testing.T) {
	t.Parallel()
	w := newScene()
	feed := w.feed("owner")
	p := loggedIn(t, w, 1280, 800, withVoice)
	p.openLine("h4")
	p.OpenMachines()
	for _, text := range []string{
		"laptop asks to run git push", "git push origin release/2.4 --follow-tags", "/home/me/src/site", "Allow once",
		"mini is not answering.", "Check that its agent server runs", "connection refused", "One test of 48 fails", "Working", "Needs you", "Failed", "Tests fail",
		"Offline", "Session: auth refactor", "Session in api: rate limits", "bigpc goes on working. laptop waits for you.",
	} {
		p.Shows(text)
	}
	const evil = `<img src=x onerror="document.title='owned'"><b>bold</b>`
	record := handoff.Record{ID: "h9", Server: "bigpc", Title: "auth refactor", Why: "continued", Prompt: evil, State: handoff.StatusDispatching, CreatedAt: w.records[0].CreatedAt.AddDate(0, 0, 1)}
	feed.Publish(handoff.PageEvent{Kind: handoff.PageHandoff, Handoff: "h9", Record: &record})
	p.Until(`document.querySelector(".card").id === "card-h9" && document.querySelector(".card .pill").textContent === "Working"`)
	if got := eval[string](p, `document.querySelector(".card-prompt").textContent`); got != evil {
		t.Errorf("the prompt reads %q", got)
	}
	record.State = handoff.StatusStarted
	feed.Publish(handoff.PageEvent{Kind: handoff.PageHandoff, Handoff: "h9", Record: &record})
	item := handoff.RecordItem{ID: "i1", Kind: handoff.ItemCommand, Text: "make test", State: "running"}
	feed.Publish(handoff.PageEvent{Kind: handoff.PageItem, Handoff: "h9", Item: &item})
	feed.Publish(handoff.PageEvent{Kind: handoff.PageDelta, Handoff: "h9", ItemID: "i1", Delta: "ok  one\n"})
	feed.Publish(handoff.PageEvent{Kind: handoff.PageDelta, Handoff: "h9", ItemID: "i1", Delta: evil})
	p.Until(`document.querySelector(".card .output")?.textContent.startsWith("ok  one\n<img")`)
	lost := handoff.RecordItem{ID: "i2", Kind: handoff.ItemMessage, Text: "half a sentence", State: "running"}
	feed.Publish(handoff.PageEvent{Kind: handoff.PageItem, Handoff: "h9", Item: &lost})
	p.Shows("half a sentence")
	feed.Publish(handoff.PageEvent{Kind: handoff.PageDropped, Handoff: "h9", ItemID: "i2"})
	p.Until(`!document.body.innerText.includes("half a sentence")`)
	item.State, item.Exit, item.Output = "failed", new(2), "make: *** [test] Error 2\n"
	feed.Publish(handoff.PageEvent{Kind: handoff.PageItem, Handoff: "h9", Item: &item})
	p.Shows("failed (exit 2)")
	record.State, record.Outcome, record.Text = handoff.StatusCompleted, handoff.OutcomeResult, "Two tests `fail`.\n\n```\nTestA\n```\n`"+evil+"`"
	feed.Publish(handoff.PageEvent{Kind: handoff.PageHandoff, Handoff: "h9", Record: &record})
	p.Shows("Two tests fail.")
	p.Until(cardOf("h9") + `.querySelector("details").open === false`)
	p.Until(cardOf("h9") + `.querySelector(".answer .block").textContent === "TestA" && ` + cardOf("h9") + `.querySelector(".answer p code").textContent === "fail"`)
	p.Until(`document.querySelector("#urgent").textContent === "Done on bigpc."`)
	p.Until(`[...document.querySelectorAll(".card")].every((c) => !c.querySelector("img, b")) && document.title !== "owned"`)

	w.change(func(w *world) {
		w.stickies = w.stickies[2:]
		w.servers[2].Health = handoff.HealthUp
	})
	feed.Publish(handoff.PageEvent{Kind: handoff.PageSticky})
	feed.Publish(handoff.PageEvent{Kind: handoff.PageServers})
	p.Until(`!document.body.innerText.includes("rate limits") && !document.body.innerText.includes("Offline")`)
	feed.Publish(handoff.PageEvent{Kind: handoff.PageClosed, Closed: "q1"})
	p.Until(`!document.querySelector(".question") && document.title === "Switchboard" && document.querySelector(".alert-name").textContent.endsWith("on mini failed")`)
	p.quiet()
}

// A question is answered by the keyboard, once. One that moves under a finger takes no press of it: the finger may have
// aimed at what was there before, such as "Decline" where "Allow once" is now.
func TestPageApprovalByKeyboard(t *testing.T) {
	t.Parallel()
	w := newScene()
	question := w.questions[0]
	answer := make(chan error)
	p := loggedIn(t, w, 1280, 800, nil)
	p.Until(`document.querySelector(".question")`)
	p.Until(`document.querySelector("#urgent").textContent.includes("git push origin")`)
	w.change(func(w *world) { w.onDecide = func() error { return <-answer } })
	p.TabTo("Allow once")
	p.Until(`document.querySelector(".question:not(.settling)")`) // a card just drawn takes no press
	p.Press("\r")
	p.Shows("Sending your answer…")
	p.Press("\r", " ")
	p.TabTo("Decline")
	p.Press("\r")
	answer <- handoff.Fault(handoff.CodeOverloaded, "laptop", "")
	p.Shows("laptop has too much to do right now.")
	if n := len(w.decided()); n != 1 {
		t.Errorf("%d answers went out, want 1: %q", n, w.log())
	}
	p.Until(`!document.querySelector(".question [aria-disabled]")`) // it can be tried again
	p.Press("\r")
	answer <- handoff.Fault(handoff.CodeNotPending, "", "")
	p.Shows("That question is no longer open.")
	p.Until(`!document.querySelector(".question")`)
	if got := strings.Join(w.decided(), ";"); got != "decide owner q1 accept;decide owner q1 decline" {
		t.Errorf("decided %q", got)
	}

	question.ID = "q2"
	w.change(func(w *world) { w.onDecide = nil })
	w.feed("owner").Publish(handoff.PageEvent{Kind: "question", Question: &question})
	p.Until(`document.querySelector(".question:not(.settling)")`)
	eval[bool](p, `(() => {
	  const button = (decision) => document.querySelector("[data-decision=" + decision + "]");
	  document.querySelector("#questions").before(Object.assign(document.createElement("p"), { textContent: "a line above it" }));
	  button("accept").dispatchEvent(new MouseEvent("click", { bubbles: true, detail: 1 })); // as of a finger
	  button("decline").click(); // as of the keyboard
	  return true;
	})()`)
	w.logged(t, "decide owner q2 decline")
	if got := w.decided(); len(got) != 3 {
		t.Errorf("a question that had just moved took a finger's press: %q", got)
	}
}

func TestPageStopsWork(t *testing.T) {
	t.Parallel()
	w := newScene()
	p := loggedIn(t, w, 1280, 800, nil)
	w.change(func(w *world) { w.fail = handoff.Fault(handoff.CodeUnreachable, "bigpc", "") })
	at := `[...document.querySelectorAll(".card")].find((c) => c.textContent.includes("Fix the failing"))`
	stop := `[...(` + at + `?.querySelectorAll(".line-stop") ?? [])].find((b) => b.textContent === "Stop")`
	p.Until(stop)
	eval[bool](p, `(`+stop+`.click(), true)`)
	p.Shows("bigpc is not answering.")
	p.Until(at + `.querySelector(".pill").textContent === "Working"`)
	w.change(func(w *world) { w.fail = nil })
	p.Click("Stop all (2)")
	p.Shows("2 pieces of work on bigpc and laptop.")
	p.Click("Stop 2")
	p.Until(at + `.querySelector(".pill").textContent === "Stopping…"`)
	p.Until(`document.querySelectorAll(".line-stop[aria-disabled]").length === 2 && document.querySelectorAll(".card").length === 4`)
	stops := func() int { return strings.Count(strings.Join(w.log(), ";"), "stop owner ") }
	waitFor(t, func() bool { return stops() >= 3 }) // the one that failed and the two of all
	if stops() != 3 {
		t.Errorf("stops: %q", w.log())
	}
}

func TestPageFleet(t *testing.T) {
	t.Parallel()
	w := newScene()
	p := loggedIn(t, w, 1280, 800, nil)
	p.OpenMachines()
	p.TabTo("Recent sessions")
	p.Press("\r")
	p.Shows("Find out why the upload test fails")
	p.Shows("working")
	p.Press("\t", "\t", "\r")
	p.Shows("Show earlier lines (31 or more)")
	p.Shows("One test fails")
	p.TabTo("Continue this session")
	p.Press("\r")
	p.Until(`document.activeElement.id === "say" && document.querySelector("#say-to").selectedOptions[0].textContent === "bigpc, in Find out why the upload test fails every third…"`)
	p.Hit(`document.querySelectorAll(".session")[1]`) // and on another machine
	p.Shows("One test fails")
	p.TabTo("Continue on…")
	p.Press("\r")
	p.Until(`document.activeElement.id === "move-machine"`)
	p.Shows("laptop begins a new session with a summary of this one. What was changed on bigpc may not be there.")
	p.Press("\t", "tidy it up")
	p.Picture("continue-on")
	p.Press("\x1b") // a slip
	p.Until(`!document.querySelector("#reader").open`)
	p.Hit(`document.querySelectorAll(".session")[1]`)
	p.TabTo("Continue on…")
	p.Press("\r")
	p.Until(`document.activeElement.id === "move-machine" && document.querySelector("#move-words").value === "tidy it up"`)
	eval[bool](p, heldAnswers)
	p.TabTo("Begin there")
	p.Press("\r")
	p.Until(`window.answer`)
	p.Press("\x1b") // who reads another session by then goes on reading it
	p.Until(`!document.querySelector("#reader").open`)
	p.Hit(`document.querySelectorAll(".session")[0]`)
	p.Shows("One test fails")
	eval[bool](p, late)
	p.Shows("It has begun on laptop.")
	p.Until(`document.querySelector("#reader").open`)
	p.Press("\x1b")
	if got := strings.Join(w.log(), ";"); !strings.Contains(got, "from bigpc t-flaky for") || !strings.Contains(got, "tidy it up") {
		t.Errorf("asked %q", got)
	}
	w.change(func(w *world) {
		w.sessions = handoff.SessionList{Errors: []handoff.ServerProblem{{Server: "mini", Code: handoff.CodeUnreachable, Message: "mini is not answering."}}}
	})
	eval[bool](p, `(document.querySelectorAll(".opener")[2].click(), true)`)
	p.Until(`document.querySelectorAll(".recent")[2].textContent.includes("mini is not answering.")`)
	p.Click("Unpin rate limits on bigpc/api")
	p.Until(`!document.body.innerText.includes("rate limits")`)
	if got := w.log(); !strings.Contains(strings.Join(got, ";"), "clear owner bigpc/api") {
		t.Errorf("asked %q", got)
	}
	p.quiet()
}

// A connection that comes and goes: the page says so, and goes on where it was. A list that lacks what was done before
// a restart says so, and is read again by itself.
func TestPageComesBack(t *testing.T) {
	t.Parallel()
	w := newScene()
	former := w.records
	w.records, w.questions, w.unread = nil, nil, handoff.Fault(handoff.CodeStoreDown, "", "")
	var down atomic.Bool
	var mu sync.Mutex
	var ends []context.CancelFunc
	s, base := serveBehind(t, w, nil, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if down.Load() && strings.HasPrefix(r.URL.Path, "/fleet/") {
				rw.WriteHeader(http.StatusBadGateway)
				return
			}
			if r.URL.Path == "/fleet/events" {
				ctx, end := context.WithCancel(r.Context())
				mu.Lock()
				ends = append(ends, end)
				mu.Unlock()
				r = r.WithContext(ctx)
			}
			h.ServeHTTP(rw, r)
		})
	})
	cut := func() { // every stream ends
		mu.Lock()
		defer mu.Unlock()
		for _, end := range ends {
			end()
		}
	}
	feed := w.feed("owner")
	p := openTab(t, startChromium(t, true), 1280, 800)
	p.loggedIn(base)
	p.Shows("Work from before the restart cannot be read yet.")
	if eval[bool](p, `document.querySelector("#no-work").checkVisibility()`) {
		t.Error("it says that there is no work")
	}
	p.Picture("incomplete")
	w.change(func(w *world) { w.records, w.unread = former, nil })
	p.Until(`document.querySelectorAll(".card").length === 4 && document.querySelector("#banner").textContent === ""`)
	down.Store(true)
	cut()
	p.Shows("The connection to Switchboard is lost.")
	record := handoff.Record{ID: "h8", Server: "bigpc", Prompt: "While you were away.", State: handoff.StatusStarted}
	feed.Publish(handoff.PageEvent{Kind: handoff.PageHandoff, Handoff: "h8", Record: &record})
	down.Store(false)
	p.Shows("While you were away.")
	p.Until(`!document.querySelector("#banner").textContent`)
	w.change(func(w *world) { w.records = w.records[:1] })
	s.streams.mu.Lock()
	s.streams.life = "restarted"
	s.streams.mu.Unlock()
	cut()
	p.Until(`document.querySelectorAll(".card").length === 1`)
}
