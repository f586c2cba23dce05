package simulator

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

// threadList lists the threads that had a turn and are not archived, newest first.
func threadList(m *machine, r request, p struct {
	page
	SourceKinds []string
}) *refusal {
	matching := []*thread{}
	for _, t := range m.threads {
		wanted := slices.Contains(p.SourceKinds, t.source()) || len(p.SourceKinds) == 0 && t.source() != sourceExec
		if wanted && len(t.turns) > 0 && !t.ephemeral && !t.archived {
			matching = append(matching, t)
		}
	}
	slices.SortStableFunc(matching, func(a, b *thread) int {
		return cmp.Or(b.updated.Compare(a.updated), cmp.Compare(b.id, a.id))
	})
	from, to, no := p.window(len(matching), 25)
	if no != nil {
		return no
	}
	data := []any{}
	for _, t := range matching[from:to] {
		data = append(data, t.wire())
	}
	r.conn.reply(r.id, map[string]any{"data": data, "readStates": map[string]any{},
		"nextCursor": cursor(to, len(matching)), "backwardsCursor": nil})
	return nil
}

func threadRead(t *thread, r request, _ struct{}) *refusal {
	r.conn.reply(r.id, map[string]any{"thread": t.wire(), "readState": nil})
	return nil
}

// A page has the parameters of lists.
type page struct {
	Limit     *int
	Cursor    *string
	ItemsView string
}

// window returns the part of n entries that a page shows. A cursor of the simulator is an offset.
func (p page) window(n, defaultLimit int) (from, to int, no *refusal) {
	if p.Cursor != nil {
		at, err := strconv.Atoi(*p.Cursor)
		if err != nil || at < 0 || at > n {
			return 0, 0, refuse("invalid cursor: %s", *p.Cursor)
		}
		from = at
	}
	limit := defaultLimit
	if p.Limit != nil {
		limit = min(max(*p.Limit, 1), 100)
	}
	return from, min(from+limit, n), nil
}

// cursor returns the cursor of the next page, null after the last one.
func cursor(to, n int) any {
	if to >= n {
		return nil
	}
	return strconv.Itoa(to)
}

// turns returns a page of a thread's turns, newest first. Turns that began or ended less than lie ago are shown as the
// real one shows them then: interrupted, without an end.
func (p page) turns(t *thread, lie time.Duration) (map[string]any, *refusal) {
	all := slices.Clone(t.turns)
	slices.Reverse(all)
	from, to, no := p.window(len(all), 25)
	if no != nil {
		return nil, no
	}
	view := cmp.Or(p.ItemsView, viewSummary)
	data := []any{}
	for _, u := range all[from:to] {
		turn := u.wire(view)
		if time.Since(u.started) < lie || time.Since(u.completed) < lie {
			turn["status"], turn["completedAt"] = turnInterrupted, nil
		}
		data = append(data, turn)
	}
	return map[string]any{"data": data, "nextCursor": cursor(to, len(all)), "backwardsCursor": nil}, nil
}

func turnsList(t *thread, r request, p struct {
	page
}) *refusal {
	switch {
	case t.ephemeral:
		return refuse("ephemeral threads do not support thread/turns/list")
	case len(t.turns) == 0:
		return refuse("thread %s is not materialized yet; thread/turns/list is unavailable before first user message", t.id)
	}
	result, no := p.turns(t, t.m.faults.FalseInterrupt)
	if no == nil {
		r.conn.reply(r.id, result)
	}
	return no
}

func itemsList(t *thread, r request, p struct {
	page
	SortDirection string
	TurnID        *string `json:"turnId"`
}) *refusal {
	if len(t.turns) == 0 {
		return &refusal{code: codeUnsupported, text: "thread/items/list is not supported yet"}
	}
	if p.TurnID != nil {
		t.recall(*p.TurnID)
	}
	data := []any{}
	for _, u := range t.turns {
		for _, it := range u.items {
			if p.TurnID == nil || *p.TurnID == u.id {
				data = append(data, map[string]any{"turnId": u.id, "item": it.wire(), "startedAtMs": it.started.UnixMilli(),
					"completedAtMs": it.completed.UnixMilli()})
			}
		}
	}
	if p.SortDirection == "desc" {
		slices.Reverse(data)
	}
	from, to, no := p.window(len(data), 25)
	if no == nil {
		r.conn.reply(r.id, map[string]any{"data": data[from:to], "nextCursor": cursor(to, len(data)), "backwardsCursor": nil})
	}
	return no
}

// forgot is the error of a turn of an earlier world.
const forgot = "This machine is simulated. It was started anew since then and has forgotten this work."

// maxForgotten bounds the turns of earlier worlds that a thread recalls.
const maxForgotten = 50

// recall adds a turn that a client asks for and that an earlier world must have run: it has failed with the error
// [forgot]. A world keeps nothing after its end, while a real app-server would read the turn from its disk. Without
// this, a client that follows the turn would wait for it for ever.
func (t *thread) recall(id string) {
	made, ok := madeAt(id)
	if !ok || made.After(t.m.born) || slices.ContainsFunc(t.turns, func(u *turn) bool { return u.id == id }) {
		return
	}
	first := slices.IndexFunc(t.turns, func(u *turn) bool { return u.started.After(t.m.born) }) // of this world
	if first < 0 {
		first = len(t.turns)
	}
	if t.forgotten++; t.forgotten > maxForgotten {
		return
	}
	t.turns = slices.Insert(t.turns, first, &turn{id: id, thread: t, status: turnFailed, fault: forgot, started: made,
		completed: t.m.born})
}
