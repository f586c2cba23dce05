package consent

import (
	"slices"
	"strings"
)

// maxAfterthought is how many words an afterthought may have.
const maxAfterthought = 14

// endsInAfterthought tells whether a reply is a yes that orders the act by its name, and then only says what the speaker
// wants to learn from it or whom it serves: "run the tests, let's see whether it broke", "push it so the others can get it".
func (h heard) endsInAfterthought(reply string, ask asking) bool {
	if h.odd || h.cutOff || len(h.questions) > 0 {
		return false
	}
	for at := 2; at < len(h.tokens); at++ {
		if h.cuts(at) || !h.isAfterthought(at, ask) {
			continue
		}
		order := h.before(at)
		if order.agrees(reply, ask) && slices.ContainsFunc(order.indexes(), func(i int) bool { return order.ordersAct(i, ask) }) {
			return true
		}
	}
	return false
}

// cuts tells whether a phrase that denies, holds off or grumbles stands on both sides of a position.
func (h heard) cuts(at int) bool {
	for from := range at {
		for s := signalDeny; s <= signalUnsure; s++ {
			if slices.ContainsFunc(marks()[s][h.tokens[from]], func(m mark) bool { return from+len(m.tokens) > at && h.hasAt(from, m.tokens) }) {
				return true
			}
		}
	}
	return false
}

// agrees tells whether words before an afterthought are a yes. An order in our own words is no echo where somebody goes on.
func (h heard) agrees(reply string, ask asking) bool {
	if h.find(signalDeny, ask) != absent || h.find(signalHold, ask) != absent { // and then took it back
		return false
	}
	got := h.read(reply, ask)
	return got == Yes || got == Echo && h.verdictOf(ask) == verdictFirm
}

// before is what was said before a token.
func (h heard) before(at int) heard {
	h.tokens, h.apart, h.marked, h.questions = h.tokens[:at], h.apart[:at], h.marked[:at], nil
	return h
}

// ordersAct tells whether an order of the act by its name begins at a position.
func (h heard) ordersAct(at int, ask asking) bool {
	return slices.ContainsFunc(languages(), func(l *language) bool {
		found := false
		ask.actAt(h.tokens[at:], l, func(_ int, kind phraseKind) {
			found = found || kind == kindOrder || kind == kindAct || kind == kindDo
		})
		return found
	})
}

// isAfterthought tells whether the rest of a reply says what somebody wants to learn, or whom the act serves. It sets no
// condition or time, orders nothing, and takes nothing back.
func (h heard) isAfterthought(at int, ask asking) bool {
	rest := h.from(at).unsealed()
	if rest.weight() > maxAfterthought {
		return false
	}
	reports := false
	from, denies := rest.wonders(ask)
	if from == 0 {
		from, denies = rest.begins(serving), false
	}
	if from == 0 {
		from, reports = rest.asksReport(), true
	}
	if from == 0 {
		return false
	}
	told, last := rest.toldAnywhere(), len(rest.tokens)-1
	slavic := rest.isIn("ru", "uk")
	for i := range rest.tokens {
		t := rest.tokens[i]
		after := reports && afters[t] && (i < from || i == last) // "tell me afterwards", "how it went afterwards"
		if i >= from && (rest.marked[i] || conditions[t]) && i > from || rest.changesMind(i) && t != "whether" || i >= from && wants[t] && !ables[t] ||
			devices[t] && ask.machine(rest.tokens[i:]) == 0 || hard[t] && !after && t != "so" && t != "alla" || ask.isOtherAct(rest.tokens[i:]) || rest.holds(i) && !told[i] && !(denies && i > from && rest.saysStill(i)) && !after || rest.denies(i) && !(denies && i >= from && slavic && expletives[t]) && !rest.choice(i) {
			return false
		}
	}
	return true
}

// isIn tells whether a reply is most likely in one of some languages.
func (h heard) isIn(codes ...string) bool {
	return slices.ContainsFunc(h.likely(nil, asking{}), func(l *language) bool { return slices.Contains(codes, l.code) })
}

// ables are words of what somebody can then do. Set once.
var ables = setOf("can could konnen kann peuvent puedan pueda possono possam possa kunnen kan kunna moga może mogli могли мог зміг могли")

// maxWonder is how many words stand before what somebody wants to learn.
const maxWonder = 7

// wonders is where a clause that says what somebody wants to learn tells what it is, after its verb, or 0; and whether that
// may deny. What they want to hear of a thing before it is done would be a question: only tests are run to learn it.
func (h heard) wonders(ask asking) (from int, denies bool) {
	tests := slices.Contains(ask.about, "test")
	if isDense([]rune(h.tokens[0])[0]) {
		all := strings.Join(h.tokens, "")
		if tests && slices.ContainsFunc(wonderingEnds, func(end string) bool { return strings.HasSuffix(all, end) }) ||
			tests && h.apart[0] && slices.ContainsFunc(wonderingBegins, func(begin string) bool { return strings.HasPrefix(all, begin) }) {
			return len(h.tokens), false
		}
		return 0, false
	}
	for i, t := range h.tokens[:min(maxWonder, len(h.tokens))] {
		if addressed[t] || i > 0 && h.marked[i] {
			return 0, false
		}
		if !learning[t] || i == 0 && !h.marked[0] { // "manda ver"
			continue
		}
		for j := i + 1; j < len(h.tokens); j++ {
			if whethers[h.tokens[j]] && (j == i+1 || particles[h.tokens[j]]) || tests && j == i+1 && whatever[h.tokens[j]] {
				return i + 1, true
			}
		}
	}
	return 0, false
}

// isUndecided tells whether a reply wants to learn whether it should be, or what it would do: "I want to see what it would
// push".
func (h heard) isUndecided() bool {
	for i := 1; i < len(h.tokens); i++ {
		if !learning[h.tokens[i-1]] || !whethers[h.tokens[i]] && !whatever[h.tokens[i]] {
			continue
		}
		for j := i + 1; j < len(h.tokens) && !h.marked[j]; j++ {
			if undecided[h.tokens[j]] {
				return true
			}
		}
	}
	return false
}

// addressed are words to which a clause is a question or an order. Set once.
var addressed = setOf("you me du sie mir tu vous moi te usted dime me você voce jij je u mij ty mi ты вы мне ти ви мені")

// learning are verbs of what somebody wants to learn. Set once.
var learning = setOf("see know wonder wondering wondered curious sehen schauen gucken wissen neugierig gespannt voir savoir curieux curieuse ver saber " +
	"vedere sapere vediamo curioso curiosa vamos zien weten kijken benieuwd nieuwsgierig zobaczymy zobaczyc zobaczmy wiedziec ciekawe ciekaw ciekawa " +
	"посмотрим узнать знать интересно глянем увидим посмотреть подивимося подивимось побачимо цікаво дізнатися знати глянемо подивитися побачити увидеть " +
	"se veta nyfiken undrar")

// whethers are words after which stands what may be so or not. Set once.
var whethers = setOf("if whether ob si se of czy не ли чи om")

// expletives are words that deny nothing there. Set once.
var expletives = setOf("не ничего нічого")

// saysStill tells whether a word for what is so as before, in the language of the reply, stands at a position: "whether it
// still works".
func (h heard) saysStill(at int) bool {
	code, ok := stills[h.tokens[at]]
	spoken := h.likely(h.tokens[at:at+1], asking{})
	return ok && len(spoken) == 1 && spoken[0].code == code
}

// stills are those words, each with its language. Set once.
var stills = map[string]string{"still": "en", "noch": "de", "encore": "fr", "todavia": "es", "aun": "es", "ancora": "it", "ainda": "pt", "nog": "nl",
	"jeszcze": "pl", "wciaz": "pl", "еще": "ru", "ще": "uk", "fortfarande": "sv"}

// particles are those of them that stand within what they ask. Set once.
var particles = setOf("ли")

// whatever are words for what somebody does not know yet. Set once.
var whatever = setOf("what how was wie ce que comment que como cosa come wat hoe co jak что как що як vad hur")

// wonderingEnds are the last words of such a clause in languages that put its verb there. Set once.
var wonderingEnds = foldedAll("궁금해요", "궁금해", "궁금했어요", "궁금했어", "궁금했거든요", "궁금하네요", "궁금했는데", "궁금하거든요", "알고싶어요", "보고싶어요", "知りたい", "知りたいです", "知りたかった", "知りたかったんです", "気になってた", "気になってました", "気になります", "気になる")

// wonderingBegins are the first words of one in Chinese. Set once.
var wonderingBegins = foldedAll("我也想看看", "我想看看", "想看看", "我也想知道", "我想知道", "看看是不是", "看看能不能", "看看会不会", "看看有没有", "正好看看")

func foldedAll(list ...string) []string {
	for i, text := range list {
		list[i] = strings.Join(hear(text).tokens, "")
	}
	return list
}

// begins is the length of the phrase with which tokens begin and after which more stands, or 0.
func (h heard) begins(phrases [][]string) int {
	for _, begin := range phrases {
		if startsWith(h.tokens, begin) && len(h.tokens) > len(begin)+1 {
			return len(begin)
		}
	}
	return 0
}

// asksReport is where a clause that asks to be told how it went says what, or 0: "and tell me afterwards how it went".
func (h heard) asksReport() int {
	from := h.begins(reports)
	for i := from; from > 0 && i < min(from+3, len(h.tokens)); i++ {
		if whethers[h.tokens[i]] || whatever[h.tokens[i]] {
			return i + 1
		}
	}
	return 0
}

// unsealed is a reply without the yes after a mark that ends it.
func (h heard) unsealed() heard {
	if last := len(h.tokens) - 1; last > 0 && h.marked[last] && h.agreesAt(last) {
		return h.before(last)
	}
	return h
}

// toldAnywhere are the tokens that a story may hold in one of the languages of the reply.
func (h heard) toldAnywhere() []bool {
	out := make([]bool, len(h.tokens))
	for _, l := range h.likely(nil, asking{}) {
		for i, told := range h.toldIn(l) {
			out[i] = out[i] || told
		}
	}
	return out
}

// afters are words for the time after the act, at which somebody is told. Set once.
var afters = setOf("afterwards after later then danach nachher hinterher apres ensuite despues luego dopo poi depois daarna straks potem потом після потім efterat sonra")

// serving begin a clause of whom the act serves: "so the others can get it". Somebody else, or we, are its subject. Set once.
var serving = phrasesOf("so the others", "so that the others", "so everyone", "so everybody", "so that everyone", "so the team", "so my colleagues",
	"so they can", "so we can", "so i can", "so that i can", "so that we can", "damit die anderen", "damit die", "damit alle", "damit ich", "damit wir", "pour que les autres", "pour que tout le monde",
	"pour que je", "pour qu'on", "para que los demás", "para que los otros", "para que todos", "para que pueda", "para que podamos", "così gli altri", "così tutti", "così posso", "così possiamo",
	"para que os outros", "para os outros", "para que todos", "zodat de anderen", "zodat iedereen", "zodat ik", "zodat we", "żeby inni", "żeby wszyscy", "чтобы остальные", "чтобы все", "чтобы другие",
	"щоб інші", "щоб усі", "щоб всі", "så att de andra", "så att alla", "så de andra", "så alla")

// reports begin a request to be told how it went. Set once.
var reports = phrasesOf("and tell me", "and then tell me", "then tell me", "and let me know", "then let me know", "tell me", "let me know", "und sag mir", "und sag", "und erzähl mir", "sag mir", "und sag mir bescheid",
	"et dis moi", "dis moi", "et raconte moi", "y dime", "y cuéntame", "dime", "e dimmi", "dimmi", "poi dimmi", "e me diz", "e me conta", "e diz me", "en zeg me", "en vertel me", "en laat me weten", "i powiedz mi", "i daj znać",
	"и скажи", "и скажи мне", "и расскажи", "потом скажи", "і скажи", "і скажи мені", "і розкажи", "och säg", "och berätta", "berätta")

func phrasesOf(list ...string) (out [][]string) {
	for _, text := range list {
		out = append(out, hear(text).tokens)
	}
	return out
}

// minRepeated is how often a yes is said that no longer grumbles.
const minRepeated = 3

// repeatsYes tells whether a reply is one yes, or one order to go, said over and over: "yeah yeah yeah". Said twice it may
// grumble.
func (h heard) repeatsYes() bool {
	n := len(h.tokens)
	for period := 1; period <= n/minRepeated; period++ {
		if !h.repeats(0, n, period) || slices.Contains(h.marked[1:period], true) {
			continue
		}
		first := strings.Join(h.tokens[:period], "")
		return repeated[first] || slices.ContainsFunc(languages(), func(l *language) bool {
			return slices.ContainsFunc(l.book[h.tokens[0]], func(p phrase) bool { return p.joined == first && (p.kind == kindWeak || p.kind == kindYes) })
		})
	}
	return false
}

// repeated are words that order to go ahead only when they are repeated. Set once.
var repeated = setOf("go do")
