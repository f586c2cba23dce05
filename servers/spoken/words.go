package spoken

import (
	"bytes"
	"cmp"
	"strings"
	"unicode"
)

// A word is one word of a name, in the form for comparing.
type word struct {
	text  string // lower case, without diacritics; a number in digits without leading zeros
	sound string // the sounds of its consonants; "": a number, or no consonants
}

// figures reports whether the word is a number.
func (w word) figures() bool { return w.text != "" && unicode.IsDigit(rune(w.text[0])) }

// spell splits a name into words for comparing: numbers in digits, single letters joined ("g p u"), without diacritics.
func spell(name string) []word {
	var folded strings.Builder
	for _, r := range strings.ToLower(name) {
		switch p, known := plain[r]; {
		case known:
			folded.WriteString(p)
		case !unicode.Is(unicode.Mn, r):
			folded.WriteRune(r)
		}
	}
	return compose(Words(folded.String()))
}

// compose joins single letters, and the parts of numbers.
func compose(in []string) []word {
	var joined []string
	letters := 0 // single letters at the end of joined, in one word
	for _, w := range in {
		one := len(w) == 1 && !unicode.IsDigit(rune(w[0]))
		if one && letters > 0 {
			joined[len(joined)-1] += w
			letters++
			continue
		}
		letters = 0
		if one {
			letters = 1
		}
		joined = append(joined, w)
	}
	var out []word
	for _, w := range Digits(joined) {
		last := len(out) - 1
		if last >= 0 && out[last].text == "0" && unicode.IsDigit(rune(w[0])) { // zero one
			out[last].text = w
			continue
		}
		if unicode.IsDigit(rune(w[0])) {
			w = cmp.Or(strings.TrimLeft(w, "0"), "0")
		}
		out = append(out, word{w, soundOf(w)})
	}
	return out
}

// vowels separate two equal sounds. A vowel at the end of a rule of soundRules is not consumed by the rule.
const vowels = "aeiouy"

// soundOf returns the sounds of a word's consonants. Consonants that are often confused have the same sound. It is a
// coarse kind of Metaphone for all languages.
func soundOf(w string) string {
	var out []byte
	separated := true // a vowel came since the last sound
	for w != "" {
		if unicode.IsDigit(rune(w[0])) {
			return ""
		}
		step := 1
		for _, rule := range soundRules[w[0]] {
			if !strings.HasPrefix(w, rule.letters) {
				continue
			}
			if rule.sound != "" && (separated || !bytes.HasSuffix(out, []byte(rule.sound[:1]))) {
				out = append(out, rule.sound...)
			}
			separated = false
			if step = len(rule.letters); step > 1 && strings.IndexByte(vowels, w[step-1]) >= 0 {
				step--
			}
			break
		}
		separated = separated || strings.IndexByte(vowels, w[0]) >= 0
		w = w[step:]
	}
	return string(out)
}
