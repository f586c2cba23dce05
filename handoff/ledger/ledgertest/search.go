package ledgertest

import (
	"fmt"
	"slices"
	"strings"
)

// A Search visits every reachable state of a model, each once. An M describes a move from one state to the next.
type Search[S comparable, M any] struct {
	States []S
	Broken int32 // index of the first bad state, or -1
	Edges  int   // number of moves without a fault

	index   map[S]int32
	parents []int32
	moves   []M
	into    [][]int32 // by state: the states from which a move without a fault leads there
	from    int32     // the state whose successors are being added
}

// Visit visits every state that is reachable from begin, or stops at the first bad one. next adds the successors of a
// state.
func (m *Search[S, M]) Visit(begin S, next func(S)) {
	m.Broken, m.index = -1, map[S]int32{}
	var none M
	m.Add(begin, none, true, false)
	for m.from = 0; int(m.from) < len(m.States) && m.Broken < 0; m.from++ {
		next(m.States[m.from])
	}
}

// Add adds a successor of the present state.
func (m *Search[S, M]) Add(s S, how M, fault, bad bool) {
	at, seen := m.index[s]
	if !seen {
		at = int32(len(m.States))
		m.index[s] = at
		m.States, m.parents, m.moves = append(m.States, s), append(m.parents, m.from), append(m.moves, how)
		m.into = append(m.into, nil)
		if bad && m.Broken < 0 {
			m.Broken = at
		}
	}
	if !fault && at != m.from {
		m.into[at] = append(m.into[at], m.from)
		m.Edges++
	}
}

// Path returns the moves that lead to a state.
func (m *Search[S, M]) Path(at int32) string {
	var lines []string
	for ; at > 0; at = m.parents[at] {
		lines = append(lines, fmt.Sprint(m.moves[at]))
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n")
}

// Lost returns a state from which no moves without a fault lead to a good end; -1 if there is none.
func (m *Search[S, M]) Lost(endsWell func(S) bool) int32 {
	good := make([]bool, len(m.States))
	var queue []int32
	for at, s := range m.States {
		if endsWell(s) {
			good[at] = true
			queue = append(queue, int32(at))
		}
	}
	for len(queue) > 0 {
		at := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, before := range m.into[at] {
			if !good[before] {
				good[before] = true
				queue = append(queue, before)
			}
		}
	}
	return int32(slices.Index(good, false))
}
