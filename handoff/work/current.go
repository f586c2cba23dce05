package work

import (
	"maps"
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// A Place is where a caller uses one thread at a time: a server, or a project there.
type Place struct{ Server, Project string }

// PlaceOf returns the place of a target.
func PlaceOf(t handoff.Target) Place { return Place{t.Server, t.Project} }

// String returns "bigpc" or "bigpc/api".
func (p Place) String() string {
	if p.Project == "" {
		return p.Server
	}
	return p.Server + "/" + p.Project
}

// use makes a thread the current one, for a request that came at the time asked. It returns false if the caller has
// chosen another thread since then, or none: the turn of a request may begin late.
func (s *State) use(c handoff.Sticky, asked time.Time) bool {
	p := PlaceOf(c.Target)
	late := s.chosen[p].After(asked)
	if late && s.current[p].Target != c.Target {
		return false
	}
	old, had := s.current[p]
	s.current[p] = c
	if !late {
		s.chosen[p] = asked
	}
	if !had || old != c { // else the store has it already
		s.writePlace(p)
	}
	s.cfg.Pages.Publish(handoff.PageEvent{Kind: handoff.PageSticky})
	return true
}

// remember makes the thread the current one: the acknowledged turn proves that it can be resumed.
func (s *State) remember(h *Handoff) {
	if h.Title == "" {
		title := handoff.Clip(strings.TrimSpace(handoff.InputText(h.run.Request.Input)), 80)
		s.show(h, func() { h.Title = title })
	}
	if h.run.Request.Mode == handoff.ModeAside || h.Client == handoff.WatchesAll || h.run.Request.After != "" && h.Why == handoff.WhyCopy {
		return
	}
	c := handoff.Sticky{Target: h.run.Target, Title: h.Title, Named: h.Why == handoff.WhyNamed, Since: s.now}
	if old, ok := s.current[PlaceOf(c.Target)]; ok && old.Target == c.Target {
		c.Named, c.Since = old.Named || c.Named, old.Since
	}
	s.use(c, h.run.AskedAt)
}

// forgetThread drops the current thread, which is gone. The new one is in use once its turn runs; until then, other
// requests wait in the queue of the caller's next new thread.
func (s *State) forgetThread(h *Handoff) {
	gone := h.run.Target
	if key := newKey(s.cfg.Caller, gone); s.take(h, key) {
		s.leave(h, key)
	}
	p := PlaceOf(gone)
	if s.current[p].Target != gone {
		return
	}
	delete(s.current, p)
	s.writePlace(p)
	s.cfg.Pages.Publish(handoff.PageEvent{Kind: handoff.PageSticky})
}

// Use makes an existing session the current one, because the caller wants it.
type Use struct{ Sticky handoff.Sticky }

func (u *Use) apply(s *State) { s.use(u.Sticky, s.now) }

// Unuse makes the caller use no session at a place. Was is a result: they used one.
type Unuse struct {
	Place Place
	Look  bool // only say whether they use one
	Was   bool
}

func (u *Unuse) apply(s *State) {
	_, u.Was = s.current[u.Place]
	if u.Look {
		return
	}
	delete(s.current, u.Place)
	s.chosen[u.Place] = s.now
	s.writePlace(u.Place)
	s.cfg.Pages.Publish(handoff.PageEvent{Kind: handoff.PageSticky})
}

// Used asks for the sessions in use, by server and project. All is the result.
type Used struct{ All []handoff.Sticky }

func (u *Used) apply(s *State) {
	u.All = slices.SortedFunc(maps.Values(s.current), func(x, y handoff.Sticky) int {
		return strings.Compare(PlaceOf(x.Target).String(), PlaceOf(y.Target).String())
	})
}

// openPlaces takes the current threads of the store. Those that were chosen before are newer, and stay. A Since in the
// future is ignored: the clock was set back.
func (s *State) openPlaces(docs map[string]string) {
	var last time.Time
	stored := map[Place]handoff.Sticky{}
	for name, value := range docs {
		field, is := strings.CutPrefix(name, ledger.StickyDoc)
		if !is {
			continue
		}
		c, set, ok := ledger.DecodeSticky(field, value)
		if !ok { // one bad document must not hide the others
			s.cfg.Bad(name)
			continue
		}
		stored[PlaceOf(c.Target)] = c
		if set.After(last) {
			last = set
		}
	}
	if s.now.Sub(last) > ledger.StickyFor { // the last change renewed the life of all of them
		return
	}
	for p, c := range stored {
		if !c.Named {
			s.cfg.Own(c.Target)
		}
		if _, ok := s.current[p]; ok || !s.chosen[p].IsZero() {
			continue
		}
		s.current[p] = c
		if c.Since.Before(s.now) {
			s.chosen[p] = c.Since
		}
	}
}
