package servers

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A word is one word of a name, as it is compared.
type word struct {
	text  string // lower case, without diacritics; a number in figures without leading zeros
	sound string // its consonants by how they sound; "" of a number or a word without any
}

// figures reports whether the word is a number.
func (w word) figures() bool { return w.text != "" && unicode.IsDigit(rune(w.text[0])) }

// spell splits a name into words as they are compared: numbers in figures, letters that were spelled out joined
// ("g p u"), diacritics gone.
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

// compose joins letters that were spelled out, and numbers.
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

// vowels tell how the letter before them sounds, and part what is heard twice.
const vowels = "aeiouy"

// soundOf folds a word to the consonants that are heard, those that are often confused alike. It is a coarse kind
// of Metaphone that leans to no language.
func soundOf(w string) string {
	var out []byte
	parted := true // from the last sound
	for w != "" {
		if unicode.IsDigit(rune(w[0])) {
			return ""
		}
		step := 1
		for _, rule := range soundRules[w[0]] {
			if !strings.HasPrefix(w, rule.letters) {
				continue
			}
			if rule.sound != "" && (parted || out[len(out)-1] != rule.sound[0]) {
				out = append(out, rule.sound...)
			}
			parted = false
			if step = len(rule.letters); step > 1 && strings.IndexByte(vowels, w[step-1]) >= 0 {
				step--
			}
			break
		}
		parted = parted || strings.IndexByte(vowels, w[0]) >= 0
		w = w[step:]
	}
	return string(out)
}

// How alike two words are, from 0 to 1.
const (
	same   = 1.0
	stem   = 0.9  // another form of the word
	sounds = 0.85 // it sounds the same, or one letter of a long word differs: as sure as hearing is
	heard  = 0.8  // from here on a name may be taken
	likely = 0.6  // from here on it may be asked about
)

// minSure is how many letters a word needs to be taken for another that only sounds like it.
const minSure = 4

// alike compares two words, of which one may be joined of several. Numbers are the same or they are not.
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
	const asked = 0.6 // a score below it is none
	stemmed := !joined && common >= minSure && 5*common >= 3*long
	if least := min(lacking(a.text, b.text), long/2+1); least > 2 && !homophones && !doubled && !stemmed &&
		1-float64(least)/float64(long)+bonus < asked {
		return 0 // most words end here, quickly
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
	if score+bonus < asked {
		return 0
	}
	if bonus > 0 {
		most := max(len(a.sound), len(b.sound))
		between := distance([]rune(a.sound), []rune(b.sound), most)
		score = max(score, min(score+bonus, 0.95-float64(between)/float64(most)))
	}
	if score < asked {
		return 0
	}
	return min(score, heard-0.05)
}

// lacking counts the letters of one word that the other lacks: their distance is no less.
func lacking(a, b string) int {
	var counts [64]int // letters that share a place only make it smaller
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

// undouble leaves out letters that are written twice.
func undouble(text string) string {
	letters := []rune(text)
	return string(slices.Compact(letters))
}

// commonPrefix counts the letters with which two words begin alike.
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

// maxSpan is how many words are heard as one, or one as so many: "sir o gate".
const maxSpan = 3

// spans are the runs of up to maxSpan words, each joined to one.
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

type span struct {
	word
	from, to int
}

func squeeze(a, b string) string {
	if a != "" && b != "" && a[len(a)-1] == b[0] {
		return a + b[1:]
	}
	return a + b
}

// A hearing is what somebody said, compared with many names.
type hearing struct {
	said  []word
	spans []span
	known [2]map[string][]float64 // how alike a span of a name is to each span of said; the second of several words
	// weighs says how much a word tells; common words tell less.
	weighs func(string) float64
	// right reports whether a word that was said is one of the names' own, and so was not misheard.
	right func(string) bool
}

// fillerWeight is how much of the weight of other words a filler has.
const fillerWeight = 0.2

// A fit is how well a name fits what was said.
type fit struct {
	said float64 // how much of what was said is in the name, 0 to 1
	name float64 // how much of the name was said, 0 to 1
	sure bool    // every word that was said is surely in the name
	full bool    // and every word of the name was said
	// exact is how many letters are of words, or forms of words, that are written so.
	exact int
}

// score orders names: what was said counts more than what was left out.
func (f fit) score() float64 { return 0.75*f.said + 0.25*f.name }

// A spelled name can be compared. Its fillers are left out, unless it has nothing else.
type spelled struct {
	words int
	spans []span
}

func spelling(name string) spelled {
	in := telling(spell(name))
	return spelled{len(in), spans(in)}
}

// single leaves out what is joined of several words.
func (s spelled) single() spelled {
	return spelled{s.words, slices.DeleteFunc(s.spans, func(one span) bool { return one.to-one.from > 1 })}
}

// telling leaves out fillers and words for the newest, unless there is nothing else.
func telling(in []word) []word {
	out := slices.DeleteFunc(slices.Clone(in), func(w word) bool {
		return slices.Contains(fillers, w.text) || slices.Contains(newest, w.text)
	})
	if len(out) == 0 {
		return in
	}
	return out
}

// hear prepares what was said, in all the ways in which it can be meant.
func hear(said string, weighs func(string) float64, right func(string) bool) []*hearing {
	var out []*hearing
	for _, in := range readings(spell(said)) {
		if len(in) > 0 {
			out = append(out, &hearing{said: in, spans: spans(in), weighs: weighs, right: right,
				known: [2]map[string][]float64{{}, {}}})
		}
	}
	return out
}

// readings are the ways in which words can be meant: as they are; with names of letters as letters ("gee pee you");
// with words at the end that sound like a number, or ordinals, as numbers; with the fillers.
func readings(in []word) [][]word {
	out := [][]word{telling(in)}
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
			out = append(out, telling(compose(other)))
		}
	}
	if len(out[0]) < len(in) {
		out = append(out, in) // what seems to be filler may be part of a word
	}
	return out
}

// best compares a name with all ways in which something can be meant.
func best(ways []*hearing, name, about spelled) fit {
	var out fit
	for _, h := range ways {
		if f := h.compare(name, about); f.better(out) {
			out = f
		}
	}
	return out
}

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

// compare aligns what was said with a name, the likest words first and in any order. What was said may be in about
// as well, which a name need not have said.
func (h *hearing) compare(name, about spelled) fit {
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
	saidBy, nameBy, aboutBy := make([]float64, len(h.said)), make([]float64, name.words), make([]float64, about.words)
	weight := make([]float64, name.words)
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
		theirs := nameBy
		if p.about {
			theirs = aboutBy
		}
		if !free(saidBy, p.said) || !free(theirs, p.name) {
			continue
		}
		set(saidBy, p.said, p.alike)
		set(theirs, p.name, p.alike)
		if p.alike >= stem && !p.about {
			out.exact += utf8.RuneCountInString(p.said.text)
		}
	}
	out.sure, out.full = true, true
	var had, all float64
	for i, w := range h.said {
		if w.figures() && saidBy[i] < same {
			return fit{} // another number is another name
		}
		weight := h.weighs(w.text)
		if slices.Contains(fillers, w.text) {
			weight *= fillerWeight
		}
		had, all = had+saidBy[i]*weight, all+weight
		out.sure = out.sure && saidBy[i] >= heard
	}
	out.said = had / math.Max(all, 1e-9)
	had, all = 0, 0
	for _, s := range name.spans {
		if s.to-s.from == 1 {
			weight[s.from] = h.weighs(s.text)
		}
	}
	for i, by := range nameBy {
		had, all = had+by*weight[i], all+weight[i]
		out.full = out.full && by >= heard
	}
	out.name = had / math.Max(all, 1e-9)
	out.full = out.full && out.sure
	return out
}

// likenesses compares a span of a name with every span that was said; nil if it is like none.
func (h *hearing) likenesses(n span) []float64 {
	several := n.to-n.from > 1
	memory := h.known[0]
	if several {
		memory = h.known[1]
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
		// A word of another name was not misheard: it means this one at most where it is another form of it.
		form := likeness >= stem && (strings.HasPrefix(s.text, n.text) || strings.HasPrefix(n.text, s.text))
		if !form && likeness >= heard && s.to-s.from == 1 && h.right(s.text) {
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

// askWithin is how much worse than the best a name may fit to be asked about.
const askWithin = 0.15

// likest returns the names that fit what was said, the best first, and whether they fit enough to be taken.
// Otherwise they are to be asked about. The order decides among equals.
func likest[T comparable](fits map[T]fit, enough func(fit) bool, order func(T, T) int) (found []T, sure bool) {
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
