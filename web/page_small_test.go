package web

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
)

// A page that was loaded during work shows the machine ready when the work has ended, and a list of sessions that is
// open is read anew. While a pointer moves in the list no row moves: what ends stays where it is, and what comes waits
// a moment.
func TestPageLoadedDuringWork(t *testing.T) {
	t.Parallel()
	w := newScene()
	w.questions = nil
	p := loggedIn(t, w, 1280, 800, nil)
	const pill = `document.querySelector("#machine-bigpc").closest(".machine").querySelector(".pill").textContent`
	p.Until(pill + ` === "Working"`)
	p.OpenMachines()
	p.Click("Recent sessions")
	p.Shows("4 minutes ago")
	w.mu.Lock()
	w.servers[0].Working = nil
	w.sessions.Items[0].Age = "a moment ago"
	record := w.records[0]
	w.mu.Unlock()
	const order = `[...document.querySelectorAll("#cards .card")].map((c) => c.id).join()`
	p.Until(order + ` === "card-h1,card-h2"`)
	eval[bool](p, `(() => { // the first move at once: a busy machine runs timers late
		const move = () => document.querySelector("#card-h1").dispatchEvent(new PointerEvent("pointermove", { bubbles: true }));
		move();
		window.pointing = setInterval(move, 20);
		return true;
	})()`)
	ends, comes := record, w.records[1]
	ends.State, ends.Outcome, ends.EndedAt, ends.Items = handoff.StatusDelivered, handoff.OutcomeResult, new(time.Now()), nil
	w.feed("owner").Publish(handoff.PageEvent{Kind: handoff.PageHandoff, Handoff: ends.ID, Record: &ends})
	comes.ID, comes.CreatedAt, comes.Items = "h9", time.Now(), nil
	w.feed("owner").Publish(handoff.PageEvent{Kind: handoff.PageHandoff, Handoff: comes.ID, Record: &comes})
	p.Until(`document.querySelector("#card-h1 .pill").textContent === "Done"`)
	if got := eval[string](p, order); got != "card-h1,card-h2" {
		t.Errorf("under the pointer: %s", got)
	}
	p.Until(pill + ` === "Ready"`)
	p.Shows("a moment ago")
	eval[bool](p, `(clearInterval(pointing), true)`)
	p.Until(order + ` === "card-h9,card-h2"`)
	p.quiet()
}

// A text box is as high as its text and shows a scroll bar only beyond its bound; a pasted log makes no tower. A new
// window begins with what was said lately, the newest below, and tells none of it again.
func TestPageBoundsLongTexts(t *testing.T) {
	t.Parallel()
	w := newScene()
	log := strings.Repeat("2026-01-01T00:00:00Z request failed\n", 400)
	w.records[0].Prompt = log
	now := time.Now()
	w.desk.said = []sessions.Said{
		{ID: "l0", At: now.Add(-5 * time.Hour), Who: "you", Text: "Long ago."},
		{ID: "l1", At: now.Add(-2 * time.Minute), Who: "you", Text: "Run the tests."},
		{ID: "l2", At: now.Add(-time.Minute), Who: "voice", Text: "All tests pass."},
	}
	p := loggedIn(t, w, 390, 844, nil)
	p.Until(`document.querySelectorAll("#transcript .line").length === 2`)
	if got := eval[string](p, `[...document.querySelectorAll("#transcript .line")].map((l) => l.textContent).join("; ")`); !strings.Contains(got, "Run the tests.") || strings.Index(got, "All tests pass.") < strings.Index(got, "Run the tests.") {
		t.Errorf("the conversation reads %q", got)
	}
	eval[bool](p, `reached("store.js").then(({ dispatch }) => (dispatch({ type: "typed", id: "n", text: "And now?" }), dispatch({ type: "delivery", id: "n", delivery: "sent" }), true))`)
	p.Until(`document.querySelector("#transcript .line:last-child").textContent.includes("And now?")`)
	w.logged(t, "said owner 1") // what is new alone
	w.change(func(w *world) {
		if n := len(w.desk.said); n != 4 {
			t.Errorf("%d lines are kept", n)
		}
	})
	for _, lines := range []int{1, 2, 30} {
		eval[bool](p, `(document.querySelector("#say").value = "line\n".repeat(`+strconv.Itoa(lines)+`).trim(), document.querySelector("#say").dispatchEvent(new Event("input")), true)`)
		if bar := eval[bool](p, `getComputedStyle(document.querySelector("#say")).overflowY !== "hidden"`); bar != (lines == 30) {
			t.Errorf("%d lines: scrolls %v", lines, bar)
		}
		if cut := eval[bool](p, `document.querySelector("#say").scrollHeight > document.querySelector("#say").clientHeight`); cut != (lines == 30) {
			t.Errorf("%d lines: cut %v", lines, cut)
		}
	}
	p.Hit(`document.querySelector('[data-go="work"]')`)
	p.Until(`document.querySelector(".card-prompt").textContent.length > 9000`)
	if high := eval[float64](p, `document.querySelector(".card-prompt").closest(".card").getBoundingClientRect().height`); high > 900 {
		t.Errorf("the card is %v pixels high", high)
	}
	eval[bool](p, `reached("store.js").then(({ dispatch }) => (dispatch({ type: "typed", id: "x", text: "`+strings.ReplaceAll(log, "\n", `\n`)+`" }), true))`)
	const line = `[...document.querySelectorAll(".line.you")].at(-1)`
	p.Until(line + `.textContent.includes("request failed")`)
	eval[bool](p, `(document.querySelector("[data-go=talk]").click(), true)`)
	if high := eval[float64](p, line+`.getBoundingClientRect().height`); high > 600 || high < 100 {
		t.Errorf("the line is %v pixels high", high)
	}
}

// No sentence to try moves away from under a finger: a tap ticks it off where it stands.
func TestPageChipsStay(t *testing.T) {
	t.Parallel()
	w := newScene()
	p := loggedIn(t, w, 390, 844, withVoice)
	eval[bool](p, `reached("store.js").then(({ dispatch }) => (dispatch({ type: "typed", id: "x", text: "Hello" }), true))`)
	p.Until(`document.querySelector("#chips.strip")`)
	if tops := eval[int](p, `new Set([...document.querySelectorAll(".chip")].map((c) => c.getBoundingClientRect().top)).size`); tops != 1 {
		t.Errorf("the sentences stand in %d rows, above the conversation", tops)
	}
	const taps = `(([i, places]) => {
		const c = document.querySelectorAll(".chip")[i];
		const before = places();
		c.dispatchEvent(new PointerEvent("pointerdown", { bubbles: true }));
		c.focus({ focusVisible: false });
		c.click();
		return new Promise((done) => {
			const look = () => (c.classList.contains("used") ? done(places().every((x, n) => Math.abs(x - before[n]) < 8) ? "" : before.join() + ", then " + places().join()) : requestAnimationFrame(look));
			look();
		});
	})([%d, () => [...document.querySelectorAll(".chip")].map((c) => c.getBoundingClientRect().left)])`
	const nextStands = `((c, room) => c.left >= room.left && c.right <= room.right && Math.abs(c.left - room.left - parseFloat(getComputedStyle(document.querySelector("#chips")).paddingLeft)) < 2)(document.querySelector(".chip:not(.used)").getBoundingClientRect(), document.querySelector("#chips").getBoundingClientRect())`
	for i := range 2 {
		p.Until(nextStands)
		if moved := eval[string](p, fmt.Sprintf(taps, 0)); moved != "" {
			t.Errorf("the sentences moved: %s", moved)
		}
		p.Until(fmt.Sprintf(`document.querySelectorAll(".chip").length === %d`, 2-i)) // it goes for good, once no second tap is to be feared
		if i > 0 {
			break
		}
		p.Until(nextStands) // the next step comes by itself
		p.Picture("story-row")
		p.Click("Show all sentences to try")
		p.Until(`document.querySelector("#story-all").ariaExpanded === "true" && new Set([...document.querySelectorAll(".chip")].map((c) => c.getBoundingClientRect().top)).size === 2`)
		p.Picture("story-list")
		p.Click("Show less")
	}
	eval[bool](p, `(document.querySelector(".chip").click(), true)`)
	p.Until(`!document.querySelector("#story-all").checkVisibility()`) // all were tried
}

// A long story scrolls beside a conversation without a bar of its own: two side by side look broken.
func TestPageStoryHasNoBar(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.servers = []handoff.ServerInfo{{Name: "bigpc", Kind: "codex", Health: handoff.HealthUp, Simulated: true}} // the sentences are about it
	long := sceneVoice
	for i := range 9 {
		long.Chips = append(long.Chips, Chip{Text: fmt.Sprint("Sentence ", i)})
	}
	p := loggedIn(t, w, 1440, 900, func(cfg *Config) { cfg.Voice = long })
	p.talk(sceneTalk)
	p.Until(`document.querySelector("#chips.strip") && document.querySelector("#chips").scrollHeight > document.querySelector("#chips").clientHeight`)
	if bar := eval[string](p, `getComputedStyle(document.querySelector("#chips")).scrollbarWidth`); bar != "none" { // no browser without a window shows one
		t.Errorf("its bar is %s", bar)
	}
	p.TabTo("Sentence 8") // the keyboard reaches what is out of sight
	p.Until(`((c, room) => c.bottom <= room.bottom)(document.activeElement.getBoundingClientRect(), document.querySelector("#chips").getBoundingClientRect())`)
}

// Neither the beginning of a call nor its greeting, word by word, moves a sentence to try: a finger would meet another
// one, and another machine would get the work. On a phone a question that opens moves none either, in their list or in
// their row.
func TestPageNothingMovesChips(t *testing.T) {
	t.Parallel()
	w := newScene()
	question := w.questions[0]
	w.records, w.questions = nil, nil
	const tops = `[...document.querySelectorAll(".chip%s")].map((c) => Math.round(c.getBoundingClientRect().top)).join()`
	chips, withBox := fmt.Sprintf(tops, ""), fmt.Sprintf(tops, ", #say, #start")
	p := loggedIn(t, w, 1280, 940, withVoice)
	p.Until(`document.querySelector(".chip")?.checkVisibility()`)
	asked := func() {
		t.Helper()
		for i, size := range [][2]int64{{390, 844}, {844, 390}} {
			p.Size(size[0], size[1])
			before := eval[string](p, withBox)
			w.feed("owner").Publish(handoff.PageEvent{Kind: "question", Question: &question})
			p.Until(`document.querySelector("#attention").checkVisibility()`)
			p.Picture("attention-" + strconv.Itoa(i))
			if now := eval[string](p, withBox); now != before {
				t.Errorf("at %v: %s, then %s", size, before, now)
			}
			w.feed("owner").Publish(handoff.PageEvent{Kind: "closed", Closed: question.ID})
			p.Until(`!document.querySelector("#attention").checkVisibility()`)
		}
	}
	asked()
	before := map[int64]string{}
	const words = "Here the machines are simulated, and I understand a few sentences. "
	for said := ""; len(said) < 4*len(words); said += words {
		if said != "" {
			p.talk(`[{ type: "response.output_audio_transcript.delta", response_id: "r1", item_id: "v1", delta: "` + words + `" }]`)
			p.Until(`document.querySelector(".line.voice").textContent.includes("` + said + `")`)
		}
		for _, size := range [][2]int64{{1280, 940}, {390, 844}, {320, 640}, {844, 390}} {
			p.Size(size[0], size[1])
			now := eval[string](p, chips)
			if was, ok := before[size[0]]; ok && now != was {
				t.Errorf("at %v: %s, then %s", size, was, now)
			}
			before[size[0]] = now
			p.Picture(fmt.Sprintf("greeting-%d", size[0]))
		}
	}
	eval[bool](p, `reached("store.js").then(({ dispatch }) => (dispatch({ type: "typed", id: "x", text: "Hello" }), true))`)
	p.Until(`document.querySelector("#chips.strip")`)
	asked()
}

// What stands above the call does not move when the voice begins to think or to speak, or work begins.
func TestPageCallKeepsItsHeight(t *testing.T) {
	t.Parallel()
	w := newScene()
	w.records, w.questions = nil, nil
	p := loggedIn(t, w, 390, 844, withVoice)
	const dispatch = `reached("store.js").then(({ dispatch }) => (%s, true))`
	eval[bool](p, fmt.Sprintf(dispatch, `dispatch({ type: "typed", id: "x", text: "Hello" }), dispatch({ type: "call", patch: { phase: "live", mic: "on" } })`))
	p.Until(`document.querySelector("#chips.strip")`)
	const top = `document.querySelector("#chips").getBoundingClientRect().top`
	sizes := [][2]int64{{1280, 900}, {320, 640}, {844, 390}, {390, 844}}
	before := map[[2]int64]float64{}
	for _, s := range []struct{ change, status string }{
		{`0`, "Listening"},
		{`dispatch({ type: "call", patch: { muted: true } })`, "Muted"},
		{`dispatch({ type: "call", patch: { muted: false } })`, "Listening"},
		{`dispatch({ type: "voice", event: { type: "response.created", response: { id: "r1" } } })`, "Thinking…"},
		{`dispatch({ type: "voice", event: { type: "output_audio_buffer.started", response_id: "r1" } })`, "Speaking"},
		{`dispatch({ type: "voice", event: { type: "output_audio_buffer.stopped", response_id: "r1" } }), dispatch({ type: "event", event: { kind: "handoff", record: { id: "h1", server: "bigpc", state: "started", created_at: new Date().toISOString(), prompt: "x" } } }), dispatch({ type: "voice", event: { type: "response.done", response: { id: "r1", output: [] } } })`, "bigpc is working"},
	} {
		eval[bool](p, fmt.Sprintf(dispatch, s.change))
		p.Status(s.status)
		for _, size := range sizes {
			p.Size(size[0], size[1])
			p.Picture(fmt.Sprintf("status-%d-%s", size[0], s.status))
			now := eval[float64](p, top)
			if was, ok := before[size]; ok && now != was {
				t.Errorf("%v, %s: the row moved by %v pixels", size, s.status, now-was)
			}
			before[size] = now
		}
	}

	// Nor does a button beside the work, where the call is one line: whoever hangs up would stop the voice instead.
	p.Click("Work")
	p.Until(`document.querySelector("#hangup").checkVisibility() && !document.querySelector("#sound").checkVisibility()`)
	const left = `document.querySelector("#hangup").getBoundingClientRect().left`
	stood := eval[float64](p, left)
	eval[bool](p, fmt.Sprintf(dispatch, `dispatch({ type: "voice", event: { type: "output_audio_buffer.started", response_id: "r2" } })`))
	p.Until(`document.querySelector("#quiet").checkVisibility()`)
	p.Picture("stop-talking-beside-work")
	if now := eval[float64](p, left); now != stood {
		t.Errorf("Hang up moved by %v pixels", now-stood)
	}
}

// On a phone in landscape everything that is needed to talk is in the picture.
func TestPageLandscapePhone(t *testing.T) {
	t.Parallel()
	w := newScene()
	p := loggedIn(t, w, 844, 390, withVoice)
	for _, text := range []string{"Press Call", "Hello there."} { // and what a newcomer is told first
		if text == "Hello there." {
			eval[bool](p, `reached("store.js").then(({ dispatch }) => (dispatch({ type: "call", patch: { phase: "live", mic: "on" } }), [{ type: "response.output_audio_transcript.delta", item_id: "a0", delta: "Hello there." }].forEach((event) => dispatch({ type: "voice", event })), true))`)
			p.Shows(text)
		}
		p.Scheme("light")
		p.Picture("landscape-first")
		p.Until(fmt.Sprintf(`((r) => r.height > 10 && r.top >= 40 && r.bottom <= document.querySelector("#chips").getBoundingClientRect().top)([...document.querySelectorAll(".hello p:not(.hello-title), .line-text")].filter((e) => e.checkVisibility() && e.textContent.includes(%q))[0]?.getBoundingClientRect() ?? {})`, text)) // in the picture
	}
	eval[bool](p, `reached("store.js").then(({ dispatch }) => (dispatch({ type: "call", patch: { phase: "idle" } }), true))`)
	p.Until(`!document.querySelector("#start").hidden`)
	const cut = `["#say", ".composer button", "#start", "#sound", "#status-text"].filter((s) => { const r = document.querySelector(s).getBoundingClientRect(); return r.height < 10 || r.top < 0 || r.bottom > innerHeight || r.right > innerWidth; }).join()`
	for _, when := range []string{"before", "in a call"} {
		if got := eval[string](p, cut); got != "" && when == "before" || strings.ReplaceAll(got, "#start", "") != "" {
			t.Errorf("%s: cut off: %s", when, got)
		}
		if high := eval[float64](p, `document.querySelector("#transcript").clientHeight + document.querySelector("#chips").clientHeight`); high < 100 {
			t.Errorf("%s: %v pixels are left for the conversation", when, high)
		}
		if wide := eval[float64](p, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
			t.Errorf("%s: %v pixels too wide", when, wide)
		}
		p.Scheme("light")
		p.Picture("landscape-" + strings.ReplaceAll(when, " ", "-"))
		if when == "before" {
			p.talk(sceneTalk)
			p.Until(`!document.querySelector("#hangup").hidden`)
		}
	}
	if high := eval[float64](p, `(document.querySelector("#status-text").textContent = "bigpc waits for you", document.querySelector("#status-text").clientHeight)`); high > 30 {
		t.Errorf("what happens in the call takes %v pixels", high)
	}
	p.Size(667, 375)
	p.Hit(`document.querySelector('[data-go="work"]')`)
	p.Until(`document.querySelector(".card").checkVisibility()`)
	p.Picture("landscape-work")
	if gap := eval[float64](p, `document.querySelector(".work .area-head").getBoundingClientRect().top - document.querySelector(".areas").getBoundingClientRect().top`); gap > 10 {
		t.Errorf("%v pixels are empty above the question", gap)
	}
}

// The conversation outlives a reload of the page, which comes back to its call; one that has ended meanwhile is told.
func TestPageKeepsTheConversation(t *testing.T) {
	t.Parallel()
	w, p := openCall(t, false)
	asked := make(chan string)
	w.mu.Lock()
	w.onCalls = func(rw http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.URL.RawQuery:
		case <-r.Context().Done():
		}
		handoff.Fault(handoff.CodeNotFound, "such call", "").Reply(rw, false)
	}
	w.mu.Unlock()
	p.types("Hello there")
	p.Until(`far.types() === "session.update conversation.item.create response.create"`)
	eval[bool](p, `([{ type: "response.output_text.done", item_id: "a1", text: "One two three four five six seven eight nine ten eleven twelve." },
	  { type: "conversation.item.truncated", item_id: "a1", audio_end_ms: 1000 }].forEach(far.say), true)`)
	p.Shows("stopped")
	if text := eval[string](p, `document.querySelector(".line.voice .line-text").innerText`); text != "One two three" {
		t.Errorf("of an interrupted answer it shows %q", text)
	}
	p.Click("Show all of it")
	p.Shows("nine ten eleven twelve.")
	p.Scheme("light")
	p.Picture("interrupted")
	p.open(eval[string](p, `location.href`))
	p.Shows("Hello there")
	p.Shows("One two three")
	p.Status("Reconnecting…")
	p.Picture("rejoining")
	if query := <-asked; query != "call_id=rtc_1&lowers=1" {
		t.Errorf("it asked for %q", query)
	}
	p.Shows("The call ended while the page was away.")
	p.Status("Not in a call")
	if strings.Contains(strings.Join(w.log(), ";"), "hangup") {
		t.Error("it hung up")
	}
	if kept := eval[bool](p, `"switchboard-talk" in sessionStorage || "switchboard-call" in sessionStorage`); kept {
		t.Error("what was recalled stays in the browser")
	}
}
