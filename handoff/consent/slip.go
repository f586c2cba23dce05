package consent

import "slices"

// Bounds of a correction, in words.
const (
	maxSlipped = 4  // before its mark
	maxMending = 10 // between its mark and the yes
)

// correctsItself tells whether a reply takes its first words back, and ends in a yes that stands for itself: "no wait I mean
// yes". After a mark that says so in so many words that yes may stand alone right there; else it comes with an order. Nothing may stand against it, and the mark is never the word right after the no.
func (h heard) correctsItself(ask asking) bool {
	if h.cutOff || h.odd {
		return false
	}
	for at := 1; at < min(len(h.tokens), maxSlipped+1); at++ {
		n, clear := h.takesBack(at)
		if n == 0 || !slices.ContainsFunc(h.indexes()[:at], h.denies) || clear && at == 1 && h.denies(0) {
			continue
		}
		for yes := at + max(1, n-1); yes < min(len(h.tokens), at+n+maxMending); yes++ {
			if h.denies(yes) && !h.polite(yes) {
				break
			}
			if rest := h.from(yes); h.agreesAt(yes) && h.from(min(yes, at+n)).toldTo(max(0, yes-at-n), ask) && rest.isPlain(ask) && rest.find(signalUnsure, ask) == absent && rest.find(signalAsk, ask) == absent &&
				(clear && yes <= at+n+1 || len(rest.tokens) > 1 && rest.ordersPlainly(ask)) {
				return true
			}
		}
	}
	return false
}

// takesBack is the length of a mark of correction at a position, or 0, and whether it says so in so many words.
func (h heard) takesBack(at int) (length int, clear bool) {
	for _, l := range languages {
		l.slips.at(h.tokens[at:], func(n int, _ phraseKind) { length, clear = max(length, n), true })
	}
	if !clear {
		for _, l := range languages {
			l.mends.at(h.tokens[at:], func(n int, _ phraseKind) { length = max(length, n) })
		}
		for _, m := range marks[signalHold][h.tokens[at]] {
			if h.hasAt(at, m.tokens) {
				length = max(length, len(m.tokens))
			}
		}
	}
	return length, clear
}

// toldTo tells whether nothing in the first words holds off, asks or doubts.
func (h heard) toldTo(n int, ask asking) bool {
	h.tokens, h.apart, h.marked, h.questions = h.tokens[:n], h.apart[:n], h.marked[:n], nil
	if n == 0 {
		return true
	}
	if slices.Contains(h.doubtful(h.likely(nil, ask), ask), true) || english.doubtsAnywhere(h.tokens) { // "tell Tom yes"
		return false
	}
	return h.find(signalHold, ask) == absent && h.find(signalAsk, ask) == absent && h.find(signalUnsure, ask) == absent
}

// doubtsAnywhere tells whether a phrase of doubt stands among tokens.
func (l *language) doubtsAnywhere(tokens []string) bool {
	for at := range tokens {
		if l.doubts(tokens[at:]) {
			return true
		}
	}
	return false
}

// ordersPlainly tells whether words are wholly a yes with an order of the act or to go ahead.
func (h heard) ordersPlainly(ask asking) bool {
	shared, tongues := h.sharedSteps(ask), h.spoken()
	return slices.ContainsFunc(languages, func(l *language) bool {
		steps := shared
		if l != english {
			if steps = h.stepsIn(slices.Index(languages, l), tongues, shared, ask); steps == nil {
				return false
			}
		}
		return slices.ContainsFunc(h.covered(l, ask, steps, true), func(s state) bool {
			return s.verdict() == verdictFirm && s.has(stateOrdered)
		})
	})
}

// asksPlainly tells whether a reply is the question again without its mark: "is fine that", "fine to run the tests", "can edit
// two files". A yes that stands for itself makes it an answer.
func (h heard) asksPlainly(ask asking) bool {
	return len(h.tokens) > 1 && slices.ContainsFunc(languages, func(l *language) bool {
		approved := h.begsIf(l) || h.isCondition(l, ask)
		for _, p := range l.approves[h.tokens[0]] {
			n := len(p.tokens)
			if rest := h.tokens[min(n, len(h.tokens)):]; len(rest) > 0 && startsWith(h.tokens, p.tokens) && h.unbroken(0, n+1) && !h.from(n).hasYes(ask) {
				approved = approved || len(rest) == 1 && demonstratives[rest[0]] || l.isInfinitive(rest)
			}
		}
		l.modal.at(h.tokens, func(n int, _ phraseKind) {
			approved = approved || h.countsOnly(n, l, ask) && !h.from(n).hasYes(ask)
		})
		return approved
	})
}

// begsIf tells whether a reply begins with a "si" that has no accent, before what may be done: "si puede ejecutarlas" is
// "whether it can run them".
func (h heard) begsIf(l *language) bool {
	return l.code == "es" && h.tokens[0] == "si" && !h.marked[1] && l.modal.has(h.tokens[1:])
}

// isCondition tells whether a "si" without an accent stands after the first words, before what is no yes, order or particle:
// "if", and no yes.
func (h heard) isCondition(l *language, ask asking) bool {
	if l.code != "es" || !slices.Equal(h.likely(nil, ask), []*language{l}) {
		return false
	}
	for at := 1; at < len(h.tokens)-1; at++ {
		if h.tokens[at] != "si" || h.marked[at+1] || h.tokens[at-1] == "que" || h.tokens[at+1] == "no" || l.isInfinitive(h.tokens[at-1:]) || surely[h.tokens[at+1]] {
			continue
		}
		harmless := false
		take := func(_ int, kind phraseKind) {
			harmless = harmless || kind == kindYes || kind == kindWeak || kind == kindOrder || kind == kindDo || kind == kindFill || kind == kindNod || kind == kindTail
		}
		l.book.at(h.tokens[at+1:], take)
		ask.actAt(h.tokens[at+1:], l, take)
		if !harmless {
			return true
		}
	}
	return false
}

// hasYes tells whether a yes that orders nothing stands somewhere in a reply, or an order to go ahead.
func (h heard) hasYes(ask asking) bool {
	return slices.ContainsFunc(h.indexes(), func(at int) bool {
		return h.agreesAt(at) || slices.ContainsFunc(languages, func(l *language) bool {
			found := false
			l.book.at(h.tokens[at:], func(_ int, kind phraseKind) { found = found || kind == kindGo })
			return found && h.score(l, nil, ask) > 0
		})
	})
}

// isInfinitive tells whether words begin with the act as a language writes it where nobody orders it: "rodar", "to run".
func (l *language) isInfinitive(rest []string) bool {
	if l.infinitives[rest[0]] {
		return len(rest) > 1
	}
	return slices.ContainsFunc(l.infinitiveEnds, func(end string) bool {
		return len(rest[0]) > len(end)+1 && rest[0][len(rest[0])-len(end):] == end
	}) && slices.ContainsFunc(languages, func(of *language) bool { return of.known[rest[0]] })
}

// countsOnly tells whether a reply names the number of the question without an article, as the question does: "two files".
func (h heard) countsOnly(from int, l *language, ask asking) bool {
	for at := from + 1; at < len(h.tokens)-1; at++ {
		for _, digits := range ask.digits {
			if len(l.numbers[digits]) == 0 || !(h.tokens[at] == digits || startsWith(h.tokens[at:], l.numbers[digits][0])) {
				continue
			}
			article := false
			l.book.at(h.tokens[at-1:], func(n int, kind phraseKind) { article = article || n == 1 && kind == kindLink })
			if !article {
				return true
			}
		}
	}
	return false
}

// demonstratives are words for what was just said, in each language. Set once.
var demonstratives = setOf("that this it das dies es ca cela ceci eso esto questo cio quello isso isto aquilo dat dit het to tamto это то эт це те det den bu su o यह ये वह ده دا هذا ذلك هاد 这 那 这个 那个 これ それ 그거 이거")
