package consent

import "slices"

// markScene finds the tokens of doubt that only paint what somebody tells: "I left it open before I drove off". They may
// stand where the reply orders the act by its name, in a clause that begins as one that tells something before them and
// says nothing of what is to come.
func (t *teller) markScene() {
	if !t.hasCore() {
		return
	}
	for at := range t.h.tokens {
		for _, s := range t.steps[at] { // "there's nothing wrong with that"
			for i := at; s.kind == kindNod && i < at+s.length; i++ {
				t.scene[i] = true
			}
		}
		t.l.scene.at(t.h.tokens[at:], func(n int, _ phraseKind) {
			if !t.h.unbroken(at, n) || slices.Contains(t.ordered[at:at+n], true) || !t.opens(at) && !t.paintsBefore(at) || !t.paintsAfter(at+n) || withouts[t.h.tokens[at]] && !t.deniesBefore(at) {
				return
			}
			for i := at; i < at+n; i++ {
				t.scene[i] = true
			}
		})
	}
}

// hasCore tells whether a reply says yes, and orders the act by its name.
func (t *teller) hasCore() bool {
	if !slices.ContainsFunc(t.h.indexes(), func(at int) bool {
		return t.agrees(at) || slices.ContainsFunc(t.steps[at], func(s step) bool { return s.kind == kindNod })
	}) {
		return false
	}
	for from := range t.h.tokens {
		if !t.ordered[from] && !t.affirms(from) {
			continue
		}
		for to, found := range t.walk(from) {
			if to > from+1 && slices.ContainsFunc(found, func(s state) bool {
				return s.verdict() == verdictFirm && s.has(stateOrdered) && s.has(stateNamed)
			}) {
				return true
			}
		}
	}
	return false
}

// paintsBefore tells whether a clause that tells something begins before a position, or there without its subject, and
// wants nothing.
func (t *teller) paintsBefore(at int) bool {
	begins := false
	for from := at - 1; from >= 0; from-- {
		if t.orders(from) || t.affirms(from) && !t.isOpened(from) && !infinitive[t.h.tokens[max(0, from-1)]] {
			return begins
		}
		if t.wantsAt(from) {
			return false
		}
		begins = begins || t.opens(from) && !t.concludes(from) || t.l.subjects.has(t.h.tokens[from:]) || noSubjects[t.l.code] && t.states(from)
		if t.h.marked[from] {
			return begins
		}
	}
	return begins
}

// paintsAfter tells whether a clause wants nothing from a position to its end: a mark, a conclusion or a yes.
func (t *teller) paintsAfter(at int) bool {
	for ; at < len(t.h.tokens) && !t.h.marked[at] && !t.concludes(at) && !t.agrees(at); at++ {
		if t.wantsAt(at) || t.orders(at) {
			return false
		}
	}
	return true
}

// orders tells whether a token is part of an order: the orders of English look like its infinitives.
func (t *teller) orders(at int) bool {
	for from := max(0, at-maxSpelled); from <= at; from++ {
		if !t.ordered[from] || from > 0 && infinitive[t.h.tokens[from-1]] {
			continue
		}
		if slices.ContainsFunc(t.steps[from], func(s step) bool {
			return from+s.length > at && (s.kind == kindGo || s.kind == kindOrder || s.kind == kindAct)
		}) {
			return true
		}
	}
	return false
}

// isOpened tells whether a token is part of what opens a clause.
func (t *teller) isOpened(at int) bool {
	for from := max(0, at-maxSpelled); from <= at; from++ {
		opens := false
		t.l.openers.at(t.h.tokens[from:], func(n int, _ phraseKind) { opens = opens || from+n > at })
		if opens {
			return true
		}
	}
	return false
}

// wantsAt tells whether a word of what is wanted or to come stands at a position: "I am going to", and not "I was".
func (t *teller) wantsAt(at int) bool {
	return wants[t.h.tokens[at]] && (at == 0 || !pastAuxiliaries[t.h.tokens[at-1]])
}

// pastAuxiliaries are words after which a wish is a former one. Set once.
var pastAuxiliaries = setOf("was were")

// markTurns lets a word of contrast lead from a story to the first order: "I'm driving here but yes push it".
func (t *teller) markTurns() {
	for at := range t.h.tokens {
		if t.ordered[at] {
			return
		}
		t.l.buts.at(t.h.tokens[at:], func(n int, _ phraseKind) {
			if next := at + n; at > 1 && next < len(t.h.tokens) && (t.agrees(next) || t.ordered[next]) {
				t.steps[at] = append(slices.Clip(t.steps[at]), step{n, kindSo})
				for i := at; i < next; i++ {
					t.scene[i] = true
				}
			}
		})
	}
}

// deniesBefore tells whether a clause denies something before a position: "it can't start without".
func (t *teller) deniesBefore(at int) bool {
	for from := at - 1; from >= 0 && !t.h.marked[from+1]; from-- {
		if t.inert[from] {
			return true
		}
	}
	return false
}

// withouts are words for "without", which say with a denial before them what the act is needed for. Set once.
var withouts = setOf("without ohne sans sin senza sem zonder bez без utan")

// isNoun tells whether what could be an order of another act is a thing of which somebody tells: "I trust that commit".
func (t *teller) isNoun(at int) bool {
	return at > 0 && determiners[t.h.tokens[at-1]] && t.paintsBefore(at-1)
}

// determiners stand before a noun, and before no order. Set once.
var determiners = setOf("the that this those these my our your his her their its a an")

// wants are words of what is to be done, wished or still to come. Set once.
var wants = setOf("want wants wanna will ill shall must should need needs needed gonna going let lets would wouldnt could might may can please " +
	"wollen mochte mochten muss mussen soll sollen sollte werde werden lass lasst darf " +
	"veux vais va vas vont dois doit devrait faut voudrais aimerais laisse laissez peut peux " +
	"quiero quiere voy vas vamos debo debe deberia deja dejame puede puedes " +
	"voglio vorrei vuole devo deve vado lasciami fammi puo puoi quero quer vou vai devo deve deixa pode podes " +
	"wil willen ga gaan moet moeten zal zou mag chce musze musi bede bedzie niech powinien powinno moze mozesz " +
	"хочу хочет буду будет надо должен должна должно пусть можно может можешь хоче треба повинен нехаи хаи може можеш " +
	"vill ska skulle maste bor borde far istiyorum istiyor lazim gerek gerekiyor चाहता चाहती चाहिए करूंगा करूंगी दो दीजिए " +
	"اريد بدي عايز عايزه لازم يجب ممكن راح سوف 要 想 必 得 会")

// saysElse tells whether words that deny in English say something harmless at a position of a reply in another language.
func (t *teller) saysElse(at int, words []string) bool {
	return t.l != english && t.l.knows(words) && t.h.harmless(at, t.l, t.ask)
}
