package consent

import "slices"

// maxReassurance is how many tokens a reassurance may have.
const maxReassurance = 16

// A calm is how far tokens have come in being a reassurance.
type calm struct {
	nots, musts, troubles, asks int
}

// isOne tells whether a reassurance can end here: a trouble that is denied ("isn't a problem"), or a trouble that
// nobody needs to take ("don't need to ask"). "No need" alone declines.
func (c calm) isOne() bool {
	if c.nots != 1 {
		return false
	}
	return c.troubles > 0 && c.asks == 0 || c.asks > 0 && c.musts > 0 && c.troubles == 0
}

// kind is what a reassurance does in a reply.
func (c calm) kind() phraseKind {
	if c.asks > 0 {
		return kindAsk
	}
	return kindNod
}

// after is the state after a part of a reassurance.
func (c calm) after(kind phraseKind) calm {
	switch kind {
	case kindNot:
		c.nots++
	case kindMust:
		c.musts++
	case kindNeedless:
		c.nots++
		c.musts++
	case kindTrouble:
		c.troubles++
	case kindAsk:
		c.asks++
	}
	return c
}

// reassurances are for each token the reassurances of a language that begin there. Between their parts stands
// nothing but little words and what the question is about.
func (h heard) reassurances(l *language, ask asking) [][]step {
	has := func(words map[string]bool) bool {
		return slices.ContainsFunc(h.tokens, func(t string) bool { return words[t] })
	}
	if !has(l.denies) || !has(l.troubles) {
		return nil
	}
	var out [][]step
	for from := range h.tokens {
		if found := h.reassuresFrom(from, l, ask); len(found) > 0 {
			if out == nil {
				out = make([][]step, len(h.tokens))
			}
			out[from] = found
		}
	}
	return out
}

func (h heard) reassuresFrom(from int, l *language, ask asking) (found []step) {
	to := from + 1
	for to < len(h.tokens) && !h.marked[to] && to-from < maxReassurance && !h.commandsIn(to, l, ask) {
		to++
	}
	reached := make([][]calm, to-from+1)
	reached[0] = []calm{{}}
	for at := from; at <= to; at++ {
		states := reached[at-from]
		if i := slices.IndexFunc(states, calm.isOne); i >= 0 && !h.dangles(at-1, l) {
			found = append(found, step{at - from, states[i].kind()})
		}
		if at == to || len(states) == 0 {
			continue
		}
		h.calmParts(at, to, l, ask, func(length int, kind phraseKind) {
			for _, c := range states {
				if c = c.after(kind); c.nots <= 1 && !slices.Contains(reached[at+length-from], c) {
					reached[at+length-from] = append(reached[at+length-from], c)
				}
			}
		})
	}
	return found
}

// commandsIn tells whether an imperative of the act by its form stands at a position: what follows it says something of
// its own, "nie ma problemu instaluj to nie". An infinitive goes on: "no problem to install it".
func (h heard) commandsIn(at int, l *language, ask asking) bool {
	if l == english() || l.nouns || l.isInfinitive(h.tokens[at:]) {
		return false
	}
	commands := false
	ask.actAt(h.tokens[at:], l, func(_ int, kind phraseKind) { commands = commands || kind == kindOrder })
	return commands
}

// dangles tells whether a word cannot end a reassurance, in languages that put it first: a "not", or a preposition.
func (h heard) dangles(at int, l *language) bool {
	return frontNots[l.code] && (l.denies[h.tokens[at]] || l.book.has(h.tokens[at:at+1], kindIn))
}

// frontNots are languages whose "not" stands before what it denies. Set once.
var frontNots = setOf("en es fr it pt")

// calmParts calls take for the parts of a reassurance at a position that end by another.
func (h heard) calmParts(at, to int, l *language, ask asking, take func(length int, kind phraseKind)) {
	tokens := h.tokens[at:to]
	l.calm.at(tokens, take)
	l.very.at(tokens, func(n int, _ phraseKind) { take(n, kindGlue) })
	ask.book.at(tokens, func(n int, _ phraseKind) { take(n, kindGlue) })
	ask.actAt(tokens, l, func(n int, _ phraseKind) { take(n, kindGlue) })
	if n := ask.machine(tokens); n > 0 {
		take(n, kindGlue)
	}
}

// waives tells whether a reply says that nobody needs to ask again: that allows more than was asked.
func (h heard) waives() bool {
	return slices.ContainsFunc(languages(), func(l *language) bool {
		return slices.ContainsFunc(h.tokens, func(t string) bool { return everAgain[t] && (l.known[t] || l.vocab[t] || !anyKnows(t)) }) &&
			slices.ContainsFunc(h.tokens, func(t string) bool { return l.troubles[t] && l.asks[t] })
	})
}

// anyKnows tells whether a language has a word.
func anyKnows(token string) bool {
	return slices.ContainsFunc(languages(), func(l *language) bool { return l.known[token] || l.vocab[token] })
}

// everAgain are words for a time to come, beside which "don't ask" allows more than once. Set once.
var everAgain = setOf("ever again anymore future mehr wieder kunftig zukunft nochmal jamais plus desormais nunca mas jamas mai piu mais nooit meer ooit " +
	"nigdy wiecej juz больше никогда більше ніколи artik aldrig mer igen कभी दोबारा ابدا تاني مجددا")

// signs tells whether a word alone denies or holds off in a language.
func (l *language) signs(token string) bool {
	return slices.ContainsFunc([]signal{signalDeny, signalHold}, func(s signal) bool {
		return slices.ContainsFunc(l.signals[s][token], func(p phrase) bool { return len(p.tokens) == 1 })
	})
}

// reassured are the tokens of a reply that would deny or hold off, but for the reassurance in some language in which
// they stand.
func (h heard) reassured(ask asking) []bool {
	out := make([]bool, len(h.tokens))
	for _, l := range languages() {
		for from, found := range h.reassurances(l, ask) {
			for _, s := range found {
				if before, after := from-1, from+s.length; before >= 0 && (l.denies[h.tokens[before]] || h.denies(before)) && !h.marked[from] ||
					after < len(h.tokens) && (l.denies[h.tokens[after]] || h.denies(after)) && !h.marked[after] { // two that deny deny again
					continue
				}
				for i := from; i < from+s.length; i++ {
					t := h.tokens[i]
					out[i] = out[i] || l.denies[t] || l.troubles[t] || !l.signs(t)
				}
			}
		}
	}
	return out
}
