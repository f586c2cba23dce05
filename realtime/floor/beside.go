package floor

import (
	"maps"
	"slices"
)

// The answer to a request is in the conversation before it is asked for: a response to something else that begins
// after it may tell it, whether it answers the caller or an ask of the client's. Nobody knows whether it did. So what
// it may have told is asked for nevertheless, and a model that then has nothing to say has told it there.

// took notes that the model has an utterance.
func (f *Floor) took(id string) {
	same := func(w *pendingSpeech) bool { return w.id == id }
	if i := slices.IndexFunc(f.pending, same); i >= 0 {
		f.pending[i].taken = true
		return
	}
	for _, a := range f.open() {
		if i := slices.IndexFunc(a.speech, same); i >= 0 {
			a.speech[i].taken = true
			return
		}
	}
}

// open returns the asks whose speech is neither given nor waits.
func (f *Floor) open() []*ask {
	asks := slices.Collect(maps.Values(f.runs))
	if f.asked != nil {
		asks = append(asks, f.asked)
	}
	for _, c := range f.carriers {
		if c.ask != nil {
			asks = append(asks, c.ask)
		}
	}
	return asks
}

// besides notes that a response begins, which reads what was not asked of it.
func (f *Floor) besides(response string) {
	if own := f.runs[response]; own != nil && own.apart {
		return
	}
	others := f.pending
	if f.asked != nil {
		others = slices.Concat(others, f.asked.speech)
	}
	for _, w := range others {
		if w.taken && !w.beside.told() {
			w.beside = f.carriers.of(response)
		}
	}
}

// told reports whether the caller got all of what a response said, if it said anything.
func (c *carrier) told() bool {
	return c != nil && c.ended && !c.cut && c.words && (!c.sounds || c.over && c.heard == HeardWhole)
}

// nothing decides what becomes of an ask to which the model had nothing to say: what another response may have told is
// told, and the rest is asked for again.
func (f *Floor) nothing(a *ask) {
	var rest []*pendingSpeech
	for _, w := range a.speech {
		if !w.beside.told() {
			rest = append(rest, w)
			continue
		}
		f.emit(Effect{Kind: EffectGiven, Response: w.beside.id}, []*pendingSpeech{w})
	}
	if a.speech = rest; len(rest) > 0 {
		f.failed(a)
	}
}
