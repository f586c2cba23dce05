package consent

import (
	"regexp"
	"slices"
	"strings"
)

// A Reply is the meaning of a caller's words as a reply to a question.
type Reply int

// The replies, the more cautious later.
const (
	Yes     Reply = iota // it allows exactly what was asked
	Nothing              // fillers and thanks, as if nothing had been said
	Echo                 // our own question, picked up by the microphone
	Unclear              // none of the others: ask again, with [Question.Again]
	Later                // they asked for time: the question stays open
	No                   // it denies
	replyCount
)

var replyNames = [replyCount]string{"yes", "nothing", "echo", "unclear", "later", "no"}

// String returns the reply as tests and logs name it.
func (r Reply) String() string { return replyNames[r] }

// A Question is what was asked aloud. A reply may repeat its act and its machine; one that names another
// machine or act is not about this question.
type Question struct {
	Acts     []string // words for what would be done, "npm", "install"; at most 16 count
	Files    []string // the names of the files that would be edited; at most 16 count
	Paths    []string // their paths, and where it would be done
	Machines []string // the machine's name, its aliases and spoken forms; at most 16 count
	Others   []string // names of other machines: one who hears them has been asked something else
	Projects []string // names of the project, which a reply may use instead of the machine's
	Text     string   // the text with which we ask, to recognise its echo
	Said     string   // the words with which the voice really asked; "": not known
	Since    []string // what the voice said after that, until the reply
}

// Bounds of a reply.
const (
	maxWords  = 12       // of a yes; a character of Chinese, Japanese or Korean counts a third
	maxHeard  = 16 << 10 // bytes of a text that are read; what is longer is no yes
	echoWords = 3        // least length of an echo: two words can be the caller's own, "go ahead"
)

// Read decides whether a reply allows exactly the one thing that was asked; the package comment has the rules.
func Read(reply string, asked Question) Reply {
	h := hear(reply)
	if len(h.tokens) == 0 {
		return Nothing
	}
	got := Yes
	for _, r := range readings(h, topicOf(asked)) {
		got = max(got, r.decide())
	}
	if ours := append([]string{asked.Text, asked.Said}, asked.Since...); h.words() >= echoWords && h.isPartOf(ours) {
		whole := slices.ContainsFunc(ours, func(text string) bool { return hear(text).joined == h.joined })
		if (got == Later || got == No) && !whole { // it may be the caller's own
			return Unclear
		}
		return Echo
	}
	if got == Yes && h.isPartOf(asked.Since) { // our question often ends with "yes or no?", so a yes is no echo of that
		return Echo
	}
	return got
}

// readings returns the marked readings of a text in the languages that know most of its words. If English knows every
// word, no other language is tried.
func readings(h heard, a topic) []reading {
	r := read(h, a, english()).marked()
	_, most, mostOwn := r.scan()
	best := []reading{r}
	if most == len(r.tokens) {
		return best
	}
	for _, l := range languages()[1:] {
		r := read(h, a, l).marked()
		_, covered, own := r.scan()
		if own == 0 { // "die" is a word of another language, "yes, die now" is not
			continue
		}
		if covered > most || covered == most && own > mostOwn {
			best, most, mostOwn = nil, covered, own
		}
		if covered == most && own == mostOwn {
			best = append(best, r)
		}
	}
	return best
}

// isPartOf reports whether a whole reply is a part of one of the texts.
func (h heard) isPartOf(ours []string) bool {
	return slices.ContainsFunc(ours, func(text string) bool { return hear(text).has(h.joined) })
}

// Echoes reports whether words are a part of what the voice said, so that the microphone may have picked that up.
func Echoes(words, said string) bool {
	h := hear(words)
	return h.words() >= echoWords && h.isPartOf([]string{said})
}

// Names reports whether a reply names the machine or the act, so that it can be told apart from replies to other open
// questions.
func (q Question) Names(reply string) bool {
	return slices.ContainsFunc(readings(hear(reply), topicOf(q)), func(r reading) bool {
		return slices.ContainsFunc(r.indexes(), func(at int) bool {
			_, does, _ := r.longest(at)
			return r.named(at) > 0 || does&kindNamed != 0
		})
	})
}

// AskedBy reports whether what the voice said asks the question, in any language: it names the machine, every word of
// the act and every file, and nothing that looks like another machine, remote, file or host.
func (q Question) AskedBy(said string) bool {
	h := hear(said)
	machine, act := topicOf(Question{Machines: q.Machines}), q.Files
	if len(act) == 0 {
		act = q.Acts
	}
	return slices.ContainsFunc(languages(), func(l *language) bool {
		r := read(h.without(slices.Concat(l.marks, english().marks)), machine, l)
		marked := r.marked()
		return slices.Contains(marked.tokens, machineMark) && r.tellsAll(act) && !q.strays(said, marked)
	})
}

// tellsAll reports whether a text has some words, each as it is or as the language calls it. A word without letters and
// digits is not said.
func (r reading) tellsAll(words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool {
		w := hear(word)
		return len(w.tokens) > 0 && !r.has(w.joined) &&
			!slices.ContainsFunc(slices.Concat(r.l.names[w.joined], r.l.numbers[w.joined]), r.has)
	})
}

// nameLike matches what looks like a file, a path or a host.
var nameLike = regexp.MustCompile(`[\pL\pN_@-]+(?:[./:]+[\pL\pN_@-]+)+`)

// strays reports whether a text with the machine's names marked names something that the question does not.
func (q Question) strays(said string, marked reading) bool {
	asked := hear(strings.Join(slices.Concat(q.Acts, q.Files, q.Paths, q.Machines, q.Projects), " "))
	other := func(name string) bool { return !asked.has(hear(name).joined) }
	for _, name := range nameLike.FindAllString(said, -1) {
		h := hear(name)
		if does, _ := marked.does(h.span(0, 1)); other(name) && does == 0 && len(h.joined) > 2 {
			return true // and not "e.g.", "okay/cancel", or a sentence that ends without a space
		}
	}
	return slices.ContainsFunc(q.Others, func(name string) bool { return other(name) && marked.has(hear(name).joined) }) ||
		slices.ContainsFunc(marked.tokens, func(t string) bool { return english().means[t] == remoteMeaning && other(t) })
}

// Again returns the words that ask once more for a plain answer: in the language that knows most words of the reply, or
// else of the question as it was said, or else in English.
func (q Question) Again(reply string) string {
	best, most := english(), 0
	for _, text := range []string{reply, q.Said} {
		for _, l := range languages() {
			if n := l.knows(text); n > most {
				best, most = l, n
			}
		}
		if most > 0 {
			break
		}
	}
	return best.again
}

// knows returns the number of words of a text that a language lists.
func (l *language) knows(text string) int {
	h := hear(text)
	_, _, own := reading{heard: h, l: l}.scan()
	return own
}

// AsksAgain reports whether the voice asked once more for a plain answer, in the words of [Question.Again].
func AsksAgain(said string) bool {
	h := hear(said)
	return slices.ContainsFunc(languages(), func(l *language) bool { return h.has(hear(l.again).joined) })
}

// Quotes reports whether words quote what was said: each of them was said, in this order, and no word that denies is
// left out.
func Quotes(words string, said ...string) bool {
	all, quote := hear(strings.Join(said, "\n")), hear(words)
	if len(quote.tokens) == 0 || all.denies() != quote.denies() {
		return false
	}
	rest := all.tokens
	for _, t := range quote.tokens {
		i := slices.Index(rest, t)
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
	}
	return true
}

// denies reports whether a text has a word that denies.
func (h heard) denies() bool {
	return slices.ContainsFunc(readings(h, topic{}), func(r reading) bool {
		veto, _, _ := r.scan()
		return veto&kindNo != 0
	})
}
