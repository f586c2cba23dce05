package web

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestPageIsAccessible(t *testing.T) {
	t.Parallel()
	_, p := openCall(t, true)
	p.Click("Call")
	p.Until(`far.channel?.readyState === "open"`)
	eval[bool](p, `(`+sceneTalk+`.forEach(far.say), true)`)
	p.Status("Speaking")
	p.Click("Recent sessions")
	p.Shows("Find out why")
	lines := p.Tree()
	for _, want := range []string{
		"banner: ", "main: ", "heading: Switchboard", "heading: Conversation", "heading: Work", "heading: Machines",
		"region: Conversation", "region: Call", "region: Work", "region: Machines", "log: Transcript", "group: Call controls", "group: Things to say",
		"textbox: Message", "button: Send", "button: Mute", "button: Stop talking", "button: Hang up", "button: Sound", "button: Simulated",
		"button: Stop all work (2)", "button: Stop the work", "button: Recent sessions", "button: Unpin rate limits on bigpc/api",
		"article: bigpc", "button: bigpc Fix the failing token test.", "region: bigpc", "status: ", "alert: ",
	} {
		if !slices.ContainsFunc(lines, func(l string) bool { return l == want || strings.HasSuffix(want, ": ") && strings.HasPrefix(l, want) }) {
			t.Errorf("the tree has no %q", want)
		}
	}
	for _, line := range lines {
		role, name, _ := strings.Cut(line, ": ")
		if slices.Contains([]string{"button", "textbox", "link", "checkbox", "radio", "combobox", "heading", "article", "dialog"}, role) && strings.TrimSpace(name) == "" {
			t.Errorf("a %s has no name", role)
		}
	}
	if t.Failed() {
		t.Logf("tree:\n%s", strings.Join(lines, "\n"))
	}
	if doubled := eval[[]string](p, `(() => { const seen = new Set(), twice = []; for (const e of document.querySelectorAll("[id]")) seen.has(e.id) ? twice.push(e.id) : seen.add(e.id); return twice; })()`); len(doubled) > 0 {
		t.Errorf("ids used twice: %q", doubled)
	}
	if dangling := eval[[]string](p, `[...document.querySelectorAll("[aria-labelledby], [aria-describedby], [aria-controls], [for]")].flatMap((e) => ["aria-labelledby", "aria-describedby", "aria-controls", "for"].map((a) => e.getAttribute(a))).filter((id) => id && !document.getElementById(id))`); len(dangling) > 0 {
		t.Errorf("names that point nowhere: %q", dangling)
	}
}

// Every control is reached by Tab, once around, and shows where the focus is.
func TestPageByKeyboardAlone(t *testing.T) {
	t.Parallel()
	w := newScene()
	p := loggedIn(t, w, 1280, 800, withVoice)
	p.Until(`document.querySelector(".question:not(.settling)")`)
	var seen []string
	for range 60 {
		p.Press("\t")
		name := eval[string](p, `((e) => e === document.body ? "" : (e.getAttribute("aria-label") || e.textContent || e.id).trim())(document.activeElement)`)
		if name == "" {
			break
		}
		if !eval[bool](p, `((s) => s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2)(getComputedStyle(document.activeElement))`) {
			t.Errorf("%q does not show the focus", name)
		}
		seen = append(seen, name)
	}
	want := []string{"Simulated", "Transcript", "Fix it.Lands in the same session", "say", "Send", "Call", "Sound", "Stop all work (2)", "Allow once", "Allow for this session", "Decline", "Stop the work", "Recent sessions"}
	at := 0
	for _, name := range seen {
		if at < len(want) && name == want[at] {
			at++
		}
	}
	if at < len(want) {
		t.Errorf("Tab does not reach %q in its order: %s", want[at], fmt.Sprintf("%q", seen))
	}
}
