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

// sections are the headings of a word file with the kind of their phrases. Set once.
var sections = map[string]phraseKind{"yes": kindYes, "fill": kindFill, "hum": kindHum, "lead": kindLead, "tail": kindTail, "link": kindLink}

// A language is what one file of words says. Set once.
type language struct {
	code string // "de"
	book phrasebook
	deny [][]string
	hold [][]string
}

// Every language; English, which is understood beside each of them; and what denies or holds off in any.
// Set once.
var (
	languages = readLanguages(wordFiles)
	english   = languages[slices.IndexFunc(languages, func(l language) bool { return l.code == "en" })]
	denyWords = byFirst(func(l language) [][]string { return l.deny })
	holdWords = byFirst(func(l language) [][]string { return l.hold })
)

// readLanguages reads all word files. They are part of the program, so one that cannot be read is a panic.
func readLanguages(files fs.FS) []language {
	names, err := fs.Glob(files, "words/*.txt")
	if err != nil {
		panic(err)
	}
	var out []language
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
func parseLanguage(code, text string) (language, error) {
	l := language{code: code, book: phrasebook{}}
	number := 0
	for line := range strings.Lines(text) {
		number++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, list, ok := strings.Cut(line, ":")
		phrases := phraseList(list)
		kind, isKind := sections[name]
		switch {
		case !ok || len(phrases) == 0:
			return l, fmt.Errorf("line %d is not a list of phrases", number)
		case isKind:
			for _, tokens := range phrases {
				l.book.add(tokens, kind)
			}
		case name == "deny":
			l.deny = append(l.deny, phrases...)
		case name == "hold":
			l.hold = append(l.hold, phrases...)
		default:
			return l, fmt.Errorf("line %d begins a section %q, which does not exist", number, name)
		}
	}
	return l, nil
}

// byFirst gathers phrases of all languages by their first tokens.
func byFirst(of func(language) [][]string) map[string][][]string {
	out := map[string][][]string{}
	for _, l := range languages {
		for _, tokens := range of(l) {
			out[tokens[0]] = append(out[tokens[0]], tokens)
		}
	}
	return out
}
