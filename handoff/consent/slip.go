package consent

import "slices"

// maxSlipped is how many words may stand before the mark of a correction.
const maxSlipped = 4

// correctsItself tells whether a reply takes its first words back in so many words, and goes on with a yes that stands for
// itself: "no wait I mean yes, push it". Nothing may stand against that yes.
func (h heard) correctsItself(ask asking) bool {
	for at := range h.tokens[:min(len(h.tokens), maxSlipped+1)] {
		n := 0
		for _, l := range languages {
			l.slips.at(h.tokens[at:], func(length int, _ phraseKind) { n = max(n, length) })
		}
		if at == 0 || n == 0 || at == 1 && h.denies(0) || at+n >= len(h.tokens) {
			continue
		}
		rest := h.from(at + n)
		if (rest.agreesAt(0) || len(rest.tokens) > 1 && rest.agreesAt(1)) && rest.isPlain(ask) && rest.find(signalUnsure, ask) == absent && rest.find(signalAsk, ask) == absent && !h.cutOff {
			return true
		}
	}
	return false
}

// asksPlainly tells whether a reply is the question again without its mark: "is fine that", "fine to run the tests", "can edit
// two files". A yes that stands for itself makes it an answer.
func (h heard) asksPlainly(ask asking) bool {
	return len(h.tokens) > 1 && slices.ContainsFunc(languages, func(l *language) bool {
		approved := false
		for _, p := range l.approves[h.tokens[0]] {
			n := len(p.tokens)
			if rest := h.tokens[min(n, len(h.tokens)):]; len(rest) > 0 && startsWith(h.tokens, p.tokens) && h.unbroken(0, n+1) && !h.from(n).hasYes(ask) {
				approved = approved || len(rest) == 1 && demonstratives[rest[0]] || l.isInfinitive(rest)
			}
		}
		l.modal.at(h.tokens, func(n int, _ phraseKind) {
			approved = approved || h.countsOnly(n, l, ask) && !h.hasYes(ask)
		})
		return approved
	})
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
