package servers

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
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
	return compose(words(folded.String()))
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
	for _, w := range digits(joined) {
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

// The likeness of two words, from 0 to 1.
const (
	same   = 1.0
	stem   = 0.9  // another form of the word
	sounds = 0.85 // the same sound, or one other letter in a long word: as sure as a recogniser is
	heard  = 0.8  // the least for a name to be taken
	likely = 0.6  // the least for a name to be asked about
)

// minSure is how many letters a word needs to be taken for another word that only sounds like it.
const minSure = 4

// alike returns the likeness of two words. joined: one of them is joined from several. Numbers are equal or unlike.
func alike(a, b word, joined bool) float64 {
	n, m := utf8.RuneCountInString(a.text), utf8.RuneCountInString(b.text)
	short, long := min(n, m), max(n, m)
	switch {
	case a.text == b.text:
		return same
	case short < 2 || a.figures() || b.figures() || 5*short < 3*long:
		return 0
	}
	common := commonPrefix(a.text, b.text)
	homophones := a.sound != "" && a.sound == b.sound
	doubled := common > 0 && undouble(a.text) == undouble(b.text)
	bonus := 0.0 // the sound helps, most where words begin alike
	switch {
	case min(len(a.sound), len(b.sound)) < 2:
	case a.sound[0] == b.sound[0]:
		bonus = 0.25
	default:
		bonus = 0.1
	}
	const least = 0.6 // a lower score counts as 0
	stemmed := !joined && common >= minSure && 5*common >= 3*long
	if edits := min(missingLetters(a.text, b.text), long/2+1); edits > 2 && !homophones && !doubled && !stemmed &&
		1-float64(edits)/float64(long)+bonus < least {
		return 0 // the quick way out for most words
	}
	spelled := distance([]rune(a.text), []rune(b.text), long/2)
	switch {
	case short < minSure && (homophones || spelled == 1 && short == minSure-1):
		return 0.6
	case short < minSure:
		return 0
	case stemmed:
		return stem
	case doubled, homophones && len(a.sound) > 2 && short > minSure,
		common > 0 && (spelled == 1 && short > minSure || spelled == 2 && short >= 2*minSure):
		return sounds
	}
	score := 1 - float64(spelled)/float64(long)
	if score+bonus < least {
		return 0
	}
	if bonus > 0 {
		most := max(len(a.sound), len(b.sound))
		between := distance([]rune(a.sound), []rune(b.sound), most)
		score = max(score, min(score+bonus, 0.95-float64(between)/float64(most)))
	}
	if score < least {
		return 0
	}
	return min(score, heard-0.05)
}

// missingLetters returns how many letters of one word the other one lacks. The distance of the words is not less.
func missingLetters(a, b string) int {
	var counts [64]int // letters with the same index may only lower the result
	for _, r := range a {
		counts[r%64]++
	}
	for _, r := range b {
		counts[r%64]--
	}
	ofA, ofB := 0, 0
	for _, n := range counts {
		ofA, ofB = ofA+max(n, 0), ofB+max(-n, 0)
	}
	return max(ofA, ofB)
}

// undouble replaces double letters by single ones.
func undouble(text string) string {
	letters := []rune(text)
	return string(slices.Compact(letters))
}

// commonPrefix returns the length of the common prefix of two words, in letters.
func commonPrefix(a, b string) int {
	n, rest := 0, []rune(b)
	for _, r := range a {
		if n == len(rest) || rest[n] != r {
			break
		}
		n++
	}
	return n
}

// maxSpan is how many words may have been one word, or the other way round: "sir o gate".
const maxSpan = 3

// spans returns all runs of at most maxSpan words, each joined to one word.
func spans(in []word) (out []span) {
	for from := range in {
		joined := word{}
		for to := from; to < min(from+maxSpan, len(in)); to++ {
			if in[to].figures() && to > from {
				break
			}
			joined = word{joined.text + in[to].text, squeeze(joined.sound, in[to].sound)}
			out = append(out, span{joined, from, to + 1})
			if in[to].figures() {
				break
			}
		}
	}
	return out
}

// A span is a run of words, from and up to but not with an index, joined to one word.
type span struct {
	word
	from, to int
}

// squeeze joins two sounds, without a double sound between them.
func squeeze(a, b string) string {
	if a != "" && b != "" && a[len(a)-1] == b[0] {
		return a + b[1:]
	}
	return a + b
}

// An utterance is a spoken name in one of its readings, to be compared with many names.
type utterance struct {
	said  []word
	spans []span
	// cache has the likeness of a span of a name to each of spans, by the span's text; the second map is for spans of
	// several words.
	cache [2]map[string][]float64
	// weighs returns the weight of a word. Common words have less.
	weighs func(string) float64
	// isKnownWord reports whether a name has the word: then it was not misheard.
	isKnownWord func(string) bool
}

// fillerWeight is the weight of a filler as a part of that of other words.
const fillerWeight = 0.2

// A fit says how well a name fits an utterance.
type fit struct {
	said  float64 // the part of the utterance that is in the name, 0 to 1
	name  float64 // the part of the name that is in the utterance, 0 to 1
	sure  bool    // every word of the utterance is in the name, with a likeness of heard or more
	full  bool    // sure, and every word of the name is in the utterance
	exact int     // letters of the utterance in words with a likeness of stem or more
}

// score orders names. The utterance counts more than words of the name that it leaves out.
func (f fit) score() float64 { return 0.75*f.said + 0.25*f.name }

// A spelled is a name prepared for comparing, without fillers unless it has nothing else.
type spelled struct {
	words int
	spans []span
}

func spelling(name string) spelled {
	in := withoutFillers(spell(name))
	return spelled{len(in), spans(in)}
}

// single returns the name without spans of several words.
func (s spelled) single() spelled {
	return spelled{s.words, slices.DeleteFunc(s.spans, func(one span) bool { return one.to-one.from > 1 })}
}

// withoutFillers returns words without fillers and words for the newest, unless there is nothing else.
func withoutFillers(in []word) []word {
	out := slices.DeleteFunc(slices.Clone(in), func(w word) bool {
		return slices.Contains(fillers, w.text) || slices.Contains(newest, w.text)
	})
	if len(out) == 0 {
		return in
	}
	return out
}

// hear returns a spoken name in all its readings.
func hear(said string, weighs func(string) float64, isKnownWord func(string) bool) []*utterance {
	var out []*utterance
	for _, in := range readings(spell(said)) {
		if len(in) > 0 {
			out = append(out, &utterance{said: in, spans: spans(in), weighs: weighs, isKnownWord: isKnownWord,
				cache: [2]map[string][]float64{{}, {}}})
		}
	}
	return out
}

// readings returns the ways in which words can be meant: as they are; with names of letters as letters ("gee pee you");
// with ordinals, and words at the end that sound like a number, as numbers; with the fillers.
func readings(in []word) [][]word {
	out := [][]word{withoutFillers(in)}
	texts := make([]string, len(in))
	for i, w := range in {
		texts[i] = w.text
	}
	letters := slices.Clone(texts)
	run := 0
	for i := 0; i <= len(texts); i++ {
		if i < len(texts) && (letterNames[texts[i]] != "" || len(texts[i]) == 1) {
			run++
			continue
		}
		for j := i - run; run > 1 && j < i; j++ {
			letters[j] = cmp.Or(letterNames[texts[j]], texts[j])
		}
		run = 0
	}
	numbers := slices.Clone(texts)
	for i, text := range texts {
		if i == len(texts)-1 || in[i+1].figures() {
			text = cmp.Or(numberSounds[text], text)
		}
		numbers[i] = cmp.Or(ordinals[text], text)
	}
	for _, other := range [][]string{letters, numbers} {
		if !slices.Equal(other, texts) {
			out = append(out, withoutFillers(compose(other)))
		}
	}
	if len(out[0]) < len(in) {
		out = append(out, in) // a seeming filler may be part of a word
	}
	return out
}

// best returns the best fit of a name to the readings of an utterance.
func best(ways []*utterance, name, about spelled) fit {
	var out fit
	for _, h := range ways {
		if f := h.compare(name, about); f.better(out) {
			out = f
		}
	}
	return out
}

// better reports whether a fit is better than another: full before sure, sure before others, then by score.
func (f fit) better(than fit) bool {
	rank := func(f fit) float64 {
		switch {
		case f.full:
			return 2 + f.score()
		case f.sure:
			return 1 + f.score()
		}
		return f.score()
	}
	return rank(f) > rank(than)
}

// compare aligns the utterance with a name, the most similar words first and in any order. Words of the utterance may
// also be in about, but words of about need not be in the utterance.
func (h *utterance) compare(name, about spelled) fit {
	type pair struct {
		said, name span
		alike      float64
		about      bool
	}
	var pairs []pair
	add := func(list []span, about bool) {
		for _, n := range list {
			for i, likeness := range h.likenesses(n) {
				s := h.spans[i]
				if likeness == 0 || about && likeness < stem {
					continue
				}
				pairs = append(pairs, pair{s, n, likeness, about})
			}
		}
	}
	add(name.spans, false)
	add(about.spans, true)
	if len(pairs) == 0 {
		return fit{}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.alike, a.alike), len(b.said.text)-len(a.said.text))
	})
	saidLikeness, nameLikeness := make([]float64, len(h.said)), make([]float64, name.words)
	aboutLikeness, weight := make([]float64, about.words), make([]float64, name.words)
	free := func(by []float64, s span) bool {
		return !slices.ContainsFunc(by[s.from:s.to], func(v float64) bool { return v > 0 })
	}
	set := func(by []float64, s span, v float64) {
		for i := s.from; i < s.to; i++ {
			by[i] = v
		}
	}
	var out fit
	for _, p := range pairs {
		likeness := nameLikeness
		if p.about {
			likeness = aboutLikeness
		}
		if !free(saidLikeness, p.said) || !free(likeness, p.name) {
			continue
		}
		set(saidLikeness, p.said, p.alike)
		set(likeness, p.name, p.alike)
		if p.alike >= stem && !p.about {
			out.exact += utf8.RuneCountInString(p.said.text)
		}
	}
	out.sure, out.full = true, true
	var had, all float64
	for i, w := range h.said {
		if w.figures() && saidLikeness[i] < same {
			return fit{} // another number is another name
		}
		weight := h.weighs(w.text)
		if slices.Contains(fillers, w.text) {
			weight *= fillerWeight
		}
		had, all = had+saidLikeness[i]*weight, all+weight
		out.sure = out.sure && saidLikeness[i] >= heard
	}
	out.said = had / math.Max(all, 1e-9)
	had, all = 0, 0
	for _, s := range name.spans {
		if s.to-s.from == 1 {
			weight[s.from] = h.weighs(s.text)
		}
	}
	for i, by := range nameLikeness {
		had, all = had+by*weight[i], all+weight[i]
		out.full = out.full && by >= heard
	}
	out.name = had / math.Max(all, 1e-9)
	out.full = out.full && out.sure
	return out
}

// likenesses returns the likeness of a span of a name to each span of the utterance; nil: it is like none.
func (h *utterance) likenesses(n span) []float64 {
	several := n.to-n.from > 1
	memory := h.cache[0]
	if several {
		memory = h.cache[1]
	}
	if known, ok := memory[n.text]; ok {
		return known
	}
	var out []float64
	for i, s := range h.spans {
		if several && s.to-s.from > 1 {
			continue
		}
		likeness := alike(s.word, n.word, several || s.to-s.from > 1)
		// A word that is in some name was not misheard: it means this one only if it is another form of it.
		form := likeness >= stem && (strings.HasPrefix(s.text, n.text) || strings.HasPrefix(n.text, s.text))
		if !form && likeness >= heard && s.to-s.from == 1 && h.isKnownWord(s.text) {
			likeness = heard - 0.1
		}
		if likeness > 0 && out == nil {
			out = make([]float64, len(h.spans))
		}
		if likeness > 0 {
			out[i] = likeness
		}
	}
	memory[n.text] = out
	return out
}

// askWithin is how much less than the best score a name may have to be asked about.
const askWithin = 0.15

// bestFits returns the names that fit an utterance, the best first. sure reports whether they fit enough to be taken;
// else they are to be asked about. order decides among equal scores.
func bestFits[T comparable](fits map[T]fit, enough func(fit) bool, order func(T, T) int) (found []T, sure bool) {
	var top float64
	for _, f := range fits {
		top, sure = max(top, f.score()), sure || enough(f)
	}
	for name, f := range fits {
		if sure && enough(f) || !sure && f.score() >= max(likely, top-askWithin) {
			found = append(found, name)
		}
	}
	slices.SortFunc(found, func(a, b T) int {
		return cmp.Or(cmp.Compare(fits[b].score(), fits[a].score()), order(a, b))
	})
	return found, sure
}
