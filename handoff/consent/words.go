package consent

import (
	"bytes"
	"embed"
	"fmt"
	"iter"
	"path"
	"strings"
	"sync"
	"unicode/utf8"
)

// The words of consent: one text file a language.
//
//go:embed words/*.txt
var wordFiles embed.FS

// A kind is what a phrase does in a reply. A phrase may do several things: "push it" says yes and names an act.
type kind uint16

const (
	kindYes   kind = 1 << iota // says yes, or orders the act
	kindRun                    // says yes where the act is named beside it: "run"
	kindNamed                  // names the act
	kindFill                   // says nothing: "please"
	kindHum                    // likewise, but not at the end: "um"
	kindLink                   // joins what is said, and stands not at the end: "on the"
	kindNod                    // goes with a yes although it contains a no: "no problem"
	kindNo                     // denies
	kindWait                   // asks for time
	kindDoubt                  // asks, sets a condition, or goes further than the question
	kindAlone                  // says yes as a whole reply
	kindNone                   // as a whole reply it is no yes, although its words are: "yeah right"
	kindOther                  // in the word files a name of something: "name laptop"
)

// kindVeto are the kinds that no yes may contain.
const kindVeto = kindNo | kindWait | kindDoubt

// sections are the headings of a word file. Those with an X hold the words of one act, command word, machine or
// number. Set once.
var sections = map[string]kind{
	"yes": kindYes, "run": kindRun, "fill": kindFill, "hum": kindHum, "link": kindLink, "nod": kindNod,
	"no": kindNo, "wait": kindWait, "doubt": kindDoubt, "none": kindNone, "alone": kindAlone,
	"order X": kindYes | kindNamed, "thing X": kindNamed,
	"name X": kindOther, "number X": kindOther, "means X": kindOther, "ending": kindOther,
	"back": kindOther, "hush": kindOther,
}

// A language is what one word file says. Phrases are folded as replies are. Set once.
type language struct {
	code    string
	again   string              // "Just yes or no, please."
	phrases table               // what can be said to any question
	acts    map[string]table    // orders and names of an act, by the act
	names   map[string][]string // what a name or a command word is called besides, by its own folded form
	numbers map[string][]string // how a number is said, by its digits
	means   map[string]string   // the act that a command word stands for
	endings []string            // what is written to a machine's name: "de"
	back    map[string]bool     // what listeners say: "mm-hmm"; no part of a reply to a question
	hush    map[string]bool     // what asks for quiet: "stop talking"; likewise
}

// The languages. Each is built when it is first needed: English by the first reply, the others by the first that
// English does not cover. Set once.
var (
	english   = sync.OnceValue(func() *language { return mustParse("en", &listing{}) })
	languages = sync.OnceValue(func() []*language {
		out, scratch := []*language{english()}, &listing{}
		files, _ := wordFiles.ReadDir("words") // it is part of the program
		for _, f := range files {
			if code := strings.TrimSuffix(f.Name(), ".txt"); code != "en" {
				out = append(out, mustParse(code, scratch))
			}
		}
		return out
	})
)

// mustParse reads a word file, which is part of the program: one that cannot be read is a panic.
func mustParse(code string, scratch *listing) *language {
	text, err := wordFiles.ReadFile(path.Join("words", code+".txt"))
	if err != nil {
		panic(err)
	}
	l, err := parseLanguage(code, string(text), scratch)
	if err != nil {
		panic(fmt.Sprintf("words/%s.txt: %v", code, err))
	}
	return l
}

// parseLanguage reads a word file: lines of "section: phrase, phrase", blank lines, and comments that begin with a #.
// Scratch is empty before and afterwards.
func parseLanguage(code, text string, scratch *listing) (*language, error) {
	l := &language{code: code, names: map[string][]string{}, numbers: map[string][]string{}, means: map[string]string{},
		back: map[string]bool{}, hush: map[string]bool{}}
	number := 0
	for line := range strings.Lines(text) {
		number++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		heading, list, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fmt.Errorf("line %d is not a list of phrases", number)
		}
		if heading == "again" {
			l.again = strings.TrimSpace(list)
			continue
		}
		section, of, named := strings.Cut(heading, " ")
		if named {
			section += " X"
		}
		does, ok := sections[section]
		if !ok || named && of == "" {
			return nil, fmt.Errorf("line %d begins a section %q, which does not exist", number, heading)
		}
		empty := true
		for phrase := range phrasesOf(list) {
			if empty = false; len(phrase) > maxPhrase {
				return nil, fmt.Errorf("line %d has a phrase of more than %d bytes", number, maxPhrase)
			}
			switch section {
			case "ending":
				l.endings = append(l.endings, string(phrase))
			case "name X":
				l.names[of] = append(l.names[of], hear(string(phrase)).joined)
			case "number X":
				l.numbers[of] = append(l.numbers[of], hear(string(phrase)).joined)
			case "means X":
				l.means[string(phrase)] = of
			case "back":
				l.back[string(phrase)] = true
			case "hush":
				l.hush[string(phrase)] = true
			default:
				scratch.add(of, phrase, does)
			}
		}
		if empty {
			return nil, fmt.Errorf("line %d is not a list of phrases", number)
		}
	}
	l.acts = scratch.tables()
	l.phrases = l.acts[""]
	return l, nil
}

// machineMark stands in a phrase of a word file where the name of the machine stands in the reply: "@ may".
const machineMark = "@"

// phrasesOf cuts a list at its commas, folds each entry, and writes out its choices. A phrase is valid until the next.
func phrasesOf(list string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		spelled, phrase := make([]byte, 0, maxPhrase), make([]byte, 0, maxPhrase)
		for entry := range strings.SplitSeq(list, ",") {
			if !spellOut(spelled, folded(entry), func(text []byte) bool {
				phrase = appendSpaced(phrase[:0], text)
				return len(phrase) == 0 || yield(phrase)
			}) {
				return
			}
		}
	}
}

// spellOut yields the phrases of a text with choices, each after before: "(it|they) may" is two.
func spellOut(before []byte, text string, yield func([]byte) bool) bool {
	head, rest, ok := strings.Cut(text, "(")
	choices, after, closed := strings.Cut(rest, ")")
	if !ok || !closed {
		return yield(append(before, text...))
	}
	before = append(before, head...)
	for choice := range strings.SplitSeq(choices, "|") {
		if !spellOut(append(before, choice...), after, yield) {
			return false
		}
	}
	return true
}

// folded writes the words of an entry as replies are compared, and keeps its marks and spaces.
func folded(entry string) string {
	var out strings.Builder
	for entry != "" {
		end := strings.IndexAny(entry, "(|)"+machineMark)
		if end < 0 {
			end = len(entry)
		}
		words := entry[:end]
		if strings.HasPrefix(words, " ") {
			out.WriteByte(' ')
		}
		out.WriteString(hear(words).spaced)
		if strings.HasSuffix(words, " ") {
			out.WriteByte(' ')
		}
		if end < len(entry) {
			mark := entry[end : end+1]
			if mark == machineMark {
				mark = " " + machineMark + " "
			}
			out.WriteString(mark)
			end++
		}
		entry = entry[end:]
	}
	return out.String()
}

// appendSpaced leaves one space between two words, and none beside a character of a script that is written without.
func appendSpaced(to, phrase []byte) []byte {
	var last []byte
	for word := range bytes.FieldsSeq(phrase) {
		first, _ := utf8.DecodeRune(word)
		end, _ := utf8.DecodeLastRune(last)
		if last != nil && !isDense(first) && !isDense(end) {
			to = append(to, ' ')
		}
		to = append(to, word...)
		last = word
	}
	return to
}
