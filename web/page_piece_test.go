package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"switchboard/handoff"
)

// TestPagePiece: a line opens the page of its work, under its own address: the answer first, then what it changed and
// did. The way back leads to where one was in the list, and the address to the page again.
func TestPagePiece(t *testing.T) {
	t.Parallel()
	w := newWorld()
	busyDay(w, 5, 30)
	at := 20
	for w.records[at].Outcome != handoff.OutcomeResult { // what failed may be a try of another piece
		at++
	}
	w.records[at].Text, w.records[at].Items = report, []handoff.RecordItem{{ID: "c", Kind: handoff.ItemCommand, Text: "make", State: "done"}}
	id := w.records[at].ID
	_, base := serve(t, w, withVoice)
	browser := startChromium(t, true)
	for _, size := range [][2]int64{{1440, 900}, {390, 844}} {
		t.Run(fmt.Sprint(size[0]), func(t *testing.T) {
			p := openTab(t, browser, size[0], size[1])
			p.loggedIn(base)
			eval[bool](p, `(document.querySelector("[data-go=work]").click(), `+frames+`)`)
			row := cardOf(id) + `.querySelector(".line-open")`
			p.Until(cardOf(id))
			top := eval[float64](p, `(`+cardOf(id)+`.scrollIntoView({ block: "center" }), document.querySelector("#work .scroll").scrollTop)`)
			eval[bool](p, `(`+row+`.focus(), true)`)
			p.Press("\r")
			p.Until(`location.hash === "#work/` + id + `" && document.activeElement.id === "piece-title" && document.querySelector("#piece .answer table")`)
			p.look(fmt.Sprint("piece-", size[0]))
			if size[0] == 390 {
				p.axe("the page of a piece")
			}
			order := `[...document.querySelectorAll("#piece .answer, #piece .piece-part:not([hidden])")].map((e) => e.getAttribute("aria-label") ?? "Answer").join()`
			if got := eval[string](p, order); got != "Answer,Log" {
				t.Errorf("it shows %s", got)
			}
			for _, back := range []string{`document.querySelector(".piece-back").click()`, `history.back()`} {
				eval[bool](p, `(`+back+`, true)`)
				p.Until(`document.activeElement === ` + row)
				if now := eval[float64](p, `document.querySelector("#work .scroll").scrollTop`); top == 0 || now != top {
					t.Errorf("%s: the list is at %v, was at %v", back, now, top)
				}
				eval[bool](p, `(`+row+`.click(), true)`)
				p.Until(`document.querySelector("#piece .answer table")?.checkVisibility()`)
			}
			p.open(base + "/?again#work/" + id)
			p.Until(`document.querySelector("#piece .answer table")?.checkVisibility()`)
			p.Click("Work")
			p.Until(`document.body.dataset.area === "work"`)
			p.quiet()
		})
	}
}

// TestPagePieceTakesWords: what is typed on the page of a piece goes straight to it while it runs, and to its session
// once it has ended; its questions are answered there. What is typed for one piece waits there while another is seen.
func TestPagePieceTakesWords(t *testing.T) {
	t.Parallel()
	w := newScene()
	p := loggedIn(t, w, 390, 844, sceneOfSeveral)
	feed := func(id, button string) {
		t.Helper()
		eval[bool](p, `(location.hash = "#work/`+id+`", true)`)
		p.Until(`document.querySelector("#piece-asks")?.dataset.of === "` + id + `"`)
		eval[bool](p, `(document.querySelector("#piece-say").value = "and \"the\" docs", true)`)
		p.Click(button)
		p.Until(`document.querySelector("#piece-say").value === ""`)
	}
	feed("h1", "Send")
	w.logged(t, `h1 and "the" docs`)
	feed("h1", "After it")
	feed("h3", "Send")
	given := 0
	for _, line := range w.log() {
		if strings.HasPrefix(line, "give ") || strings.HasPrefix(line, "start ") {
			given++
			if !strings.Contains(line, "t-auth") || !strings.Contains(line, `and "the" docs`) {
				t.Errorf("it was given as %q", line)
			}
		}
	}
	if given != 2 {
		t.Errorf("given %d times: %q", given, w.log())
	}
	eval[bool](p, `(document.querySelector("#piece-say").value = "half a sen", location.hash = "#work/h2", true)`)
	p.Until(`document.querySelector("#piece-asks .question:not(.settling, .elsewhere)") && document.querySelector("#piece-say").value === ""`)
	p.Click("Decline")
	w.logged(t, "decide owner q1 decline")
	eval[bool](p, `(location.hash = "#work/h3", true)`)
	p.Until(`document.querySelector("#piece-say").value === "half a sen"`)
	// What is typed on while the words are on their way is a draft of its own, also if another piece is shown by then.
	eval[bool](p, `((field, real) => {
	  window.fetch = (path, options) => real(path, options).then((answer) => path === "/fleet/handoffs" ? new Promise((to) => { window.arrives = () => to(answer); }) : answer);
	  field.value = "all of it";
	  field.form.requestSubmit();
	  [field.value, location.hash] = ["and more", "#work/h2"];
	  return true;
	})(document.querySelector("#piece-say"), window.fetch)`)
	p.Until(`window.arrives && document.querySelector("#piece-say").value === ""`)
	eval[bool](p, `(arrives(), true)`)
	p.Shows("“all of it”")
	eval[bool](p, `(location.hash = "#work/h3", true)`)
	p.Until(`document.querySelector("#piece-say").value === "and more"`)
	p.quiet()
}

// TestPagePieceLog: a long log is found by words, nothing of it is a control sequence, and what is not there is marked:
// steps that are gone, and a step that was cut, of which the rest is brought when it is wanted.
func TestPagePieceLog(t *testing.T) {
	t.Parallel()
	w := newScene()
	w.records[0].LeftOut = 17
	w.records[0].Items[4].Output = strings.Repeat(strings.Repeat("o", 99)+"\n", maxItems/200) // too much for one answer
	w.records[0].Items = append(w.records[0].Items, handoff.RecordItem{ID: "i9", Kind: handoff.ItemCommand, Text: "git status", State: "done", Output: strings.Repeat("x", maxItems/2+maxItems/4)})
	p := loggedIn(t, w, 1280, 800, sceneOfSeveral)
	eval[bool](p, `(location.hash = "#work/h1", true)`)
	p.Until(`document.querySelector("#piece .log .left-out")?.textContent === "17 earlier steps are no longer kept."`)
	p.Until(`[...document.querySelectorAll("#piece .step")].some((s) => s.textContent.includes("go test ./auth/...") && s.textContent.includes("A part of this is left out here."))`)
	const cut = `[...document.querySelectorAll("#piece .step")].find((s) => s.textContent.includes("go test ./auth/..."))`
	eval[bool](p, `(`+cut+`.querySelector(".left-out button").click(), true)`)
	p.Until(fmt.Sprintf(`%s.querySelector(".output").textContent.length === %d`, cut, 100*(maxItems/200)))
	eval[bool](p, `((f) => { f.value = "STATUS"; f.dispatchEvent(new Event("input")); return true; })(document.querySelector("#piece .log input"))`)
	p.Until(`document.querySelectorAll("#piece .log .step").length === 1 && document.querySelector("#piece .log [role=status]").textContent === "1 of 6"`)
	p.quiet()
}

func TestWorkItem(t *testing.T) {
	w := newScene()
	s := newServer(t, w, nil)
	for path, want := range map[string]struct {
		status int
		body   string
	}{
		"/fleet/handoffs/h1/items/review%20r1": {http.StatusOK, `"kind":"review"`}, "/fleet/handoffs/h1/items/none": {http.StatusNotFound, "step with this id"},
		"/fleet/handoffs/none/items/i1": {http.StatusNotFound, "work with this id"},
	} {
		if rec := ask(s, "GET", path, "", nil); rec.Code != want.status || !strings.Contains(rec.Body.String(), want.body) {
			t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
		}
	}
}
