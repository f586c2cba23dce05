package consent

import (
	"slices"
	"strings"
	"sync"
)

// Bounds of a clause with unknown words beside a yes.
const (
	minClause = 3  // words of a reply with unknown ones
	maxClause = 14 // words
	maxFollow = 8  // words of what is to be told afterwards
)

// ends adds to the states what the end of a reply leads to that begins at a position and may have unknown words: one
// that asks to be told how it went, after a yes, or that says what the order of the act is good for.
func (h heard) ends(at int, l *language, ask asking, reached []states) {
	if h.follows(at, l) {
		for _, s := range reached[at] {
			if s.has(stateYes) && !s.has(stateWeak) {
				reached[len(h.tokens)].add(s &^ stateOpen)
			}
		}
	}
	if h.isPurpose(at, l, ask) {
		for _, s := range reached[at] {
			if s.has(stateYes) && s.has(stateFirm) && s.has(stateNamed) && !s.has(stateOpen|stateWeak) {
				reached[len(h.tokens)].add(s &^ stateAct)
			}
		}
	}
}

// follows tells whether a request to be told how it went begins at a position and goes to the end.
func (h heard) follows(at int, l *language) bool {
	rest := h.tokens[at:]
	asks := func(n int, kind phraseKind) bool {
		return kind == kindFollow && n < len(rest) && len(rest)-n <= maxFollow && !slices.Contains(h.doubts[at+n:len(h.tokens)], true)
	}
	return l.book.any(rest, asks) || english().book.any(rest, asks)
}

// isPurpose tells whether the rest of a reply says what the act is good for: "I'd like to see whether my change broke
// something". In it stand no limit, no time and no other act or machine; it may be in doubt how things are.
func (h heard) isPurpose(at int, l *language, ask asking) bool {
	length := max(l.purpose.longest(h.tokens[at:]), english().purpose.longest(h.tokens[at:]))
	if length == 0 || at+length == len(h.tokens) || h.from(at).weight() > maxClause {
		return false
	}
	for i := at + length; i < len(h.tokens); i++ {
		if i > at+length+1 && (conditions[h.tokens[i]] || h.changesMind(i)) {
			return false
		}
		if t := h.tokens[i]; hard[t] || undecided[t] || devices[t] && ask.machine(h.tokens[i:]) == 0 || ask.isOtherAct(h.tokens[i:]) {
			return false
		}
	}
	return true
}

// undecided are words of whether to allow it, and of what it would do: who wants to know that has not decided. Set once.
var undecided = setOf("should shall would allow permit soll sollte wurde erlauben darf devrais devrait autoriser permettre deberia debo permitir devo dovrei " +
	"permettere dovrebbe devia deveria mag toestaan zou powinienem pozwolic powinno стоит разрешать разрешить варто дозволити дозволяти borde tillata izin")

// changesMind tells whether a phrase of doubt begins at a position: "I changed my mind".
func (h heard) changesMind(at int) bool {
	return slices.ContainsFunc(languages(), func(l *language) bool { return l.doubt.longest(h.tokens[at:]) > 1 })
}

// purposeAt is where a clause begins, after something else, that says what an act is good for; what is asked in it is
// not asked of us. It is the end of a reply that has none.
func (h heard) purposeAt() int {
	for at := 1; at < len(h.tokens); at++ {
		if slices.ContainsFunc(languages(), func(l *language) bool { return l.purpose.longest(h.tokens[at:]) > 1 }) {
			return at
		}
	}
	return len(h.tokens)
}

// hard are words of a limit, of another thing or of another time. Set once.
var hard = setOf("only just first before after until unless once other another instead different rather without half part some except later tomorrow " +
	"nur erst vorher bevor nachdem bis ausser andere anderen anderer anderes stattdessen lieber ohne halfte teil morgen spater " +
	"seulement dabord avant apres sauf autre plutot sans moitie demain solo primero antes despues salvo otro otra mejor sin mitad manana " +
	"prima dopo tranne altro altra senza meta domani so primeiro depois exceto outro outra sem metade amanha " +
	"alleen eerst voordat nadat behalve andere liever zonder tylko najpierw zanim potem oprocz inny inna bez jutro " +
	"только сначала прежде потом кроме другои другом другую без завтра тільки спочатку перш потім крім інший інша " +
	"bara forst innan efter utom annan utan imorgon sadece once sonra haric baska olmadan yarin " +
	"فقط اولا قبل بعد غدا سوى غير सिर्फ पहले बाद कल 先 只 别 明 后 先 만 먼저 내일")

// doubtful tells beside which tokens of a reply no unknown word may stand.
// The reply is in one of the languages, and in English.
func (h heard) doubtful(spoken []*language, ask asking) []bool {
	out := make([]bool, len(h.tokens))
	for i, t := range h.tokens {
		rest := h.tokens[i:]
		other := devices[t] && ask.machine(rest) == 0 && (i == 0 || ask.machine(h.tokens[i-1:]) < 2)
		out[i] = other || h.isOriginal(i, ask) || strings.Trim(t, "0123456789") == "" || isDense([]rune(t)[0]) ||
			english().doubt.has(rest) || slices.ContainsFunc(spoken, func(l *language) bool { return l.doubt.has(rest) }) || ask.isOtherAct(rest)
	}
	return out
}

// isOtherAct tells whether tokens begin with an order of an act that the question is not about.
func (a asking) isOtherAct(tokens []string) bool {
	if softVerbs[tokens[0]] || len(tokens[0]) < 4 || a.named(tokens[:1]) {
		return false
	}
	for name, book := range orders() {
		if !slices.Contains(a.about, name) && book.has(tokens) {
			return true
		}
	}
	return false
}

// orders are the orders of each act in all languages. Set once.
var orders = sync.OnceValue(func() map[string]phrasebook {
	out := map[string]phrasebook{}
	for name := range actNames {
		out[name] = phrasebook{}
		for _, l := range languages() {
			for key, phrases := range l.acts[name] {
				for _, p := range phrases {
					if p.kind == kindDo || p.kind == kindOrder {
						out[name][key] = append(out[name][key], p)
					}
				}
			}
		}
	}
	return out
})

// isOriginal tells whether a word means what a copy was asked about instead of, and the reply names no copy: "yes, go on
// then, in the original".
func (h heard) isOriginal(at int, ask asking) bool {
	return originals[h.tokens[at]] && slices.Contains(ask.about, "copy") && !slices.ContainsFunc(h.tokens, func(t string) bool {
		return strings.HasPrefix(t, "cop") || strings.HasPrefix(t, "kop") || strings.HasPrefix(t, "коп")
	})
}

// originals are words for what a copy is made of. Set once.
var originals = setOf(strings.Join(hear("original originals originalen originalet origineel originele originaal originale originaux originali originales originais originaux "+
	"oryginal oryginale oryginalna оригинал оригинале оригинала оригінал оригіналі оригінала orijinal orijinali orijinalinde orijinalde मूल ओरिजिनल "+
	"原 元 الأصل بالأصل الأصلية الأصلي").tokens, " "))

// softVerbs order many acts, and are said of much else. Set once.
var softVerbs = setOf("make take work works add start save write change launch bring made build create code " +
	"mach mache nimm fais prends haz utilise utilisent utiliza utilizan editor usa usar fai crea prueba prova trabaja faz cria maak werk neem zrób gör skapa")

// devices are words for machines: one that the question is not about ends a yes. Set once.
var devices = setOf("laptop desktop workstation macbook mac imac notebook tablet phone server servers cluster cloud vm nas pc computer raspberry " +
	"rechner handy portable ordinateur serveur ordenador portatil servidor computador computadora telefono serwer komputer ноутбук сервер компьютер " +
	"телефон комп'ютер dator servern datorn mobil telefon bilgisayar sunucu " +
	"serwerze serwera laptopie laptopa komputerze telefonie сервере сервера ноутбуке ноутбука компьютере телефоне сервері сервера ноутбуці телефоні laptopen telefonen sunucuda laptopta telefonda सर्वर लैपटॉप")
