package consent

import (
	"maps"
	"slices"
	"sync"
)

// A step is a phrase that begins at some token.
type step struct {
	length int
	kind   phraseKind
}

// sharedSteps are the phrases of English and of the question that begin at each token: those that a reply in any
// language may have.
func (h heard) sharedSteps(ask asking) [][]step {
	spelled := respelled(h.tokens)
	degrees, calm := h.degrees(english()), h.reassurances(english(), ask)
	out := make([][]step, len(h.tokens))
	for at := range h.tokens {
		take := func(length int, kind phraseKind) { out[at] = append(out[at], step{length, kind}) }
		english().book.at(h.tokens[at:], take)
		if !slices.Equal(spelled[at:], h.tokens[at:]) {
			english().book.at(spelled[at:], func(length int, kind phraseKind) {
				if slices.Equal(spelled[at:at+length], h.tokens[at:at+length]) {
					return
				}
				if kind == kindYes || kind == kindWeak || kind == kindDo { // a word that only sounds like a yes may stand beside one
					kind = kindFill
				}
				take(length, kind)
			})
		}
		h.strengthened(at, english(), degrees, take)
		h.nods(at, calm, take)
		ask.at(h.tokens[at:], english(), take)
	}
	return out
}

// stepsIn are the shared steps and those of one more language, or nil if that has none of its own. English has the
// shared ones.
func (h heard) stepsIn(l *language, spoken []tongues, shared [][]step, ask asking) [][]step {
	i := slices.Index(languages(), l)
	if l == english() {
		return shared
	}
	if !slices.ContainsFunc(spoken, func(t tongues) bool { return t.has(i) }) {
		return nil
	}
	out := slices.Clone(shared)
	degrees, calm := h.degrees(l), h.reassurances(l, ask)
	for at, t := range spoken {
		named := slices.ContainsFunc(shared[at], func(s step) bool { return s.kind == kindTopic })
		if !t.has(i) && !named && calm == nil { // after a name the language may go on
			continue
		}
		out[at] = slices.Clip(out[at])
		take := func(length int, kind phraseKind) { out[at] = append(out[at], step{length, kind}) }
		l.book.at(h.tokens[at:], take)
		h.strengthened(at, l, degrees, take)
		h.nods(at, calm, take)
		ask.actAt(h.tokens[at:], l, take)
		ask.machineAt(h.tokens[at:], l, take)
	}
	return out
}

// nods calls take for the reassurances at a position: they go with a yes.
func (h heard) nods(at int, calm [][]step, take func(length int, kind phraseKind)) {
	if calm != nil {
		for _, s := range calm[at] {
			take(s.length, s.kind)
		}
	}
}

// degrees are, for each token, the length of the words of degree of a language that begin there; nil if none does.
func (h heard) degrees(l *language) (degrees []int) {
	for at := range h.tokens {
		if n := l.very.longest(h.tokens[at:]); n > 0 {
			if degrees == nil {
				degrees = make([]int, len(h.tokens))
			}
			degrees[at] = n
		}
	}
	return degrees
}

// strengthened calls take for the phrases at a position that say yes with a word of degree before or in them:
// "perfectly fine", "that's totally okay". The word of degree alone says nothing.
func (h heard) strengthened(at int, l *language, degrees []int, take func(length int, kind phraseKind)) {
	if degrees == nil {
		return
	}
	plain, from := make([]string, 0, len(h.tokens)-at), make([]int, 0, len(h.tokens)-at)
	for i := at; i < len(h.tokens); {
		if degrees[i] > 0 {
			i += degrees[i]
			continue
		}
		plain, from = append(plain, h.tokens[i]), append(from, i)
		i++
	}
	if len(plain) == 0 || len(plain) == len(h.tokens)-at {
		return
	}
	l.book.at(plain, func(n int, kind phraseKind) {
		length := from[n-1] + 1 - at
		switch kind {
		case kindYes, kindWeak, kindNod, kindTail:
			if length > n && h.unbroken(at, length) {
				take(length, kind)
			}
		}
	})
}

// tongues is a set of languages, by their place among them.
type tongues uint32

func (t tongues) has(i int) bool { return t>>i&1 != 0 }

// spokenIn is for each key of a phrasebook in which languages a phrase of a yes begins so. Set once.
var spokenIn = sync.OnceValue(func() map[string]tongues {
	out := map[string]tongues{}
	for i, l := range languages() {
		for _, b := range slices.AppendSeq([]phrasebook{l.book, l.very, l.calm}, maps.Values(l.acts)) {
			for key := range b {
				out[key] |= 1 << i
			}
		}
		for _, spelled := range l.numbers {
			for _, tokens := range spelled {
				out[tokens[0]] |= 1 << i
			}
		}
	}
	return out
})

// spoken are for each token the languages that have a phrase of a yes which begins there.
func (h heard) spoken() []tongues {
	in := spokenIn()
	out := make([]tongues, len(h.tokens))
	var key [64]byte
	for at, t := range h.tokens {
		out[at] = in[t] | in[string(appendStemKey(key[:0], t))]
		if at+1 < len(h.tokens) {
			out[at] |= in[string(append(append(key[:0], t...), h.tokens[at+1]...))]
		}
	}
	return out
}
