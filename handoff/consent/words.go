package consent

import (
	"embed"
	"fmt"
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
	"order X": kindYes | kindNamed, "thing X": kindNamed, "name X": kindOther, "number X": kindOther, "means X": kindOther,
	"ending": kindOther,
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
}

// The languages. Each is built when it is first needed: English by the first reply, the others by the first that
// English does not cover. Set once.
var (
	english   = sync.OnceValue(func() *language { return mustParse("en") })
	languages = sync.OnceValue(func() []*language {
		out := []*language{english()}
		files, _ := wordFiles.ReadDir("words") // it is part of the program
		for _, f := range files {
			if code := strings.TrimSuffix(f.Name(), ".txt"); code != "en" {
				out = append(out, mustParse(code))
			}
		}
		return out
	})
)

// mustParse reads a word file, which is part of the program: one that cannot be read is a panic.
func mustParse(code string) *language {
	text, err := wordFiles.ReadFile(path.Join("words", code+".txt"))
	if err != nil {
		panic(err)
	}
	l, err := parseLanguage(code, string(text))
	if err != nil {
		panic(fmt.Sprintf("words/%s.txt: %v", code, err))
	}
	return l
}

// parseLanguage reads a word file: lines of "section: phrase, phrase", blank lines, and comments that begin with a #.
func parseLanguage(code, text string) (*language, error) {
	l := &language{code: code, acts: map[string]table{}, names: map[string][]string{}, numbers: map[string][]string{}, means: map[string]string{}}
	listed := map[string]map[string]kind{"": {}} // by the act
	number := 0
	for line := range strings.Lines(text) {
		number++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		heading, list, ok := strings.Cut(line, ":")
		phrases := phraseList(list)
		if !ok || len(phrases) == 0 {
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
		switch {
		case !ok || named && of == "":
			return nil, fmt.Errorf("line %d begins a section %q, which does not exist", number, heading)
		case does == kindOther:
			l.add(section, of, phrases)
			continue
		case listed[of] == nil:
			listed[of] = map[string]kind{}
		}
		for _, p := range phrases {
			listed[of][p] |= does
		}
	}
	for of, phrases := range listed {
		l.acts[of] = newTable(phrases)
	}
	l.phrases = l.acts[""]
	return l, nil
}

// add adds the words of a section that are no phrases.
func (l *language) add(section, of string, words []string) {
	switch section {
	case "ending":
		l.endings = append(l.endings, words...)
	case "name X":
		for _, word := range words {
			l.names[of] = append(l.names[of], hear(word).joined)
		}
	case "number X":
		for _, word := range words {
			l.numbers[of] = append(l.numbers[of], hear(word).joined)
		}
	case "means X":
		for _, word := range words {
			l.means[word] = of
		}
	}
}

// machineMark stands in a phrase of a word file where the name of the machine stands in the reply: "@ may".
const machineMark = "@"

// phraseList cuts a list at its commas, writes out its choices, and folds each phrase.
func phraseList(list string) []string {
	var out []string
	for entry := range strings.SplitSeq(list, ",") {
		for _, phrase := range spelledOut(folded(entry)) {
			if phrase = respaced(phrase); phrase != "" {
				out = append(out, phrase)
			}
		}
	}
	return out
}

// spelledOut returns the phrases that a text with choices stands for: "(it|they) may" is two.
func spelledOut(text string) []string {
	before, rest, ok := strings.Cut(text, "(")
	choices, after, closed := strings.Cut(rest, ")")
	if !ok || !closed {
		return []string{text}
	}
	var out []string
	ends := spelledOut(after)
	for choice := range strings.SplitSeq(choices, "|") {
		for _, end := range ends {
			out = append(out, before+choice+end)
		}
	}
	return out
}

// phraseMarks have a meaning in a word file.
const phraseMarks = "(|)" + machineMark

// folded writes the words of an entry as replies are compared, and keeps its marks and spaces.
func folded(entry string) string {
	var out strings.Builder
	for entry != "" {
		end := strings.IndexAny(entry, phraseMarks+" ")
		if end < 0 {
			end = len(entry)
		}
		out.WriteString(hear(entry[:end]).spaced)
		if end < len(entry) {
			out.WriteByte(entry[end])
			end++
		}
		entry = entry[end:]
	}
	return out.String()
}

// respaced leaves one space between two words, and none beside a character of a script that is written without.
func respaced(phrase string) string {
	var out strings.Builder
	last := ""
	for word := range strings.FieldsSeq(strings.ReplaceAll(phrase, machineMark, " "+machineMark+" ")) {
		first, _ := utf8.DecodeRuneInString(word)
		end, _ := utf8.DecodeLastRuneInString(last)
		if last != "" && !isDense(first) && !isDense(end) {
			out.WriteByte(' ')
		}
		out.WriteString(word)
		last = word
	}
	return out.String()
}
