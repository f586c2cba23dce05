package ledger

import (
	"time"

	"switchboard/handoff"
)

// GateFor is how long a start gate is held after it was taken, since its holder may be gone, and how long Last is kept
// after that.
const GateFor = 40 * time.Second

// A Gate is the start gate of a thread: only its holder may start a turn there. Instances that share a store need it,
// since some agents put two starts that come at the same moment into one turn. The zero Gate is free.
type Gate struct {
	Holder string         // "": it is free
	Last   handoff.TurnID // the newest turn that a holder began; "": not known
}

// Take returns the gate after a holder asked for it: it gets the gate, unless another has it.
func (g Gate) Take(holder string) Gate {
	if g.Holder == "" {
		g.Holder = holder
	}
	return g
}

// Free returns the gate after a holder has freed it, with the turn that began, if that is known. The gate of another
// holder stays as it is.
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
