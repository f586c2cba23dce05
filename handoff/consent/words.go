package consent

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
)

// The words of consent: one text file a language. A reply is read in one language and English, so a word
// that two languages share counts in each with its own meaning.
//
//go:embed words/*.txt
var wordFiles embed.FS

// sections are the headings of a word file whose phrases may be part of a yes. Set once.
var sections = map[string]phraseKind{
	"yes": kindYes, "end": kindEnd, "fill": kindFill, "hum": kindHum, "lead": kindLead, "tail": kindTail, "link": kindLink,
	"nod": kindNod, "shrug": kindShrug, "need": kindNeed, "do": kindDo, "may": kindMay, "in": kindIn, "place": kindPlace,
	"so": kindSo, "post": kindPost, "follow": kindFollow, "weak": kindWeak, "can": kindCan, "all": kindAll, "go": kindGo, "why": kindWhy,
}

// A signal is a phrase that ends the search for a yes, wherever it stands.
type signal int

const (
	signalDeny    signal = iota // denies
	signalHold                  // asks for time
	signalUnsure                // does not know, or grumbles: no answer
	signalAsk                   // asks back
	signalGrumble               // grumbles, unless an order or a permission stands beside it
	signalNoise                 // what a recogniser makes of silence, at the front of what it writes
	signalCount
)

// signals are the headings of a word file whose phrases are signals. Set once.
var signals = map[string]signal{
	"deny": signalDeny, "hold": signalHold, "unsure": signalUnsure, "ask": signalAsk, "grumble": signalGrumble,
	"noise": signalNoise,
}

// A language is what one file of words says. Set once.
type language struct {
	code           string // "de"
	nouns          bool   // its orders begin with a noun, which alone is none
	book           phrasebook
	signals        [signalCount]phrasebook
	acts           map[string]phrasebook // the words of an act by its name; see acts
	numbers        map[string][][]string // the words for a number by its digits
	doubt          phrasebook            // no unknown words may stand beside it
	mends          phrasebook            // corrects what was said before it
	slips          phrasebook            // says so: "I mean"
	approves       phrasebook            // approves as what is asked is approved: "is fine"
	infinitives    map[string]bool       // words before a verb that nobody orders: "to"
	infinitiveEnds []string              // how such a verb ends
	citations      []string              // how one ends that only names what is done: "ing"
	buts           phrasebook            // turns from a story to a yes: "but"
	very           phrasebook            // strengthens the yes before which it stands
	inverted       phrasebook            // asks, as the first words, without a mark: "mag je"
	modal          phrasebook            // likewise, before the machine's name: "puede"
	purpose        phrasebook            // begins what the act is good for
	calm           phrasebook            // the parts of a reassurance
	denies         map[string]bool       // words that deny in a reassurance
	troubles       map[string]bool       // words of what it denies
	asks           map[string]bool       // those of them that mean to ask
	clause         map[string]bool       // words that make a statement
	told           phrasebook            // doubtful words that a story may hold
	scene          phrasebook            // those that one may hold beside an order of the act by its name
	vain           phrasebook            // those that say what goes wrong without the act
	lest           phrasebook            // begin what goes wrong without the act: "otherwise"
	openers        phrasebook            // begin a story, and make a statement
	subjects       phrasebook            // begin one, if it states something: "the", "my"
	reasons        phrasebook            // make a clause the reason of a yes
	inner          map[string]bool       // words that may deny something in a story
	wishes         phrasebook            // what such a story may not speak of: "want", "allow"
	endings        []string              // with which words end that make a statement: "ed"
	statement      phrasebook            // make a statement
	vocab          map[string]bool       // words of doubt and of clauses
	known          map[string]bool       // every word of the file that can stand in a reply
}

// Load reads the word lists, a third of a second of work that the first [Read] does otherwise. A program that reads no
// replies, such as the one that runs an agent's command, never does it.
func Load() {
	languages()
	orders()
	spokenIn()
	masks()
}

// Every language, and English, which is understood beside each of them. Set once.
var (
	languages = sync.OnceValue(readLanguages)
	english   = sync.OnceValue(func() *language {
		return languages()[slices.IndexFunc(languages(), func(l *language) bool { return l.code == "en" })]
	})
)

// readLanguages reads all word files. They are part of the program, so one that cannot be read is a panic.
func readLanguages() []*language {
	names, _ := fs.Glob(wordFiles, "words/*.txt") // only a malformed pattern fails
	var out []*language
	for _, name := range names {
		text, err := wordFiles.ReadFile(name)
		if err != nil {
			panic(err)
		}
		l, err := parseLanguage(strings.TrimSuffix(path.Base(name), ".txt"), string(text))
		if err != nil {
			panic(fmt.Sprintf("%s: %v", name, err))
		}
		out = append(out, l)
	}
	return out
}

// parseLanguage reads a word file: lines of "section: phrase, phrase", blank lines, and comments after a #.
func parseLanguage(code, text string) (*language, error) {
	l := &language{code: code, nouns: slices.Contains([]string{"hi", "ja", "ko", "zh"}, code), book: phrasebook{}, acts: map[string]phrasebook{}, numbers: map[string][][]string{},
		doubt: phrasebook{}, mends: phrasebook{}, slips: phrasebook{}, approves: phrasebook{}, infinitives: map[string]bool{}, buts: phrasebook{}, very: phrasebook{}, inverted: phrasebook{}, modal: phrasebook{}, purpose: phrasebook{}, calm: phrasebook{}, told: phrasebook{}, scene: phrasebook{}, vain: phrasebook{}, lest: phrasebook{}, openers: phrasebook{}, reasons: phrasebook{}, inner: map[string]bool{}, wishes: phrasebook{}, subjects: phrasebook{}, statement: phrasebook{}, denies: map[string]bool{}, troubles: map[string]bool{}, asks: map[string]bool{}, clause: map[string]bool{}, vocab: map[string]bool{}, known: map[string]bool{}}
	for i := range l.signals {
		l.signals[i] = phrasebook{}
	}
	number := 0
	for line := range strings.Lines(text) {
		number++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, list, ok := strings.Cut(line, ":")
		phrases := phraseList(list)
		if !ok || len(phrases) == 0 {
			return l, fmt.Errorf("line %d is not a list of phrases", number)
		}
		if !l.section(name, phrases) {
			return l, fmt.Errorf("line %d begins a section %q, which does not exist", number, name)
		}
	}
	l.weaken()
	return l, nil
}

// weaken makes a yes weak that consists of weak ones: "yes yes".
func (l *language) weaken() {
	for first, phrases := range l.book {
		for i, p := range phrases {
			if p.kind == kindYes && l.isWeak(p.tokens) {
				l.book[first][i].kind = kindWeak
			}
		}
	}
}

func (l *language) isWeak(tokens []string) bool {
	return len(tokens) == 0 || slices.ContainsFunc(l.book[tokens[0]], func(p phrase) bool {
		return (p.kind == kindWeak || p.kind == kindFill || p.kind == kindLead) && startsWith(tokens, p.tokens) && l.isWeak(tokens[len(p.tokens):])
	})
}

// section takes the phrases of a section, if there is such a section.
func (l *language) section(name string, phrases []phrase) bool {
	what, of, _ := strings.Cut(name, " ")
	kind, isKind := sections[name]
	sign, isSignal := signals[name]
	_, isAct := actNames[of]
	if books := l.clauseBooks(name); books != nil {
		for _, p := range phrases {
			for _, b := range books {
				b.add(p, kindNone)
			}
			l.vocab[p.joined] = true
			l.clause[p.joined] = l.clause[p.joined] || name == "clause" || name == "opens"
		}
		return true
	}
	for _, p := range phrases {
		switch {
		case isKind && totals[p.joined] && kind != kindAll:
			l.book.add(p, kindTotal)
		case isKind:
			l.book.add(p, kind)
		case isSignal:
			l.signals[sign].add(p, kindNone)
		case name == "mend":
			l.mends.add(p, kindNone)
		case name == "infinitive" && p.stem:
			l.infinitives[p.joined] = true
			continue
		case name == "infinitive":
			l.infinitiveEnds = append(l.infinitiveEnds, p.joined)
			continue
		case name == "cite":
			l.citations = append(l.citations, p.joined)
			continue
		case name == "very":
			l.very.add(p, kindNone)
		case name == "inverted":
			l.inverted.add(p, kindNone)
			continue
		case name == "modal":
			l.modal.add(p, kindNone)
			continue
		case calmKinds[name] != kindYes:
			l.calms(p, calmKinds[name])
			continue
		case name == "inner":
			l.inner[p.joined] = true
		case name == "ending":
			l.endings = append(l.endings, p.joined)
			continue
		case isAct && actKinds[what] != kindYes:
			if l.acts[of] == nil {
				l.acts[of] = phrasebook{}
			}
			l.acts[of].add(p, actKinds[what])
		case what == "number" && of != "":
			l.numbers[of] = append(l.numbers[of], p.tokens)
		default:
			return false
		}
		for _, t := range p.tokens {
			l.known[t] = l.known[t] || sign != signalNoise
		}
	}
	return true
}

// clauseBooks are where the phrases of a section belong that says something of clauses with unknown words, or nil.
func (l *language) clauseBooks(name string) []phrasebook {
	return map[string][]phrasebook{
		"doubt": {l.doubt}, "told": {l.told}, "slip": {l.slips, l.mends}, "but": {l.buts}, "approve": {l.approves}, "scene": {l.scene},
		"else": {l.told, l.vain}, "lest": {l.openers, l.lest}, "purpose": {l.purpose}, "clause": {l.statement},
		"opens": {l.statement, l.openers}, "subject": {l.subjects}, "reason": {l.reasons}, "wish": {l.wishes},
	}[name]
}

// calms takes a part of a reassurance.
func (l *language) calms(p phrase, kind phraseKind) {
	l.calm.add(p, kind)
	for _, t := range p.tokens {
		switch kind {
		case kindNot, kindNeedless:
			l.denies[t] = true
		case kindAsk, kindTrouble:
			l.troubles[t] = true
			l.asks[t] = l.asks[t] || kind == kindAsk
		}
	}
}

// totals are words for all that was asked and more. Set once.
var totals = setOf("all everything alles alle tous toutes tout todo todos toda todas tutto tutti tutte tudo allemaal wszystko wszystkie wszystkich " +
	"все всё всех усе всі hepsi hersey allt alla allihop सब सबकुछ 全部 全 都 ぜんぶ 全て すべて 다 전부 모두 الكل كلها كلهم")

// calmKinds are what the sections of a reassurance hold. Set once.
var calmKinds = map[string]phraseKind{"not": kindNot, "must": kindMust, "needless": kindNeedless, "trouble": kindTrouble, "bother": kindAsk, "glue": kindGlue}

// actKinds are what the sections of an act hold. Set once.
var actKinds = map[string]phraseKind{"act": kindTopic, "do": kindDo, "yes": kindOrder}

// orders tells whether words are an order of some act.
func (l *language) orders(tokens []string) bool {
	for _, book := range l.acts {
		if book.any(tokens, func(n int, kind phraseKind) bool { return kind == kindDo && n == len(tokens) }) {
			return true
		}
	}
	return false
}
