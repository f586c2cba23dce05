package consent

import (
	"slices"
	"strings"
)

// vainIn are the tokens of a reply that say in a language what goes wrong without the act: "otherwise nothing works"
// denies nothing.
func (h heard) vainIn(l *language) []bool {
	out := make([]bool, len(h.tokens))
	for at := range h.tokens {
		l.vain.at(h.tokens[at:], func(n int, _ phraseKind) {
			if h.unbroken(at, n) {
				setAll(out[at : at+n])
			}
		})
	}
	return out
}

// deniesInStory tells whether what a reply denies may be something else than the act: it orders or permits, and denies
// only in a clause of its own that has no order.
func (h heard) deniesInStory(ask asking) bool {
	return h.tellsIn(ask, func(t *teller, _ heard, _ []*language) bool {
		t.markDenied()
		if slices.ContainsFunc(t.h.indexes(), t.isIfNot) {
			return true
		}
		if t.lenient = true; !slices.Contains(t.denied, true) || t.isYes() {
			return true
		}
		return t.rambles()
	})
}

// minRamble is how many words a reply has in which a yes and a denial may have nothing to do with each other.
const minRamble = 8

// rambles tells whether a long reply orders or says yes somewhere, and denies neither at its beginning nor an order.
func (t *teller) rambles() bool {
	yes := false
	for at := range t.h.tokens {
		if t.denied[at] && (at == 0 || !t.l.inner[t.h.tokens[at]] && !t.isNoOne(at) || at+1 < len(t.h.tokens) && t.ordered[at+1]) {
			return false
		}
		yes = yes || t.ordered[at] || t.affirms(at)
	}
	return yes && t.h.weight() >= minRamble
}

// isNoOne tells whether a "no" at a position is one of "no one".
func (t *teller) isNoOne(at int) bool {
	return t.h.tokens[at] == "no" && at+1 < len(t.h.tokens) && strings.HasPrefix(t.h.tokens[at+1], "one")
}

// markInert finds the tokens that deny something in a clause which begins as one that tells something before them, and
// goes on without an order, a yes, or a word of what is wanted or allowed: "go ahead, I never liked the old one".
func (t *teller) markInert() {
	for at, token := range t.h.tokens {
		t.inert[at] = t.l.inner[token] && t.tellsBefore(at) && t.tellsAfter(at)
	}
}

// markVain finds the clauses that say what goes wrong without the act: "without it nothing builds", "otherwise it won't
// start". They begin so and state something, and hold no order, no yes, no other act and no wish.
func (t *teller) markVain() {
	for at := range t.h.tokens {
		n := t.l.lest.longest(t.h.tokens[at:])
		if n == 0 || !t.h.unbroken(at, n) || t.isIfNot(at) {
			continue
		}
		states, denies, end := false, 0, at+n
		for ; end < len(t.h.tokens) && !t.h.marked[end]; end++ {
			rest := t.h.tokens[end:]
			if t.ordered[end] || t.affirms(end) || t.l.wishes.has(rest) || t.ask.isOtherAct(rest) || devices[rest[0]] && t.ask.machine(rest) == 0 {
				break
			}
			switch {
			case t.l.inner[rest[0]]:
				denies++
			case t.l.subjects.has(rest) || t.l.openers.has(rest) || noSubjects[t.l.code] && t.states(end):
				states = true
			}
		}
		if last := t.h.tokens[end-1]; denies > 1 && (answers[last] || t.l == english() && strings.HasSuffix(last, "nt")) { // "it did not start without it, no"
			continue
		}
		states = states || n > 1 && end-at-n > 2 // "sem isso a api nem arranca"
		if states && denies > 0 && end-at-n > 1 && (end == len(t.h.tokens) || t.h.marked[end]) {
			for i := at; i < end; i++ {
				t.vain[i] = t.vain[i] || i < at+n || t.l.inner[t.h.tokens[i]]
				t.l.signals[signalAsk].at(t.h.tokens[i:end], func(length int, _ phraseKind) { // "toch niet"
					setAll(t.vain[i : i+length])
				})
			}
		}
	}
}

// isIfNot tells whether an "if" and a "not" stand at a position, written apart, that set a condition. They say what goes
// wrong otherwise only where what follows denies too: "se não nada funciona", and not "se não demorar".
func (t *teller) isIfNot(at int) bool {
	rest := t.h.tokens[at:]
	return len(rest) > 2 && (rest[0] == "se" || rest[0] == "si") && t.l.inner[rest[1]] && !t.h.marked[at+1] && !t.h.marked[at+2] && !t.l.inner[rest[2]]
}

// answers are the words that deny as an answer, at the end too. Set once.
var answers = setOf(strings.Join(hear("no nein nee non não nie нет ні nej hayır नहीं لا").tokens, " "))

// allow lets a story hold the tokens that a teller has marked.
func (t *teller) allow(told, marked []bool) {
	for i := range told {
		told[i] = told[i] || len(told) == len(marked) && marked[i]
	}
}

// tellsBefore tells whether a clause that tells something begins before a position and goes on to it.
func (t *teller) tellsBefore(at int) bool {
	for from := at - 1; from >= 0 && !t.h.marked[from+1]; from-- {
		if t.ordered[from] || t.l.wishes.has(t.h.tokens[from:]) {
			return false
		}
		if t.opens(from) && !t.concludes(from) || t.l.subjects.has(t.h.tokens[from:]) {
			return true
		}
	}
	return false
}

// tellsAfter tells whether the clause of a position goes on after it and speaks of nothing that is wanted or allowed.
func (t *teller) tellsAfter(at int) bool {
	next := at + 1
	for ; next < len(t.h.tokens) && !t.h.marked[next] && !t.concludes(next); next++ {
		if t.ordered[next] || t.l.wishes.has(t.h.tokens[next:]) || t.affirms(next) {
			return false
		}
	}
	return next > at+1
}

// affirms tells whether a yes stands at a position.
func (t *teller) affirms(at int) bool {
	return slices.ContainsFunc(t.steps[at], func(s step) bool { return s.kind == kindYes || s.kind == kindWeak || s.kind == kindEnd })
}

// markDenied finds the tokens that deny.
func (t *teller) markDenied() {
	vain := t.h.vainIn(t.l)
	t.markVain()
	t.allow(vain, t.vain)
	for at, token := range t.h.tokens {
		for _, m := range marks()[signalDeny][token] {
			if t.h.hasAt(at, m.tokens) {
				for i := range m.tokens {
					t.denied[at+i] = !vain[at]
				}
			}
		}
	}
}

// deniesFirst tells whether a clause may begin with its "not", as in languages whose verbs need no subject.
func (t *teller) deniesFirst(at int) bool {
	next := at + 1
	return noSubjects[t.l.code] && next < len(t.h.tokens) && !t.h.marked[next] && !t.denied[next] && len(t.steps[next]) == 0
}

// noSubjects are languages whose verbs need no subject. Set once.
var noSubjects = setOf("es it pt pl ru uk tr hi ar ja ko zh")
