package floor

import (
	"cmp"
	"maps"
	"slices"

	"switchboard/realtime/events"
)

// answered decides what becomes of an ask whose response ended. What sounds is given once it was heard.
func (f *Floor) answered(a *ask, c *carrier, e Ended) {
	if a != nil && c != nil && c.shared {
		for _, w := range a.speech {
			w.mute = true
		}
	}
	switch {
	case a == nil:
	case a.pulled && e.Status != events.StatusFailed:
		f.unheard(a)
	case e.Status == StatusEmpty && (c == nil || !c.sounds):
		f.nothing(a)
	case e.Status == events.StatusFailed, e.Status == events.StatusIncomplete && !e.Output && (c == nil || !c.sounds):
		f.failed(a)
	case c != nil && c.sounds:
		c.ask = a
		f.heard(c)
	case e.Status == events.StatusCompleted && !e.Output: // it only called a function: said with its answer
		for _, w := range a.speech {
			w.from = cmp.Or(c, w.from)
		}
		f.unheard(a)
	case !e.Output:
		f.unheard(a)
	default:
		f.emit(Effect{Kind: EffectGiven, Response: e.Response, Cut: e.Status != events.StatusCompleted}, a.speech)
	}
}

// played notes what was heard of a response. It may still be being made.
func (f *Floor) played(e Played) {
	c := f.carriers[e.Response]
	if c == nil || !c.sounds || c.over {
		return
	}
	c.over, c.heard = true, e.Heard
	f.heard(c)
	f.carriers.forget(c)
}

// heard gives the speech of a response that ended and was heard.
func (f *Floor) heard(c *carrier) {
	a := c.ask
	if a == nil || !c.over {
		return
	}
	c.ask = nil
	if c.heard == HeardNothing {
		f.unheard(a)
		return
	}
	f.emit(Effect{Kind: EffectGiven, Response: c.id, Cut: c.cut || c.heard == HeardPart}, a.speech)
}

// unheard puts back the speech of an ask of which the caller heard nothing.
func (f *Floor) unheard(a *ask) {
	f.again(a, func(w *pendingSpeech) bool {
		if w.turn != f.turns {
			w.cuts, w.turn = 0, f.turns
		}
		if !a.pulled && !f.away {
			w.cuts++
			w.starts++
		}
		return a.client || w.cuts < MaxCuts && w.starts < MaxStarts
	})
}

// failed puts back the speech of an ask that the model could not answer, for later: what failed now would
// fail again at once.
func (f *Floor) failed(a *ask) {
	rest := TimerRest
	f.again(a, func(w *pendingSpeech) bool {
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
	a, c := f.asked, f.lastUntagged
	switch {
	case a == nil:
	case f.active != "":
		f.arm(timerAsk)
	case f.untagged == 0 || f.echoes:
		f.late = &ask{ID: a.ID, client: a.client, speech: slices.Clone(a.speech)}
		f.rejected(a.ID)
	default:
		f.asked, f.blind = nil, true
		e := Ended{Status: events.StatusCompleted, Output: c == nil || c.spoke}
		if c != nil {
			e.Response = c.id
		}
		f.answered(a, c, e)
	}
}

// belated takes the response to an ask that seemed lost: what of its speech waits to be asked for again, or is
// asked for again already, is said by it.
func (f *Floor) belated(response, tag string) {
	a := f.late
	if a == nil || a.ID != tag {
		return
	}
	f.late = nil
	said := a.speech
	a.speech = nil
	claim := func(w *pendingSpeech) bool {
		ours := slices.Contains(said, w)
		if ours {
			a.speech = append(a.speech, w)
		}
		return ours
	}
	f.pending = slices.DeleteFunc(f.pending, claim)
	if again := f.asked; again != nil {
		again.speech = slices.DeleteFunc(again.speech, claim)
		again.moot = !again.client && len(again.speech) == 0
	}
	f.runs[response] = a
}

// missed puts back speech of which the model had nothing when it was asked for it.
func (f *Floor) missed(id string) {
	for _, a := range f.open() {
		if i := slices.IndexFunc(a.speech, func(w *pendingSpeech) bool { return w.id == id }); i >= 0 {
			f.pending = append(f.pending, a.speech[i])
			a.speech = slices.Delete(a.speech, i, i+1)
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

// sessionLost puts back what was asked for and is not done, in front: it is asked for again, and no failure counts. The
// response that ran has an end of its own.
func (f *Floor) sessionLost() {
	f.absent, f.speaking, f.due, f.late, f.lastUntagged = true, false, false, nil, nil
	if a := f.asked; a != nil {
		f.asked = nil
		f.backOff(a)
	}
	for _, response := range slices.Sorted(maps.Keys(f.runs)) {
		f.pending = append(slices.Clone(f.runs[response].speech), f.pending...)
		delete(f.runs, response)
	}
	if f.active == unknownResponse {
		f.active = ""
	}
}

// again puts back the speech of an ask that keep allows, in front, and gives up the others.
func (f *Floor) again(a *ask, keep func(*pendingSpeech) bool) {
	var back, lost []*pendingSpeech
	for _, w := range a.speech {
		if keep(w) {
			back = append(back, w)
		} else {
			lost = append(lost, w)
		}
	}
	f.pending = append(back, f.pending...)
	f.emit(Effect{Kind: EffectLost}, lost)
}
