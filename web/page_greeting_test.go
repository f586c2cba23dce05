package web

import (
	"testing"
	"time"

	"switchboard/handoff"
)

// The voice greets when a call has come up in which nobody has said anything: once, also when the call is lost and
// comes back, and not where it has news to tell.
func TestPageGreets(t *testing.T) {
	t.Parallel()
	w, p := openCall(t, true)
	eval[bool](p, ownPeer)
	p.Click("Call")
	p.Until(`far.types() === "session.update response.create"`)
	if got := eval[string](p, `far.events[1].response.instructions`); got != "Greet the caller in one short sentence and ask what they want done. Call no tool." {
		t.Errorf("it asks for %q", got)
	}
	eval[bool](p, `([{ type: "response.output_audio_transcript.done", item_id: "a1", transcript: "Hello, what shall be done?" }].forEach(far.say), true)`)
	p.Shows("Hello, what shall be done?")
	if !eval[bool](p, `!document.querySelector("#chips").classList.contains("strip") && document.querySelectorAll(".chip").length === 3`) {
		t.Error("a greeting folds the sentences to try")
	}
	eval[bool](p, lose)
	p.Until(`far.asked === "call_id=rtc_1&lowers=1" && far.types() === "session.update response.create session.update"`)
	p.Click("Hang up")
	p.Status("Not in a call")

	record := w.records[0]
	record.State, record.Outcome, record.EndedAt = handoff.StatusCompleted, handoff.OutcomeResult, new(time.Now())
	w.feed("owner").Publish(handoff.PageEvent{Kind: "handoff", Record: &record})
	p.Until(`document.querySelector("#card-h1").textContent.includes("Done")`)
	eval[bool](p, `(() => {
	  const select = [...document.querySelectorAll("select")].find((s) => [...s.options].some((o) => o.text === "Deutsch"));
	  select.value = "de";
	  return select.dispatchEvent(new Event("change"));
	})()`)
	p.Click("Call")
	p.Until(`far.calls === 2 && far.asked.endsWith("&lowers=1&language=de") && far.types().endsWith("session.update session.update")`)
	p.types("Fix it")
	p.Until(`far.types().endsWith("session.update session.update conversation.item.create response.create")`)
	p.quiet()
}
