package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"switchboard/handoff"
)

// report is an answer with all that answers have, and some of what they should not have.
const report = "## Migration report\n\nI moved the **checkout flow** to the new API; see https://example.com/pull/482.\n\n" +
	"| Package | Before |\n|:--|--:|\n| `shop/cart` | 412 ms |\n\n- [x] tests\n- [ ] docs\n\n> as it was\n\n" +
	"```go\nfunc a() string { return \"x\" }\n```\n\n![a chart](https://example.com/chart.png) [bad](javascript:alert(1))\n\n" +
	`<button class="button primary" id="say" data-decision="accept" onclick="document.title='owned'">Allow once</button>` + "\n\n<img src=x onerror=\"document.title='owned'\">\n"

// TestPageShowsAnswersAsTheyAreMeant: in work and in sessions, with nothing that an agent could pass off as the page's
// own. What is saved of them is still Markdown; a picture in it is a link, and HTML is text.
func TestPageShowsAnswersAsTheyAreMeant(t *testing.T) {
	t.Parallel()
	w := newScene()
	w.records[2].Text = report
	w.transcr.Lines = append(w.transcr.Lines, handoff.Line{Role: "agent", Text: report})
	p := loggedIn(t, w, 1280, 900, sceneOfSeveral)
	held := func(in string) {
		t.Helper()
		p.Until(`document.querySelector(` + in + ` + " table td[data-align=right]")`)
		p.Until(`(document.querySelector(` + in + ` + " pre.block").scrollIntoView(), document.querySelector(` + in + ` + " .tok-key")?.textContent === "func")`)
		got := eval[string](p, `(() => { const e = document.querySelector(`+in+`); return [
		  e.querySelector(".rich-head").textContent, e.querySelector("strong").textContent, [...e.querySelectorAll("a")].map((a) => a.href + " " + a.rel + " " + a.target).join(),
		  [...e.querySelectorAll(".rich-task")].map((x) => x.getAttribute("aria-label")).join(), e.querySelector("blockquote").textContent,
		  e.querySelectorAll("img, button, input, form, [id], [style], [onclick]").length, e.textContent.includes("<button class="), document.title === "owned"].join("|"); })()`)
		const want = "Migration report|checkout flow|https://example.com/pull/482 noopener noreferrer _blank,https://example.com/chart.png noopener noreferrer _blank|done,open|as it was|0|true|false"
		if got != want {
			t.Errorf("in %s\ngot  %s\nwant %s", in, got, want)
		}
	}
	p.openLine("h3")
	held(`"#card-h3 .answer-text"`)
	p.axe("an answer")
	eval[bool](p, `reached("store.js").then(() => { location.hash = "#sessions/bigpc/t-auth"; return true; })`)
	p.Until(`document.querySelector("#reader[open] .rich")`)
	held(`"#reader-lines .read:last-child .rich"`)
	p.Press("\x1b")
	for _, row := range [][2]string{
		{"plain *as* it is", "plain *as* it is"},
		{"a ![chart](https://example.com/c.png) b", "a [Picture: chart](<https://example.com/c.png>) b"},
		{"<img src=x> **b** `<i>`", `\<img src=x> **b** ` + "`<i>`"},
		{"# H <\n\n1. a\n   - b\n\n> q\n\n| a | b |\n|---|--:|\n| x | `y` |\n\n```go\nf()\n```", "# H \\<\n\n1. a\n\n   - b\n\n> q\n\n| a | b |\n|---|--:|\n| x | `y` |\n\n```go\nf()\n```"},
		{"\\`![x](https://example.com/a)\\`", "\\`[Picture: x](<https://example.com/a>)\\`"},
	} {
		text, err := json.Marshal(row[0])
		must(t, err)
		if got := eval[string](p, `reached("rich-markdown.js").then((m) => m.harmless(`+string(text)+`))`); got != row[1] {
			t.Errorf("%q is saved as %q, want %q", row[0], got, row[1])
		}
	}
	p.quiet()
}

// TestRender: what is asked for is bounded, and answered in its order.
func TestRender(t *testing.T) {
	s := newServer(t, newWorld(), nil)
	for _, row := range []struct {
		body, want string
		status     int
	}{
		{`{"texts":["**a**","b"]}`, `{"items":[[{"tag":"p","in":[{"tag":"strong","in":[{"text":"a"}]}]}],[{"tag":"p","in":[{"text":"b"}]}]]}`, http.StatusOK},
		{`{"texts":[]}`, `{"items":[]}`, http.StatusOK},
		{`{"texts":[` + strings.Repeat(`"",`, maxRenders) + `""]}`, `at most 100 texts`, http.StatusRequestEntityTooLarge},
		{`{"texts":["` + strings.Repeat("x", maxRender) + `"]}`, `at most`, http.StatusRequestEntityTooLarge},
	} {
		rec := ask(s, "POST", "/fleet/render", row.body, nil)
		if rec.Code != row.status || !strings.Contains(rec.Body.String(), row.want) {
			t.Errorf("%.40s: %d %.300s", row.body, rec.Code, rec.Body)
		}
	}
}
