package web

import (
	"slices"
	"strings"
	"testing"

	"switchboard/handoff"
)

// The page reads what work did when a card shows it: at once where work runs, else when it is opened. An answer
// that the list cuts is there whole on demand.
func TestPageReadsWhatWorkDid(t *testing.T) {
	t.Parallel()
	w := newScene()
	tail := "and that is the end of it."
	w.records[2].Text = strings.Repeat("word ", maxListText) + tail
	feed := w.feed("owner")
	p := loggedIn(t, w, 1280, 800, nil)
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
	card := `[...document.querySelectorAll(".card")].find((c) => c.textContent.includes("Run the tests."))`
	if eval[bool](p, `document.body.innerText.includes("`+tail+`")`) {
		t.Error("the list has the whole answer")
	}
	p.openLine("h3")
	p.Until(card + `.querySelector("summary").textContent === "What it did (1)"`)
	p.Click("Show all of it")
	p.Shows(tail)
	p.Until(card + `.querySelector(".card-body > .button").hidden`)
	p.Click("What it did (1)")
	p.Shows("token_test.go:88: expired token accepted")
	item := handoff.RecordItem{ID: "i4", Kind: handoff.ItemCommand, Text: "go vet ./...", State: "running"}
	feed.Publish(handoff.PageEvent{Kind: handoff.PageItem, Handoff: "h1", Item: &item})
	p.Shows("go vet ./...")
	if got := read(); !slices.Equal(got, []string{"h1", "h2", "h3"}) {
		t.Errorf("read %q, want each once", got)
	}
	p.quiet()
}
