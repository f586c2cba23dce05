package realtime

import (
	"cmp"
	"maps"
	"slices"
)

// answered decides what becomes of an ask whose response ended. What sounds is given once it was heard.
func (f *floor) answered(a *ask, c *carrier, e ended) {
	switch {
	case a == nil:
	case a.pulled && e.status != statusFailed:
		f.unheard(a)
	case e.status == statusFailed, e.status == statusIncomplete && !e.output && (c == nil || !c.sounds):
		f.failed(a)
	case c != nil && c.sounds:
		c.ask = a
		f.heard(c)
	case e.status == statusCompleted && !e.output: // it only called a function of ours: said with its answer
		for _, w := range a.wants {
			w.from = cmp.Or(c, w.from)
		}
		f.unheard(a)
	case !e.output:
		f.unheard(a)
	default:
		f.emit(effect{kind: effectGiven, response: e.response, cut: e.status != statusCompleted}, a.wants)
	}
}

// played notes what was heard of a response. It may still be being made.
func (f *floor) played(e played) {
	c := f.carriers[e.response]
	if c == nil || !c.sounds || c.over {
		return
	}
	c.over, c.fate = true, e.fate
	f.heard(c)
	f.forget(c)
}

// heard gives the wants of a response that ended and was heard.
func (f *floor) heard(c *carrier) {
	a := c.ask
	if a == nil || !c.over {
		return
	}
	c.ask = nil
	if c.fate == heardNothing {
		f.unheard(a)
		return
	}
	f.emit(effect{kind: effectGiven, response: c.id, cut: c.cut || c.fate == heardPart}, a.wants)
}

// unheard puts back the wants of an ask of which the caller heard nothing.
func (f *floor) unheard(a *ask) {
	f.again(a, func(w *want) bool {
		if !a.pulled {
			w.cuts++
		}
		return a.client || w.cuts < maxCuts
	})
}

// failed puts back the wants of an ask that the model could not answer, for later: what failed now would
// fail again at once.
func (f *floor) failed(a *ask) {
	rest := timerRest
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
func (f *floor) rejected(id string) {
	if a := f.take(id); a != nil {
		f.failed(a)
	}
}

// overdue ends an ask that nobody answered: the model never echoes tags (then an untagged response was
// the one asked for), or it lost the ask.
func (f *floor) overdue() {
	a, c := f.asked, f.stranger
	switch {
	case a == nil:
	case f.active != "":
		f.arm(timerAsk)
	case f.strangers == 0 || f.echoes:
		f.late = &ask{id: a.id, client: a.client, wants: slices.Clone(a.wants)}
		f.rejected(a.id)
	default:
		f.asked, f.blind = nil, true
		e := ended{status: statusCompleted, output: true}
		if c != nil {
			e.response = c.id
		}
		f.answered(a, c, e)
	}
}

// belated takes the response to an ask that seemed lost: what of its wants waits to be asked for again, or is
// asked for again already, is said by it.
func (f *floor) belated(response, tag string) {
	a := f.late
	if a == nil || a.id != tag {
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
func (f *floor) missed(id string) {
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
func (f *floor) lost() {
	if f.active == "" || f.active == unknownResponse {
		return
	}
	e := ended{response: f.active, status: statusIncomplete}
	if a := f.runs[f.active]; a != nil {
		e.tag = a.id
	}
	if c := f.carriers[f.active]; c != nil {
		e.output = c.spoke
	}
	f.ended(e)
}

// again puts back the wants of an ask that keep allows, in front, and gives up the others.
func (f *floor) again(a *ask, keep func(*want) bool) {
	var back, lost []*want
	for _, w := range a.wants {
		if keep(w) {
			back = append(back, w)
		} else {
			lost = append(lost, w)
		}
	}
	f.wants = append(back, f.wants...)
	f.emit(effect{kind: effectLost}, lost)
}

// emit adds an effect for wants, unless there are none.
func (f *floor) emit(x effect, wants []*want) {
	if len(wants) == 0 {
		return
	}
	for _, w := range wants {
		x.wants = append(x.wants, w.id)
	}
	f.out = append(f.out, x)
}
