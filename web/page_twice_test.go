package web

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"switchboard/handoff"
)

// hazard is a question of high risk with much to read, at bigpc.
func hazard(w *world) handoff.RecordQuestion {
	q := w.questions[0]
	q.ID, q.Handoff, q.Server, q.Command, q.Risk = "qh", "h1", "bigpc", "terraform apply -auto-approve", "high"
	q.Reason = strings.Repeat("The plan has changes that were reviewed. ", 12) + "The old database is removed."
	q.Decisions = []handoff.Decision{handoff.DecisionAccept, handoff.DecisionDecline, handoff.DecisionStop}
	return q
}

// TestPageHighRiskTakesTwoActs: a press, a key or Enter alone never allows what is of high risk; the word or a long
// press does. Allow is not the green one, the keyboard comes to the question and not to Allow, and all that is told of
// the risk is there to read.
func TestPageHighRiskTakesTwoActs(t *testing.T) {
	t.Parallel()
	w := newScene()
	second := hazard(w)
	second.ID, second.Asked = "qh2", second.Asked.Add(time.Second)
	w.questions = []handoff.RecordQuestion{hazard(w), second}
	p := loggedIn(t, w, 390, 844, sceneOfSeveral)
	p.Until(`document.querySelector(".question:not(.settling)")`)
	p.Press("n")
	p.Until(`document.activeElement.matches(".question") && document.activeElement.closest("#needs")`)
	if cut := eval[bool](p, `((r) => r.scrollHeight > r.clientHeight || getComputedStyle(r).overflow !== "visible" || !r.textContent.includes("database is removed."))(document.querySelector(".question-risk"))`); cut {
		t.Error("what is told of the risk is cut")
	}
	const green = `getComputedStyle(document.querySelector(".call-button")).backgroundColor`
	if eval[bool](p, green+` === getComputedStyle(document.querySelector("[data-decision=accept]")).backgroundColor`) {
		t.Error("Allow is the green one")
	}
	p.Until(`document.querySelector(".question:not(.settling)")`)
	p.Press("a", "\r")
	p.Until(`document.activeElement.matches(".second-word")`)
	p.Press("y", "e", "s", "\r")
	p.Until(`document.activeElement.matches(".second-word") && document.querySelector(".second-act button").getAttribute("aria-disabled") === "true"`)
	eval[bool](p, `(document.querySelector(".second-word").value = "", document.querySelector("[data-decision=accept]").click(), true)`)
	if got := w.decided(); len(got) > 0 {
		t.Fatalf("it was answered: %q", got)
	}
	p.Press(append(strings.Split("Terraform", ""), "\r")...)
	w.logged(t, "decide owner qh accept")
	// The next one is allowed by a long press, and not by a short one.
	p.Until(`document.querySelectorAll(".question").length === 1 && document.querySelector(".question:not(.settling)")`)
	at := eval[[]float64](p, `((r) => [r.left + r.width / 2, r.top + r.height / 2])(document.querySelector("[data-decision=accept]").getBoundingClientRect())`)
	mouse := func(typ input.DispatchMouseEventType) {
		p.Do(chromedp.MouseEvent(typ, at[0], at[1], chromedp.ButtonType(input.MouseButtonLeft), chromedp.ClickCount(1)))
	}
	mouse(input.DispatchMouseEventTypeMousePressed)
	p.Until(`document.querySelector(".holding")`)
	mouse(input.DispatchMouseEventTypeMouseReleased)
	p.Until(`!document.querySelector(".holding") && document.querySelector(".second-act").checkVisibility()`)
	if got := w.decided(); len(got) > 1 {
		t.Fatalf("a short press answered: %q", got)
	}
	p.Until(`document.querySelector(".question:not(.settling)")`)
	mouse(input.DispatchMouseEventTypeMousePressed)
	w.logged(t, "decide owner qh2 accept")
	mouse(input.DispatchMouseEventTypeMouseReleased)
	p.quiet()
}

// TestPageAnswersInTheConversation: on a phone, a question is answered where the person talks; it moves nothing there,
// and the next one follows.
func TestPageAnswersInTheConversation(t *testing.T) {
	t.Parallel()
	w := newScene()
	second := w.questions[0]
	second.ID, second.Command, second.Asked = "q2", "git tag v2.4", second.Asked.Add(time.Second)
	w.questions = append(w.questions, second)
	p := loggedIn(t, w, 390, 844, sceneOfSeveral)
	p.talk(sceneTalk)
	p.Until(`document.body.dataset.area === "talk" && document.querySelector("#attention .question:not(.settling)")`)
	p.look("asked-in-talk")
	p.Click("Allow once")
	w.logged(t, "decide owner q1 accept")
	p.Until(`document.querySelectorAll(".question").length === 1 && document.querySelector(".question:not(.settling)").checkVisibility()`)
	p.Click("Decline")
	w.logged(t, "decide owner q2 decline")
	p.Until(`!document.querySelector(".question") && document.body.dataset.area === "talk"`)
	p.quiet()
}
