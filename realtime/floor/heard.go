package floor

import (
	"cmp"
	"maps"
	"slices"

	"switchboard/realtime/events"
)

// answered decides what becomes of the speech of an ask whose response has ended. If the response sounds, it is given
// once it was heard.
func (f *Floor) answered(a *ask, c *responseState, e Ended) {
	if a != nil && c != nil && c.shared {
		for _, w := range a.speech {
			w.mute = true
		}
	}
	switch {
	case a == nil:
	case a.cancelled && e.Status != events.StatusFailed:
		f.retryUnheard(a)
	case e.Status == StatusEmpty && (c == nil || !c.sounds):
		f.answeredEmpty(a)
	case e.Status == events.StatusFailed, e.Status == events.StatusIncomplete && !e.Output && (c == nil || !c.sounds):
		f.retryFailed(a)
	case c != nil && c.sounds:
		c.ask = a
		f.heard(c)
	case e.Status == events.StatusCompleted && !e.Output: // it only called a function: say it with the answer to that
		for _, w := range a.speech {
			w.from = cmp.Or(c, w.from)
		}
		f.retryUnheard(a)
	case !e.Output:
		f.retryUnheard(a)
	default:
		f.emit(Effect{Kind: EffectGiven, Response: e.Response, Cut: e.Status != events.StatusCompleted}, a.speech)
	}
}

// played notes how much of a response was heard. The model may still be making it.
func (f *Floor) played(e Played) {
	c := f.responses[e.Response]
	if c == nil || !c.sounds || c.over {
		return
	}
	c.over, c.heard = true, e.Heard
	f.heard(c)
	f.responses.forget(c)
}

// heard decides about the speech of a response that has ended, once its sound is over, too.
func (f *Floor) heard(c *responseState) {
	a := c.ask
	if a == nil || !c.over {
		return
	}
	c.ask = nil
	if c.heard == HeardNothing {
		f.retryUnheard(a)
		return
	}
	f.emit(Effect{Kind: EffectGiven, Response: c.id, Cut: c.cut || c.heard == HeardPart}, a.speech)
}

// retryUnheard puts back the speech of an ask of whose response the caller heard nothing.
func (f *Floor) retryUnheard(a *ask) {
	f.requeue(a, func(w *pendingSpeech) bool {
		if w.turn != f.turns {
			w.cuts, w.turn = 0, f.turns
		}
		if !a.cancelled && !f.away {
			w.cuts++
			w.starts++
		}
		return a.client || w.cuts < MaxCuts && w.starts < MaxStarts
	})
}

// retryFailed puts back the speech of an ask that failed, to be asked for after a pause: at once, it would fail again.
func (f *Floor) retryFailed(a *ask) {
	rest := TimerRest
	f.requeue(a, func(w *pendingSpeech) bool {
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

// rejected handles an error about an ask.
func (f *Floor) rejected(id string) {
	if a := f.take(id); a != nil {
		f.retryFailed(a)
	}
}

// askOverdue ends an ask without an answer: either the model drops tags, and an untagged response was the answer, or it
// lost the ask.
func (f *Floor) askOverdue() {
	a, c := f.asked, f.lastUntagged
	switch {
	case a == nil:
	case f.active != "":
		f.arm(timerAsk)
	case f.untagged == 0 || f.keepsTags:
		f.lateAsk = &ask{ID: a.ID, client: a.client, speech: slices.Clone(a.speech)}
		f.rejected(a.ID)
	default:
		f.asked, f.dropsTags = nil, true
		e := Ended{Status: events.StatusCompleted, Output: c == nil || c.spoke}
		if c != nil {
			e.Response = c.id
		}
		f.answered(a, c, e)
	}
}

// lateResponse handles the response to an ask that seemed lost: its speech is said by this response, so it is taken out
// of the queue, or out of the ask on the wire.
func (f *Floor) lateResponse(response, tag string) {
	a := f.lateAsk
	if a == nil || a.ID != tag {
		return
	}
	f.lateAsk = nil
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

// missed puts back speech that the model did not have when it was asked to tell it.
func (f *Floor) missed(id string) {
	for _, a := range f.openAsks() {
		if i := slices.IndexFunc(a.speech, func(w *pendingSpeech) bool { return w.id == id }); i >= 0 {
			f.pending = append(f.pending, a.speech[i])
			a.speech = slices.Delete(a.speech, i, i+1)
			return
		}
	}
}

// responseLost ends the running response if the model sends no more events of it.
func (f *Floor) responseLost() {
	if f.active == "" || f.active == unknownResponse {
		return
	}
	e := Ended{Response: f.active, Status: events.StatusIncomplete}
	if a := f.runs[f.active]; a != nil {
		e.Tag = a.ID
	}
	if c := f.responses[f.active]; c != nil {
		e.Output = c.spoke
	}
	f.ended(e)
}

// sessionLost puts back the speech of all asks that are not done, in front, without counting a failure. The end of the
// running response is an event of its own.
func (f *Floor) sessionLost() {
	f.noSession, f.speaking, f.answerDue, f.wrote, f.lateAsk, f.lastUntagged = true, false, false, false, nil, nil
	if a := f.asked; a != nil {
		f.asked = nil
		f.putBack(a)
	}
	for _, response := range slices.Sorted(maps.Keys(f.runs)) {
		f.pending = append(slices.Clone(f.runs[response].speech), f.pending...)
		delete(f.runs, response)
	}
	if f.active == unknownResponse {
		f.active = ""
	}
}

// requeue puts back the speech of an ask, in front, and gives up what keep does not allow.
func (f *Floor) requeue(a *ask, keep func(*pendingSpeech) bool) {
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
