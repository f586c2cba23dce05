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

// A Language is the code of a language in which we speak, that of a file in the folder languages, such as "de". "" is
// English. A sentence that a language lacks is said in English, and so are all sentences of an unknown language.
//
// Instructions to a voice model, and silent notes, are English in every language, since nobody hears them.
type Language string

// English is the language of programs, the page and the log.
const English Language = "en"

// Our own sentences, one file for each language: lines of "name: sentence", blank lines, and comments that begin with a
// #. A {word} is a parameter. Instead of one sentence with a number, there may be one for each plural form of the
// language: "hours.one" and "hours.other". Tests compare the sentences and parameters of every language with those of
// English. Other languages also have code.X, the meaning of a code of [handoff.Vocabulary]; {it} is its subject.
//
// The name of a server is put into a sentence as it is. So no sentence has an article or a case for it.
//
//go:embed languages/*.txt
var files embed.FS

// A sentence is a list of texts and names of parameters in turn, which begins and ends with a text.
type sentence []string

// spoken has the sentences of every language by name. A file is read when it is first needed. Set once.
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

// SpeakIn returns an instruction to the voice model to speak the language; "" for "" and for an unknown language.
func (l Language) SpeakIn() string {
	if _, there := spoken()[l]; !there {
		return ""
	}
	return "Speak " + l.Name() + ", also what you are told to say or ask, unless the caller speaks another language."
}

// Name returns the English name of the language; "English" for an unknown one.
func (l Language) Name() string { return l.say("language") }

// IsEnglish reports whether all sentences of the language are English.
func (l Language) IsEnglish() bool { return l == "" || l == English || spoken()[l] == nil }

// say returns a sentence with its parameters, given as name, value, name, value.
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

// plural returns the form of a sentence for a number, or the sentence if it has one form.
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

// form returns the name of the plural form for a number of at least 1, as in Unicode's CLDR.
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

// number returns a number: in English in words up to ten; in other languages in digits, since the voice knows the word
// and its case.
func (l Language) number(n int) string {
	if l.IsEnglish() {
		return speakable.CountWord(n, false)
	}
	return strconv.Itoa(n)
}

// things returns a number of things without a name: "two things".
func (l Language) things(n int) string {
	if l.IsEnglish() {
		return speakable.CountWord(n, true)
	}
	return strconv.Itoa(n)
}

// List joins names: "a, b and c". Of more than five it joins four and the number of the others.
func (l Language) List(names []string) string {
	if n := len(names); n > 5 {
		names = append(slices.Clone(names[:4]), l.say("list.more", "n", strconv.Itoa(n-4)))
	}
	return l.all(names)
}

// all joins all names: "a, b and c".
func (l Language) all(names []string) string {
	if n := len(names) - 1; n > 0 {
		return l.say("list.two", "a", l.commas(names[:n]), "b", names[n])
	}
	return strings.Join(names, "")
}

// commas joins parts of a sentence.
func (l Language) commas(parts []string) string { return l.join("list.comma", parts) }

// join joins parts from left to right, by a sentence with two parameters.
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
