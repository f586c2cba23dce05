package web

import (
	"slices"
	"strings"
	"testing"

	"switchboard/handoff"
)

// The palette leads anywhere: to work, machines, sessions and commands, by a few letters. So do addresses, also in a
// new window; [TestPagePiece] holds those of work.
func TestPagePalette(t *testing.T) {
	t.Parallel()
	w := newScene()
	p := loggedIn(t, w, 1280, 800, nil)
	open := func(words string) {
		t.Helper()
		eval[bool](p, `document.dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true, bubbles: true }))`)
		p.Until(`document.querySelector("#palette").open && document.activeElement.id === "palette-field"`)
		p.Press(words)
		p.Until(`document.querySelectorAll("#palette-list li").length > 0`)
	}
	open("run the tests")
	p.Until(`document.querySelectorAll("#palette-list li").length === 1`)
	p.Scheme("light")
	p.look("palette")
	p.axe("palette")
	p.Press("\r")
	p.Until(`document.activeElement.id === "piece-title" && location.hash === "#work/h3"`)
	open("machine mini")
	p.Press("\r")
	p.Until(`document.activeElement === document.querySelector("#machine-mini").closest(".machine")`)
	open("rate limits")
	p.Press("\r")
	p.Shows("Show earlier lines (31 or more)")
	p.Press("\x1b")
	open("settings")
	p.Press("\r")
	p.Until(`document.body.dataset.area === "settings"`)
	p.open(p.base() + "/?again#sessions/bigpc/t-auth")
	p.Until(`document.querySelector("#reader").open`)
	p.Shows("One test fails: a token that has expired")
	p.Press("\x1b")
	p.Until(`location.hash === "#sessions"`)
	p.open(p.base() + "/?again#work/gone")
	p.Shows("That work is no longer listed.")
	p.quiet()
}

// Where typed words go is chosen beside the box and stays chosen, also over a reload; they go straight there, past the
// voice.
func TestPageChoosesWhereWordsGo(t *testing.T) {
	t.Parallel()
	w, p := openCall(t, true)
	w.change(func(w *world) {
		w.stickies[0].Title = strings.Repeat("a very long title ", 9)
		w.servers[1].Worktrees, w.servers[1].Projects, w.servers[2].Worktrees = true, []string{"api"}, true
	})
	w.feed("owner").Publish(handoff.PageEvent{Kind: handoff.PageSticky})
	p.Until(`[...document.querySelectorAll("#say-to option")].map((o) => o.textContent).join("; ") ===
	  "the voice; bigpc, in a very long title a very long title a very long…; bigpc, in a new session; laptop, in release notes; laptop, in a new session; laptop/api, in a worktree; mini, in a new session; mini, in a worktree"`)
	choose := func(value string) {
		eval[bool](p, `((e) => { e.value = "`+value+`"; e.dispatchEvent(new Event("change")); return true; })(document.querySelector("#say-to"))`)
	}
	choose("bigpc")
	p.Size(360, 740)
	p.look("composer-long")
	p.Size(1280, 800)
	choose("new laptop")
	p.types("run the tests")
	w.logged(t, "laptop new run the tests")
	p.Shows("given to laptop")
	p.types("and then the others")
	w.logged(t, "laptop new and then the others")
	// What its machine does not take is not Switchboard's absence; what Switchboard does not take now goes in a moment.
	w.failing(handoff.Fault(handoff.CodeUnreachable, "laptop", ""))
	eval[bool](p, `((box, to) => {
	  box.value = "nobody is there";
	  box.form.requestSubmit();
	  box.value = "typed on";
	  to.focus();
	  return true;
	})(document.querySelector("#say"), document.querySelector("#say-to"))`)
	p.Shows("Your words were not sent; they are back in the text box. laptop is not answering.")
	w.failing(handoff.Fault(handoff.CodeStoreDown, "the disk is full", ""))
	p.Until(`document.querySelector("#say").value === "nobody is there\ntyped on" && document.activeElement.id === "say-to"`)
	eval[bool](p, `(document.querySelector("#say").value = "", true)`)
	choose("bigpc")
	p.types("in a moment")
	p.Shows("in a moment given to bigpc Not sent yet. Send now Edit")
	w.failing(nil)
	p.Until(`![...document.querySelectorAll(".line-fate")].some((e) => e.checkVisibility())`)
	tries := slices.DeleteFunc(w.log(), func(line string) bool { return !strings.HasSuffix(line, "in a moment") })
	if len(tries) < 2 || len(slices.Compact(tries)) != 1 || !strings.Contains(tries[0], "item_") {
		t.Errorf("it was given as %q, want one key", tries)
	}
	choose("tree laptop/api")
	p.Picture("composer-worktree")
	p.types("beside it")
	w.logged(t, "laptop/api in a worktree new beside it")
	choose("new laptop")
	p.open(strings.Split(eval[string](p, "location.href"), "#")[0] + "?again")
	p.Until(`document.querySelector("#say-to").value === "new laptop" && document.querySelector("#say").placeholder === "Straight to laptop"`)
	if eval[bool](p, `[...document.querySelectorAll(".line-mark")].some((e) => e.textContent === "given to laptop")`) != true {
		t.Error("where the words went is not kept")
	}
	p.Quiet("503")
}

// Words that are typed while Switchboard is gone wait, also before the page says that it is: those that go straight to
// a machine, and those on the line of a call that does not know it yet.
func TestPageHoldsWordsAtOnce(t *testing.T) {
	t.Parallel()
	w := newScene()
	o := newOutage(t)
	_, base := serveBehind(t, w, nil, o.behind)
	p := openTab(t, startChromium(t, true), 1280, 800)
	p.loggedIn(base)
	eval[bool](p, otherSide)
	p.Click("Call")
	p.Until(`far.channel?.readyState === "open"`)
	eval[bool](p, `((real) => { window.setTimeout = (f, ms, ...rest) => real(f, ms === 1500 ? 60_000 : ms, ...rest); return true; })(window.setTimeout)`) // the page does not say it yet
	o.begin()
	p.Until(`reached("store.js").then(({ get }) => get().away && get().feed === "live")`)
	p.types("Run the tests on bigpc.")
	choose := func(value string) {
		eval[bool](p, `((e) => { e.value = "`+value+`"; e.dispatchEvent(new Event("change")); return true; })(document.querySelector("#say-to"))`)
	}
	choose("new laptop")
	p.types("run them here")
	p.Until(`document.querySelectorAll(".line.you").length === 2`)
	if n := eval[int](p, said); n != 0 {
		t.Error("it is written on a line to nobody")
	}
	o.end()
	p.Until(said + ` === 1`)
	w.logged(t, "laptop new run them here")
	p.Until(`![...document.querySelectorAll(".line-fate")].some((e) => e.checkVisibility())`)
	if n := strings.Count(strings.Join(w.log(), ";"), "laptop new run them here"); n != 1 {
		t.Errorf("it was given %d times", n)
	}
}

// Two windows of a browser show the same, and one of them alone holds a stream; when it goes, the other takes over.
// What is said in a call is seen live in the other, which tells nothing of it.
func TestPageShowsACallElsewhere(t *testing.T) {
	t.Parallel()
	w, p := openCall(t, true)
	feed := w.feed("owner")
	waitFor(t, func() bool { return feed.listening() == 1 })
	eval[bool](p, `(window.other = window.open(location.href), true)`)
	p.Until(`other.document.querySelectorAll(".card").length === 4`)
	rename := func(title string) {
		record := w.records[0]
		record.Title, record.Items = title, nil
		feed.Publish(handoff.PageEvent{Kind: handoff.PageHandoff, Handoff: record.ID, Record: &record})
	}
	rename("renamed once")
	p.Shows("renamed once")
	p.Until(`other.document.body.textContent.includes("renamed once")`) // it may be too low to show all of the page
	waitFor(t, func() bool { return feed.listening() == 1 })            // a second one would stay
	p.types("Hello there.")
	p.Until(`far.channel?.readyState === "open" && far.events.length > 1`)
	eval[bool](p, `(far.say({ type: "conversation.item.added", item: far.events.find((e) => e.item).item }), far.say({ type: "response.output_text.done", item_id: "a1", text: "Good day." }), true)`)
	p.Until(`[...other.document.querySelectorAll(".line-text")].map((e) => e.textContent).join(" ") === "Hello there. Good day."`)
	p.Until(`other.document.querySelector("#status-text").textContent === "Not in a call"`)
	w.hears(t, 2)
	eval[bool](p, `(other.close(), true)`) // whichever held it
	p.Until(`other.closed`)
	rename("renamed twice")
	p.Shows("renamed twice")
	waitFor(t, func() bool { return feed.listening() == 1 })
	p.quiet()
}

// Sound that could not be understood is one line of the status, and none of the conversation. A machine of the demo
// that is down alarms nobody before somebody wanted it. A phone call takes the microphone and leaves its track muted
// for good: the page says so, and takes a new one.
func TestPageStaysCalm(t *testing.T) {
	t.Parallel()
	w, p := openCall(t, true)
	eval[bool](p, `((real) => { window.setTimeout = (f, ms, ...rest) => real(f, ms === 1500 && window.mic ? 50 : ms, ...rest); return true; })(window.setTimeout)`)
	p.Click("Call")
	p.Until(`far.channel?.readyState === "open" && far.tracks === 1`)
	eval[bool](p, `([{ type: "conversation.item.added", item: { id: "u1", type: "message", role: "user", content: [{ type: "input_audio" }] } },
	  { type: "conversation.item.input_audio_transcription.failed", item_id: "u1" }].forEach(far.say), true)`)
	p.Until(`document.querySelector("#status-detail").textContent === "That could not be understood; say it again."`)
	if eval[bool](p, `Boolean(document.querySelector(".line.you"))`) {
		t.Error("it left a bubble")
	}
	p.Until(`document.querySelector("#mute").textContent === "Mute"`)
	eval[bool](p, `((track) => {
	  window.taken = track;
	  Object.defineProperty(track, "muted", { get: () => true });
	  Object.defineProperty(document, "hidden", { configurable: true, get: () => true }); // the phone call has the screen
	  track.dispatchEvent(new Event("mute"));
	  return true;
	})(mic.getAudioTracks()[0])`)
	p.Shows("The device took the microphone; trying to have it back.")
	if eval[bool](p, `mic.getAudioTracks()[0] !== taken`) {
		t.Error("a new one is asked for during the phone call")
	}
	eval[bool](p, `(delete document.hidden, document.dispatchEvent(new Event("visibilitychange")), true)`)
	p.Until(`mic.getAudioTracks()[0] !== taken && taken.readyState === "ended" && document.querySelector("#mute").textContent === "Mute"`)
	p.Until(`!document.querySelector("#status-detail").textContent.includes("microphone; trying")`)
	w.change(func(w *world) {
		for i, r := range w.records {
			if r.Server == "mini" {
				w.records[i].Server = "laptop"
			}
		}
		w.records[len(w.records)-1].Outcome = handoff.OutcomeResult
	})
	p.open(p.base() + "/?again")
	p.Until(`document.querySelectorAll(".card").length === 4 && document.querySelector("#needs").hidden`)
}

// base is where the page is.
func (p *tab) base() string { return eval[string](p, `location.origin`) }
