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
	for _, l := range languages() {
		length = max(length, l.slips.longest(h.tokens[at:]))
	}
	if length > 0 {
		return length, true
	}
	for _, l := range languages() {
		length = max(length, l.mends.longest(h.tokens[at:]))
	}
	for _, m := range marks()[signalHold][h.tokens[at]] {
		if h.hasAt(at, m.tokens) {
			length = max(length, len(m.tokens))
		}
	}
	return length, false
}

// toldTo tells whether nothing in the first words holds off, asks or doubts.
func (h heard) toldTo(n int, ask asking) bool {
	h.tokens, h.apart, h.marked, h.questions = h.tokens[:n], h.apart[:n], h.marked[:n], nil
	if n == 0 {
		return true
	}
	if slices.Contains(h.doubtful(h.likely(nil, ask), ask), true) { // "tell Tom yes"
		return false
	}
	return h.find(signalHold, ask) == absent && h.find(signalAsk, ask) == absent && h.find(signalUnsure, ask) == absent
}

// ordersPlainly tells whether words are wholly a yes with an order of the act or to go ahead.
func (h heard) ordersPlainly(ask asking) bool {
	shared, tongues := h.sharedSteps(ask), h.spoken()
	return slices.ContainsFunc(languages(), func(l *language) bool {
		steps := h.stepsIn(l, tongues, shared, ask)
		return steps != nil && slices.ContainsFunc(h.covered(l, ask, steps, true), func(s state) bool {
			return s.verdict() == verdictFirm && s.has(stateOrdered)
		})
	})
}

// asksPlainly tells whether a reply is the question again without its mark: "is fine that", "fine to run the tests", "can edit
// two files". A yes that stands for itself makes it an answer.
func (h heard) asksPlainly(ask asking) bool {
	return len(h.tokens) > 1 && slices.ContainsFunc(languages(), func(l *language) bool {
		approved := h.begsIf(l) || h.isCondition(l, ask)
		for _, p := range l.approves[h.tokens[0]] {
			n := len(p.tokens)
			if rest := h.tokens[min(n, len(h.tokens)):]; len(rest) > 0 && startsWith(h.tokens, p.tokens) && h.unbroken(0, n+1) && !h.from(n).hasYes(ask) {
				approved = approved || len(rest) == 1 && demonstratives[rest[0]] || l.isInfinitive(rest)
			}
		}
		return approved || l.modal.any(h.tokens, func(n int, _ phraseKind) bool {
			return h.countsOnly(n, l, ask) && !h.from(n).hasYes(ask)
		})
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
		if !ask.has(h.tokens[at+1:], l, kindYes, kindWeak, kindOrder, kindDo, kindFill, kindNod, kindTail) {
			return true
		}
	}
	return false
}

// hasYes tells whether a yes that orders nothing stands somewhere in a reply, or an order to go ahead.
func (h heard) hasYes(ask asking) bool {
	return slices.ContainsFunc(h.indexes(), func(at int) bool {
		return h.agreesAt(at) || slices.ContainsFunc(languages(), func(l *language) bool {
			return l.book.has(h.tokens[at:], kindGo) && h.score(l, nil, ask) > 0
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
	}) && slices.ContainsFunc(languages(), func(of *language) bool { return of.known[rest[0]] })
}

// countsOnly tells whether a reply names the number of the question without an article, as the question does: "two files".
func (h heard) countsOnly(from int, l *language, ask asking) bool {
	for at := from + 1; at < len(h.tokens)-1; at++ {
		for _, digits := range ask.digits {
			if len(l.numbers[digits]) == 0 || !(h.tokens[at] == digits || startsWith(h.tokens[at:], l.numbers[digits][0])) {
				continue
			}
			if !l.book.any(h.tokens[at-1:], func(n int, kind phraseKind) bool { return n == 1 && kind == kindLink }) { // no article
				return true
			}
		}
	}
	return false
}

// demonstratives are words for what was just said, in each language. Set once.
var demonstratives = setOf("that this it das dies es ca cela ceci eso esto questo cio quello isso isto aquilo dat dit het to tamto это то эт це те det den bu su o यह ये वह ده دا هذا ذلك هاد 这 那 这个 那个 これ それ 그거 이거")

// asksItself tells whether a reply with a word that denies is a question and no denial: it does not begin
// with that word.
func (h heard) asksItself() bool {
	return h.endsAsking && len(h.tokens) > 2 && !h.denies(0)
}

// denies tells whether a token alone denies in some language.
func (h heard) denies(at int) bool {
	return slices.ContainsFunc(marks()[signalDeny][h.tokens[at]], func(m mark) bool { return h.hasAt(at, m.tokens) })
}

// turnsToYes tells whether a reply begins with a no that stands for itself and goes on as a plain yes:
// "no no, go ahead". That is neither.
func (h heard) turnsToYes(ask asking) bool {
	if h.relents(ask) {
		return true
	}
	n := 0
	for n < len(h.tokens) && h.tokens[n] == h.tokens[0] && h.denies(n) {
		n++
	}
	if n == 0 || n == len(h.tokens) {
		return false
	}
	for at := n; at < min(n+maxSlip, len(h.tokens)); at++ { // "nope wait sorry, yes"
		if h.corrects(at) {
			n = at
			break
		}
	}
	if n == 1 && !h.marked[n] && !h.corrects(n) {
		return false
	}
	return h.from(n).isPlain(ask) || h.correctsToYes(n, ask)
}

// relents tells whether a reply has its last no among its first words, as a slip or a particle, and goes on with a plain
// yes and an order: "yeah nah yeah go for it". After a word that takes the no back the yes may come later and alone: "no,
// wait, I mean yes".
func (h heard) relents(ask asking) bool {
	last := -1
	for at := range h.tokens {
		for _, m := range marks()[signalDeny][h.tokens[at]] {
			if h.hasAt(at, m.tokens) && !h.polite(at) {
				last = max(last, at+len(m.tokens)-1)
			}
		}
	}
	if last < 0 {
		return false
	}
	slips := false
	for at := last + 1; at < len(h.tokens); at++ {
		weight := h.weightOf(last+1, at)
		slips = slips || weight < maxSlip && (h.corrects(at) || h.holds(at))
		if h.agreesAt(at) && at+1 < len(h.tokens) && h.from(at+1).orders(ask) { // whatever was told, it ends so
			return true
		}
		if weight >= maxSlip && !slips || weight >= 2*maxSlip {
			continue
		}
		if last > 0 && h.weightOf(0, last) >= maxSlip {
			continue
		}
		if at == last+1 && isDense([]rune(h.tokens[at])[0]) && !h.apart[at] && !h.marked[at] { // "not" and "may" are one
			continue
		}
		if h.agreesAt(at) && h.from(at).find(signalHold, ask) == absent && (slips || at+1 < len(h.tokens) && h.from(at+1).holdsOrder(ask)) {
			return true
		}
	}
	return false
}

// holds tells whether a phrase that asks for time begins at a position: "wait".
func (h heard) holds(at int) bool {
	return slices.ContainsFunc(marks()[signalHold][h.tokens[at]], func(m mark) bool { return h.hasAt(at, m.tokens) })
}

// agreesAt tells whether a yes that orders nothing begins at a position.
func (h heard) agreesAt(at int) bool {
	return h.tokens[at] == "yes" || slices.ContainsFunc(languages(), func(l *language) bool { return l.book.has(h.tokens[at:], kindWeak) })
}

// holdsOrder tells whether an order or a permission stands somewhere in a reply.
func (h heard) holdsOrder(ask asking) bool {
	return slices.ContainsFunc(languages(), func(l *language) bool {
		return slices.ContainsFunc(h.indexes(), func(at int) bool {
			return ask.has(h.tokens[at:], l, kindYes, kindGo, kindOrder, kindAct, kindEnd)
		})
	})
}

// correctsToYes tells whether a speaker goes on after a no to say that they misheard, and ends in a plain yes: "no,
// sorry, I misheard, I mean yes".
func (h heard) correctsToYes(from int, ask asking) bool {
	if !h.corrects(from) {
		return false
	}
	for at := from + 1; at < min(from+maxSlip*2, len(h.tokens)); at++ {
		if h.corrects(at) && h.from(at).isPlain(ask) {
			return true
		}
	}
	return false
}

// isPlain tells whether words are a yes in which nothing denies, holds off or asks.
func (rest heard) isPlain(ask asking) bool {
	return rest.find(signalDeny, ask) == absent && rest.find(signalHold, ask) == absent && !rest.odd && !rest.asksBack() &&
		rest.verdictOf(ask) >= verdictYes
}

// maxSlip is how many words may stand between a no and its correction.
const maxSlip = 3

// corrects tells whether a speaker corrects what they said before a position: "no sorry I mean".
func (h heard) corrects(at int) bool {
	return slices.ContainsFunc(languages(), func(l *language) bool { return l.mends.has(h.tokens[at:]) })
}
