package mux

import "slices"

// entryRoom is what an entry of a log counts for beside its line, in bytes: so the number of entries has a bound, too.
const entryRoom = 512

// A log has what was said in prompts, the oldest first. Beyond its limit it loses the oldest entries, whatever prompts
// they are of. A position in it counts the entries since the mux began.
type log struct {
	entries []entry
	lost    int // how many entries it has lost: the position of the first one that it has
	size    int // of the entries, in bytes
	limit   int
}

// An entry is what was said in a turn.
type entry struct {
	turn *turn
	what what
	line []byte
}

// what says what an entry stands for.
type what int

const (
	asked    what = iota // the turn begins; the line is its prompt
	said                 // a message of the agent
	answered             // the turn has ended; the line is what adopters are told of that
)

// add adds an entry, and returns the entries that the log has lost by that.
func (l *log) add(e entry) (lost []entry) {
	l.entries = append(l.entries, e)
	l.size += len(e.line) + entryRoom
	n := 0
	for ; l.size > l.limit && n < len(l.entries); n++ {
		l.size -= len(l.entries[n].line) + entryRoom
	}
	lost = slices.Clone(l.entries[:n])
	clear(l.entries[:n]) // the array would keep them
	l.entries = l.entries[n:]
	l.lost += n
	return lost
}

// of returns what the agent said in a turn, and whether some of it is lost.
func (l *log) of(t *turn) (lines [][]byte, gap bool) {
	if t.began < l.lost {
		return nil, true
	}
	for _, e := range l.entries[t.began-l.lost:] {
		if e.turn == t && e.what == said {
			lines = append(lines, e.line)
		}
	}
	return lines, false
}
