package simulator

import "slices"

// forgot is what a turn says that an earlier world ran.
const forgot = "This machine is simulated. It was started anew since then and has forgotten this work."

// maxForgotten is how many turns of earlier worlds a thread admits to.
const maxForgotten = 50

// recall takes up a turn that somebody asks for and that an earlier world must have run: it is over, and says
// that it was forgotten. A world keeps nothing beyond its end, where a real app-server reads the turn from its
// disk; without this, who watched the turn would wait for it for ever.
func (m *machine) recall(t *thread, id string) {
	made, ok := madeAt(id)
	if !ok || made.After(m.born) || slices.ContainsFunc(t.turns, func(u *turn) bool { return u.id == id }) {
		return
	}
	old := slices.IndexFunc(t.turns, func(u *turn) bool { return u.started.After(m.born) }) // of this world
	if old < 0 {
		old = len(t.turns)
	}
	if t.forgotten++; t.forgotten > maxForgotten {
		return
	}
	t.turns = slices.Insert(t.turns, old, &turn{id: id, thread: t, status: turnFailed, fault: forgot, started: made, completed: m.born})
}
