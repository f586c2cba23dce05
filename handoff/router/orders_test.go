package router

import (
	"fmt"
	"slices"
	"switchboard/handoff/phase"
	"testing"
)

// TestOrders holds what a work hears of what it was told before it looked: of each kind one, none is dropped
// however many come, and of calls the newest that is open.
func TestOrders(t *testing.T) {
	a, b := endedCall(), endedCall()
	const ended, back, stop, due, yes = phase.FactCallEnded, phase.FactCallBack, phase.FactStop, phase.FactAnswerDue, phase.FactCopyAllowed
	tests := map[string]struct {
		put  []order
		want []order
	}{
		"in order":                     {[]order{{fact: due}, {fact: yes}, {fact: stop}}, []order{{fact: due}, {fact: yes}, {fact: stop}}},
		"stopped many times":           {slices.Repeat([]order{{fact: stop}}, 100), []order{{fact: stop}}},
		"stopped after much else":      {append(slices.Repeat([]order{{fact: due}, {fact: ended}}, 100), order{fact: stop}), []order{{fact: due}, {fact: ended}, {fact: stop}}},
		"calls back":                   {[]order{{fact: ended}, {back, a}}, []order{{fact: ended}, {back, a}}},
		"calls back twice":             {[]order{{fact: ended}, {back, a}, {fact: ended}, {back, b}}, []order{{fact: ended}, {back, b}}},
		"hangs up again":               {[]order{{fact: ended}, {back, a}, {fact: ended}}, []order{{fact: ended}}},
		"the newer call":               {[]order{{back, a}, {back, b}}, []order{{back, b}}},
		"called back, then it ends":    {[]order{{back, a}, {fact: stop}, {fact: ended}}, []order{{fact: stop}, {fact: ended}}},
		"nothing":                      {nil, nil},
		"allowed, and stopped at once": {[]order{{fact: yes}, {fact: stop}, {fact: stop}}, []order{{fact: yes}, {fact: stop}}},
	}
	for name, tt := range tests {
		q := newOrders()
		for _, o := range tt.put {
			q.put(o)
		}
		if got := len(q.come) == 1; got != (len(tt.want) > 0) {
			t.Errorf("%s: awake %t", name, got)
		}
		if got := q.take(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %s, want %s", name, fmt.Sprint(got), fmt.Sprint(tt.want))
		}
		if left := q.take(); left != nil {
			t.Errorf("%s: %v are there twice", name, left)
		}
	}
}
