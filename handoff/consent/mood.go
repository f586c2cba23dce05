package consent

import "slices"

// A state is how far a reply has come in being a yes: a set of what was said and of what is missing.
type state uint16

const (
	stateYes   state = 1 << iota // a yes was said
	stateFirm                    // it orders or permits: more than a "yeah"
	stateNamed                   // the act or the machine was named
	stateDo                      // "run": what to run is missing
	stateOpen                    // "um", "the": something must follow
	stateWeak                    // after the yes came a word that weakens it ("yeah, right"): a yes must follow
	stateNod                     // "no problem": a yes must follow
	stateNeed                    // "no need to ask": a firm yes that names the act must follow
	stateStory                   // a clause with unknown words: likewise
	stateTold                    // that clause named the act itself
	stateAct                     // just now the act was ordered by name: "all of them" may follow
)

// A verdict is what a state says where a reply ends.
type verdict int

const (
	verdictNone verdict = iota // something is missing or left over
	verdictOpen                // nothing but fillers
	verdictYes
	verdictFirm // an order or a permission
)

func (s state) has(what state) bool { return s&what != 0 }

// verdict is what a reply says that ends in this state.
func (s state) verdict() verdict {
	switch {
	case s&^stateNamed == 0:
		return verdictOpen
	case !s.has(stateYes), s.has(stateOpen | stateWeak), s.has(stateStory|stateNeed) && !(s.has(stateFirm) && s.has(stateNamed)):
		return verdictNone
	case s.has(stateFirm):
		return verdictFirm
	}
	return verdictYes
}

// says is a state after a yes.
func (s state) says(more state) state {
	return s&^(stateDo|stateOpen|stateWeak|stateNod) | stateYes | more
}

// after is the state after a phrase of a kind, and whether that phrase may stand there.
func (s state) after(kind phraseKind) (state, bool) {
	yes, begun := s.has(stateYes), s.has(stateDo) && !s.has(stateYes)
	article := s.has(stateOpen) && !yes
	act := s.has(stateAct)
	s &^= stateAct
	if article && kind != kindTopic && kind != kindLink && kind != kindHum {
		return s, false
	}
	switch kind {
	case kindYes:
		return s.says(stateFirm), true
	case kindWeak:
		return s.says(0), true
	case kindOrder:
		return s.says(stateFirm | stateNamed | stateAct), true
	case kindAll:
		return s.says(stateFirm), act
	case kindEnd:
		return s.says(stateFirm), !begun
	case kindFill:
		return s &^ stateOpen, true
	case kindSo:
		return s.so(), !begun
	case kindPost:
		return s, s.has(stateNamed)
	case kindTopic:
		if act {
			s |= stateAct
		}
	}
	return s.afterPart(kind, yes, begun)
}

// afterPart is after for the kinds that are part of a yes only.
func (s state) afterPart(kind phraseKind, yes, begun bool) (state, bool) {
	switch kind {
	case kindHum:
		if yes {
			s |= stateOpen
		}
		return s, true
	case kindLead:
		if yes {
			s = s&^stateOpen | stateWeak
		}
		return s, !begun
	case kindTail:
		if s.has(stateDo) {
			return s.says(stateFirm), true
		}
		return s &^ stateOpen, yes || s.has(stateNod)
	case kindLink:
		if !begun && !s.has(stateWeak|stateNod) {
			s |= stateOpen
		}
		return s, true
	case kindNod, kindNeed:
		if kind == kindNeed {
			s |= stateNeed
		}
		if !yes {
			s |= stateNod
		}
		return s &^ stateOpen, !begun
	case kindShrug:
		if yes {
			return s&^stateOpen | stateWeak, true
		}
		return s | stateNod, !begun
	case kindDo:
		return s&^(stateNod|stateOpen) | stateDo, true
	case kindAct:
		return s&^(stateNod|stateOpen) | stateDo | stateNamed | stateAct, true
	case kindCan:
		if !yes {
			s |= stateDo
		}
		return s &^ stateOpen, yes || s.has(stateNamed)
	case kindTopic:
		if s.has(stateDo) {
			return s.says(stateFirm | stateNamed), true
		}
		return s&^stateOpen | stateNamed, true
	}
	return s, false
}

// so is the state after a word that draws a conclusion.
func (s state) so() state {
	if s.has(stateYes) {
		s |= stateOpen
	}
	if s.has(stateTold) {
		s |= stateNamed
	}
	return s
}

// verdictOf is the best that a reply can say that is made of harmless phrases of one language, English and the
// question, and else of clauses that give a reason.
func (h heard) verdictOf(ask asking) verdict {
	fluent := h.fluent()
	plain := fluent.bestOf(ask, nil)
	if plain >= verdictYes || len(fluent.tokens) <= minClause {
		return plain
	}
	spoken := fluent.likely(nil, ask)
	fluent.doubts = fluent.doubtful(spoken, ask)
	return max(plain, fluent.bestOf(ask, spoken))
}

// bestOf is the best that a reply can say, with clauses that give a reason in some languages.
func (h heard) bestOf(ask asking, clauses []*language) verdict {
	best := verdictNone
	if len(h.tokens) == 0 {
		return best
	}
	for _, l := range languages {
		for s := range h.covered(l, ask, !slices.Contains(clauses, l)) {
			best = max(best, s.verdict())
		}
	}
	return best
}

// covered walks all ways to cut the tokens into phrases, and returns the states in which they can end.
func (h heard) covered(l *language, ask asking, plain bool) map[state]bool {
	spelled := respelled(h.tokens)
	reached := make([]map[state]bool, len(h.tokens)+1)
	for i := range reached {
		reached[i] = map[state]bool{}
	}
	reached[0][0] = true
	begins := make([]bool, len(h.tokens)+1) // after a word that draws a conclusion
	for at := range h.tokens {
		if len(reached[at]) == 0 {
			continue
		}
		step := func(length int, kind phraseKind) {
			if kind == kindEnd && at+length < len(h.tokens) {
				return
			}
			begins[at+length] = begins[at+length] || kind == kindSo
			for s := range reached[at] {
				if to, ok := s.after(kind); ok {
					reached[at+length][to] = true
				}
			}
		}
		english.book.at(h.tokens[at:], step)
		english.book.at(spelled[at:], func(length int, kind phraseKind) {
			if slices.Equal(spelled[at:at+length], h.tokens[at:at+length]) {
				return
			}
			if kind == kindYes || kind == kindWeak || kind == kindDo { // a word that only sounds like a yes may stand beside one
				kind = kindFill
			}
			step(length, kind)
		})
		if l != english {
			l.book.at(h.tokens[at:], step)
		}
		h.strengthened(at, l, step)
		ask.at(h.tokens[at:], l, step)
		if !plain {
			h.clauses(at, begins[at], l, ask, reached)
		}
	}
	return reached[len(h.tokens)]
}

// strengthened calls take for the phrases at a position that say yes with a word of degree before or in them:
// "perfectly fine", "that's totally okay". The word of degree alone says nothing.
func (h heard) strengthened(at int, l *language, take func(length int, kind phraseKind)) {
	for _, of := range []*language{l, english} {
		plain, from := make([]string, 0, len(h.tokens)-at), make([]int, 0, len(h.tokens)-at)
		for i := at; i < len(h.tokens); {
			if n := of.degree(h.tokens[i:]); n > 0 {
				i += n
				continue
			}
			plain, from = append(plain, h.tokens[i]), append(from, i)
			i++
		}
		if len(plain) == 0 || len(plain) == len(h.tokens)-at {
			continue
		}
		of.book.at(plain, func(n int, kind phraseKind) {
			length := from[n-1] + 1 - at
			switch kind {
			case kindYes, kindWeak, kindNod, kindTail:
				if length > n && h.unbroken(at, length) {
					take(length, kind)
				}
			}
		})
	}
}

// degree is the length of the words of degree with which tokens begin, or 0.
func (l *language) degree(tokens []string) int {
	longest := 0
	l.very.at(tokens, func(n int, _ phraseKind) { longest = max(longest, n) })
	return longest
}
