package simulator

import (
	"slices"
	"time"
)

// A StartFault says what goes wrong with turn/start.
type StartFault int

// What can go wrong with turn/start.
const (
	StartFine StartFault = iota
	StartCut             // the turn begins, but the connection is cut before the answer
	StartLost            // the connection is cut and nothing begins
	// the turn begins a moment after the answer, until then it cannot be interrupted, as it always is
	StartSlow
)

// Faults of a machine. The zero value is a healthy one.
type Faults struct {
	Start     StartFault // of turn/start
	StartOnce bool       // Start goes wrong once, then it is fine again
	InUse     bool       // threads that are not loaded are held by another process

	// FalseInterrupt is for how long after its beginning and its end a turn is shown as interrupted
	// without an end, in thread/resume and thread/turns/list.
	FalseInterrupt time.Duration
}

// A Thread is what a machine has of a thread.
type Thread struct {
	ID      string
	Running string // id of the running turn, or ""
	Asking  bool   // a request to the clients is open
}

// SetFaults makes a machine misbehave from now on. Unknown machines are ignored.
func (w *World) SetFaults(name string, f Faults) {
	w.do(name, func(m *machine) { m.faults = f })
}

// Drop cuts every connection of a machine now. What runs there goes on.
func (w *World) Drop(name string) {
	w.do(name, (*machine).dropAll)
}

// Release lets what hangs on a machine go on ([Hang]), and what would hang from now on.
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

// Starts lists every turn/start and turn/steer that a machine received and did not refuse, oldest first.
func (w *World) Starts(name string) []Start {
	var all []Start
	w.do(name, func(m *machine) { all = slices.Clone(m.starts) })
	return all
}

// Connections counts the clients of a machine.
func (w *World) Connections(name string) int {
	n := 0
	w.do(name, func(m *machine) { n = len(m.conns) })
	return n
}

// Threads lists the threads of a machine, oldest first.
func (w *World) Threads(name string) []Thread {
	var all []Thread
	w.do(name, func(m *machine) {
		for _, t := range m.threads {
			about := Thread{ID: t.id}
			if t.turn != nil {
				about.Running, about.Asking = t.turn.id, t.turn.ask != nil
			}
			all = append(all, about)
		}
	})
	return all
}

// Unload lets go of every thread of a machine that runs nothing, as another process or a restart does.
// Its clients are told.
func (w *World) Unload(name string) {
	w.do(name, func(m *machine) {
		for _, t := range m.threads {
			if t.loaded && t.turn == nil {
				t.close()
			}
		}
	})
}

// AddThread puts a thread that has run one turn on a machine and returns its id. Archived makes it one
// that must be unarchived before it can be used.
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
