package work

import (
	"slices"
	"strings"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// settle lets everything go well until nothing happens any more, and holds what must be so then.
func (r *run) settle() {
	r.left = 0
	for _, l := range r.lives[:len(r.lives)-1] {
		if !l.dead {
			l.killed()
		}
	}
	l := r.newest()
	for called := false; !called || l.over; called = true {
		if r.quiet(); l.dead || l.over {
			l = r.life()
			r.quiet()
		}
		if e := r.ear(); e != nil {
			e.hangsUp()
		}
		l.calls()
		r.quiet()
	}
	r.settled(l)
	if r.bad != "" {
		return
	}
	next := r.life()
	l.killed()
	r.quiet()
	ear := next.calls()
	r.quiet()
	for _, h := range l.all {
		if past := !h.doc.known && r.losses > 0; past || l.byKey[h.key] != h.ID || r.amnesia { // it is other work now, or was lost
			continue
		}
		want := h.doc.known && h.State == handoff.StatusCompleted && !h.Added() || h.Paused
		if (ear.told[h.ID] > 0) != want && h.Outcome != "" {
			r.wrong("the next life tells %s %d times; it is %s, paused %t", h.ID, ear.told[h.ID], h.State, h.Paused)
		}
	}
	for id := range ear.told {
		ear.hears(id)
	}
	r.quiet()
	for name := range r.store.Documents {
		if h := next.find(next.byKey[strings.TrimPrefix(name, ledger.HandoffDoc)]); h != nil && !h.NotBegun() {
			r.wrong("%s was heard, and stays in the store", h.ID)
		}
	}
}

// quiet lets everything go well until nothing happens.
func (r *run) quiet() {
	for n := 0; r.bad == ""; n++ {
		all := slices.DeleteFunc(r.choices(), func(c choice) bool {
			switch c.what {
			case calling, living, asking, hearing:
				return true
			case looking:
				return n%2 == 0
			}
			return c.fault
		})
		if len(all) == 0 && n%2 == 1 {
			return
		}
		if n > 500 {
			r.wrong("there is no end: %s", all[0].what)
		} else if len(all) > 0 {
			r.takes(all[n/2%len(all)])
		}
	}
}

// settled holds what must be so when the store has answered, and all work is over.
func (r *run) settled(l *life) {
	if !l.stored() {
		r.wrong("not all is in the store: %d are dirty", len(l.keep.dirty))
	}
	if all := l.cfg.Threads.(*lines).all; len(all) > 0 {
		r.wrong("queues are kept: %+v", all)
	}
	docs := map[string]ledger.Entry{}
	for _, e := range ledger.Entries(r.store.Documents, l.cfg.Bad) {
		docs[e.Key] = e
	}
	for _, h := range l.all {
		e, has := docs[h.key]
		owns := l.byKey[h.key] == h.ID
		switch {
		case h.open || h.Outcome == "":
			r.wrong("%s does not end: %s", h.ID, h.state.Phase)
		case !owns, h.doc.closed && !has:
		case h.heard() && h.doc.known && has:
			r.wrong("%s was heard, and the store has it as %s", h.ID, e.Status)
		case h.State == handoff.StatusCompleted && h.doc.known && !h.doc.closed && e.Outcome != h.Outcome:
			r.wrong("%s has ended, %s; the store has %q %q", h.ID, h.Outcome, e.Status, e.Outcome)
		case h.State == handoff.StatusCompleted && (h.state.Noted || h.run.Request.By != nil) && !h.unheard && h.givenTo == nil:
			r.wrong("%s is told to nobody", h.ID)
		}
	}
	for id, key := range r.promised {
		if _, has := docs[key]; !has && !r.heard[id] && !r.store.over(key) && !r.amnesia {
			r.wrong("%s was promised, and is nowhere", id)
		}
	}
}
