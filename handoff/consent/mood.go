package consent

import "slices"

// A state is how far a reply has come in being a yes: a set of what was said and of what is missing.
type state uint16

const (
	stateYes     state = 1 << iota // a yes was said
	stateFirm                      // it orders or permits: more than a "yeah"
	stateNamed                     // the act or the machine was named
	stateDo                        // "run": what to run is missing
	stateOpen                      // "um", "the": something must follow
	stateWeak                      // after the yes came a word that weakens it ("yeah, right"): a yes must follow
	stateNod                       // "no problem": a yes must follow
	stateNeed                      // "no need to ask": a firm yes that names the act must follow
	stateOrdered                   // it ordered or permitted, by the act or by "go ahead"
	stateAct                       // just now the act was ordered by name: "all of them" may follow
	stateWhy                       // "why wouldn't it": a yes must stand beside it, for an order may go on with it: "run them"
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
	case !s.has(stateYes), s.has(stateOpen | stateWeak | stateWhy), s.has(stateNeed) && !(s.has(stateFirm) && s.has(stateNamed)):
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
	if article && kind != kindTopic && kind != kindCount && kind != kindThing && kind != kindLink && kind != kindHum {
		return s, false
	}
	switch kind {
	case kindYes:
		return s.says(stateFirm), true
	case kindGo:
		return s.says(stateFirm | stateOrdered), true
	case kindWeak:
		return s.says(0) &^ stateWhy, true
	case kindOrder:
		return s.says(stateFirm | stateNamed | stateAct | stateOrdered), true
	case kindAll:
		return s.says(stateFirm | stateOrdered), act
	case kindCount:
		if s.has(stateYes) {
			return s.says(stateFirm | stateNamed), true
		}
		kind = kindTopic
	case kindEnd:
		return s.says(stateFirm | stateOrdered), !begun
	case kindThing:
		if s.has(stateDo) && s.has(stateNamed) {
			return s.says(stateFirm | stateNamed | stateAct | stateOrdered), true
		}
		return s &^ stateOpen, act || s.has(stateFirm) && s.has(stateNamed)
	case kindTotal: // may stand right after an order of the act
		switch {
		case act:
			return s.says(stateFirm | stateOrdered), !begun
		case yes:
			s |= stateWeak
		}
		return s &^ stateOpen, !begun
	case kindFill:
		return s &^ stateOpen, true
	case kindSo:
		if yes {
			s |= stateOpen
		}
		return s, !begun
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
			return s.says(stateFirm | stateOrdered), true
		}
		return s &^ stateOpen, yes || s.has(stateNod)
	case kindLink:
		if !begun && !s.has(stateWeak|stateNod) {
			s |= stateOpen
		}
		return s, true
	case kindNod, kindNeed, kindAsk:
		if kind == kindNeed || kind == kindAsk && !yes {
			s |= stateNeed
		}
		if !yes {
			s |= stateNod
		}
		return s &^ stateOpen, !begun
	case kindShrug, kindWhy:
		if kind == kindWhy && !yes {
			s |= stateWhy
		}
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
			return s.says(stateFirm | stateNamed | stateOrdered), true
		}
		return s&^stateOpen | stateNamed, true
	}
	return s, false
}

// verdictOf is the best that a reply can say that is made of harmless phrases of one language, English and the
// question, and of an end with unknown words.
func (h heard) verdictOf(ask asking) verdict {
	fluent := h.fluent()
	shared := fluent.sharedSteps(ask)
	plain := fluent.bestOf(ask, shared, nil)
	if plain >= verdictYes || len(fluent.tokens) <= minClause {
		return plain
	}
	spoken := fluent.likely(nil, ask)
	fluent.doubts = fluent.doubtful(spoken, ask)
	return max(plain, fluent.bestOf(ask, shared, spoken))
}

// bestOf is the best that a reply can say, with an end with unknown words in some languages.
func (h heard) bestOf(ask asking, shared [][]step, ends []*language) verdict {
	best := verdictNone
	if len(h.tokens) == 0 {
		return best
	}
	spoken := h.spoken()
	for _, l := range languages() {
		withEnds, steps := slices.Contains(ends, l), h.stepsIn(l, spoken, shared, ask)
		if steps == nil && !withEnds { // English says as much
			continue
		}
		if steps == nil {
			steps = shared
		}
		for _, s := range h.covered(l, ask, steps, !withEnds) {
			best = max(best, s.verdict())
		}
	}
	return best
}

// covered walks all ways to cut the tokens into phrases, and returns the states in which they can end.
func (h heard) covered(l *language, ask asking, steps [][]step, plain bool) states {
	reached := make([]states, len(h.tokens)+1)
	reached[0].add(0)
	for at := range h.tokens {
		if len(reached[at]) == 0 {
			continue
		}
		for _, step := range steps[at] {
			to := at + step.length
			if step.kind == kindGo || step.kind == kindEnd && to < len(h.tokens) {
				continue
			}
			for _, s := range reached[at] {
				if s, ok := s.after(step.kind); ok {
					reached[to].add(s)
				}
			}
		}
		if !plain {
			h.ends(at, l, ask, reached)
		}
	}
	return reached[len(h.tokens)]
}

// states are a set of states; a reply is seldom in more than a few.
type states []state

func (set *states) add(s state) {
	if !slices.Contains(*set, s) {
		*set = append(*set, s)
	}
}
