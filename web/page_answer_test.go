package web

import (
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
)

// inWords is a question that is answered in words.
func inWords(id handoff.QuestionID, asks ...handoff.Ask) handoff.RecordQuestion {
	q := handoff.RecordQuestion{
		ID: id, Label: string(id), Handoff: "h1", Server: "bigpc", Title: "auth refactor", Kind: handoff.QuestionInput, Words: true, Asks: asks, Voice: true,
		Decisions: []handoff.Decision{handoff.DecisionDecline, handoff.DecisionStop}, Asked: time.Now(),
	}
	for _, a := range asks {
		q.Text += a.Text + " (" + strings.Join(a.Options, ", ") + ")\n"
		q.Voice = q.Voice && !a.Secret
	}
	return q
}

// worded returns a reply as it came.
func worded(r handoff.Reply) string {
	if r.Answers != nil {
		return handoff.Encode(r.Answers)
	}
	return r.Words
}

// replies are the answers in words that reached the world.
func (w *world) replies() (out []string) {
	for _, line := range w.log() {
		if rest, ok := strings.CutPrefix(line, "reply owner "); ok {
			out = append(out, rest)
		}
	}
	return out
}

// TestPageAnswersInWords answers with the keyboard alone: one thing in words, and one that is offered.
func TestPageAnswersInWords(t *testing.T) {
	t.Parallel()
	w := newScene()
	w.questions = []handoff.RecordQuestion{inWords("q5", handoff.Ask{Text: "Which branch?", Options: []string{"main", "release/2.4"}})}
	answer := make(chan error)
	p := loggedIn(t, w, 390, 844, nil)
	eval[bool](p, `(document.querySelector("[data-go=work]").click(), true)`)
	p.Until(`document.querySelector(".question:not(.settling) .answer-field")`)
	for _, want := range []string{"group: bigpc asks you something", "textbox: Which branch?", "group: Answers it offers", "button: main", "button: release/2.4", "button: Send", "button: Decline"} {
		if lines := p.Tree(); !slices.Contains(lines, want) {
			t.Errorf("the tree has no %q: %q", want, lines)
		}
	}
	p.Shows("…or say it in a call.")
	if text := eval[string](p, `document.querySelector(".question").innerText`); strings.Count(text, "Which branch?") != 1 {
		t.Errorf("it is asked twice: %q", text)
	}
	eval[bool](p, `(document.querySelector(".answer-field").focus(), true)`)
	p.Press("\r") // nothing is nothing
	w.change(func(w *world) { w.onDecide = func() error { return <-answer } })
	p.Press("d", "e", "v", "\r", "\r")
	p.Shows("Sending your answer…")
	answer <- handoff.Fault(handoff.CodeOverloaded, "bigpc", "")
	p.Shows("bigpc has too much to do right now.")
	p.Until(`!document.querySelector(".question [aria-disabled]")`)
	if left := eval[string](p, `document.querySelector(".answer-field").value`); strings.TrimSpace(left) != "dev" { // the driver types a line end after the key that sends
		t.Errorf("what was typed is %q", left)
	}
	p.TabTo("release/2.4")
	p.Press("\r") // what is offered fills the field, and Send sends it
	p.Until(`document.activeElement.textContent === "Send" && document.querySelector(".answer-field").value === "release/2.4"`)
	p.Until(`document.querySelector(".answer-offers [aria-pressed=true]").textContent === "release/2.4"`)
	p.Press("\r")
	answer <- handoff.Fault(handoff.CodeNotPending, "", "")
	p.Shows("That question is no longer open.")
	p.Until(`!document.querySelector(".question") && document.activeElement.id === "work-title"`)
	if got := w.replies(); !slices.Equal(got, []string{`q5 [["dev"]]`, `q5 [["release/2.4"]]`}) {
		t.Errorf("replies: %q", got)
	}
}

// TestPageAnswersForm answers several things at once, a secret among them, which is hidden on the screen, and fills a
// form: several of what is offered, one where nothing else counts, and one that is left
// out. A page that is to be opened is a link, and the answer says that it was.
func TestPageAnswersForm(t *testing.T) {
	t.Parallel()
	w := newScene()
	form := inWords("q10", handoff.Ask{Text: "Which checks?", Options: []string{"lint", "tests", "e2e"}, Only: true, Many: true},
		handoff.Ask{Text: "Where?", Options: []string{"here", "in the sandbox"}, Only: true}, handoff.Ask{Text: "Why?", Optional: true})
	form.Text = "Before it goes on:"
	link := w.questions[0]
	link.ID, link.Kind, link.Command, link.Risk, link.Text, link.URL = "q11", handoff.QuestionElicitation, "", "high", "Log in at the tracker.", "https://tracker.example/login?x=1"
	link.Asked = form.Asked.Add(time.Second)
	secret := inWords("q6", handoff.Ask{Text: "Which host?", Options: []string{"staging"}}, handoff.Ask{Text: "Its password?", Secret: true})
	secret.Asked = form.Asked.Add(-time.Second)
	w.questions = []handoff.RecordQuestion{secret, form, link}
	p := loggedIn(t, w, 390, 844, nil)
	eval[bool](p, `(document.querySelector("[data-go=work]").click(), true)`)
	p.Until(`document.querySelector(".question:not(.settling) .answer-field")`)
	p.axe("a form")
	p.Shows("Type it here only; a secret is never said aloud.")
	p.TabTo("staging")
	p.Press("\r", "\r") // it fills the field; the secret is missing
	p.Until(`document.activeElement.type === "password" && document.querySelector(".answer-field").value === "staging"`)
	p.Press("h", "u", "n", "\r")
	p.Until(`document.querySelectorAll(".question").length === 2 && document.querySelector(".question:not(.settling)")`)
	p.Shows("Before it goes on:")
	for _, press := range []string{"lint", "tests", "tests", "e2e"} {
		p.Click(press)
	}
	p.Click("Send") // where is missing
	p.Until(`document.activeElement.textContent === "here"`)
	p.Click("here")
	p.Click("in the sandbox")
	p.Until(`document.querySelectorAll(".answer-offers [aria-pressed=true]").length === 3`)
	p.Click("Send")
	p.Until(`document.querySelectorAll(".question").length === 1`)
	if got := w.replies(); !slices.Equal(got, []string{`q6 [["staging"],["hun"]]`, `q10 [["lint","e2e"],["in the sandbox"],[]]`}) {
		t.Errorf("replies: %q", got)
	}
	p.Until(`document.querySelector(".question:not(.settling) .question-link a[target=_blank][rel~=noopener]").href === "https://tracker.example/login?x=1"`)
	p.Shows("Open tracker.example")
	p.Click("I opened it")
	p.Until(`!document.querySelector(".question")`)
	p.quiet()
}

// TestPageTellsOfQuestions: the title of a question says what it is, and its command stands without the shell that an
// agent wraps around it, with nothing hidden. It says how risky a yes is, when it is given up, and how it is answered.
func TestPageTellsOfQuestions(t *testing.T) {
	t.Parallel()
	w := newScene()
	risky := w.questions[0]
	plain, other := risky, risky
	risky.Command, risky.Risk, risky.GivesUp = "/bin/bash -lc 'git push origin main'", "medium", time.Now().Add(25*time.Minute+20*time.Second)
	plain.ID, plain.Voice, plain.Command = "q7", true, `bash -lc "echo $(rm -rf ~)"`
	other.ID, other.Kind, other.Decisions, other.Command = "q8", handoff.QuestionOther, nil, "rm -rf \u202e/cod\u202c #\u200b safe\n\nls"
	offer := other
	offer.ID, offer.Kind, offer.Voice, offer.Command, offer.Reason = "q9", handoff.QuestionCopy, true, "", "It is open in another program on that machine."
	offer.Decisions = []handoff.Decision{handoff.DecisionAccept, handoff.DecisionDecline}
	w.questions = []handoff.RecordQuestion{risky, plain, other, offer}
	p := loggedIn(t, w, 1280, 800, nil)
	p.Until(`document.querySelectorAll(".question").length === 4`)
	got := eval[[]string](p, `[...document.querySelectorAll(".question")].map((q) => [q.querySelector("h3"), q.querySelector("pre"), q.querySelector(".question-voice")].map((e) => e?.textContent).join("|"))`)
	want := []string{
		"laptop asks to run git push|git push origin main|Tap only; a yes by voice does not count.",
		`laptop asks to run a command|bash -lc "echo $(rm -rf ~)"|…or say yes or no in a call.`,
		"laptop asks you something|rm -rf ⟨U+202E⟩/cod⟨U+202C⟩ #⟨U+200B⟩ safe\n\nls|It can be answered on the machine itself only.",
		"Go on in a copy on laptop?||…or say yes or no in a call.",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	for _, text := range []string{
		"The session release notes", "It is open in another program", "Make a copy", "No copy",
		"Medium risk: it builds, edits, fetches or pushes, as is usual.", "Declined in 25 minutes if nobody answers.",
	} {
		p.Shows(text)
	}
	if marks := eval[[]string](p, `[...new Set([...document.querySelectorAll(".pill")].map((e) => e.textContent + " " + getComputedStyle(e, "::before").content.split(" / ")[0]))].sort()`); strings.Join(marks, ";") != `Failed "!";Needs you "?";Offline "!";Tests fail "✗";Working "●"` {
		t.Errorf("words and marks: %q", marks)
	}
}

// TestPageTellsWhereWorkWent: what waits its turn, was added to running work, or was done with others.
func TestPageTellsWhereWorkWent(t *testing.T) {
	t.Parallel()
	w := newScene()
	w.records = nil
	for i, c := range []handoff.Record{
		{State: handoff.StatusAccepted, Waits: "ours"}, {State: handoff.StatusDispatching, Waits: "theirs", Why: "continued"},
		{State: handoff.StatusDelivered, Outcome: handoff.OutcomeResult, Why: "added", Into: "e"}, {State: handoff.StatusStarted, Why: "merged"}, {State: handoff.StatusStarted, Why: "copy"},
	} {
		c.ID, c.Server, c.ThreadID, c.Prompt, c.CreatedAt = string(rune('a'+i)), "bigpc", "t", "go on", time.Now().Add(-time.Duration(i)*time.Minute)
		if c.Outcome != "" {
			c.EndedAt = new(c.CreatedAt)
		}
		w.records = append(w.records, c)
	}
	p := loggedIn(t, w, 1280, 800, nil)
	p.Until(`document.querySelectorAll(".card").length === 4`)
	eval[bool](p, `(document.querySelectorAll('.line-peek[aria-expanded="false"]').forEach((b) => b.click()), `+frames+`)`)
	got := eval[[]string](p, `[...document.querySelectorAll(".card")].map((e) => e.querySelector(".pill").textContent + ": " + e.querySelector(".card-meta").textContent.split(" · ")[0])`)
	want := []string{ // what waits stands below what it waits for, in its turn
		"Working: done together with somebody else's work there", "Waiting: comes after somebody else's work there", "Waiting: comes after your other work there",
		"Working: a copy of the session you named",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	p.Until(cardOf("e") + `.querySelector(".added").textContent.startsWith("Added: “go on” heard")`)
}
