package web

import (
	"regexp"
	"strings"
	"testing"

	"switchboard/handoff"
)

// failing lets every call fail from now on; nil: none.
func (w *world) failing(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail = err
}

// TestPageDirect: in a call whose sound does not go through Switchboard, what is typed goes there and not over the
// line; where a lost call is over, another takes its place, and what waits is said in that, once.
func TestPageDirect(t *testing.T) {
	t.Parallel()
	w, p := openCall(t, true)
	eval[bool](p, ownPeer)
	eval[bool](p, `(far.direct = true)`)
	p.Click("Call")
	p.Until(`far.channel?.readyState === "open" && far.events.length`)
	p.Status("bigpc and laptop are working")
	p.types("Yes, push it.")
	waitFor(t, func() bool {
		return regexp.MustCompile(`say owner rtc_1 item_[0-9a-f]{24} Yes, push it\.`).MatchString(strings.Join(w.log(), ";"))
	})
	if got := eval[string](p, `far.types()`); strings.Contains(got, "item.create") {
		t.Errorf("it went over the line: %s", got)
	}
	w.failing(handoff.Fault(handoff.CodeNotFound, "such call", ""))
	p.types("Stop the tests.")
	waitFor(t, func() bool { return strings.Count(strings.Join(w.log(), ";"), "Stop the tests.") > 1 }) // it tries again
	eval[bool](p, `(far.live = "", true)`)                                                              // it is over there
	eval[bool](p, lose)
	p.Until(`far.calls === 2 && far.asked === "rejoin=1&events=handoff&media=direct&lowers=1" && far.channel.readyState === "open"`)
	w.failing(nil)
	w.logged(t, "say owner rtc_2 ")
	p.Status("bigpc and laptop are working")
	p.Until(`![...document.querySelectorAll(".line.you")].some((l) => l.textContent.includes("Not sent"))`)
	if log := strings.Join(w.log(), ";"); strings.Contains(log, "hangup") || strings.Count(log, "Yes, push it.") != 1 {
		t.Errorf("log %s", log)
	}

	// A line waits behind another whose answer comes only after a new call has taken the place of theirs. It goes into
	// the new one.
	eval[bool](p, `(() => {
	  const real = fetch;
	  const held = new Promise((done) => { far.release = done; });
	  window.fetch = async (to, how) => {
	    if (to.endsWith("/say") && how.body.includes("First of two.")) { far.holds = to; await held; }
	    return real(to, how);
	  };
	  return true;
	})()`)
	p.types("First of two.")
	p.Until(`far.holds === "/fleet/calls/rtc_2/say"`)
	p.types("Second of two.")
	eval[bool](p, `(far.live = "", far.say({ type: "error", error: { code: "session_expired" } }), far.channel.close(), true)`)
	p.Until(`far.calls === 3 && far.channel.readyState === "open"`)
	p.Status("bigpc and laptop are working")
	eval[bool](p, `(far.release(), true)`)
	waitFor(t, func() bool {
		return regexp.MustCompile(`say owner rtc_3 item_[0-9a-f]{24} Second of two\.`).MatchString(strings.Join(w.log(), ";"))
	})

	// Words that are refused go back into the box, and hold up nothing.
	w.failing(handoff.Fault(handoff.CodeTooLarge, "the sentence", ""))
	p.types("A very long sentence.")
	p.Shows("Your words were not sent; they are back in the text box.")
	w.failing(nil)
	p.Until(`document.querySelector("#say").value === "A very long sentence."`)
	eval[bool](p, `(document.querySelector("#say").value = "", true)`)
	p.types("A short one.")
	waitFor(t, func() bool { return strings.Contains(strings.Join(w.log(), ";"), "A short one.") })
	if log := strings.Join(w.log(), ";"); strings.Count(log, "A very long sentence.") != 1 {
		t.Errorf("it was tried again: %s", log)
	}

	// A connection that is lost as the network changes is given a second, not the six of others, which never end here.
	eval[bool](p, `(() => {
	  const real = setTimeout;
	  window.setTimeout = (f, ms, ...args) => ms === 6000 ? 0 : real(f, ms, ...args);
	  dispatchEvent(new Event("online"));
	  far.live = "";
	  Object.defineProperty(mine, "connectionState", { get: () => "disconnected" });
	  mine.onconnectionstatechange();
	  return true;
	})()`)
	p.Until(`far.calls === 4 && far.channel.readyState === "open"`)

	// Who hangs up while words are on their way is not told that they were not sent.
	p.Status("bigpc and laptop are working")
	eval[bool](p, `(window.fetch = ((real) => (to, how) => to.endsWith("/say") ? new Promise(() => { far.holds = how.body; }) : real(to, how))(fetch), true)`)
	p.types("Push it.")
	p.Until(`far.holds.includes("Push it.")`)
	p.types("And tag it.")
	p.Click("Hang up")
	p.Shows("You hung up. Your words were not sent; they are back in the text box.")
	p.Until(`document.querySelector("#say").value === "And tag it."`)
	p.Shows("Push it. It is unclear whether this was heard.")
	p.Quiet("404", "413")
}
