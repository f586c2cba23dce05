package web

import (
	"testing"
	"time"

	"switchboard/handoff"
)

// TestPageAsked: a line tells which program asked for the work, and work that an agent asked for stands under that
// agent's, finished or not. An agent's own work that has ended stays with what it asked for as long as that runs, below
// what a person asked for.
func TestPageAsked(t *testing.T) {
	t.Parallel()
	w := newWorld()
	now := time.Now()
	work := func(id, client string, parent handoff.ID, age time.Duration) handoff.Record {
		return handoff.Record{
			ID: id, Server: "bigpc", ThreadID: "t-" + id, Prompt: "Work " + id, Client: client, Parent: parent, Why: "new",
			State: handoff.StatusStarted, CreatedAt: now.Add(-age),
		}
	}
	over := func(rec handoff.Record) handoff.Record {
		rec.State, rec.Outcome, rec.EndedAt = handoff.StatusDelivered, handoff.OutcomeResult, new(
			rec.CreatedAt.Add(time.Minute),
		)
		return rec
	}
	w.servers = []handoff.ServerInfo{{Name: "bigpc", Kind: "codex", Health: handoff.HealthUp}}
	w.records = []handoff.Record{
		work("mine", "", "", time.Minute), work("theirs", "codex-mcp-client", "first", 2*time.Minute),
		work("first", "claude-code", "", 3*time.Minute), work("left", "codex-mcp-client", "over", time.Second),
		over(work("over", "", "", 90*time.Second)),
		over(work("ended", "codex-mcp-client", "first", 4*time.Minute)),
		over(work("past", "codex-mcp-client", "long-past", 5*time.Minute)), over(work("long-past", "", "", 6*time.Minute)),
	}
	p := loggedIn(t, w, 1280, 800, withVoice)
	p.Until(`document.querySelectorAll(".card").length === 8`)
	const lines = `[...document.querySelectorAll(".card")].map((c) => [c.id, c.querySelector(".line-came").textContent, c.classList.contains("under")].join("; ")).join("\n")`
	const want = "card-mine; ; false\ncard-first; asked by claude-code; false\ncard-theirs; asked by codex; true" +
		"\ncard-ended; asked by codex; true\ncard-over; ; false\ncard-left; asked by codex; true\ncard-long-past; ; false\ncard-past; asked by codex; true"
	if got := eval[string](p, lines); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if left := eval[float64](p, `document.querySelector("#card-theirs").getBoundingClientRect().left - document.querySelector("#card-first").getBoundingClientRect().left`); left != 20 {
		t.Errorf("it stands %v pixels to the right", left)
	}
}
