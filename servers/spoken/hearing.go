package spoken

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxSpan is how many words may have been one word, or the other way round: "sir o gate".
const maxSpan = 3

// A span is a run of words, from and up to but not with an index, joined to one word.
type span struct {
	word
	from, to int
}

// several reports whether the span has several words.
func (s span) several() bool { return s.to-s.from > 1 }

// spans returns all runs of at most maxSpan words, each joined to one word.
func spans(in []word) (out []span) {
	for from := range in {
		joined := word{}
		for to := from; to < min(from+maxSpan, len(in)); to++ {
			if in[to].figures() && to > from {
				break
			}
			joined = word{joined.text + in[to].text, joinSounds(joined.sound, in[to].sound)}
			out = append(out, span{joined, from, to + 1})
			if in[to].figures() {
				break
			}
		}
	}
	return out
}

// joinSounds joins two sounds, without a double sound between them.
func joinSounds(a, b string) string {
	if a != "" && b != "" && a[len(a)-1] == b[0] {
		return a + b[1:]
	}
	return a + b
}

// A Name is a name prepared for comparing, without words that distinguish nothing unless it has no others.
type Name struct {
	words int
	spans []span
}

// NewName prepares a name.
func NewName(name string) Name {
	in := withoutFillers(spell(name))
	return Name{len(in), spans(in)}
}

// Single returns the name without its runs of several words: each of its words is said as it is.
func (n Name) Single() Name {
	return Name{n.words, slices.DeleteFunc(n.spans, span.several)}
}

// Words yields the words of the name, in the form for comparing.
func (n Name) Words() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, s := range n.spans {
			if !s.several() && !yield(s.text) {
				return
			}
		}
	}
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

// SaysNewest reports whether a text has a word for what was worked on last: "the latest auth session".
func SaysNewest(said string) bool {
	return slices.ContainsFunc(spell(said), func(w word) bool { return slices.Contains(newest, w.text) })
}

// A Fit says how well a name fits what was said.
type Fit struct {
	said  float64 // the part of what was said that is in the name, 0 to 1
	name  float64 // the part of the name that was said, 0 to 1
	sure  bool    // everything that was said is in the name, with a likeness of heard or more
	full  bool    // sure, and every word of the name was said
	exact int     // letters of what was said in words with a likeness of stem or more
}

// MinStem is the least length of the beginning of a word, or of a part of a name, that may stand for the whole.
const MinStem = 4

// Any reports whether anything that was said is in the name.
func (f Fit) Any() bool { return f.said > 0 }

// Whole reports whether a name may be taken because all of it was said.
func (f Fit) Whole() bool { return f.full }

// Part reports whether a name may be taken because all of it, or a sure part of it, was said.
func (f Fit) Part() bool { return f.full || f.sure && f.exact >= MinStem }

// Score orders names. What was said counts more than words of the name that were left out.
func (f Fit) Score() float64 { return 0.75*f.said + 0.25*f.name }

// Better reports whether a fit is better than another: full before sure, sure before others, then by score.
func (f Fit) Better(than Fit) bool {
	rank := func(f Fit) float64 {
		switch {
		case f.full:
			return 2 + f.Score()
		case f.sure:
			return 1 + f.Score()
		}
		return f.Score()
	}
	return rank(f) > rank(than)
}

// A Query is what was said, in all its readings, to be compared with many names.
type Query []*reading

// NewQuery returns a query. weigh returns the weight of a word: common words have less. isWord reports whether a word
// is in some name: then it was not misheard.
func NewQuery(said string, weigh func(string) float64, isWord func(string) bool) (q Query) {
	for _, in := range readings(spell(said)) {
		if len(in) > 0 {
			known := map[likenessKey][]float64{}
			q = append(q, &reading{said: in, spans: spans(in), weigh: weigh, isWord: isWord, known: known})
		}
	}
	return q
}

// ByLength weighs a word by its length.
func ByLength(w string) float64 { return float64(min(utf8.RuneCountInString(w), 8)) }

// Fit returns the best fit of a name. What was said may also be in about, but words of about need not be said.
func (q Query) Fit(name, about Name) (best Fit) {
	for _, r := range q {
		if f := r.fit(name, about); f.Better(best) {
			best = f
		}
	}
	return best
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

// A reading is one way in which what was said can be meant.
type reading struct {
	said   []word
	spans  []span
	weigh  func(string) float64
	isWord func(string) bool
	known  map[likenessKey][]float64 // results of likenesses: many names have the same words
}

// A likenessKey is what the likenesses of a span of a name depend on.
type likenessKey struct {
	text    string
	several bool
}

// fillerWeight is the weight of a filler as a part of that of other words.
const fillerWeight = 0.2

// A pair is a span of what was said and one of a name, or of what is about it, that are alike.
type pair struct {
	said, name span
	alike      float64
	about      bool
}

// fit aligns what was said with a name, the most similar words first and in any order.
func (r *reading) fit(name, about Name) Fit {
	pairs := append(r.pairs(name, false), r.pairs(about, true)...)
	if len(pairs) == 0 {
		return Fit{}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.alike, a.alike), len(b.said.text)-len(a.said.text))
	})
	said, named, beside := make(aligned, len(r.said)), make(aligned, name.words), make(aligned, about.words)
	exact := 0
	for _, p := range pairs {
		with := named
		if p.about {
			with = beside
		}
		if !said.free(p.said) || !with.free(p.name) {
			continue
		}
		said.set(p.said, p.alike)
		with.set(p.name, p.alike)
		if p.alike >= stem && !p.about {
			exact += utf8.RuneCountInString(p.said.text)
		}
	}
	return r.judge(name, said, named, exact)
}

// pairs returns what is alike in what was said and in a name. Of what is about a name, only words that were heard well
// count.
func (r *reading) pairs(name Name, about bool) (all []pair) {
	for _, n := range name.spans {
		for i, likeness := range r.likenesses(n) {
			if likeness > 0 && (!about || likeness >= stem) {
				all = append(all, pair{r.spans[i], n, likeness, about})
			}
		}
	}
	return all
}

// An aligned has the likeness of each word to what it is aligned with; 0: it is aligned with nothing.
type aligned []float64

func (a aligned) free(s span) bool {
	return !slices.ContainsFunc(a[s.from:s.to], func(likeness float64) bool { return likeness > 0 })
}

func (a aligned) set(s span, likeness float64) {
	for i := s.from; i < s.to; i++ {
		a[i] = likeness
	}
}

// judge returns the fit of a name, given what the words of both are aligned with.
func (r *reading) judge(name Name, said, named aligned, exact int) Fit {
	out := Fit{sure: true, full: true, exact: exact}
	var had, all float64
	for i, w := range r.said {
		if w.figures() && said[i] < same {
			return Fit{} // another number is another name
		}
		weight := r.weigh(w.text)
		if slices.Contains(fillers, w.text) {
			weight *= fillerWeight
		}
		had, all = had+said[i]*weight, all+weight
		out.sure = out.sure && said[i] >= heard
	}
	out.said = had / math.Max(all, 1e-9)
	had, all = 0, 0
	for _, s := range name.spans {
		if !s.several() {
			weight := r.weigh(s.text)
			had, all = had+named[s.from]*weight, all+weight
			out.full = out.full && named[s.from] >= heard
		}
	}
	out.name = had / math.Max(all, 1e-9)
	out.full = out.full && out.sure
	return out
}

// likenesses returns the likeness of a span of a name to each span of what was said; nil: it is like none.
func (r *reading) likenesses(n span) []float64 {
	key := likenessKey{n.text, n.several()}
	if known, ok := r.known[key]; ok {
		return known
	}
	var out []float64
	for i, s := range r.spans {
		if n.several() && s.several() {
			continue
		}
		likeness := alike(s.word, n.word, n.several() || s.several())
		// A word that is in some name was not misheard: it means this one only if it is another form of it.
		form := likeness >= stem && (strings.HasPrefix(s.text, n.text) || strings.HasPrefix(n.text, s.text))
		if !form && likeness >= heard && !s.several() && r.isWord(s.text) {
			likeness = heard - 0.1
		}
		if likeness > 0 {
			if out == nil {
				out = make([]float64, len(r.spans))
			}
			out[i] = likeness
		}
	}
	r.known[key] = out
	return out
}

// askWithin is how much less than the best score a name may have to be asked about.
const askWithin = 0.15

// BestFits returns the names that fit, the best first. sure reports whether they fit enough to be taken; else they are
// to be asked about. order decides among equal scores.
func BestFits[T comparable](fits map[T]Fit, enough func(Fit) bool, order func(T, T) int) (found []T, sure bool) {
	var top float64
	for _, f := range fits {
		top, sure = max(top, f.Score()), sure || enough(f)
	}
	for name, f := range fits {
		if sure && enough(f) || !sure && f.Score() >= max(likely, top-askWithin) {
			found = append(found, name)
		}
	}
	slices.SortFunc(found, func(a, b T) int {
		return cmp.Or(cmp.Compare(fits[b].Score(), fits[a].Score()), order(a, b))
	})
	return found, sure
}
