package ledger

import (
	"time"

	"switchboard/handoff"
)

// GateFor is how long the start gate of a thread is held after it was taken, and how long it is known afterwards which
// turn began: whoever had it may be gone.
const GateFor = 40 * time.Second

// A Gate is the start gate of a thread: whoever has it may start a turn there. It stands between instances that share a
// store, since some agents put two starts that come at the same moment into one turn. The zero Gate is free.
type Gate struct {
	Holder string         // who has it; "": nobody
	Last   handoff.TurnID // that began in the thread last, as far as whoever had the gate knows; "": not known
}

// Take gives the gate to whoever asks, unless somebody else has it. Taking it again is harmless.
func (g Gate) Take(holder string) Gate {
	if g.Holder == "" {
		g.Holder = holder
	}
	return g
}

// Free ends that a holder has the gate, and notes which turn began, if that is known. The gate of somebody else stays
// as it is.
func (g Gate) Free(holder string, last handoff.TurnID) Gate {
	if g.Holder != "" && g.Holder != holder {
		return g
	}
	if last != "" {
		g.Last = last
	}
	g.Holder = ""
	return g
}
