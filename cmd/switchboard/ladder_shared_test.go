package main

import (
	"cmp"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"switchboard/handoff/call/calltest"
)

// TestLaddersOfTheRouter plays the ladders of package call once more, on agents that Switchboard runs itself: the same
// scripts, and the same record of what the caller, the voice model and the page are told, at the same millisecond. What
// is between the router and its store and agents is not compared; it is each kind's own. Ladders that are not about
// this kind are skipped with the reason; those that come out otherwise are named with the difference.
func TestLaddersOfTheRouter(t *testing.T) {
	ladders := "../../handoff/call/testdata/ladders/*.txtar"
	calltest.Each(t, ladders, 10, func(t *testing.T, file string, archive *txtar.Archive) {
		name, parts := strings.TrimSuffix(filepath.Base(file), ".txtar"), calltest.Parts(archive)
		if why := unplayed(name, parts); why != "" {
			t.Skip(why)
		}
		synctest.Test(t, func(t *testing.T) {
			w := newLadderWorld(t, parts["world"])
			p := &calltest.Player{World: w.World, NewLife: w.live}
			ladder := p.Play(parts["call"])
			w.stop()
			want, got := inOrder(parts["ladder"]), inOrder(calltest.Lines(ladder))
			if d, ok := differences[name]; ok {
				if slices.Equal(want, got) {
					t.Errorf("it comes out the same, so it is not true that %s", d.why)
				}
				want, got = d.same(want), d.same(got)
			}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("the ladder differs (-want +got):\n%s", diff)
			}
		})
	})
}

// inOrder is what the caller, the voice model and the page are told, and how work ended. What happens in one
// millisecond has no order.
func inOrder(ladder []string) []string {
	lines := slices.DeleteFunc(slices.Clone(ladder), func(line string) bool {
		words := strings.Fields(line)
		return words[1] != "say" && words[1] != "page" && (words[0] != "end" || words[1] == "ledger:")
	})
	slices.SortStableFunc(lines, func(a, b string) int {
		return cmp.Or(cmp.Compare(millisecond(a), millisecond(b)), cmp.Compare(a, b))
	})
	return lines
}

// millisecond is when a line of a ladder was; the last ones have none.
func millisecond(line string) int {
	ms, err := strconv.Atoi(strings.Fields(line)[0])
	if err != nil {
		return 1 << 40
	}
	return ms
}

// Why ladders are not played: by the words of their worlds, their scripts and their turns. Set once.
var (
	unplayedWorld = map[string]string{
		"sessions": "it is about lists", "dead": "it is about lists", "child": "it is about a child process",
		"merges": "only Codex takes words into somebody else's turn", "returns": "no thread of this kind becomes another",
		"later": "nobody else begins turns there",
	}
	unplayedScript = map[string]string{
		"said": "its voice is deaf", "cut": "its voice is deaf", "looks": "it is about the page's feed",
		"page": "it is about what an agent did, which each kind shows in its own way", "write": noWords,
		"move": noHeir, "restart": noHeir,
	}
	unplayedSteps = map[string]string{
		"asks": noWords, "goes": noGoals, "goal": noGoals,
		"form": noWords, "choose": noWords, "gone": noLoss, "asklost": noLoss, "missing": noLoss, "again": noLoss, "hidden": noLoss,
		"drops": "its model takes back what it said", "begins": "its model takes back what it said", "unread": noLoss, "interrupted": "nobody else interrupts a turn here",
		"long": "its answer is made by the other kit",
	}
	unplayedFaults = map[string]string{
		"joined": "only Codex takes words into somebody else's turn", "unsupported": "an agent of this kind can be steered",
	}
)

// Reasons.
const (
	noLoss  = "an agent of this kind runs in the same process: it cannot be lost while a turn runs"
	noHeir  = "a turn of this kind ends with its process"
	noGoals = "an agent of this kind has no goals"
	noWords = "an agent of this kind asks for permissions alone, not in words"
)

// unplayed says why a ladder is not about agents of this kind; "" when it is.
func unplayed(name string, parts map[string][]string) string {
	if why := unplayedNames[name]; why != "" {
		return why
	}
	for _, line := range parts["call"] {
		words := strings.Fields(line)
		if why := unplayedScript[words[1]]; why != "" {
			return why
		}
		if words[1] == "left" && outlived(words[2:], parts["world"]) {
			return noHeir
		}
		if slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "list_") || strings.HasPrefix(w, "read_") }) {
			return "it is about lists"
		}
	}
	for _, line := range parts["world"] {
		words := strings.Fields(line)
		if why := unplayedWorld[words[0]]; why != "" {
			return why
		}
		if words[0] == "entry" && outlived(words[1:], parts["world"]) {
			return noHeir
		}
		if len(words) == 4 && unplayedFaults[words[3]] != "" {
			return unplayedFaults[words[3]]
		}
		if words[0] != "turn" {
			continue
		}
		for step := range strings.SplitSeq(strings.Join(words[2:], " "), ";") {
			for _, word := range strings.Fields(step)[:min(2, len(strings.Fields(step)))] {
				if why := unplayedSteps[word]; why != "" {
					return why
				}
			}
		}
	}
	return ""
}

// outlived reports whether what a former life left in the ledger is a turn that goes on without it.
func outlived(entry, world []string) bool {
	return entry[1] == "started" || entry[1] == "dispatching" && slices.Contains(world, "reconciles "+entry[3]+" found")
}

// A difference is how a ladder comes out otherwise on an agent of this kind, and why.
type difference struct {
	why  string
	same func(lines []string) []string // leaves of both what has to be the same
}

// Differences. Set once.
var (
	byTheClock = difference{"a turn runs by the clock here, also while nobody watches it; in the other kit it stands still", untimed}
	soonerNote = difference{"the words before a command or an answer are told as soon as that is shown as begun; the other kit shows nothing as begun", withoutNotes}
	sooner     = difference{"what is being done is told as soon as a command is shown as begun; the other kit shows it when it is done", answersAlone}

	differences = map[string]difference{
		"busy": byTheClock, "busy-start-held": byTheClock, "busy-gone": byTheClock, "busy-start-gone": byTheClock, "busy-start-unsent": byTheClock, "reconcile-found": byTheClock, "watch": byTheClock,
		"ledger-set-back-far": byTheClock, "no-call-killed": byTheClock, "promise-hang-up": byTheClock, "promise-wait-slow": byTheClock, "taken-over": byTheClock,
		"sticky-chosen-since": byTheClock, "sticky-cleared-since": byTheClock, "sticky-gone-since": byTheClock,
		"aside": soonerNote, "attack-agent-speaks": soonerNote, "call-back": soonerNote, "late-result": soonerNote, "updates-every-call": soonerNote,
		"bug-10-long-turn": sooner, "bug-12-barge-in": sooner, "status-updates-silence": sooner,
	}
	unplayedNames = map[string]string{
		"aside-recovered":                  "a session of which nothing is kept ends with its process here",
		"waits-said":                       "of turns that wait for each other this kit scripts the first alone",
		"bug-21-lost-start-not-sent-twice": "an agent of this kind knows for certain whether a lost start ran",
	}
)

// untimed are lines without their milliseconds.
func untimed(lines []string) []string {
	var all []string
	for _, line := range lines {
		fields := strings.Fields(line)
		if _, err := strconv.Atoi(fields[0]); err == nil {
			fields = fields[1:]
		}
		all = append(all, strings.Join(fields, " "))
	}
	return all
}

// withoutNotes are lines without those that tell the voice model in silence how far the work is.
func withoutNotes(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.Contains(line, "still working, reports.") })
}

// answersAlone are the lines that answer the voice model, or tell an outcome or how all ended.
func answersAlone(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		return strings.Contains(line, "say: ") && (strings.Contains(line, " is working on ") || strings.Contains(line, ` now.","note"`))
	})
}
