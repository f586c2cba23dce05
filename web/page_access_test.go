package web

import (
	"testing"
)

func TestPageIsAccessible(t *testing.T) {
	t.Parallel()
	_, p := openCall(t, true)
	p.Click("Call")
	p.Until(`far.channel?.readyState === "open"`)
	eval[bool](p, `(`+sceneTalk+`.forEach(far.say), true)`)
	p.Status("Speaking")
	p.OpenMachines()
	p.Click("Recent sessions")
	p.Shows("Find out why")
	p.Has(
		"banner: ", "main: ", "status: ", "alert: ", "heading: Switchboard", "heading: Conversation", "heading: Work", "heading: Machines",
		"region: Conversation", "region: Call", "region: Work", "region: Machines", "log: Transcript", "group: Call controls", "group: Things to say",
		"textbox: Message", "button: Send", "button: Mute", "button: Stop talking", "button: Hang up", "button: Sound", "button: Simulated",
		"button: Stop all (2): all work", "button: Stop: Fix the failing token test. on bigpc", "button: Recent sessions: bigpc", "button: Unpin rate limits on bigpc/api",
		"article: bigpc", "button: bigpc Fix the failing token test.", "region: bigpc",
	)
	if doubled := eval[[]string](p, `(() => { const seen = new Set(), twice = []; for (const e of document.querySelectorAll("[id]")) seen.has(e.id) ? twice.push(e.id) : seen.add(e.id); return twice; })()`); len(doubled) > 0 {
		t.Errorf("ids used twice: %q", doubled)
	}
	if twice := eval[[]string](p, `(() => { const seen = new Set(), twice = []; for (const e of document.querySelectorAll("button, summary, a[href], input, select, textarea")) { const name = (e.getAttribute("aria-label") || e.labels?.[0]?.textContent || e.textContent).trim(); if (!e.checkVisibility()) continue; if (seen.has(name)) twice.push(name); seen.add(name); } return twice; })()`); len(twice) > 0 {
		t.Errorf("names that two controls have: %q", twice)
	}
	if dangling := eval[[]string](p, `[...document.querySelectorAll("[aria-labelledby], [aria-describedby], [aria-controls], [for]")].flatMap((e) => ["aria-labelledby", "aria-describedby", "aria-controls", "for"].map((a) => e.getAttribute(a))).filter((id) => id && !document.getElementById(id))`); len(dangling) > 0 {
		t.Errorf("names that point nowhere: %q", dangling)
	}
}
