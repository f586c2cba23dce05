package web

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"

	"switchboard/handoff"
)

// cardOf is an expression for the card of a piece of work.
func cardOf(id string) string { return `document.querySelector("#card-` + id + `")` }

// openLine opens finished work.
func (p *tab) openLine(id string) {
	p.T.Helper()
	p.Until(cardOf(id) + `?.querySelector(".line-open").checkVisibility()`)
	eval[bool](p, `(`+cardOf(id)+`.querySelector(".line-peek").click(), true)`)
	p.Until(cardOf(id) + `.querySelector(".card-body").checkVisibility()`)
}

// pressIn presses a button of a card.
func (p *tab) pressIn(id, name string) {
	p.T.Helper()
	found := `[...` + cardOf(id) + `.querySelectorAll("button")].find((b) => b.textContent.trim() === "` + name + `" && b.checkVisibility())`
	p.Until(found)
	eval[bool](p, `(`+found+`.click(), true)`)
}

// What an agent edited stands as its own diff, and finished work says what came of it: failed tests are not green. What
// work did is read when a card shows it: at once where it runs, else when it is opened. An answer that the list cuts is
// there whole on demand. Words that were added to running work are a line of its card, and no finished work.
func TestPageTellsWhatWorkDid(t *testing.T) {
	t.Parallel()
	w := newScene()
	tail := "and that is the end of it."
	w.records[2].Text = strings.Repeat("word ", maxListText) + tail
	feed := w.feed("owner")
	p := loggedIn(t, w, 1280, 900, nil)
	p.Until(cardOf("h1") + `?.querySelector(".diff")`)
	const diff = `[...document.querySelectorAll("#card-h1 .ln")].map((l) => l.className.slice(3) + "|" + l.textContent.trim()).join("; ")`
	want := "hunk|@@ -86,5 +86,6 @@ func (t Token) Expired(now time.Time) bool {; |skew := 30 * time.Second; del|-\treturn now.Add(-skew).After(t.Expires); " +
		"add|+\t// The boundary counts: a token is over once its last second is.; add|+\treturn !now.Add(-skew).Before(t.Expires); |}"
	if got := eval[string](p, diff); got != want {
		t.Errorf("the diff reads %s", got)
	}
	if got := eval[string](p, cardOf("h1")+`.querySelector(".file-head").textContent`); got != "auth/token.go+2 −1" {
		t.Errorf("the file reads %q", got)
	}
	p.Until(cardOf("h3") + `.querySelector(".pill").textContent === "Tests fail" && ` + cardOf("h3") + `.querySelector(".pill").dataset.tone === "warn"`)
	p.Shows("--- PASS: TestTokenExpiry")
	p.Shows("I need your permission to push.")
	read := func() (ids []string) {
		for _, line := range w.log() {
			if id, ok := strings.CutPrefix(line, "handoff owner "); ok {
				ids = append(ids, id)
			}
		}
		slices.Sort(ids)
		return ids
	}
	if got := read(); !slices.Equal(got, []string{"h1", "h2"}) {
		t.Errorf("read %q, want what runs", got)
	}
	if eval[bool](p, `document.body.innerText.includes("`+tail+`")`) {
		t.Error("the list has the whole answer")
	}
	p.openLine("h3")
	for _, text := range []string{"tests fail", "12k tokens"} {
		p.Until(cardOf("h3") + `.querySelector(".card-meta").textContent.includes("` + text + `")`)
	}
	p.Until(cardOf("h1") + `.querySelector(".card-meta").textContent.includes("1 file edited, +2 −1")`)
	p.Until(cardOf("h3") + `.querySelector("summary").textContent === "What it did (1)"`)
	p.Click("Show all of it")
	p.Shows(tail)
	p.Until(cardOf("h3") + `.querySelector(".card-body > .button").hidden`)
	p.Click("What it did (1)")
	p.Shows("token_test.go:88: expired token accepted")
	item := handoff.RecordItem{ID: "i4", Kind: handoff.ItemCommand, Text: "go vet ./...", State: "running"}
	feed.Publish(handoff.PageEvent{Kind: handoff.PageItem, Handoff: "h1", Item: &item})
	p.Shows("go vet ./...")
	if got := read(); !slices.Equal(got, []string{"h1", "h2", "h3"}) {
		t.Errorf("read %q, want each once", got)
	}
	p.Until(cardOf("h3") + `.querySelector(".answers li")?.textContent.match(/^Allowed by voice at .*: go test \.\/\.\.\.$/)`)
	cards := eval[int](p, `document.querySelectorAll(".card").length`)
	added := handoff.Record{ID: "a1", Server: "bigpc", ThreadID: "t-auth", Title: "auth refactor", Why: handoff.WhyAdded, Prompt: "And compare with last week.", State: handoff.StatusStarted, CreatedAt: time.Now()}
	feed.Publish(handoff.PageEvent{Kind: handoff.PageHandoff, Handoff: "a1", Record: &added})
	p.Until(cardOf("h1") + `.querySelector(".added").textContent === "Added: “And compare with last week.” on its way"`)
	added.State, added.Outcome, added.EndedAt = handoff.StatusDelivered, handoff.OutcomeResult, new(time.Now())
	feed.Publish(handoff.PageEvent{Kind: handoff.PageHandoff, Handoff: "a1", Record: &added})
	p.Until(cardOf("h1") + `.querySelector(".added").textContent === "Added: “And compare with last week.” heard just now"`)
	if eval[int](p, `document.querySelectorAll(".card").length`) != cards || eval[bool](p, `document.querySelector("#urgent").textContent.includes("Done")`) {
		t.Error("it is told as work of its own")
	}
	p.quiet()
}

// More words go into running work or behind it, as the person chose, and that is read back. What waits behind work that
// is stopped is left to the router. Ended work is done again in its session: once, if the answer to that was lost and
// it is pressed again. Words that work took and never heard stand in its card, and are given once more when the person
// says so.
func TestPageGivesMoreToWork(t *testing.T) {
	t.Parallel()
	w := newScene()
	evil := "And <b>the linter</b>, " + strings.Repeat("and once more, ", maxListPrompt/8) + "to the end." // a list cuts it
	r := &w.records[2]
	r.Project, r.Outcome, r.Undelivered = "api", handoff.OutcomeInterrupted, []string{"Also run the fuzz tests.", evil}
	behind := w.records[0]
	behind.ID, behind.Prompt, behind.Waits, behind.State, behind.Items = "h5", "Then the linter.", "ours", handoff.StatusAccepted, nil
	w.records = append(w.records, behind)
	p := loggedIn(t, w, 390, 844, nil)
	eval[bool](p, `(document.querySelector("[data-go=work]").click(), true)`)
	for button, said := range map[string]string{"Add to it": "Added to the running work on bigpc: “x”", "Queue next": "Queued on bigpc, after the current work: “x”"} {
		p.pressIn("h1", button)
		p.Until(`document.activeElement.id === "more-h1"`)
		p.Press("x", "\r")
		p.Shows(said)
		p.Until(`!document.querySelector("#more-h1").checkVisibility()`)
	}
	if eval[bool](p, `[...`+cardOf("h5")+`.querySelectorAll("button")].some((b) => b.textContent === "Add to it" && b.checkVisibility())`) {
		t.Error("words are offered to go into work that waits")
	}
	p.openLine("h3")
	const unheard = `#card-h3").querySelectorAll(".unheard `
	p.Until(`[...document.querySelector("` + unheard + `p")].map((l) => l.textContent).join("; ") === "Not heard: “Also run the fuzz tests.”; Not heard: “` + handoff.Clip(evil, maxListPrompt) + `”"`)
	eval[bool](p, `(document.querySelector("`+unheard+`button")[1].click(), document.querySelector("`+unheard+`button")[1].click(), true)`)
	p.Shows("Given to bigpc: “And <b>the linter</b>")
	p.Until(`!document.querySelector("` + unheard + `[aria-disabled]").length`)
	var given []string
	for _, line := range w.log() {
		if strings.HasSuffix(line, evil) {
			given = append(given, line)
		}
	}
	if len(given) != 1 || !strings.Contains(given[0], "bigpc/api t-auth ") {
		t.Errorf("gave %q, want the second words once, whole", given)
	}
	if eval[bool](p, cardOf("h1")+`.querySelector(".unheard").checkVisibility()`) {
		t.Error("a card without such words has a place for them")
	}
	eval[bool](p, loseAnswer)
	p.pressIn("h3", "Do it again")
	p.Shows("Switchboard is not answering.")
	p.pressIn("h3", "Do it again")
	p.Shows("Given to bigpc again.")
	var again []string
	for _, line := range w.log() {
		if strings.HasSuffix(line, "t-auth Run the tests.") {
			again = append(again, line)
		}
	}
	if len(again) != 2 || again[0] != again[1] {
		t.Errorf("pressed again it was given as %q", again)
	}
	eval[bool](p, `((real) => { window.setTimeout = (f, ms, ...rest) => ms === 15_000 ? (window.stopIsLong = f, 0) : real(f, ms, ...rest); return true; })(window.setTimeout)`)
	p.pressIn("h1", "Stop")
	p.Until(cardOf("h1") + `.querySelector(".pill").textContent === "Stopping…"`)
	w.logged(t, "stop owner h1")          // the card says so at once, before the service has heard
	eval[bool](p, `(stopIsLong(), true)`) // it may not have arrived: it can be pressed again
	p.Until(cardOf("h1") + `.querySelector(".pill").textContent !== "Stopping…" && !` + cardOf("h1") + `.querySelector(".line-stop").ariaDisabled`)
	var did []string
	for _, line := range w.log() {
		if verb, _, _ := strings.Cut(line, " "); slices.Contains([]string{"start", "steer", "stop"}, verb) {
			did = append(did, line)
		}
	}
	for _, want := range []string{" x", "t-auth x", "t-auth Run the tests."} {
		if !slices.ContainsFunc(did, func(line string) bool { return strings.HasSuffix(line, want) }) {
			t.Errorf("nothing asked for %q: %q", want, did)
		}
	}
	if last := did[len(did)-1]; last != "stop owner h1" {
		t.Errorf("did %q, want one stop of what runs: what waits is paused by that", did)
	}
	p.quiet()
}

// loseAnswer loses the answer to work that the page gives, once.
const loseAnswer = `(() => {
  const real = window.fetch;
  window.fetch = async (path, options) => {
    const answer = await real(path, options);
    if (path !== "/fleet/handoffs" || options.method !== "POST") return answer;
    window.fetch = real;
    throw new TypeError("lost");
  };
  return true;
})()`

// voices stands for a browser's own voice, which a machine without a screen has not.
const voices = `(() => {
  window.spoken = [];
  const engine = { getVoices: () => [{ lang: "en-GB", localService: true }], addEventListener: () => {}, speak: (words) => spoken.push(words.text), cancel: () => spoken.push("(stop)") };
  Object.defineProperty(window, "speechSynthesis", { value: engine });
  window.SpeechSynthesisUtterance = class { constructor(text) { this.text = text; } };
})()`

// The answer of finished work is copied, whole, and read aloud as it would be said; the newest reading is the one
// heard.
func TestPageCopiesAndReadsAloud(t *testing.T) {
	t.Parallel()
	w := newScene()
	long := "One test of 48 fails.\n\n" + strings.Repeat("It is TestClockSkew, <b>as before</b>. ", maxListText/20) + "The end." // a list cuts it
	w.records[2].Text, w.records[2].Spoken = long, "One test of forty-eight fails."
	_, base := serve(t, w, nil)
	p := openTab(t, startChromium(t, true), 1280, 900)
	p.Do(atFirst(voices), allow(browser.PermissionTypeClipboardReadWrite, browser.PermissionTypeClipboardSanitizedWrite))
	p.loggedIn(base)
	p.openLine("h3")
	p.Click("Copy")
	p.Shows("Copied.")
	if got := eval[string](p, `navigator.clipboard.readText()`); got != long {
		t.Errorf("copied %d bytes of %d: %.80q", len(got), len(long), got)
	}
	for range 2 {
		p.Click("Read aloud")
	}
	if got := eval[[]string](p, `spoken`); !slices.Equal(got, []string{"(stop)", w.records[2].Spoken, "(stop)", w.records[2].Spoken}) {
		t.Errorf("read %q", got)
	}
	p.quiet()
}
