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

// The word files, one for each language.
//
//go:embed words/*.txt
var wordFiles embed.FS

// A kind is what a phrase does in a reply. A phrase may do several things: "push it" says yes and names an act.
type kind uint16

const (
	kindYes    kind = 1 << iota // says yes, or orders the act
	kindNamed                   // names the act
	kindFill                    // says nothing: "please"
	kindThanks                  // says nothing by itself, and leaves open what a yes beside it was for
	kindHum                     // says nothing, and cannot end a reply: "um"
	kindLink                    // leads to other words, and cannot end a reply: "on the"
	kindNod                     // goes with a yes although it contains a no: "no problem"
	kindNo                      // denies
	kindWait                    // asks for time
	kindDoubt                   // asks, sets a condition, or goes further than the question
	kindAlone                   // says yes as a whole reply
	kindOther                   // a name, which says nothing; in the word files, a section that is no list of phrases
)

// kindVeto are the kinds that no yes may contain.
const kindVeto = kindNo | kindWait | kindDoubt

// sections are the headings of a word file. Those with an X hold the words of one act, command word, machine or
// number. Set once.
var sections = map[string]kind{
	"yes": kindYes, "fill": kindFill, "thanks": kindThanks, "hum": kindHum, "link": kindLink, "nod": kindNod,
	"no": kindNo, "wait": kindWait, "doubt": kindDoubt, "alone": kindAlone,
	"order X": kindYes | kindNamed, "thing X": kindNamed,
	"name X": kindOther, "number X": kindOther, "means X": kindOther, "ending": kindOther,
	"mark": kindOther,
	"back": kindOther, "hush": kindOther,
}

// A language is a parsed word file. Phrases are folded as replies are. Set once.
type language struct {
	code    string
	again   string              // "Just yes or no, please."
	phrases table               // phrases for any question
	acts    map[string]table    // orders and names of an act, by the act
	names   map[string][]string // other names of a machine or a command word, by its folded form
	numbers map[string][]string // words for a number, by its digits
	means   map[string]string   // the act that a command word means
	endings []string            // endings of a machine's name: "de"
	marks   []string            // how the marks in a name are said: "dot"
	back    map[string]bool     // phrases of listeners, which are no reply to a question: "mm-hmm"
	hush    map[string]bool     // phrases that ask for quiet, which are no reply either: "stop talking"
}

// The languages. English is parsed for the first reply, the others for the first reply of which English does not know
// every word. Set once.
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

// mustParse parses a word file, which is part of the program. It panics if it cannot.
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
			case "mark":
				l.marks = append(l.marks, string(phrase))
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

// machineMark stands for the name of the machine in a phrase of a word file: "@ may".
const machineMark = "@"

// remoteMeaning is what the word of a command means that is the usual name of a Git remote.
const remoteMeaning = "remote"

// phrasesOf splits a list at its commas, folds each entry, and yields the phrases of its choices. A phrase is valid
// until the next one.
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

// spellOut yields the phrases of a text with choices, each with before in front: "(it|they) may" is two phrases.
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

// folded returns an entry with its words folded, and its marks and spaces kept.
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

// appendSpaced appends a phrase with one space between words, and none beside a character of a script without spaces.
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
