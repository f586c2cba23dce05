package floor

import (
	"cmp"
	"maps"
	"slices"

	"switchboard/realtime/events"
)

// answered decides what becomes of an ask whose response ended. What sounds is given once it was heard.
func (f *Floor) answered(a *ask, c *carrier, e Ended) {
	switch {
	case a == nil:
	case a.pulled && e.Status != events.StatusFailed:
		f.unheard(a)
	case e.Status == events.StatusFailed, e.Status == events.StatusIncomplete && !e.Output && (c == nil || !c.sounds):
		f.failed(a)
	case c != nil && c.sounds:
		c.ask = a
		f.heard(c)
	case e.Status == events.StatusCompleted && !e.Output: // it only called a function of ours: said with its answer
		for _, w := range a.wants {
			w.from = cmp.Or(c, w.from)
		}
		f.unheard(a)
	case !e.Output:
		f.unheard(a)
	default:
		f.emit(Effect{Kind: EffectGiven, Response: e.Response, Cut: e.Status != events.StatusCompleted}, a.wants)
	}
}

// played notes what was heard of a response. It may still be being made.
func (f *Floor) played(e Played) {
	c := f.carriers[e.Response]
	if c == nil || !c.sounds || c.over {
		return
	}
	c.over, c.fate = true, e.Fate
	f.heard(c)
	f.forget(c)
}

// heard gives the wants of a response that ended and was heard.
func (f *Floor) heard(c *carrier) {
	a := c.ask
	if a == nil || !c.over {
		return
	}
	c.ask = nil
	if c.fate == HeardNothing {
		f.unheard(a)
		return
	}
	f.emit(Effect{Kind: EffectGiven, Response: c.id, Cut: c.cut || c.fate == HeardPart}, a.wants)
}

// unheard puts back the wants of an ask of which the caller heard nothing.
func (f *Floor) unheard(a *ask) {
	f.again(a, func(w *want) bool {
		if !a.pulled {
			w.cuts++
		}
		return a.client || w.cuts < MaxCuts
	})
}

// failed puts back the wants of an ask that the model could not answer, for later: what failed now would
// fail again at once.
func (f *Floor) failed(a *ask) {
	rest := TimerRest
	f.again(a, func(w *want) bool {
		if w.fails++; w.fails > 1 {
			rest = timerLongRest
		}
		return a.client || w.fails < maxFails
	})
	if !a.client {
		f.resting = true
		f.arm(rest)
	}
}

// rejected: the ask on the wire failed.
func (f *Floor) rejected(id string) {
	if a := f.take(id); a != nil {
		f.failed(a)
	}
}

// overdue ends an ask that nobody answered: the model never echoes tags (then an untagged response was
// the one asked for), or it lost the ask.
func (f *Floor) overdue() {
	a, c := f.asked, f.stranger
	switch {
	case a == nil:
	case f.active != "":
		f.arm(timerAsk)
	case f.strangers == 0 || f.echoes:
		f.late = &ask{ID: a.ID, client: a.client, wants: slices.Clone(a.wants)}
		f.rejected(a.ID)
	default:
		f.asked, f.blind = nil, true
		e := Ended{Status: events.StatusCompleted, Output: true}
		if c != nil {
			e.Response = c.id
		}
		f.answered(a, c, e)
	}
}

// belated takes the response to an ask that seemed lost: what of its wants waits to be asked for again, or is
// asked for again already, is said by it.
func (f *Floor) belated(response, tag string) {
	a := f.late
	if a == nil || a.ID != tag {
		return
	}
	f.late = nil
	said := a.wants
	a.wants = nil
	claim := func(w *want) bool {
		ours := slices.Contains(said, w)
		if ours {
			a.wants = append(a.wants, w)
		}
		return ours
	}
	f.wants = slices.DeleteFunc(f.wants, claim)
	if again := f.asked; again != nil {
		again.wants = slices.DeleteFunc(again.wants, claim)
		again.moot = !again.client && len(again.wants) == 0
	}
	f.runs[response] = a
}

// missed puts back a want of which the model had nothing when it was asked for it.
func (f *Floor) missed(id string) {
	asks := slices.Collect(maps.Values(f.runs))
	if f.asked != nil {
		asks = append(asks, f.asked)
	}
	for _, c := range f.carriers {
		if c.ask != nil {
			asks = append(asks, c.ask)
		}
	}
	for _, a := range asks {
		if i := slices.IndexFunc(a.wants, func(w *want) bool { return w.id == id }); i >= 0 {
			f.wants = append(f.wants, a.wants[i])
			a.wants = slices.Delete(a.wants, i, i+1)
			return
		}
	}
}

// lost ends a response that the model says nothing more of.
func (f *Floor) lost() {
	if f.active == "" || f.active == unknownResponse {
		return
	}
	e := Ended{Response: f.active, Status: events.StatusIncomplete}
	if a := f.runs[f.active]; a != nil {
		e.Tag = a.ID
	}
	if c := f.carriers[f.active]; c != nil {
		e.Output = c.spoke
	}
	f.ended(e)
}

// again puts back the wants of an ask that keep allows, in front, and gives up the others.
func (f *Floor) again(a *ask, keep func(*want) bool) {
	var back, lost []*want
	for _, w := range a.wants {
		if keep(w) {
			back = append(back, w)
		} else {
			lost = append(lost, w)
		}
	}
	f.wants = append(back, f.wants...)
	f.emit(Effect{Kind: EffectLost}, lost)
}

// emit adds an Effect for wants, unless there are none.
func (f *Floor) emit(x Effect, wants []*want) {
	if len(wants) == 0 {
		return
	}
	for _, w := range wants {
		x.Wants = append(x.Wants, w.id)
	}
	f.out = append(f.out, x)
}
