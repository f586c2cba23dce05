package consent

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Bounds of what of a question may be repeated in a yes.
const (
	maxActWords    = 8 // words of the acts
	maxNameTokens  = 4 // tokens of a machine's name
	maxHeardTokens = 8 // tokens in which it may be heard; a character of Chinese or Japanese is one
	maxActPhrases  = 16
	maxMachineName = 16
)

// asking is what the words of the question add to the harmless ones.
type asking struct {
	machines []string   // written together
	initials [256]bool  // the first bytes of those
	book     phrasebook // what a yes may repeat, in any language
	acts     map[string]bool
	programs map[string]bool // the first words of commands: "npm"
	about    []string        // names of acts
	digits   []string        // numbers in the question
	files    [][]string      // the words of each file
	ours     [][]string      // the words with which it was asked
	things   map[string]bool // pairs of words in ours that may name a thing: "checkout flow"
}

// askedWords returns what the words of a question add. It keeps what it made for the questions of late: a reply
// is read for each that is open.
func askedWords(q Question) asking {
	key := strings.Join(slices.Concat(q.Acts, []string{"\x00"}, q.Machines, []string{"\x00", q.Text, q.Said}), "\x00")
	lately.Lock()
	defer lately.Unlock()
	if a, ok := lately.asked[key]; ok {
		return a
	}
	if lately.asked == nil || len(lately.asked) >= maxLately {
		lately.asked = map[string]asking{}
	}
	a := newAsking(q)
	lately.asked[key] = a
	return a
}

// maxLately is of how many questions the words are kept.
const maxLately = 64

// lately are words of questions, each set once.
var lately struct {
	sync.Mutex
	asked map[string]asking // Guarded by Mutex
}

func newAsking(q Question) asking {
	a := asking{book: phrasebook{}, acts: map[string]bool{}, programs: map[string]bool{}, things: map[string]bool{}}
	for _, name := range q.Machines[:min(len(q.Machines), maxMachineName)] {
		tokens := hear(name).tokens
		a.called(tokens)
		if len(tokens) > 1 && (tokens[0] == "the" || tokens[0] == "my") { // "the desktop" is also "desktop"
			a.called(tokens[1:])
		}
	}
	for _, act := range q.Acts[:min(len(q.Acts), maxActPhrases)] {
		tokens := hear(act).tokens
		isFile := strings.Contains(strings.Trim(act, "./"), ".") && len(tokens) > 1
		if isFile {
			a.files = append(a.files, tokens)
		}
		for _, t := range tokens {
			if len(a.acts) < maxActWords && harmlessAct(t) {
				a.acts[t] = true
				if !isFile {
					a.does(t)
				}
			}
		}
	}
	if first := hear(strings.Join(q.Acts, " ")).tokens; len(first) > 1 && !slices.Contains([]string{"go", "edit", "copy", "make"}, first[0]) {
		a.programs[first[0]] = true // "go" is a word of much else
	}
	for t := range a.acts {
		a.book.add(words(t), kindTopic)
		for _, spoken := range spokenActs()[t] {
			a.book.add(spoken, kindTopic)
		}
		for _, form := range inflected(t) {
			if harmlessAct(form) {
				a.book.add(words(form), kindTopic)
			}
		}
	}
	a.ours = [][]string{hear(head(q.Text)).tokens, hear(head(q.Said)).tokens}
	a.numbers(slices.Concat(a.ours...))
	a.name(a.ours...)
	return a
}

// numbers lets a reply repeat a number of the question, written or spelled, and no other.
func (a *asking) numbers(ours []string) {
	for digits := range english().numbers {
		spelled := english().numbers[digits][0][0]
		if slices.Contains(ours, digits) || slices.Contains(ours, spelled) {
			a.digits = append(a.digits, digits)
			for _, form := range []string{digits, spelled} {
				a.book.add(words(form), kindTopic)
				a.book.add(words("all", form), kindTopic)
				a.book.add(words("all", "of", "the", form), kindTopic)
			}
		}
	}
}

// name lets an order of the act repeat two words of the question that stand side by side and mean nothing else to us:
// they name what it is about.
func (a *asking) name(ours ...[]string) {
	plain := func(t string) bool {
		return len(t) >= 4 && harmlessAct(t) && !english().known[t] && !english().vocab[t] && !devices[t] && a.machine([]string{t}) == 0
	}
	for _, tokens := range ours {
		for i := 1; i < len(tokens); i++ {
			if plain(tokens[i-1]) && plain(tokens[i]) {
				a.things[tokens[i-1]+" "+tokens[i]] = true
			}
		}
	}
}

// words are a phrase.
func words(tokens ...string) phrase {
	return phrase{tokens: tokens, joined: strings.Join(tokens, "")}
}

// called lets a reply say the machine's name, in whatever pieces it is heard.
func (a *asking) called(name []string) {
	if len(name) > 0 && len(name) <= maxNameTokens && (len(name) > 1 || harmlessAct(name[0]) && !pronouns[name[0]]) {
		a.machines = append(a.machines, strings.Join(name, ""))
		a.machines = append(a.machines, translated()[strings.Join(name, "")]...)
	}
	for _, name := range a.machines {
		a.initials[name[0]] = true
	}
}

// at calls take for what of the question the tokens begin with, in a language or English.
func (a asking) at(tokens []string, l *language, take func(length int, kind phraseKind)) {
	a.book.at(tokens, take)
	for t := range a.acts {
		if soundsLike(tokens[0], t) {
			take(1, kindTopic)
		}
	}
	a.spelledAt(tokens, take)
	for _, of := range a.languages(l) {
		a.actAt(tokens, of, take)
	}
	if len(tokens) > 1 && a.things[tokens[0]+" "+tokens[1]] {
		take(2, kindThing)
	}
	a.machineAt(tokens, l, take)
}

// spelledAt calls take for a word of the question that is spelled, "en pee em", and for two with the name of a mark
// between them, "cart dot go".
func (a asking) spelledAt(tokens []string, take func(length int, kind phraseKind)) {
	if len(tokens) > 2 && markNames[tokens[1]] && a.acts[tokens[0]] && (a.acts[tokens[2]] || fileEndings[tokens[2]]) {
		take(3, kindTopic)
	}
	var word strings.Builder
	for n, t := range tokens[:min(len(tokens), maxSpelled)] {
		letter, ok := letterNames[t]
		if !ok && len(t) == 1 {
			letter, ok = t, true
		}
		if !ok {
			return
		}
		if word.WriteString(letter); n > 0 && a.acts[word.String()] {
			take(n+1, kindTopic)
		}
	}
}

// maxSpelled is how many letters of a word may be spelled.
const maxSpelled = 6

// markNames are what people call the marks of a command. Set once.
var markNames = setOf("dot slash dash underscore hyphen minus point punkt strich punto barra ponto punt kropka точка крапка nokta डॉट ドット دوت نقطه")

// fileEndings are the ends of files' names that are no word of a question. Set once.
var fileEndings = setOf("go js ts py")

// namesOtherCommand tells whether a reply names the program of the question with something else that it does:
// "npm start" for "npm install".
func (a asking) namesOtherCommand(tokens []string) bool {
	for i := 1; i < len(tokens); i++ {
		if a.programs[tokens[i-1]] && subcommands[tokens[i]] && !a.acts[tokens[i]] {
			return true
		}
	}
	return false
}

// subcommands are what programs do. Set once.
var subcommands = setOf("start run build push pull commit publish audit update upgrade uninstall remove test ci init clean merge rebase reset checkout " +
	"fetch clone stash deploy exec link login add list outdated dedupe prune rollback revert cache config vet generate mod tool fmt install freeze download " +
	"tag restart serve lint format старт пуш билд スタート 스타트")

// actAt calls take for the act and the numbers of the question at the front, in a language.
func (a asking) actAt(tokens []string, l *language, take func(length int, kind phraseKind)) {
	for _, name := range a.about {
		l.acts[name].at(tokens, func(length int, kind phraseKind) {
			switch {
			case kind == kindDo && !l.nouns && !english().orders(tokens[:length]): // an imperative by its form
				kind = kindOrder
			case kind == kindDo:
				kind = kindAct
			}
			take(length, kind)
		})
	}
	for _, digits := range a.digits {
		for _, number := range l.numbers[digits] {
			if startsWith(tokens, number) {
				take(len(number), kindTopic)
				take(len(number), kindCount)
			}
		}
	}
}

// has tells whether tokens begin with a phrase of one of some kinds, in a language or of the act of the question.
func (a asking) has(tokens []string, l *language, kinds ...phraseKind) bool {
	found := l.book.has(tokens, kinds...)
	a.actAt(tokens, l, func(_ int, kind phraseKind) { found = found || slices.Contains(kinds, kind) })
	return found
}

// machineAt calls take for the machine's name, "the laptop", "on the laptop" and "the laptop may" at the front.
func (a asking) machineAt(tokens []string, l *language, take func(length int, kind phraseKind)) {
	may := func(length int, kind phraseKind) {
		if kind == kindMay {
			take(length, kindOrder)
		}
	}
	named := func(n int) {
		take(n, kindTopic)
		a.after(tokens, n, l, may)
	}
	if n := a.machine(tokens); n > 0 {
		named(n)
	}
	if name, ok := strings.CutSuffix(tokens[0], "s"); ok && len(tokens) > 1 && a.calls(name) { // "mini's allowed"
		english().book.at(append([]string{"is"}, tokens[1:]...), may)
	}
	if tokens[0] == "que" && a.machine(tokens[1:]) > 0 { // "sí que bigpc corra"
		take(1, kindLink)
	}
	a.after(tokens, 0, l, func(end int, kind phraseKind) {
		switch kind {
		case kindLink:
			if n := a.machine(tokens[end:]); n > 0 {
				named(end + n)
			}
		case kindIn:
			if n := a.place(tokens[end:], l); n > 0 {
				take(end+n, kindTopic)
			} else if end < len(tokens) && a.acts[tokens[end]] { // "auf main"
				take(end+1, kindTopic)
			}
		}
	})
}

// languages are a language and English, each once.
func (a asking) languages(l *language) []*language {
	if l == english() {
		return []*language{english()}
	}
	return []*language{english(), l}
}

// after calls take with where each phrase ends that stands at a position.
func (a asking) after(tokens []string, at int, l *language, take func(end int, kind phraseKind)) {
	if at >= len(tokens) {
		return
	}
	for _, of := range a.languages(l) {
		of.book.at(tokens[at:], func(length int, kind phraseKind) { take(at+length, kind) })
	}
}

// place is the length of what means the machine at the front, an article before its name included, or 0.
func (a asking) place(tokens []string, l *language) int {
	if len(tokens) == 0 {
		return 0
	}
	if n := a.machine(tokens); n > 0 {
		return n
	}
	longest := 0
	a.after(tokens, 0, l, func(end int, kind phraseKind) {
		if kind == kindPlace {
			longest = max(longest, end)
		} else if kind == kindLink {
			if n := a.machine(tokens[end:]); n > 0 {
				longest = max(longest, end+n)
			}
		}
	})
	return longest
}

// permits tells whether a "que" at a position begins what the machine may do: "sí que bigpc corra las pruebas".
func (h heard) permits(at int, ask asking) bool {
	return at > 0 && h.tokens[at] == "que" && !h.marked[at] && ask.machine(h.tokens[at+1:]) > 0
}

// pronouns name no machine, though somebody may call it so. Set once.
var pronouns = setOf("it that this them those these one")

// machine is the length of the machine's name at the front, however its parts are spaced and its letters
// spelled ("big pea sea"), or 0.
func (a asking) machine(tokens []string) int {
	if len(tokens) == 0 || !a.initials[tokens[0][0]] {
		return 0
	}
	var joined strings.Builder
	for n, t := range tokens[:min(len(tokens), maxHeardTokens)] {
		if letter, ok := letterNames[t]; ok && n > 0 {
			t = letter
		}
		joined.WriteString(t)
		switch {
		case a.calls(joined.String()):
			return n + 1
		case !slices.ContainsFunc(a.machines, func(name string) bool {
			return strings.HasPrefix(name, joined.String()) || strings.HasPrefix(joined.String(), name)
		}):
			return 0
		}
	}
	return 0
}

// calls tells whether a word is one of the machine's names, with an ending as languages write them for "on
// it" or "to it".
func (a asking) calls(word string) bool {
	return slices.ContainsFunc(a.machines, func(name string) bool {
		end, ok := strings.CutPrefix(word, name)
		return ok && (end == "" || caseEndings[end] && (len(name) > 3 || shortEndings[end]))
	})
}

// named tells whether the tokens name the machine or the act.
func (a asking) named(tokens []string) bool {
	for i, t := range tokens {
		rest := tokens[i:]
		if a.acts[t] || a.machine(rest) > 0 || a.book.has(rest) || slices.ContainsFunc(languages(), func(l *language) bool {
			return slices.ContainsFunc(a.about, func(name string) bool { return l.acts[name].has(rest) })
		}) {
			return true
		}
	}
	return false
}

// loaded are words that change what a yes means. A command or a machine that contains them cannot make
// them harmless: agents write commands.
var loaded = setOf("if unless when whenever while until till once only just all always every everything everyone any anything both " +
	"each ever again twice more other others another also too and or but because since instead rather maybe perhaps " +
	"probably possibly hardly barely later after before first last next then than without with except safe say says said " +
	"he she they we you i me my your who what why how where which would could should might think guess suppose want " +
	"got user caller system agent assistant wenn falls immer alle alles si quand toujours tout siempre todo sempre tutto tudo " +
	"als altijd alles jezeli jesli zawsze wszystko eger her alltid om allt")

// harmlessAct tells whether a word of a question may be repeated in a yes.
func harmlessAct(token string) bool {
	if utf8.RuneCountInString(token) < 2 || loaded[token] || strings.Trim(token, "0123456789") == "" {
		return false
	}
	one := heard{tokens: []string{token}, apart: []bool{true}, marked: []bool{false}}
	return one.find(signalDeny, asking{}) == absent && one.find(signalHold, asking{}) == absent
}

func setOf(list string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		set[w] = true
	}
	return set
}
