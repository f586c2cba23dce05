package floor

import (
	"maps"
	"slices"
)

// The answer to a request is in the conversation before we ask the model to tell it. So another response that begins in
// between, to the caller or to an ask of the client, may tell it, and nobody knows whether it did. We ask for it
// nevertheless; if the model then has nothing to say, the other response has told it.

// took notes that the model has an utterance.
func (f *Floor) took(id string) {
	same := func(w *pendingSpeech) bool { return w.id == id }
	if i := slices.IndexFunc(f.pending, same); i >= 0 {
		f.pending[i].taken = true
		return
	}
	for _, a := range f.openAsks() {
		if i := slices.IndexFunc(a.speech, same); i >= 0 {
			a.speech[i].taken = true
			return
		}
	}
}

// openAsks returns the asks whose speech is neither given nor pending.
func (f *Floor) openAsks() []*ask {
	asks := slices.Collect(maps.Values(f.runs))
	if f.asked != nil {
		asks = append(asks, f.asked)
	}
	for _, c := range f.responses {
		if c.ask != nil {
			asks = append(asks, c.ask)
		}
	}
	return asks
}

// noteBeside notes that a response begins, which may tell speech that it was not asked for.
func (f *Floor) noteBeside(response string) {
	if own := f.runs[response]; own != nil && own.apart {
		return
	}
	others := f.pending
	if f.asked != nil {
		others = slices.Concat(others, f.asked.speech)
	}
	for _, w := range others {
		if w.taken && !w.beside.toldWhole() {
			w.beside = f.responses.of(response)
		}
	}
}

// toldWhole reports whether a response said something and the caller heard all of it.
func (c *responseState) toldWhole() bool {
	return c != nil && c.ended && !c.cut && c.words && (!c.sounds || c.over && c.heard == HeardWhole)
}

// answeredEmpty handles an ask to which the model had nothing to say: speech that another response may have told counts
// as given, and the rest is asked for again.
func (f *Floor) answeredEmpty(a *ask) {
	var rest []*pendingSpeech
	for _, w := range a.speech {
		if !w.beside.toldWhole() {
			rest = append(rest, w)
			continue
		}
		f.emit(Effect{Kind: EffectGiven, Response: w.beside.id}, []*pendingSpeech{w})
	}
	if a.speech = rest; len(rest) > 0 {
		f.retryFailed(a)
	}
}
