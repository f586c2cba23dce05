package consent

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// The words of consent: one text file a language. A reply is read in one language and English, so a word
// that two languages share counts in each with its own meaning.
//
//go:embed words/*.txt
var wordFiles embed.FS

// sections are the headings of a word file whose phrases may be part of a yes. Set once.
var sections = map[string]phraseKind{
	"yes": kindYes, "end": kindEnd, "fill": kindFill, "hum": kindHum, "lead": kindLead, "tail": kindTail, "link": kindLink,
	"nod": kindNod, "shrug": kindShrug, "do": kindDo, "may": kindMay, "in": kindIn, "place": kindPlace,
}

// A signal is a phrase that ends the search for a yes, wherever it stands.
type signal int

const (
	signalDeny   signal = iota // denies
	signalHold                 // asks for time
	signalUnsure               // does not know, or grumbles: no answer
	signalAsk                  // asks back
	signalNoise                // what a recogniser makes of silence, at the front of what it writes
	signalCount
)

// signals are the headings of a word file whose phrases are signals. Set once.
var signals = map[string]signal{"deny": signalDeny, "hold": signalHold, "unsure": signalUnsure, "ask": signalAsk, "noise": signalNoise}

// A language is what one file of words says. Set once.
type language struct {
	code    string // "de"
	book    phrasebook
	signals [signalCount]phrasebook
	acts    map[string]phrasebook // the words of an act by its name; see acts
	numbers map[string][][]string // the words for a number by its digits
	known   map[string]bool       // every word of the file that can stand in a reply
}

// Every language, and English, which is understood beside each of them. Set once.
var (
	languages = readLanguages(wordFiles)
	english   = languages[slices.IndexFunc(languages, func(l *language) bool { return l.code == "en" })]
)

// readLanguages reads all word files. They are part of the program, so one that cannot be read is a panic.
func readLanguages(files fs.FS) []*language {
	names, err := fs.Glob(files, "words/*.txt")
	if err != nil {
		panic(err)
	}
	var out []*language
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
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
	l := &language{code: code, book: phrasebook{}, acts: map[string]phrasebook{}, numbers: map[string][][]string{}, known: map[string]bool{}}
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
	return l, nil
}

// section takes the phrases of a section, if there is such a section.
func (l *language) section(name string, phrases [][]string) bool {
	what, of, _ := strings.Cut(name, " ")
	kind, isKind := sections[name]
	sign, isSignal := signals[name]
	_, isAct := actNames[of]
	for _, tokens := range phrases {
		switch {
		case isKind:
			l.book.add(tokens, kind)
		case isSignal:
			l.signals[sign].add(tokens, kindNone)
		case isAct && (what == "act" || what == "do" || what == "yes"):
			if l.acts[of] == nil {
				l.acts[of] = phrasebook{}
			}
			l.acts[of].add(tokens, map[string]phraseKind{"act": kindTopic, "do": kindDo, "yes": kindYes}[what])
		case what == "number" && of != "":
			l.numbers[of] = append(l.numbers[of], tokens)
		default:
			return false
		}
		for _, t := range tokens {
			l.known[t] = l.known[t] || sign != signalNoise
		}
	}
	return true
}
