package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions"
)

// workedYesterday puts a piece of work into the history, with what was done.
func workedYesterday(w *world) {
	now := time.Now()
	at := time.Date(now.Year(), now.Month(), now.Day()-1, 12, 0, 0, 0, time.Local) // all of it on one day, whatever the time is now
	w.desk.past = ledger.HistoryPage{Entries: []ledger.Entry{{
		Key: "k1", Accepted: at, Ended: at.Add(time.Minute),
		Facts: ledger.Facts{Target: handoff.Target{Server: "bigpc", Thread: "t-auth"}, Title: "auth refactor", Prompt: "Run the tests.", Outcome: handoff.OutcomeResult, Tests: handoff.TestsUnknown, Spoken: "All 42 tests pass."},
	}, {
		Key: "k2", Accepted: at.Add(-time.Minute), Ended: at,
		Facts: ledger.Facts{Target: handoff.Target{Server: "laptop"}, Title: "uploads", Prompt: "Run them here too.", Asker: "codex-mcp-client", Outcome: handoff.OutcomeResult, Tests: handoff.TestsFailed, Spoken: "One test fails."},
	}, {
		Key: "k3", Accepted: at.Add(-2 * time.Minute), Ended: at,
		Facts: ledger.Facts{Target: handoff.Target{Server: "laptop"}, Title: "uploads", Prompt: "Then push.", Outcome: handoff.OutcomeCancelled, Code: handoff.CodePaused, Spoken: handoff.Fault(handoff.CodePaused, "laptop", "").Spoken()},
	}}}
	w.desk.did = []handoff.RecordItem{
		{ID: "c", Kind: handoff.ItemCommand, Text: "go test ./...", Output: "```\nok 42", Exit: new(0), State: "done"},
		{ID: "e", Kind: handoff.ItemFileChange, Text: "a.go", State: "done", Changes: []handoff.FileChange{{Path: "a.go", Kind: "update", Added: 1, Removed: 1, Diff: "@@ -1 +1 @@\n-var a\n+const b\n"}}},
	}
}

// hears waits until the history has so many lines, and holds that the last one is what was said.
func (w *world) hears(t *testing.T, n int, last ...string) {
	t.Helper()
	var said []sessions.Said
	waitFor(t, func() bool {
		w.change(func(w *world) { said = w.desk.said })
		return len(said) >= n
	})
	if len(said) != n || len(last) > 0 && said[n-1].Text != last[0] {
		t.Errorf("said: %+v, want %d lines, the last %q", said, n, last)
	}
}

// What is said and heard becomes history, which is found by words, saved, turned off and deleted.
func TestPageHistory(t *testing.T) {
	t.Parallel()
	w, p := openCall(t, true)
	w.change(workedYesterday)
	p.types("Good morning")
	p.Until(`far.types() === "session.update conversation.item.create response.create"`)
	eval[bool](p, `(far.say({ type: "response.output_text.done", item_id: "a1", text: "Good morning to you." }), true)`)
	w.logged(t, "said owner")
	w.hears(t, 2)
	p.Click("History")
	p.Until(`document.querySelectorAll("#history .past-line").length === 2 && document.querySelectorAll("#history .day").length === 2`)
	for _, text := range []string{"Good morning to you.", "auth refactor", "Run the tests.", "Done"} {
		p.Shows(text)
	}
	// What is saved is what is found.
	eval[bool](p, `(window.saved = [], URL.createObjectURL = (blob) => { blob.text().then((t) => saved.push(t)); return "blob:none"; }, HTMLAnchorElement.prototype.click = function () { saved.push(this.download); }, true)`)
	p.Click("Save as Markdown")
	p.Until(`saved.length === 2`)
	for _, want := range []string{"**You**", ": Good morning", "> **bigpc** · auth refactor", "> Done: All 42 tests pass.", ", asked by codex): the whole prompt", "the whole answer", "````\n$ go test ./...\n```\nok 42\n````", "```diff\na.go\n@@ -1 +1 @@\n-var a\n+const b\n```"} {
		if text := eval[string](p, `saved.join("\n")`); !strings.Contains(text, want) {
			t.Errorf("the Markdown lacks %q: %s", want, text)
		}
	}
	p.Click("Save as JSON")
	p.Until(`saved.length === 4 && JSON.parse(saved.find((s) => s.startsWith("["))).find((s) => s.work?.items)?.work.items[1].changes[0].diff.includes("const b")`)
	p.Do(chromedp.Focus(chromedp.ID("history-search")))
	p.Press("t", "o", " ", "y", "o", "u")
	w.logged(t, "conversation owner to you")
	p.Until(`document.querySelectorAll("#history .past-line").length === 1`)
	// Turned off, nothing more is told.
	eval[bool](p, `(document.querySelector("#history input[type=checkbox]").click(), true)`)
	eval[bool](p, `(far.say({ type: "response.output_text.done", item_id: "a2", text: "A secret." }), true)`)
	p.Until(`document.querySelector("#transcript").textContent.includes("A secret.")`)
	eval[bool](p, `(document.querySelector("#history input[type=checkbox]").click(), far.say({ type: "response.output_text.done", item_id: "a3", text: "No secret." }), true)`)
	w.hears(t, 3, "No secret.")
	p.Click("Delete conversation…")
	p.Until(`document.querySelector("#confirm").open && document.activeElement.textContent === "Cancel"`)
	p.Press("\x1b")
	p.Until(`!document.querySelector("#confirm").open`)
	if strings.Contains(strings.Join(w.log(), ";"), "drop owner") {
		t.Error("it was deleted though nobody agreed")
	}
	p.Click("Delete conversation…")
	p.Click("Delete it")
	w.logged(t, "drop owner")
	w.mu.Lock()
	if n := len(w.desk.said); n != 0 {
		t.Errorf("%d lines are left", n)
	}
	w.mu.Unlock()
	p.quiet()
}

// TestPageHistoryShowsWhatWasDone: an entry opens with the steps, the output and the diffs of the work, at every size.
func TestPageHistoryShowsWhatWasDone(t *testing.T) {
	t.Parallel()
	w := newWorld()
	workedYesterday(w)
	added := w.desk.past.Entries[0]
	added.Key, added.Accepted = "k4", added.Accepted.Add(-3*time.Minute)
	added.Facts.Why, added.Facts.Prompt = handoff.WhyAdded, "Also the docs."
	w.desk.past.Entries = append(w.desk.past.Entries, added)
	w.desk.did[0].Output = strings.Repeat("=== RUN TestOne ", 20) + "\nok 42" // wider than any of it
	p := loggedIn(t, w, 1280, 800, nil)
	p.Click("History")
	p.Until(`document.querySelectorAll("#history .past-work").length === 4`)
	const tones = `[...document.querySelectorAll(".past-work .pill")].map((p) => p.dataset.tone).join(" ")`
	if got := eval[string](p, tones); got != "plain warn flat plain" {
		t.Errorf("where it is not known how the tests ended, and where they failed: %q", got)
	}
	p.Shows("Tests fail")
	p.Until(`document.querySelectorAll(".past-work .pill")[3].textContent === "Added"`) // to other work: it is none of its own
	eval[bool](p, `(document.querySelector(".past-work summary").click(), true)`)
	p.Shows("tests pass · 1 file edited, +1 −1 · 700 tokens")
	p.Until(tones + ` === "good warn flat plain"`) // what it ran tells
	p.Click("What it did (2)")
	for _, text := range []string{"the whole answer", "go test ./...", "ok 42", "+const b"} {
		p.Shows(text)
	}
	eval[bool](p, `(document.querySelectorAll(".past-work > summary")[2].click(), true)`)
	p.Until(`((text) => text.includes("it was not begun") && !text.includes("paused"))(document.querySelectorAll(".past-work")[2].textContent)`)
	p.Until(`document.querySelector("#history .tok-key")`)
	p.axe("history")
	for i, size := range []struct{ width, height int64 }{{390, 844}, {844, 390}, {1024, 700}, {1440, 900}} {
		p.Scheme([]string{"light", "dark"}[i%2])
		p.Size(size.width, size.height)
		p.look(fmt.Sprint("history-", size.width))
		lines := eval[string](p, `["", ".button"].map((which) => new Set([...document.querySelectorAll("#history .tools > *" + which)].map((e) => e.getBoundingClientRect().top)).size).join()`)
		if want := map[bool]string{true: "2,1", false: "1,1"}[size.width == 390]; lines != want {
			t.Errorf("%d wide, the tools and their buttons stand in %s lines, want %s", size.width, lines, want)
		}
	}
	p.quiet()
}

// TestHistoryOfAllowedServers: a key for some servers sees only the history of work on those.
func TestHistoryOfAllowedServers(t *testing.T) {
	for name, row := range map[string]struct {
		key  Key
		want int
	}{
		"may use all": {Key{}, http.StatusOK}, "may not use another": {Key{Barred: []string{"attic"}}, http.StatusOK},
		"may use it alone": {Key{Servers: []string{"bigpc"}}, http.StatusOK},
		"may not use it":   {Key{Barred: []string{"bigpc"}}, http.StatusNotFound},
		"may use another":  {Key{Servers: []string{"laptop"}}, http.StatusNotFound},
	} {
		row.key.Principal, row.key.Sum = "me", NewKey("", ownerKey).Sum
		s := newServer(t, newWorld(), func(cfg *Config) { cfg.Keys = []Key{row.key} })
		if rec := ask(s, "GET", "/fleet/history/k1", "", nil); rec.Code != row.want {
			t.Errorf("who %s: %d %s", name, rec.Code, rec.Body)
		}
	}
}

func TestHistoryRoutes(t *testing.T) {
	w := newWorld()
	w.desk.past = ledger.HistoryPage{Next: "1-k", Entries: []ledger.Entry{{Key: "k1", Facts: ledger.Facts{Target: handoff.Target{Server: "bigpc"}, Prompt: "p", Outcome: handoff.OutcomeResult, Tests: handoff.TestsFailed}}}}
	s := newServer(t, w, nil)
	for _, row := range []struct{ method, path, body, answer string }{
		{"GET", "/fleet/history?search=x&before=9-k", "", `"id":"k1","server":"bigpc","prompt":"p","outcome":"result","tests":"failed"`},
		{"GET", "/fleet/history/k1", "", `{"prompt":"the whole prompt","text":"the whole answer","usage":{`},
		{"GET", "/fleet/history/none", "", "not_found"},
		{"POST", "/fleet/conversation", `{"lines":[{"id":"a","who":"you","text":"hi","at":"2020-01-02T03:04:05Z"}]}`, ""},
		{"GET", "/fleet/conversation", "", `"who":"you","text":"hi"`},
		{"POST", "/fleet/conversation", `{"lines":[{"id":"a","who":"system","text":"hi"}]}`, "malformed"},
		{"POST", "/fleet/conversation", `{"lines":[` + strings.Repeat(`{"id":"a","who":"you","text":"hi"},`, 100) + `{"id":"a"}]}`, "too_large"},
		{"GET", "/help", "", `"name":"1-using","title":"Using it"`},
		{"GET", "/help/2-trouble", "", `{"tag":"h2","in":[{"text":"What it costs"}]}`},
		{"GET", "/help/none", "", "not_found"},
	} {
		if rec := ask(s, row.method, row.path, row.body, nil); !strings.Contains(rec.Body.String(), row.answer) || row.answer == "" && rec.Code != http.StatusNoContent {
			t.Errorf("%s %s: %d %s", row.method, row.path, rec.Code, rec.Body)
		}
	}
	if l := w.desk.said[0]; time.Since(l.At) > time.Hour {
		t.Errorf("a wrong clock counts: %v", l.At)
	}
}

// TestHistoryHasWhatNobodyHeard: work is history once it has ended, told or not; pages go on from one kind to the
// other.
func TestHistoryHasWhatNobodyHeard(t *testing.T) {
	w := newWorld()
	at := time.Now()
	for _, id := range []string{"u3", "u2", "u1"} {
		w.records = append(w.records, handoff.Record{ID: id, Server: "bigpc", Prompt: "build " + id, State: handoff.StatusCompleted, Outcome: handoff.OutcomeFailed, CreatedAt: at, EndedAt: new(at)})
	}
	w.records = append(w.records,
		handoff.Record{ID: "told", Server: "bigpc", Prompt: "build", State: handoff.StatusDelivered, Outcome: handoff.OutcomeResult},
		handoff.Record{ID: "runs", Server: "bigpc", Prompt: "build", State: handoff.StatusStarted},
		handoff.Record{ID: "paused", Server: "bigpc", Prompt: "build", State: handoff.StatusCompleted, Paused: true})
	w.desk.past = ledger.HistoryPage{Entries: []ledger.Entry{{Key: "k1", Facts: ledger.Facts{Target: handoff.Target{Server: "bigpc"}, Prompt: "p"}}}}
	s := newServer(t, w, nil)
	page := func(query string) (ids, next string) {
		t.Helper()
		var got struct {
			Items []struct{ ID string }
			Next  string
		}
		rec := ask(s, "GET", "/fleet/history?"+query, "", nil)
		if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil || rec.Code != http.StatusOK {
			t.Fatalf("%s: %d %s %v", query, rec.Code, rec.Body, err)
		}
		for _, item := range got.Items {
			ids += item.ID + " "
		}
		return ids, got.Next
	}
	for _, row := range []struct{ query, ids, next string }{
		{"", "u3 u2 u1 k1 ", ""}, {"limit=2", "u3 u2 ", "untold:u2"}, {"limit=2&before=untold:u2", "u1 k1 ", ""},
		{"limit=3", "u3 u2 u1 ", "untold:u1"}, {"limit=3&before=untold:u1", "k1 ", ""}, {"before=untold:heard", "k1 ", ""},
		{"before=9-k", "k1 ", ""}, {"search=U2+buil", "u2 k1 ", ""},
	} {
		if ids, next := page(row.query); ids != row.ids || next != row.next {
			t.Errorf("%s: %q and then %q", row.query, ids, next)
		}
	}
	if rec := ask(s, "GET", "/fleet/history/u2", "", nil); !strings.Contains(rec.Body.String(), `"prompt":"build u2"`) {
		t.Errorf("one of them: %d %s", rec.Code, rec.Body)
	}
	if rec := ask(s, "GET", "/fleet/history/runs", "", nil); rec.Code != http.StatusNotFound {
		t.Errorf("work that runs: %d %s", rec.Code, rec.Body)
	}
}

// Help is shown as elements, and nothing of it is markup.
func TestPageHelp(t *testing.T) {
	t.Parallel()
	w := newWorld()
	p := loggedIn(t, w, 1280, 800, nil)
	p.Click("Help")
	p.Shows("Questions of agents come first")
	p.Scheme("light")
	p.look("help")
	arrived := `document.querySelector(".help-text h3").textContent + ": " + document.activeElement.textContent`
	p.Hit(`[...document.querySelectorAll(".help-text a")].find((e) => e.textContent === "a better one")`)
	p.Until(arrived + ` === "How it works: Which languages does it understand?"`)
	p.Click("Where does the sound go?")
	p.Until(arrived + ` === "How it works: Where does the sound go?" && document.querySelector("#help .scroll").scrollTop > 1000`)
	p.Click("When something does not work")
	p.Shows("UDP does not get through")
	p.Size(390, 844)
	for i := range eval[int](p, `document.querySelectorAll(".help-names button").length`) {
		eval[bool](p, fmt.Sprintf(`(document.querySelector("#help .scroll").scrollTo(0, 1e6), document.querySelectorAll(".help-names button")[%d].click(), true)`, i))
		p.Until(fmt.Sprintf(`document.querySelector(".help-text h3").textContent === document.querySelectorAll(".help-names button")[%d].textContent && document.querySelector("#help .scroll").scrollTop === 0`, i))
		p.look(fmt.Sprint("help-", i))
	}
	p.quiet()
}
