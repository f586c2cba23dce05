package router

import (
	"fmt"
	"testing"

	"switchboard/handoff"
)

// TestDepth: work of an agent may ask for work, and that once more. Only work that runs asks; a program that names no
// session, or one of nobody's, is a person's own; and a chain with a piece missing goes no further.
func TestDepth(t *testing.T) {
	chain := func(parents ...handoff.RunID) []handoff.Record { // each runs in the thread of its name
		list := make([]handoff.Record, len(parents))
		for i, parent := range parents {
			id := fmt.Sprint("r", i+1)
			list[i] = handoff.Record{ID: id, ThreadID: "t" + id, Parent: parent}
		}
		return list
	}
	ended := func(list []handoff.Record, i int) []handoff.Record {
		list[i].State, list[i].Outcome = handoff.StatusDelivered, handoff.OutcomeResult
		return list
	}
	three := chain("", "r1", "r2")
	for _, tt := range []struct {
		name   string
		works  []handoff.Record
		thread string
		parent handoff.RunID
		code   handoff.Code
	}{
		{"a person", three, "", "", ""},
		{"a session of nobody's", three, "elsewhere", "", ""},
		{"the first", three, "tr1", "r1", ""},
		{"the second", three, "tr2", "r2", ""},
		{"the third", three, "tr3", "", handoff.CodeTooDeep},
		{"a branch beside it", chain("", "r1", "r1"), "tr3", "r3", ""},
		{"what has ended", ended(chain("", "r1"), 1), "tr2", "", ""},
		{"what an ended one asked for", ended(chain("", "r1", "r2"), 1), "tr3", "", handoff.CodeTooDeep},
		{"what a forgotten one asked for", chain("gone"), "tr1", "", handoff.CodeTooDeep},
	} {
		c := NewRouter(Config{Caller: ladderCaller}).caller(ladderCaller)
		for _, rec := range tt.works {
			c.open(rec, nil)
		}
		parent, fault := c.registry.parentOf(handoff.Origin{Client: "x", Thread: tt.thread})
		code := handoff.Code("")
		if fault != nil {
			code = fault.Code
		}
		if parent != tt.parent || code != tt.code {
			t.Errorf("%s: %q, %v", tt.name, parent, fault)
		}
	}
}
