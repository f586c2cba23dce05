package simulator

import (
	"slices"
	"time"
)

// A StartFault is a fault of turn/start.
type StartFault int

// The faults of turn/start.
const (
	StartFine StartFault = iota
	StartCut             // the turn begins, and the connection is cut before the answer
	StartLost            // the connection is cut, and no turn begins
	// The turn begins a moment after the answer, as it always does with the real one. It cannot be interrupted before.
	StartSlow
)

// Faults are the faults of a machine. The zero value has none.
type Faults struct {
	Start     StartFault // fault of turn/start
	StartOnce bool       // Start applies to one turn/start only
	InUse     bool       // threads that are not loaded are in use by another process

	// FalseInterrupt is how long after its beginning and after its end thread/resume and thread/turns/list show a turn
	// as interrupted, without an end.
	FalseInterrupt time.Duration
}

// SetFaults sets the faults of a machine. An unknown machine is ignored.
func (w *World) SetFaults(name string, f Faults) {
	w.do(name, func(m *machine) { m.faults = f })
}

// dropAll cuts every connection.
func (m *machine) dropAll() {
	for _, c := range m.conns {
		c.Lose(errCut)
	}
}

// Drop cuts every connection of a machine. Running turns go on.
func (w *World) Drop(name string) {
	w.do(name, (*machine).dropAll)
}

// Release ends every [Hang] on a machine, now and in the future.
func (w *World) Release(name string) {
	w.do(name, func(m *machine) {
		m.released = true
		for _, t := range m.threads {
			if u := t.turn; u != nil && u.hangs {
				u.hangs = false
				u.advance()
			}
		}
	})
}

// Starts returns every turn/start and turn/steer that a machine received and did not refuse, oldest first.
func (w *World) Starts(name string) []Start {
	var all []Start
	w.do(name, func(m *machine) { all = slices.Clone(m.starts) })
	return all
}

// Connections returns how many clients a machine has.
func (w *World) Connections(name string) int {
	n := 0
	w.do(name, func(m *machine) { n = len(m.conns) })
	return n
}

// Unload unloads every thread of a machine that runs no turn, as another process or a restart does. Its clients are
// notified.
func (w *World) Unload(name string) {
	w.do(name, func(m *machine) {
		for _, t := range m.threads {
			if t.loaded && t.turn == nil {
				t.close()
			}
		}
	})
}

// AddThread adds a thread with one ended turn to a machine and returns its id. An archived one must be unarchived
// before use.
func (w *World) AddThread(name, title, dir string, archived bool) string {
	now := time.Now()
	id := newID(now)
	w.do(name, func(m *machine) {
		t := Seed{ID: id, Title: title, Dir: dir, Turns: []SeedTurn{{Prompt: title, Answer: "Done."}}}.thread(now)
		t.archived, t.loaded = archived, !archived
		m.add(t)
	})
	return id
}

func (w *World) do(name string, fn func(*machine)) {
	if m := w.find(name); m != nil {
		m.do(func() { fn(m) })
	}
}
