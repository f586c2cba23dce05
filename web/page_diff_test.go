package web

import (
	"strings"
	"testing"

	"switchboard/handoff"
)

// The words of a language stand out in a diff, and its text stays what the agent told. What is of no language that is
// known, or very long, stays plain.
func TestPageHighlightsDiffs(t *testing.T) {
	t.Parallel()
	w := newScene()
	edit := func(id, path, diff string) handoff.RecordItem {
		return handoff.RecordItem{ID: id, Kind: handoff.ItemFileChange, Text: path, State: "done", Changes: []handoff.FileChange{{Path: path, Kind: "update", Added: 1, Diff: diff}}}
	}
	const goDiff = "@@ -1,4 +1,4 @@\n package web\n-/* one\n+// <b>two</b>\n-end */ func a() {}\n+func b() string { return \"x\" }\n \n\\ No newline at end of file\n@@ -9 +9 @@ func c() {\n+const d = 1\n"
	w.records[0].Items = []handoff.RecordItem{
		edit("i1", "web/a.go", goDiff), edit("i2", "notes.unknown", "@@ -1 +1 @@\n+func a() {}\n"), edit("i3", "long.go", "@@ -1 +1 @@\n+"+strings.Repeat("func ", 300)+"\n"),
	}
	_, base := serve(t, w, nil)
	p := openTab(t, startChromium(t, true), 1280, 1100)
	p.Scheme("light")
	p.open(base)
	p.Until(`document.querySelector("#login:not([hidden])")`)
	if eval[bool](p, `performance.getEntriesByType("resource").some((r) => r.name.endsWith("/prism.js"))`) {
		t.Error("the languages are loaded before there is a diff")
	}
	p.loggedIn(base)
	const diff = `[...document.querySelectorAll("#card-h1 .diff")]`
	p.Until(diff + `.length === 3`)
	for _, i := range []string{"1", "2"} { // plain ones are looked at first, so that they had their chance
		eval[bool](p, `(`+diff+`[`+i+`].scrollIntoView(), true)`)
	}
	eval[bool](p, `(`+diff+`[0].scrollIntoView({ block: "center" }), true)`)
	p.Until(diff + `[0].querySelector(".tok-key")`)
	const parts = diff + `[0].querySelectorAll("span[class^=tok]")`
	got := eval[string](p, `[...`+parts+`].map((s) => s.className.slice(4) + " " + s.textContent).join("; ")`)
	if want := "key package; com /* one; com // <b>two</b>; com end */; key func; name a; key func; name b; key string; key return; str \"x\"; key const; num 1"; got != want {
		t.Errorf("the parts are %s", got)
	}
	if got := eval[string](p, `[...`+diff+`[0].children].map((l) => l.textContent + "\n").join("")`); got != goDiff {
		t.Errorf("the text became %q", got)
	}
	if n := eval[int](p, `[...document.querySelectorAll("#card-h1 .diff")].slice(1).reduce((n, d) => n + d.querySelectorAll("span").length, 0)`); n != 0 {
		t.Errorf("%d parts of what stays plain", n)
	}
	for _, scheme := range []string{"light", "dark"} {
		p.Scheme(scheme)
		p.look("diff-" + scheme)
	}
	p.quiet()
}
