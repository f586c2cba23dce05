package simulator

import (
	"maps"
	"slices"
	"time"
)

// threadFork copies a thread up to and with a turn, or all of it, also one that another process holds. The
// copy has the turns of its source under their own ids; one that runs is copied as interrupted, without what
// it is about to say.
func (m *machine) threadFork(r asked) *refusal {
	var p struct {
		ThreadID  *string `json:"threadId"`
		Last      *string `json:"lastTurnId"`
		Ephemeral bool
	}
	if no := decode(r, &p); no != nil {
		return no
	}
	t, no := m.find(p.ThreadID, absentStored)
	switch {
	case no != nil:
		return no
	case !t.stored || t.ephemeral:
		return refuse("%s%s", absentStored, t.id)
	}
	turns, no := t.upTo(p.Last)
	if no != nil {
		return no
	}
	now := time.Now()
	clone := *t
	clone.id, clone.created, clone.updated = newID(now), now, now
	clone.forkedFrom, clone.ephemeral, clone.archived, clone.loaded = t.id, p.Ephemeral, false, true
	clone.status, clone.flags, clone.turn, clone.unload = statusIdle, nil, nil, nil
	clone.subscribers, clone.turns = []*conn{r.conn}, nil
	for _, u := range turns {
		v := &turn{id: u.id, thread: &clone, status: u.status, fault: u.fault, items: u.items, started: u.started, completed: u.completed}
		if v.status == turnRunning {
			v.status = turnInterrupted
		}
		clone.turns = append(clone.turns, v)
	}
	m.add(&clone)
	about := map[string]any{"thread": clone.wire(nil), "turnsBackwardsCursor": nil, "itemsBackwardsCursor": nil}
	r.conn.reply(r.id, clone.settings(maps.Clone(about)))
	m.broadcast("thread/started", map[string]any{"thread": clone.wire(nil)})
	return nil
}

// upTo returns the turns up to and with one that has ended, all of them for nil.
func (t *thread) upTo(last *string) ([]*turn, *refusal) {
	if last == nil {
		return t.turns, nil
	}
	i := slices.IndexFunc(t.turns, func(u *turn) bool { return u.id == *last })
	switch {
	case i < 0:
		return nil, refuse("turn not found: %s", *last)
	case t.turns[i].status == turnRunning:
		return nil, refuse("lastTurnId '%s' identifies an in-progress turn", *last)
	}
	return t.turns[:i+1], nil
}
