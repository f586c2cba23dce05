package main

import (
	"path"
	"strings"
	"testing"
)

// A room is a part of the house, with its budgets in lines. A commit may lower one. It raises one only with a reason in
// its message why nothing else could shrink: what is added in one room is paid in another.
type room struct {
	dirs        string // of its packages, and of all below that are no room of their own
	code, tests int    // lines of Go
	why         string // what the lines are for
}

// roomSlack is how far a room may be below its budget before the budget is lowered.
const roomSlack = 150

// rooms are all rooms of the house.
var rooms = []room{
	{"handoff/work handoff/router handoff/phase handoff/homes handoff/ledger", 10058, 8798, "a caller is one loop over one state"},
	{"sessions", 9914, 4394, "two stores, their suite, and the conversions of older ones"},
	{"handoff/call handoff/speech handoff/wording handoff/speakable handoff/tools", 8372, 4995, "what is said, when, and the tools"},
	{"handoff/consent handoff/evidence handoff/risk", 2880, 1985, "the gates that protect people"},
	{"handoff", 4108, 1430, "words that more than one room uses, what a terminal would obey, and the life of threads"},
	{"realtime/simulator servers/simulator servers/acp/simulator servers/responses/simulator", 7630, 3285,
		"the simulated voice and machines: four protocols"},
	{"realtime", 16436, 19059, "calls: the wire, the floor, the filter, WebRTC and its sound"},
	{"servers/codex", 4954, 5843, "Codex app-servers"},
	{"servers/acp", 3581, 2131, "agents of the Agent Client Protocol"},
	{"servers/joined", 6224, 3812, "machines that join: their keys, their gate, what shares their agents"},
	{"servers/responses", 6455, 4907, "our own agent: its loop, its edits, its walls"},
	{"servers", 9472, 5635, "the fleet, the ways to machines, worktrees, and the suite that each kind holds"},
	{"web/responses", 3750, 3043, "the front for SDKs"},
	{"web/rich", 300, 160, "what a page may show of a text"},
	{"web", 9681, 14570, "the page's server and the other fronts"},
	{"cmd/switchboard", 10586, 18813, "verbs, settings, doctor, and the tests of the whole service"},
}

// TestHygieneOfRooms holds the budgets of the rooms.
func TestHygieneOfRooms(t *testing.T) {
	code, tests := make([]int, len(rooms)), make([]int, len(rooms))
	for file, text := range sources(t) {
		if path.Ext(file) != ".go" {
			continue
		}
		n, lines := roomOf(path.Dir(file)), strings.Count(text, "\n")
		if strings.HasSuffix(file, "_test.go") {
			tests[n] += lines
		} else {
			code[n] += lines
		}
	}
	for i, r := range rooms {
		for what, size := range map[string][2]int{"code": {code[i], r.code}, "tests": {tests[i], r.tests}} {
			switch has, budget := size[0], size[1]; {
			case has > budget:
				t.Errorf("%s: %d lines of %s, the budget is %d", r.dirs, has, what, budget)
			case has < budget-roomSlack:
				t.Errorf("%s: %d lines of %s: lower the budget, which is %d", r.dirs, has, what, budget)
			}
		}
	}
}

// roomOf returns the room of a directory: the one that names the nearest.
func roomOf(dir string) int {
	for ; ; dir = path.Dir(dir) {
		for i, r := range rooms {
			for name := range strings.FieldsSeq(r.dirs) {
				if name == dir {
					return i
				}
			}
		}
	}
}
