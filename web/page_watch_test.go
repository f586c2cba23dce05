package web

import (
	"testing"

	"switchboard/handoff"
)

// TestPageWatch: a session of a machine that shows what others begin there is watched from where it is read, also while
// it rests, and the work that follows it is shown, with a way to stop watching. Where it would not show, that is not
// offered.
func TestPageWatch(t *testing.T) {
	t.Parallel()
	w := newScene()
	w.servers[0].Watchable = true
	w.records[0].Why = handoff.WhyWatched
	p := loggedIn(t, w, 1280, 800, sceneOfSeveral)
	const (
		offered = `document.querySelector("#reader[open] #reader-watch")?.checkVisibility()`
		read    = `document.querySelector("#reader[open] #reader-lines .read")` // which moves the buttons
	)
	eval[bool](p, `(location.hash = "#sessions/laptop/t-notes", true)`)
	p.Until(read)
	if eval[bool](p, offered) {
		t.Error("it is offered where it would not show")
	}
	p.Press("\x1b")
	p.Until(`!document.querySelector("#reader").open`)
	eval[bool](p, `(location.hash = "#sessions/bigpc/t-flaky", true)`)
	p.Until(read + " && " + offered)
	p.Click("Watch")
	p.Until(`location.hash === "#work/h1" && !document.querySelector("#reader").open`)
	w.logged(t, "watch owner ")
	w.logged(t, "bigpc t-flaky ")
	p.Until(`[...document.querySelectorAll("#piece button")].some((b) => b.textContent === "Stop watching" && b.checkVisibility())`)
	p.Click("Stop watching")
	w.logged(t, "stop watching owner h1")
	p.quiet()
}
