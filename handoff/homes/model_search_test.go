package homes

import (
	"fmt"
	"slices"
	"strings"
)

// mSearch visits every reachable state of the model, each once.
type mSearch struct {
	states []mState
	broken int32 // index of the first bad state, or -1
	edges  int   // number of moves without a fault

	index   map[mState]int32
	parents []int32
	moves   []move
	into    [][]int32 // by state: the states from which a move without a fault leads there
	from    int32     // the state whose successors are being added
}

// visit visits every state that is reachable from begin, or stops at the first bad one. next adds the successors of a
// state.
func (m *mSearch) visit(begin mState, next func(mState)) {
	m.broken, m.index = -1, map[mState]int32{}
	m.add(begin, move{}, true, false)
	for m.from = 0; int(m.from) < len(m.states) && m.broken < 0; m.from++ {
		next(m.states[m.from])
	}
}

// add adds a successor of the present state.
func (m *mSearch) add(s mState, how move, fault, bad bool) {
	at, seen := m.index[s]
	if !seen {
		at = int32(len(m.states))
		m.index[s] = at
		m.states, m.parents, m.moves = append(m.states, s), append(m.parents, m.from), append(m.moves, how)
		m.into = append(m.into, nil)
		if bad && m.broken < 0 {
			m.broken = at
		}
	}
	if !fault && at != m.from {
		m.into[at] = append(m.into[at], m.from)
		m.edges++
	}
}

// path returns the moves that lead to a state.
func (m *mSearch) path(at int32) string {
	var lines []string
	for ; at > 0; at = m.parents[at] {
		lines = append(lines, fmt.Sprint(m.moves[at]))
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n")
}

// lost returns a state from which no moves without a fault lead to a good end; -1 if there is none.
func (m *mSearch) lost(endsWell func(mState) bool) int32 {
	good := make([]bool, len(m.states))
	var queue []int32
	for at, s := range m.states {
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
