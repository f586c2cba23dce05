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
			if s.kind == kindNod {
				setAll(t.scene[at : at+s.length])
			}
		}
		t.l.scene.at(t.h.tokens[at:], func(n int, _ phraseKind) {
			if !t.h.unbroken(at, n) || slices.Contains(t.ordered[at:at+n], true) || !t.opens(at) && !t.paintsBefore(at) || !t.paintsAfter(at+n) || withouts[t.h.tokens[at]] && !t.deniesBefore(at) {
				return
			}
			if slices.ContainsFunc(t.h.tokens[at:at+n], func(token string) bool { return conditions[token] }) && t.orderedBy(at) && !withouts[t.h.tokens[at]] {
				return // it may be a condition of the order
			}
			setAll(t.scene[at : at+n])
		})
	}
}

// markConclusion finds where a reply draws its conclusion: a yes with an order, to its end. What is told before it is its
// reason; there it may deny and contrast what it likes, but for its first word and an order.
func (t *teller) markConclusion() {
	for at := range t.h.tokens {
		if t.conclusionAt(at) {
			t.conclusion = at
		}
	}
	told := false
	for at := range t.conclusion {
		token := t.h.tokens[at]
		if told && (t.l.inner[token] || t.l.code == "zh" && (token == "不" || token == "没")) && at+1 < t.conclusion && !t.ordered[at+1] {
			t.inert[at] = true
		}
		if told {
			t.l.buts.at(t.h.tokens[at:], func(n int, _ phraseKind) {
				setAll(t.scene[at:min(at+n, t.conclusion)])
			})
		}
		told = told || t.opens(at) && !t.concludes(at) || t.l.subjects.has(t.h.tokens[at:]) || noSubjects[t.l.code] && t.states(at)
	}
}

// conclusionAt tells whether a word that draws a conclusion stands at a position, and after it a yes with an order to the
// end.
func (t *teller) conclusionAt(at int) bool {
	return slices.ContainsFunc(t.steps[at], func(s step) bool {
		yes := at + s.length
		return s.kind == kindSo && at > 0 && yes < len(t.h.tokens) && t.agrees(yes) && slices.ContainsFunc(t.walk(yes)[len(t.h.tokens)], func(s state) bool {
			return s.verdict() == verdictFirm && s.has(stateOrdered)
		})
	})
}

// orderedBy tells whether something was ordered before a position.
func (t *teller) orderedBy(at int) bool {
	return slices.ContainsFunc(t.h.indexes()[:at], t.orders) || slices.ContainsFunc(t.walk(0)[:at+1], func(found states) bool {
		return slices.ContainsFunc(found, func(s state) bool { return s.verdict() == verdictFirm && s.has(stateOrdered) })
	})
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
				return s.verdict() == verdictFirm && s.has(stateOrdered) && (s.has(stateNamed) || t.pointsAt(from, to))
			}) {
				return true
			}
		}
	}
	return false
}

// pointsAt tells whether words say yes and order something that they point at: "yes, allow it". Said to somebody else it
// would point at nothing: "yes, go ahead".
func (t *teller) pointsAt(from, to int) bool {
	return t.agrees(from) && slices.ContainsFunc(t.h.tokens[from:to], func(token string) bool { return objects[token] })
}

// objects are pronouns that stand for what was asked. Set once.
var objects = setOf("it them that es das sie ihm ihn le les lui lo los la las li gli o os isso ele ela het dat ze hem to je mu im это его их ему им це його їх йому det den dem onu bunu onlari इसे उसे इन्हें ها ه 它 그거 그걸 それ これ")

// paintsBefore tells whether a clause that tells something begins before a position and wants nothing. One that begins
// with a subject has stated something by then: "the tests before" is what an order is about.
func (t *teller) paintsBefore(at int) bool {
	if t.h.marked[at] {
		return false
	}
	begins, states := false, t.statesFrom(at)
	for from := at - 1; from >= 0; from-- {
		if t.orders(from) || t.affirms(from) && !t.isOpened(from) && !infinitive[t.h.tokens[max(0, from-1)]] {
			return begins
		}
		if t.wantsAt(from) {
			return false
		}
		states = states || t.states(from)
		begins = begins || t.opens(from) && !t.concludes(from) || states && (t.l.subjects.has(t.h.tokens[from:]) || noSubjects[t.l.code])
		if t.h.marked[from] {
			return begins
		}
	}
	return begins
}

// statesFrom tells whether a statement follows in the clause of a position.
func (t *teller) statesFrom(at int) bool {
	for at++; at < len(t.h.tokens) && !t.h.marked[at] && !t.concludes(at) && !t.agrees(at); at++ {
		if t.states(at) {
			return true
		}
	}
	return false
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
		if from+t.l.openers.longest(t.h.tokens[from:]) > at {
			return true
		}
	}
	return false
}

// wantsAt tells whether a word of what is wanted or to come stands at a position: "I am going to", and not "I was".
func (t *teller) wantsAt(at int) bool {
	return at >= t.conclusion && wants[t.h.tokens[at]] && (at == 0 || !pastAuxiliaries[t.h.tokens[at-1]])
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
				setAll(t.scene[at:next])
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
	return t.l != english() && t.l.knows(words) && t.h.harmless(at, t.l, t.ask)
}

// untailed is a reply without thanks, or what else may follow a yes, after a mark at its end.
func (h heard) untailed() heard {
	for at := max(1, len(h.tokens)-maxTail); at < len(h.tokens); at++ {
		if h.marked[at] && slices.ContainsFunc(languages(), func(l *language) bool {
			return l.book.any(h.tokens[at:], func(n int, kind phraseKind) bool { return kind == kindTail && at+n == len(h.tokens) })
		}) {
			h.tokens, h.apart, h.marked = h.tokens[:at], h.apart[:at], h.marked[:at]
			h.questions = slices.DeleteFunc(slices.Clone(h.questions), func(q int) bool { return q > at })
			return h
		}
	}
	return h
}

// maxTail is how many words what follows a yes has at most.
const maxTail = 4

// isReflexive tells whether a "si" at a position is the Italian one of a verb: "sennò si attacca".
func (t *teller) isReflexive(at int) bool {
	return t.l.code == "it" && at+1 < len(t.h.tokens) && !t.h.marked[at+1] && len(t.steps[at+1]) == 0
}

// conditions are words of each language that join a condition, a time or a contrast to what was ordered. Set once.
var conditions = setOf("if unless provided providing until till once after before when whenever but except maybe perhaps why only just later first without " +
	"wenn falls sofern sobald bis nachdem bevor nach vor aber ausser vielleicht warum nur erst bloss ohne " +
	"si sauf quand des apres avant mais seulement juste peut pourquoi sans jusqu " +
	"cuando salvo excepto menos despues antes pero quizas quiza hasta solo sin " +
	"se quando dopo prima ma tranne forse appena finche soltanto senza " +
	"depois mas exceto talvez ate so somente sem " +
	"als na nadat voordat tot maar behalve misschien alleen pas zonder toen " +
	"jesli gdy kiedy jak po przed zanim az ale oprocz chyba tylko dopiero bez " +
	"если когда после перед прежде пока но кроме только без зачем " +
	"якщо коли після перед перш поки але крім тільки лише без " +
	"om nar efter innan tills men utom kanske bara forst utan " +
	"eger once sonra kadar ama fakat belki sadece daha " +
	"अगर जब पहले बाद लेकिन मगर शायद सिर्फ केवल बस बिना " +
	"اذا لو قبل بعد لكن بس ربما فقط ")

// alreadys are adverbs that open a story, and not before a condition: "run it already, after lunch". Set once.
var alreadys = setOf("already schon deja ya gia ja al juz уже вже redan")
