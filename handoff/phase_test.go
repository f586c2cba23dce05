package handoff

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// reachable returns every state that facts can lead to.
func reachable() []State {
	states := []State{{}}
	for i := 0; i < len(states); i++ {
		for f := range factCount {
			if next, _ := states[i].Step(f); !slices.Contains(states, next) {
				states = append(states, next)
			}
		}
	}
	return states
}

// TestEveryPhaseAndFact holds what each fact does in each state that can be reached. Facts that change
// nothing are left out of the golden table, so a fact that begins to matter is a red diff too.
func TestEveryPhaseAndFact(t *testing.T) {
	var lines []string
	for _, s := range reachable() {
		for f := range factCount {
			next, acts := s.Step(f)
			if next != s || len(acts) > 0 {
				lines = append(lines, fmt.Sprintf("%-42s %-18s -> %-50s %v", describe(s), f, describe(next), acts))
			}
		}
	}
	slices.Sort(lines)
	golden(t, "phases.golden", strings.Join(lines, "\n")+"\n")
}

func describe(s State) string {
	words := []string{s.Phase.String()}
	for word, set := range map[string]bool{"sticky": s.Sticky, "replaced": s.Replaced, "answered": s.Answered, "alone": s.Alone, "stopping": s.Stopping} {
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

// TestPhaseInvariants walks every path of facts and holds what must be true on all of them.
func TestPhaseInvariants(t *testing.T) {
	type node struct {
		s               State
		answers, starts int
		outcomes        int
	}
	seen := map[node]bool{}
	queue := []node{{}}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		if seen[n] {
			continue
		}
		seen[n] = true
		for f := range factCount {
			next, acts := n.s.Step(f)
			m := node{s: next, answers: n.answers, starts: n.starts, outcomes: n.outcomes}
			for _, a := range acts {
				switch a {
				case ActAnswerEarly:
					m.answers++
				case ActAnswerOutcome:
					m.answers++
					m.outcomes++
				case ActTellOutcome, ActKeepOutcome:
					m.outcomes++
				case ActStart:
					m.starts++
				}
			}
			name := describe(n.s) + " + " + f.String()
			if next.Phase < n.s.Phase {
				t.Fatalf("%s: the phase went back", name)
			}
			if m.answers > 1 || m.outcomes > 1 || m.starts > 1 {
				t.Fatalf("%s: answers %d, outcomes %d, starts %d", name, m.answers, m.outcomes, m.starts)
			}
			ended := next.Phase == PhaseEnded
			if ended != (next.Outcome != "") || ended != (m.outcomes == 1) {
				t.Fatalf("%s: ended %t, outcome %q given %d times", name, ended, next.Outcome, m.outcomes)
			}
			if ended && m.answers != 1 {
				t.Fatalf("%s: ended with %d answers", name, m.answers)
			}
			if next.Outcome == OutcomeCancelled && m.starts > 0 {
				t.Fatalf("%s: called cancelled although a start was sent", name)
			}
			queue = append(queue, m)
		}
	}
	if len(seen) < 30 {
		t.Fatalf("only %d states were walked", len(seen))
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
