package consent

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// A finding tells whether a reply holds a signal.
type finding int

const (
	absent    finding = iota
	contested         // it does in one language and not in another, and the reply may be in either
	present
)

// A mark is a phrase of a language, for the search in all languages at once.
type mark struct {
	in     *language
	tokens []string
	last   bool // it counts only where the sentence does not go on with the act
}

// The phrases of each signal, and the longer ones that can contain one and say something else, by their
// first tokens. A later signal is weaker: "not yet" holds off and does not deny. Set once.
var (
	marks = sync.OnceValue(func() [signalCount]map[string][]mark { return eachSignal(marksOf) })
	masks = sync.OnceValue(func() [signalCount]map[string][]mark { return eachSignal(masksOf) })
)

func eachSignal(of func(signal) map[string][]mark) (out [signalCount]map[string][]mark) {
	for s := range signalCount {
		out[s] = of(s)
	}
	return out
}

func marksOf(s signal) map[string][]mark {
	out := map[string][]mark{}
	for _, l := range languages() {
		for first, phrases := range l.signals[s] {
			for _, p := range phrases {
				out[first] = append(out[first], mark{l, p.tokens, p.last})
			}
		}
	}
	return out
}

func masksOf(s signal) map[string][]mark {
	out := map[string][]mark{}
	for _, l := range languages() {
		books := append([]phrasebook{l.book}, l.signals[min(s+1, signalNoise):]...)
		if s != signalDeny {
			books = slices.AppendSeq(books, maps.Values(l.acts))
		}
		for _, b := range books {
			for first, phrases := range b {
				for _, p := range phrases {
					if slices.ContainsFunc(p.tokens, func(t string) bool { return len(marks()[s][t]) > 0 }) {
						out[first] = append(out[first], mark{l, p.tokens, p.last})
					}
				}
			}
		}
	}
	return out
}

// find looks for a signal in a reply: words anywhere, characters of a dense script only without a mark
// between them. Where a longer phrase contains one ("no problem", "not yet"), it is none.
func (h heard) find(s signal, ask asking) finding {
	out := absent
	purpose := len(h.tokens)
	if s == signalAsk {
		purpose = h.purposeAt()
	}
	calm := sync.OnceValue(func() []bool { return h.reassured(ask) })
	for at := range purpose {
		if s == signalAsk && (h.endsOrder(at) || h.permits(at, ask)) {
			continue
		}
		if h.polite(at) || s == signalDeny && h.choice(at) {
			continue
		}
		var in []*language
		length := 0
		for _, m := range marks()[s][h.tokens[at]] {
			if h.hasAt(at, m.tokens) && !(h.isTale(at, len(m.tokens)) && h.mayTell(at, len(m.tokens), s)) && !h.masked(at, len(m.tokens), s) && !(s == signalAsk && h.calmEnd(at+len(m.tokens)-1, calm)) && !(m.last && h.goesOn(at+len(m.tokens), m.in, ask)) {
				in, length = append(in, m.in), max(length, len(m.tokens))
			}
		}
		switch {
		case len(in) == 0, (s == signalDeny || s == signalHold) && calm()[at]:
		case s != signalGrumble:
			out = max(out, h.contest(at, length, in, ask))
		case !slices.ContainsFunc(in, func(l *language) bool { return h.strengthens(at, length, l) }):
			return present
		}
	}
	if s == signalAsk && slices.ContainsFunc(h.indexes()[:purpose], h.choice) {
		out = present
	}
	return out
}

// mayTell tells whether a story may hold a signal at a position: what asks may not begin the reply, and no word that asks or
// holds off may end it, but within a phrase: "a minute ago".
func (h heard) mayTell(at, length int, s signal) bool {
	if s == signalAsk && at == 0 {
		return false
	}
	return s != signalAsk && s != signalHold || at+length < len(h.tokens) || s == signalHold && h.inTold(at, length) ||
		isIdeographic(h.tokens[at]) && !strings.ContainsAny(h.tokens[len(h.tokens)-1], "后後")
}

// inTold tells whether a longer phrase that a story may hold contains tokens.
func (h heard) inTold(at, length int) bool {
	return slices.ContainsFunc(h.indexes()[:at], func(from int) bool {
		return slices.ContainsFunc(languages(), func(l *language) bool {
			return l.told.any(h.tokens[from:], func(n int, _ phraseKind) bool { return n > length && from+n >= at+length })
		})
	})
}

// isTale tells whether a story may hold tokens.
func (h heard) isTale(at, length int) bool {
	return h.told != nil && !slices.Contains(h.told[at:at+length], false)
}

// endsOrder tells whether an order ends with a token that would begin a question: "please do I left it open".
func (h heard) endsOrder(at int) bool {
	return at > 0 && english().book.any(h.tokens[at-1:], func(n int, kind phraseKind) bool {
		return n == 2 && kind == kindYes && h.unbroken(at-1, 2)
	})
}

// calmEnd tells whether what looks like "yes or no" ends with the first word of a reassurance: "yes, no problem".
func (h heard) calmEnd(at int, calm func() []bool) bool {
	return at > 0 && h.denies(at) &&
		(calm()[at] || slices.ContainsFunc(languages(), func(l *language) bool { return l.book.has(h.tokens[at:], kindNod) }))
}

// goesOn tells whether a sentence goes on with the act, or with an order: "laat maar" ("never mind") before
// "installeren".
func (h heard) goesOn(at int, l *language, ask asking) bool {
	if at+1 < len(h.tokens) && totals[h.tokens[at]] && !h.marked[at] { // "laat alle tests"
		at++
	}
	if at >= len(h.tokens) || h.marked[at] {
		return false
	}
	on := false
	take := func(_ int, kind phraseKind) {
		on = on || kind == kindYes || kind == kindOrder || kind == kindDo || kind == kindTopic || kind == kindLink
	}
	ask.at(h.tokens[at:], l, take)
	l.book.at(h.tokens[at:], take)
	return on
}

// indexes are the positions of the tokens.
func (h heard) indexes() []int {
	out := make([]int, len(h.tokens))
	for i := range out {
		out[i] = i
	}
	return out
}

// masked tells whether a longer phrase of a reply contains the tokens from at on, and says something else.
func (h heard) masked(at, length int, s signal) bool {
	for from := range at + 1 {
		for _, m := range masks()[s][h.tokens[from]] {
			if n := len(m.tokens); n > length && from+n >= at+length && h.hasAt(from, m.tokens) && h.unbroken(from, n) {
				return true
			}
		}
	}
	return false
}

// unbroken tells whether no mark stands between tokens.
func (h heard) unbroken(at, length int) bool { return !slices.Contains(h.marked[at+1:at+length], true) }

// choice tells whether a token is the "not" of a Chinese question: "can or cannot".
func (h heard) choice(at int) bool {
	return at > 0 && at+1 < len(h.tokens) && h.tokens[at-1] == h.tokens[at+1] && slices.Contains([]string{"不", "没", "沒"}, h.tokens[at])
}

// contest settles whether a signal of some languages is one in this reply: another language, in which the
// reply may be, can mean something harmless by it ("no" is "in the" in Portuguese).
func (h heard) contest(at, length int, in []*language, ask asking) finding {
	var other []*language
	for _, l := range languages() {
		if !slices.Contains(in, l) && h.harmless(at, l, ask) && l.knows(h.tokens[at:at+length]) {
			other = append(other, l)
		}
	}
	if len(other) == 0 {
		return present
	}
	likely := h.likely(h.tokens[at:at+length], ask)
	isOther := func(l *language) bool { return slices.Contains(other, l) }
	switch {
	case len(likely) == 0, slices.ContainsFunc(likely, isOther) && slices.ContainsFunc(likely, func(l *language) bool { return !isOther(l) }):
		return contested
	case isOther(likely[0]):
		return absent
	case h.speaks(other, in, h.tokens[at:at+length], ask):
		return contested
	}
	return present
}

// knows tells whether a language has each of some words.
func (l *language) knows(tokens []string) bool {
	return !slices.ContainsFunc(tokens, func(t string) bool { return !l.known[t] && !l.vocab[t] })
}

// speaks tells whether a reply has a word that only the first of two groups of languages know.
func (h heard) speaks(these, those []*language, doubt []string, ask asking) bool {
	return slices.ContainsFunc(h.tokens, func(t string) bool {
		knows := func(l *language) bool { return l.known[t] }
		return !slices.Contains(doubt, t) && !ask.acts[t] && slices.ContainsFunc(these, knows) && !slices.ContainsFunc(those, knows)
	})
}

// harmless tells whether a phrase of a language begins at a token, and goes on with a word of that language
// or, after a preposition, with the machine.
func (h heard) harmless(at int, l *language, ask asking) bool {
	found := l.clause[h.tokens[at]] && at+1 < len(h.tokens)
	l.book.at(h.tokens[at:], func(length int, kind phraseKind) {
		next := at + length
		switch {
		case !h.unbroken(at, length):
		case next == len(h.tokens):
			found = found || kind == kindYes || kind == kindWeak || kind == kindFill || kind == kindTail || kind == kindTopic
		case kind == kindIn:
			found = found || !h.marked[next] && (ask.place(h.tokens[next:], l) > 0 || h.score(l, nil, ask) >= surelySpoken)
		default:
			found = found || !h.marked[next] && l.known[h.tokens[next]] && h.tokens[next] != h.tokens[at]
		}
	})
	return found
}

// likely returns the languages that know the most words of a reply, without those that are in doubt and
// those of the question.
func (h heard) likely(doubt []string, ask asking) []*language {
	var out []*language
	most := 1
	for _, l := range languages() {
		score := h.score(l, doubt, ask)
		switch {
		case score > most:
			out, most = []*language{l}, score
		case score == most:
			out = append(out, l)
		}
	}
	return out
}

// surelySpoken is how many words of a language in a reply show that it is in that language.
const surelySpoken = 5

// score is how many words of a reply a language knows, without those that are in doubt and those of the question.
func (h heard) score(l *language, doubt []string, ask asking) int {
	score := 0
	for _, t := range h.tokens {
		if (l.known[t] || l.vocab[t]) && !slices.Contains(doubt, t) && !ask.acts[t] {
			score++
		}
	}
	return score
}

// asksBack tells whether a reply has a question, other than one that is an idiom of consent: "why not?"
func (h heard) asksBack() bool {
	return slices.ContainsFunc(h.questions, func(end int) bool {
		return end == len(h.tokens) || !slices.ContainsFunc(languages(), func(l *language) bool {
			for at := max(0, end-6); at < end; at++ {
				if l.book.any(h.tokens[at:end], func(n int, kind phraseKind) bool {
					return n == end-at && (kind == kindShrug || kind == kindNod || kind == kindNeed)
				}) {
					return true
				}
			}
			return false
		})
	})
}

// isInverted tells whether a reply asks by the order of its first words: a verb that permits before who may, "mag je
// dat toestaan", "puede el portátil editarlos". A particle after them makes it none: "darf er ruhig".
func (h heard) isInverted(ask asking) bool {
	return len(h.tokens) > 0 && slices.ContainsFunc(languages(), func(l *language) bool {
		found := l.inverted.any(h.tokens, func(n int, _ phraseKind) bool { return !h.goesOnCalm(n, l) })
		l.modal.at(h.tokens, func(n int, _ phraseKind) {
			found = found || n < len(h.tokens) && ask.machine(h.tokens[n:]) > 0
			ask.after(h.tokens, n, l, func(end int, kind phraseKind) {
				found = found || kind == kindLink && ask.machine(h.tokens[end:]) > 0
			})
		})
		return found
	})
}

// goesOnCalm tells whether a reply ends after its first words, or goes on with a particle, or with a yes to its end.
func (h heard) goesOnCalm(at int, l *language) bool {
	return at == len(h.tokens) || l.book.has(h.tokens[at:], kindFill, kindYes, kindWeak) ||
		l.book.any(h.tokens, func(n int, kind phraseKind) bool { return n > at && (kind == kindYes || kind == kindEnd) })
}

// isNoise tells whether a reply is what a recogniser makes of silence: a credit, or nothing but what stands
// in brackets.
func (h heard) isNoise() bool {
	if h.bracketed && len(h.tokens) == 0 {
		return true
	}
	return len(h.tokens) > 0 && slices.ContainsFunc(languages(), func(l *language) bool {
		return slices.ContainsFunc(l.signals[signalNoise][h.tokens[0]], func(p phrase) bool {
			return h.hasAt(0, p.tokens) && (len(p.tokens) > 1 || len(h.tokens) == 1)
		})
	})
}

func (h heard) hasAt(at int, phrase []string) bool {
	if !startsWith(h.tokens[at:], phrase) {
		return false
	}
	for i := 1; i < len(phrase); i++ {
		if r, _ := utf8.DecodeRuneInString(phrase[i]); isDense(r) && h.apart[at+i] && !unicode.Is(unicode.Hangul, r) {
			return false
		}
	}
	return true
}

// polite tells whether a token ends the "hai", or one of several, that begins a Japanese reply: with the word after it that
// can look like a denial ("hai, yatte").
func (h heard) polite(at int) bool {
	return at > 0 && h.tokens[at] == "い" && h.tokens[at-1] == "は" && (h.apart[at-1] || at > 2 && h.tokens[at-2] == "い" && h.tokens[at-3] == "は")
}

func startsWith(tokens, phrase []string) bool {
	return len(tokens) >= len(phrase) && slices.Equal(tokens[:len(phrase)], phrase)
}
