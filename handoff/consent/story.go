package consent

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of a yes with a story.
const (
	minTale   = 4  // words of the reply; characters of a dense script
	maxTale   = 24 // words of a clause
	minDenied = 3  // words of a clause that denies something else than the act; a shorter one takes back what was said
)

// A tale is how far a reply has come in being a yes with a story.
type tale uint16

const (
	taleYes      tale = 1 << iota // it began as a yes
	taleOrdered                   // it held an order or a permission
	taleNamed                     // the act or the machine was named, or a reason was opened
	taleOrder                     // the last clause was plain: an order, or a yes
	taleBare                      // that one was a yes alone
	taleOpen                      // an order must follow
	taleReason                    // a clause gave a reason
	taleTold                      // it held a clause
	taleDoubtful                  // it spoke of what only a story may speak of
)

// A teller looks for the story in a reply.
type teller struct {
	h          heard
	l          *language
	ask        asking
	steps      [][]step
	walks      [][]states // what plain words from each token on lead to
	strict     []bool     // no clause may hold the token
	loose      []bool     // no clause may hold the token, words of the past and of habit excepted
	held       []bool     // words begin there that hold off or ask
	ordered    []bool     // an order begins at the token
	denied     []bool     // the token denies; set where a clause may deny something else than the act
	inert      []bool     // the token denies something that a clause tells
	vain       []bool     // the token stands in a clause that says what goes wrong without the act
	scene      []bool     // the token paints what a clause tells; see markScene
	conclusion int        // where the reply draws its conclusion, or 0; see markConclusion
	lenient    bool       // clauses may begin anywhere and state nothing
}

// tells tells whether a reply is a yes with a story: it holds an order or a permission of the act or of going ahead.
// What stands beside it may have unknown words, but none that denies, holds off, limits, asks, or names another machine
// or act. The clause of the order is wholly understood.
func (h heard) tells(ask asking) bool {
	return h.tellsIn(ask, func(t *teller, said heard, spoken []*language) bool {
		t.mark(spoken)
		if !t.isYes() {
			return false
		}
		said.told = said.toldIn(t.l)
		t.allow(said.told, t.vain)
		t.allow(said.told, t.scene)
		t.allow(said.told, t.inert)
		if said.find(signalUnsure, ask) != absent || said.find(signalHold, ask) != absent || said.find(signalAsk, ask) != absent {
			return false
		}
		said.told = said.vainIn(t.l)
		t.allow(said.told, t.vain)
		t.allow(said.told, t.inert)
		return said.find(signalDeny, ask) == absent
	})
}

// tellsIn tells whether a teller in one of the likely languages finds something.
func (h heard) tellsIn(ask asking, finds func(t *teller, said heard, spoken []*language) bool) bool {
	h = h.untailed()
	said := h
	h = h.fluent()
	if len(h.tokens) < minTale {
		return false
	}
	shared, spoken := h.sharedSteps(ask), h.likely(nil, ask)
	tongue := h.spoken()
	return slices.ContainsFunc(spoken, func(l *language) bool {
		steps := h.stepsIn(l, tongue, shared, ask)
		if steps == nil {
			return false
		}
		n := len(h.tokens)
		t := &teller{h: h, l: l, ask: ask, steps: steps, walks: make([][]states, n+1),
			strict: make([]bool, n), loose: make([]bool, n), held: make([]bool, n), ordered: make([]bool, n), denied: make([]bool, n), inert: make([]bool, n), vain: make([]bool, n), scene: make([]bool, n)}
		for at := range n {
			t.ordered[at] = slices.ContainsFunc(steps[at], func(s step) bool { return s.kind == kindGo || s.kind == kindOrder || s.kind == kindAct })
		}
		return finds(t, said, spoken)
	})
}

// mark finds the tokens that no clause may hold.
func (t *teller) mark(spoken []*language) {
	told := t.h.toldIn(t.l)
	t.markVain()
	t.markInert()
	t.markTurns()
	t.markConclusion()
	t.markScene()
	for at := range t.h.tokens {
		t.blocks(at, spoken, func(length int) {
			if length == 1 && t.inert[at] || !slices.Contains(t.vain[at:at+length], false) || !slices.Contains(t.scene[at:at+length], false) {
				return
			}
			t.strict[at] = true
			for i := at; i < at+length; i++ {
				t.loose[at] = t.loose[at] || !told[i] && !t.inert[i]
			}
			t.loose[at] = t.loose[at] || t.isNext(at)
		})
	}
}

// isNext tells whether an order of another act comes at a position after an "and", though it looks like what was done.
func (t *teller) isNext(at int) bool {
	return at > 0 && slices.Contains(joins[t.l.code], t.h.tokens[at-1]) && t.ask.isOtherAct(t.h.tokens[at:])
}

// toldIn are the tokens of a reply that a story in a language may hold though they are doubtful elsewhere.
func (h heard) toldIn(l *language) []bool {
	out := make([]bool, len(h.tokens))
	for at := range h.tokens {
		l.told.at(h.tokens[at:], func(length int, _ phraseKind) {
			setAll(out[at : at+length])
		})
	}
	return out
}

// setAll sets flags of tokens.
func setAll(flags []bool) {
	for i := range flags {
		flags[i] = true
	}
}

// blocks calls take for the phrases at a position that no clause may hold.
func (t *teller) blocks(at int, spoken []*language, take func(length int)) {
	rest, token := t.h.tokens[at:], t.h.tokens[at]
	if t.ask.machine(rest) > 0 || at > 0 && t.ask.machine(t.h.tokens[at-1:]) > 1 {
		return
	}
	if devices[token] || hard[token] && !t.isDenseAt(at) && !t.concludes(at) || technical[token] || t.h.isOriginal(at, t.ask) || token == "si" && at > 0 && !t.isReflexive(at) ||
		strings.Trim(token, "0123456789") == "" && !t.ask.named(rest[:1]) || t.ask.isOtherAct(rest) && !t.isNoun(at) || t.isDenseAt(at) && t.ordersOther(rest) || t.l.code == "tr" && isTurkishCondition(token) {
		take(1)
	}
	for s := signalDeny; s <= signalAsk; s++ {
		for _, m := range marks()[s][token] {
			if s == signalAsk && t.h.endsOrder(at) {
				continue
			}
			if t.h.hasAt(at, m.tokens) && (s == signalDeny || !t.h.masked(at, len(m.tokens), s)) && (m.in == t.l || m.in == english() && !t.saysElse(at, m.tokens) || m.in != english() && !t.l.knows(m.tokens)) {
				take(len(m.tokens))
				t.held[at] = t.held[at] || s != signalDeny
			}
		}
	}
	t.l.mends.at(rest, func(n int, _ phraseKind) { take(n) })
	for _, l := range spoken {
		l.doubt.at(rest, func(n int, _ phraseKind) { take(n) })
	}
	if !t.l.known[token] && !t.l.vocab[token] {
		english().doubt.at(rest, func(n int, _ phraseKind) { take(n) })
	}
}

// isTurkishCondition tells whether a word ends as Turkish verbs do for "if", "when", "before" and "after".
func isTurkishCondition(word string) bool {
	return slices.ContainsFunc(turkishConditions, func(end string) bool { return len(word) > len(end)+1 && strings.HasSuffix(word, end) })
}

// turkishConditions are those endings, with each vowel. Set once.
var turkishConditions = strings.Fields("ince inca unca unce madan meden diktan dikten duktan dukten tiktan tikten tuktan tukten irsa irse arsa erse ursa urse ersek arsak iyorsa iyorsan diysa diyse tiysa tiyse duysa duyse acaksa ecekse mazsa mezse dikce dikca")

// ordersOther tells whether tokens of a dense script begin with an order of another act.
func (t *teller) ordersOther(rest []string) bool {
	for name, book := range orders() {
		if !slices.Contains(t.ask.about, name) && book.longest(rest) > 1 {
			return true
		}
	}
	return false
}

func (t *teller) isDenseAt(at int) bool {
	r, _ := utf8.DecodeRuneInString(t.h.tokens[at])
	return isDense(r)
}

// walk is what plain words lead to that begin at a token: states by the token where they end.
func (t *teller) walk(from int) []states {
	if t.walks[from] != nil {
		return t.walks[from]
	}
	n := len(t.h.tokens)
	reached := make([]states, n+1)
	reached[from].add(0)
	for at := from; at < n; at++ {
		for _, step := range t.steps[at] {
			to := at + step.length
			if step.kind == kindEnd && to < n && !t.h.marked[to] {
				continue
			}
			for _, s := range reached[at] {
				if s, ok := s.after(step.kind); ok {
					reached[to].add(s)
				}
			}
		}
	}
	t.walks[from] = reached
	return reached
}

// isYes looks for a way to cut the reply into plain words and clauses.
func (t *teller) isYes() bool {
	n := len(t.h.tokens)
	reached := make([][]tale, n+1)
	add := func(at int, s tale) {
		if !slices.Contains(reached[at], s) {
			reached[at] = append(reached[at], s)
		}
	}
	reached[0] = []tale{0}
	for to, found := range t.walk(0) {
		if slices.Contains(found, 0) { // "sorry, I was"
			add(to, 0)
		}
	}
	for at := range n {
		for i := 0; i < len(reached[at]); i++ {
			s := reached[at][i]
			if !s.has(taleOrder) {
				t.plain(at, s, add)
			}
			if !s.has(taleOpen) {
				t.clause(at, s, add)
			}
		}
	}
	return slices.ContainsFunc(reached[n], func(s tale) bool {
		return s.has(taleTold) && !s.has(taleOpen) && (s.has(taleOrdered) || s.has(taleReason) && !s.has(taleDoubtful))
	})
}

func (s tale) has(what tale) bool { return s&what != 0 }

// plain adds where plain words from a token on can end.
func (t *teller) plain(from int, s tale, add func(at int, s tale)) {
	for to, found := range t.walk(from) {
		if to > from && (t.held[to-1] || t.inert[to-1]) {
			return
		}
		if to > from && (t.isIf(to-1) || subordinate[t.h.tokens[to-1]] && to < len(t.h.tokens) && !t.h.marked[to]) {
			return
		}
		for _, state := range found {
			bare := state.has(stateAct) && to < len(t.h.tokens) && t.opens(to) // "yes, push, I want it out"
			if to == from || state.verdict() < verdictYes || state.has(stateOpen) || state.has(stateDo) && !bare {
				continue
			}
			next := s&^(taleOpen|taleBare) | taleYes | taleOrder
			switch {
			case state.has(stateOrdered), state.has(stateDo):
				next |= taleOrdered
			case s.has(taleOpen):
				continue
			default:
				next |= taleBare
			}
			if state.has(stateNamed) {
				next |= taleNamed
			}
			add(to, next)
		}
	}
}

// clause adds where a clause that tells something can end.
func (t *teller) clause(from int, s tale, add func(at int, s tale)) {
	if !t.begins(from, s) {
		return
	}
	states := t.opens(from) && !t.concludes(from)
	opens := t.opens(from) || t.l.subjects.has(t.h.tokens[from:])
	order := s.has(taleOrder) && !s.has(taleBare)
	blocked := t.loose
	if s.has(taleOrdered) && !t.h.marked[from] && (!opens || objects[t.h.tokens[from]] && !t.l.openers.has(t.h.tokens[from:])) {
		blocked = t.strict
	}
	next, denies, learns := s&^(taleOrder|taleBare)|taleTold, false, false
	for end := from; end < len(t.h.tokens) && (end == from || !t.h.marked[end]); end++ {
		if blocked[end] || t.joinsOrder(end) || t.h.weightOf(from, end) > maxTale || denies && t.ordered[end] && !infinitive[t.h.tokens[end-1]] {
			return
		}
		denies = denies || t.denied[end]
		learns = learns || t.learns(end)
		if (t.strict[end] || t.inert[end]) && !learns && !t.vain[end] {
			next |= taleDoubtful
		}
		states = states || denies || t.states(end)
		to := end + 1
		if t.ask.named(t.h.tokens[end:to]) || opens && order {
			next |= taleNamed
		}
		if s.has(taleYes) && (t.l.reasons.has(t.h.tokens[end:]) && (end > from || states) || learns || t.vain[end]) {
			next |= taleReason
		}
		if weight := t.h.weightOf(from, to); !states || weight < 2 || denies && weight < minDenied {
			continue
		}
		switch {
		case to == len(t.h.tokens), t.h.marked[to]:
			add(to, next)
		case t.concludes(to):
			add(to, next|taleNamed)
			if t.ordersAfter(to) {
				return
			}
		case t.denied[end]:
		case t.opens(to):
			add(to, next)
		case t.agrees(to), !denies && t.strong(to):
			add(to, next|taleOpen)
		}
	}
}

// learns tells whether words at a position say what somebody wants to know, and the act is one that tells it.
func (t *teller) learns(at int) bool {
	// one word, "let's see", hesitates
	return t.l.purpose.longest(t.h.tokens[at:]) > 1 && slices.Contains(t.ask.about, "test")
}

// begins tells whether a clause that tells something may begin at a position.
func (t *teller) begins(at int, s tale) bool {
	opens := t.opens(at)
	switch {
	case t.inert[at], !opens && t.joined(at), alreadys[t.h.tokens[at]] && !t.h.marked[at] && at+1 < len(t.h.tokens) && conditions[t.h.tokens[at+1]], t.l == english() && bareVerbs[t.h.tokens[at]]:
		return false
	case t.ordered[at] && (t.l != english() || !opens):
		return false
	case t.denied[at]:
		return t.deniesFirst(at)
	case !opens && t.agrees(at):
		return false
	case t.h.marked[at] || t.h.apart[at] && isIdeographic(t.h.tokens[at]) || opens || !s.has(taleOrder) || s.has(taleBare) || t.l.subjects.has(t.h.tokens[at:]):
		return true
	}
	return t.lenient || s.has(taleNamed) && len(t.steps[at]) == 0 && at+1 < len(t.h.tokens) && t.states(at+1)
}

// joined tells whether a preposition or an article stands before a position, with no mark between them.
func (t *teller) joined(at int) bool {
	return at > 0 && !t.h.marked[at] && slices.ContainsFunc(t.steps[at-1], func(s step) bool {
		return s.length == 1 && (s.kind == kindIn || s.kind == kindLink)
	})
}

// agrees tells whether a word that says yes, and orders nothing, stands at a position.
func (t *teller) agrees(at int) bool {
	return !t.ordered[at] && slices.ContainsFunc(t.steps[at], func(s step) bool { return s.kind == kindWeak })
}

// weightOf is how many words stand between two tokens.
func (h heard) weightOf(from, to int) int {
	part := h
	part.tokens = h.tokens[from:to]
	if to-from > 0 && part.weight() == 0 {
		return 1
	}
	return part.weight()
}

// opens tells whether a word at a position begins a reason or a story.
func (t *teller) opens(at int) bool {
	return t.l.openers.has(t.h.tokens[at:]) && !t.isIfNot(at) || t.concludes(at)
}

// concludes tells whether a word that draws a conclusion stands at a position.
func (t *teller) concludes(at int) bool {
	return slices.ContainsFunc(t.steps[at], func(s step) bool { return s.kind == kindSo })
}

// ordersAfter tells whether an order begins after a word that draws a conclusion.
func (t *teller) ordersAfter(at int) bool {
	return slices.ContainsFunc(t.steps[at], func(s step) bool {
		return s.kind == kindSo && at+s.length < len(t.h.tokens) && t.ordered[at+s.length]
	})
}

// states tells whether a word that makes a statement stands at a position.
func (t *teller) states(at int) bool {
	token := t.h.tokens[at]
	return t.lenient || t.l.statement.has(t.h.tokens[at:]) || t.l.vain.has(t.h.tokens[at:]) || len(t.steps[at]) == 0 && slices.ContainsFunc(t.l.endings, func(end string) bool {
		return len(token) > len(end)+2 && strings.HasSuffix(token, end)
	})
}

// endsStatement tells whether a statement ends before a position, so that an order may begin there.
func (t *teller) endsStatement(at int) bool {
	for from := max(0, at-maxSpelled); from < at; from++ {
		if t.l.statement.any(t.h.tokens[from:], func(n int, _ phraseKind) bool { return from+n == at }) {
			return true
		}
	}
	return false
}

// strong tells whether an order begins at a position, though no mark stands before it. The orders of English look
// like its infinitives.
func (t *teller) strong(at int) bool {
	before := t.h.tokens[at-1]
	if infinitive[before] {
		return false
	}
	if t.isDenseAt(at) && !t.endsStatement(at) {
		return false
	}
	if t.isDenseAt(at) || imperative[t.l.code] {
		return t.ordered[at] || slices.ContainsFunc(t.steps[at], func(s step) bool { return s.kind == kindTopic || s.kind == kindDo })
	}
	return hortative[t.h.tokens[at]] && len(t.steps[at]) > 0 ||
		slices.ContainsFunc(t.steps[at], func(s step) bool { return s.kind == kindGo && s.length > 1 })
}

// hortative are words that begin an order to somebody else, and nothing else. Set once.
var hortative = setOf("niech niechaj пусть пускаи хаи нехаи")

// joinsOrder tells whether a token joins more than a statement to a clause: "and wipe it".
func (t *teller) joinsOrder(at int) bool {
	if t.lenient || at < t.conclusion || !slices.Contains(joins[t.l.code], t.h.tokens[at]) {
		return false
	}
	for i := at + 1; i < min(at+3, len(t.h.tokens)); i++ {
		if t.l.subjects.has(t.h.tokens[i:]) || t.states(i) || t.l.openers.has(t.h.tokens[i:]) {
			return false
		}
	}
	return true
}

// surely are words before which "si" is a yes, and no "if". Set once.
var surely = setOf("porque perche parce puisque car pues")

// isIf tells whether a "si" stands at a position that may be an "if": before what is neither a yes nor an order.
func (t *teller) isIf(at int) bool {
	next := at + 1
	if t.h.tokens[at] != "si" && (t.h.tokens[at] != "se" || t.l.code != "pt" && t.l.code != "it") || next == len(t.h.tokens) || t.h.marked[next] || surely[t.h.tokens[next]] {
		return false
	}
	return !t.ordered[next] && !slices.ContainsFunc(t.steps[next], func(s step) bool {
		return s.kind == kindYes || s.kind == kindWeak || s.kind == kindFill || s.kind == kindNod || s.kind == kindDo
	})
}

// subordinate are words that end a yes and may begin a condition: "push it once it's reviewed". Set once.
var subordinate = setOf("once immediately directly sitot ora toen da")

// joins are the words for "and" of each language that writes them apart. Set once.
var joins = map[string][]string{
	"en": {"and", "then"}, "de": {"und"}, "fr": {"et", "puis"}, "es": {"y"}, "it": {"e", "poi"}, "pt": {"e"}, "nl": {"en"}, "pl": {"i", "oraz", "a"},
	"ru": {"и", "а"}, "uk": {"і", "и", "та", "й", "а"}, "sv": {"och"}, "tr": {"ve"}, "hi": {"और"},
}

// imperative are languages whose orders look like nothing else. Set once.
var imperative = setOf("ar hi tr")

// bareVerbs are English verbs that order, at the beginning of a clause. Set once.
var bareVerbs = setOf("use make take get put set keep read leave find see give start stop look write build send stay come move hold know love like check open close")

// infinitive are words after which what looks like an order is none. Set once.
var infinitive = setOf("to can could should would will shall may might must we you they i he she it and or if not let lets who which that always never " +
	"zu à de a di å att te at 不 没 要 想")

// technical are words that change how an act is done or where. Set once.
var technical = setOf("sudo root admin administrator force forced dry global globally branch branches develop dev staging stage production prod live flag flags " +
	"version verbose tag release backup hotfix feature origin fork verify skip cache registry mirror upstream downstream " +
	"zweig  rama ramo branche ветку ветка ветке гілку гілка gren dal ブランチ 브랜치 分支 फ़ोर्स ब्रांच फرع")
