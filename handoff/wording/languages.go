package wording

import (
	"embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"switchboard/handoff/speakable"
)

// A Language is one in which we speak: the code of a file in the folder languages, "de". "" is English. What a language
// does not have is said in English, and so is all of one that there is not.
//
// What a voice model is told to do, and silent notes to it, are English in every language: nobody hears them.
type Language string

// English is the language of what programs read, of the page and of the log.
const English Language = "en"

// Our own sentences, one file a language: lines of "name: sentence", blank lines, and comments that begin with a #. A
// {word} is a parameter. A sentence that is about a number may have a form for each of the language's plurals instead:
// "hours.one" and "hours.other". The tests hold every language to the sentences and parameters of English, besides:
//
//	code.X   what a code of [handoff.Vocabulary] means; {it} is the error's subject
//	call.X   what is said before a call is ended. In English the voice model finds the words
//
// A server's name is put into a sentence as it is. So a sentence gives it no article and no case.
//
//go:embed languages/*.txt
var files embed.FS

// A sentence is text and the names of parameters by turns; it begins and ends with text.
type sentence []string

// spoken holds the sentences of every language by their names. A file is read when it is first needed. Set once.
var spoken = sync.OnceValue(func() map[Language]func() map[string]sentence {
	all := map[Language]func() map[string]sentence{}
	entries, _ := files.ReadDir("languages") // it is part of the program
	for _, e := range entries {
		all[Language(strings.TrimSuffix(e.Name(), ".txt"))] = sync.OnceValue(func() map[string]sentence {
			text, err := files.ReadFile(path.Join("languages", e.Name()))
			if err != nil {
				panic(err)
			}
			sentences, err := parse(string(text))
			if err != nil {
				panic(fmt.Sprintf("languages/%s: %v", e.Name(), err))
			}
			return sentences
		})
	}
	return all
})

func parse(text string) (map[string]sentence, error) {
	all, number := map[string]sentence{}, 0
	for line := range strings.Lines(text) {
		number++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, words, ok := strings.Cut(line, ": ")
		if _, twice := all[name]; !ok || twice || strings.TrimSpace(words) == "" {
			return nil, fmt.Errorf("line %d is no sentence, or a second one of its name", number)
		}
		s := sentence{}
		for {
			before, rest, more := strings.Cut(words, "{")
			if s = append(s, before); !more {
				break
			}
			param, after, closed := strings.Cut(rest, "}")
			if !closed || param == "" {
				return nil, fmt.Errorf("line %d has a parameter that does not end", number)
			}
			s, words = append(s, param), after
		}
		all[name] = s
	}
	return all, nil
}

// Languages returns the codes of the languages that a voice can be asked to speak, such as "de", in their order.
func Languages() []string {
	var codes []string
	for _, l := range slices.Sorted(maps.Keys(spoken())) {
		codes = append(codes, string(l))
	}
	return codes
}

// SpeakIn tells the voice model which language it speaks with its caller. It is empty for "" and for a language that
// there is not.
func (l Language) SpeakIn() string {
	if _, there := spoken()[l]; !there {
		return ""
	}
	return "Speak " + l.Name() + ", also what you are told to say or ask, unless the caller speaks another language."
}

// Name is what the language is called in English; "English" for one that there is not.
func (l Language) Name() string { return l.say("language") }

// IsEnglish reports whether everything is said in English.
func (l Language) IsEnglish() bool { return l == "" || l == English || spoken()[l] == nil }

// say returns a sentence with its parameters: a name, its value, and so on.
func (l Language) say(name string, with ...string) string {
	s, ok := l.find(name)
	if !ok {
		s, _ = English.find(name)
	}
	return s.with(with)
}

// find returns a sentence that the language itself has.
func (l Language) find(name string) (sentence, bool) {
	if l == "" {
		l = English
	}
	read, there := spoken()[l]
	if !there {
		return nil, false
	}
	s, ok := read()[name]
	return s, ok
}

func (s sentence) with(values []string) string {
	if len(s) == 1 {
		return s[0]
	}
	var out strings.Builder
	for i, part := range s {
		if i%2 == 1 {
			for at := 0; at < len(values); at += 2 {
				if values[at] == part {
					part = values[at+1]
					break
				}
			}
		}
		out.WriteString(part)
	}
	return out.String()
}

// plural returns the form of a sentence that goes with a number, or its only one.
func (l Language) plural(name string, n int, with ...string) string {
	if form := name + "." + l.form(n); l.has(form) {
		return l.say(form, with...)
	}
	if l.has(name) {
		return l.say(name, with...)
	}
	return English.say(name+"."+English.form(n), with...)
}

func (l Language) has(name string) bool {
	_, ok := l.find(name)
	return ok
}

// form is the name that Unicode's CLDR gives to the plural of a number of at least 1.
func (l Language) form(n int) string {
	tens, ones := n%100, n%10
	switch l {
	case "ja", "ko", "zh", "tr":
		return "other"
	case "ar":
		switch {
		case n == 1:
			return "one"
		case n == 2:
			return "two"
		case tens >= 3 && tens <= 10:
			return "few"
		case tens >= 11:
			return "many"
		}
		return "other"
	case "pl", "ru", "uk":
		switch {
		case l == "pl" && n == 1, l != "pl" && ones == 1 && tens != 11:
			return "one"
		case ones >= 2 && ones <= 4 && (tens < 12 || tens > 14):
			return "few"
		}
		return "many"
	}
	if n == 1 {
		return "one"
	}
	return "other"
}

// number says a number: English in words up to ten, the others in digits, as a voice finds the word with its case.
func (l Language) number(n int) string {
	if l.IsEnglish() {
		return speakable.CountWord(n, false)
	}
	return strconv.Itoa(n)
}

// things says how many there are of what nobody has named: "two things".
func (l Language) things(n int) string {
	if l.IsEnglish() {
		return speakable.CountWord(n, true)
	}
	return strconv.Itoa(n)
}

// List joins names as people do: "a, b and c", and at most five of them.
func (l Language) List(names []string) string {
	if n := len(names); n > 5 {
		names = append(slices.Clone(names[:4]), l.say("list.more", "n", strconv.Itoa(n-4)))
	}
	return l.all(names)
}

// all joins names as people do, however many they are.
func (l Language) all(names []string) string {
	if n := len(names) - 1; n > 0 {
		return l.say("list.two", "a", l.commas(names[:n]), "b", names[n])
	}
	return strings.Join(names, "")
}

// commas joins parts of a sentence.
func (l Language) commas(parts []string) string { return l.join("list.comma", parts) }

// join joins parts two by two.
func (l Language) join(by string, parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	out := parts[0]
	for _, part := range parts[1:] {
		out = l.say(by, "a", out, "b", part)
	}
	return out
}
