package phase

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchboard/handoff"
)

var update = flag.Bool("update", false, "rewrite golden files")

// golden compares text with a file of testdata, or rewrites it with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got), -update rewrites it:\n%s", path, diff)
	}
}

// firstStates are those that a handoff can begin in: a fresh request, or one that a former life of the
// process had dispatched or started.
var firstStates = []State{
	{},
	{Phase: Reconciling, Noted: true, Due: true, Inherited: true},
	{Phase: Reconnecting, Noted: true, Due: true, Inherited: true, Seen: true},
}

// reachable returns every state that facts can lead to.
func reachable() []State {
	states := slices.Clone(firstStates)
	known := map[State]bool{}
	for i := 0; i < len(states); i++ {
		for f := range factCount {
			if next, _ := states[i].Step(f); !known[next] {
				known[next] = true
				states = append(states, next)
			}
		}
	}
	return states
}

// TestEveryPhaseAndFact holds what each fact does in each state that can be reached and has at most one
// word beside its phase and whether it is noted: the invariants below walk the others. What runs is noted. Facts that
// change nothing are left out of the golden table, so a fact that begins to matter is a red diff too.
func TestEveryPhaseAndFact(t *testing.T) {
	var lines []string
	for _, s := range reachable() {
		plain := s
		plain.Noted = false
		if len(strings.Fields(describe(plain))) > 2 || !s.Noted && s.Phase >= Reconciling && s.Phase < Writing {
			continue
		}
		for f := range factCount {
			next, acts := s.Step(f)
			if next != s || len(acts) > 0 {
				lines = append(lines, fmt.Sprintf("%-20s %-18s -> %-42s %v", describe(s), f, describe(next), acts))
			}
		}
	}
	slices.Sort(lines)
	golden(t, "phases.golden", strings.Join(lines, "\n")+"\n")
}

func describe(s State) string {
	words := []string{s.Phase.String()}
	for word, set := range map[string]bool{"sticky": s.Sticky, "replaced": s.Replaced, "fresh": s.Fresh, "stopping": s.Stopping,
		"seen": s.Seen, "again": s.Again, "inherited": s.Inherited, "silent": s.Silent, "merged": s.Merged, "noted": s.Noted,
		"due": s.Due, "paused": s.Paused} {
		if set {
			words = append(words, word)
		}
	}
	slices.Sort(words[1:])
	if s.Outcome != "" {
		words = append(words, string(s.Outcome))
	}
	return strings.Join(words, " ")
}

// A walk is one path of facts, as far as the invariants need to know it.
type walk struct {
	s                  State
	promises, outcomes int
	alive              int // tries to give the words that may have come to something
	silences           int
	writes             int
	touched            bool // a turn of somebody else was stopped
	taken              bool // somebody else owns the work
	noting             bool // it was asked that the words are noted
	hollow             bool // something was promised or asked without an entry in the ledger
}

// take applies a fact. The facts that prove that nothing came of a try take it back.
func (n walk) take(f Fact) walk {
	next, acts := n.s.Step(f)
	if next == n.s && len(acts) == 0 {
		return n
	}
	switch f {
	case FactUnnoted:
		n.noting = false
	case FactTakenOver:
		n.taken = true
	case FactMoved:
		n.taken = slices.Contains(acts, ActYield)
	case FactNeverRan, FactStartBusy, FactStartRefused, FactSteerRefused, FactLeft: // who watches has sent no words
		n.alive = 0
	case FactStartUnsent, FactThreadGone, FactAttachHeld, FactAttachFailed:
		if n.s.Phase == Starting || n.s.Phase == Steering {
			n.alive = 0
		}
	}
	n.s = next
	for _, a := range acts {
		switch a {
		case ActNote:
			n.noting = true
		case ActPromise:
			n.promises++
			n.hollow = n.hollow || !next.Noted
		case ActPublishOutcome:
			n.outcomes++
		case ActStart, ActSteer:
			n.alive++
		case ActInterrupt:
			n.touched = n.touched || next.Merged
		case ActPublishWait, ActOffer:
			n.hollow = n.hollow || !next.Noted
		case ActPublishSilence:
			n.silences++
		case ActWriteOutcome:
			n.writes++
		}
	}
	return n
}

// TestPhaseInvariants walks every path of facts and holds what must be true on all of them.
func TestPhaseInvariants(t *testing.T) {
	seen := map[walk]bool{}
	var queue []walk
	for _, s := range firstStates {
		n := walk{s: s}
		if s.Noted {
			n.promises, n.alive = 1, 1
		}
		queue = append(queue, n)
	}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		if seen[n] {
			continue
		}
		seen[n] = true
		for f := range factCount {
			m := n.take(f)
			checkWalk(t, describe(n.s)+" + "+f.String(), n, m)
			queue = append(queue, m)
		}
	}
	if len(seen) < 300 {
		t.Fatalf("only %d states were walked", len(seen))
	}
}

func checkWalk(t *testing.T, name string, n, m walk) {
	t.Helper()
	if m.promises > 1 || m.outcomes > 1 || m.silences > 1 || m.writes > 1 {
		t.Fatalf("%s: promises %d, outcomes %d, silences %d, writes %d", name, m.promises, m.outcomes, m.silences, m.writes)
	}
	if m.hollow {
		t.Fatalf("%s: promised although a crash would forget it", name)
	}
	if m.s.Due && !m.s.Noted && m.s.Phase < Starting && !m.noting {
		t.Fatalf("%s: a promise is due, and nothing is noted", name)
	}
	if m.touched {
		t.Fatalf("%s: a turn of somebody else is stopped", name)
	}
	if m.alive > 1 {
		t.Fatalf("%s: the words are given although an earlier try may have run", name)
	}
	if m.alive > n.alive && m.s.Inherited {
		t.Fatalf("%s: a start of a former life is sent again", name)
	}
	ended := m.s.Phase == Ended
	known := m.s.Phase >= Writing && !(m.taken && m.writes == 0) // what moves has none before its next home knows it
	if known != (m.s.Outcome != "") || (ended && !m.taken) != (m.outcomes == 1) {
		t.Fatalf("%s: ended %t, outcome %q given %d times", name, ended, m.s.Outcome, m.outcomes)
	}
	moves := name == describe(n.s)+" + "+FactMoved.String()
	ends := moves || name == describe(n.s)+" + "+FactShutdown.String()
	if m.outcomes > n.outcomes && m.s.Outcome != n.s.Outcome && !ends {
		t.Fatalf("%s: the outcome is given before it is written", name)
	}
	if moves && m.taken && !n.taken && (!m.s.Noted || m.s.Outcome != "") {
		t.Fatalf("%s: left to somebody who cannot know of it, or with an outcome of this home", name)
	}
	if m.s.Due && m.s.Noted && m.s.Phase < Writing && m.promises != 1 {
		t.Fatalf("%s: due and noted, and promised %d times", name, m.promises)
	}
	if m.s.Outcome == handoff.OutcomeCancelled && m.alive > 0 {
		t.Fatalf("%s: called cancelled although the words may run", name)
	}
}

func TestNamesOfPhasesFactsActions(t *testing.T) {
	for f := range factCount {
		if f.String() == "" {
			t.Errorf("fact %d has no name", f)
		}
	}
	for a := range actionCount {
		if a.String() == "" {
			t.Errorf("action %d has no name", a)
		}
	}
}
