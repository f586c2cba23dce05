package consent

import (
	"slices"
	"strconv"
	"strings"
)

// A Reply is what the words of a caller say about the one thing that was asked.
type Reply int

// What a reply can say, the more cautious later.
const (
	Yes     Reply = iota // it allows exactly what was asked
	Nothing              // fillers and thanks: as if nothing had been said
	Echo                 // our own question, heard back
	Unclear              // neither: ask again, with [Question.Again]
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
	Key      []string // those without which the question names no act: the program and its first operand
	Files    []string // the names of the files that would be edited; at most 16 count
	Machines []string // the machine's name, its aliases and spoken forms; at most 16 count
	Projects []string // names of the project, which a reply may use for the machine's
	Text     string   // how we asked, to know its echo
	Said     string   // the words with which the voice really asked; "" when they are not known
}

// Bounds of a reply.
const (
	maxWords     = 12   // of a yes; a character of Chinese, Japanese or Korean counts a third
	maxHeadBytes = 1000 // of any reply are looked at
	echoWords    = 3    // words of ours in a row are an echo; two can be the caller's own: "go ahead"
)

// Read decides whether a reply allows exactly the one thing that was asked; the package comment says how.
func Read(reply string, asked Question) Reply {
	h := hear(head(reply))
	if h.isEchoOf(asked) {
		return Echo
	}
	if len(h.tokens) == 0 {
		return Nothing
	}
	got := Yes
	for _, r := range readings(h, topicOf(asked)) {
		got = max(got, decide(r, r.marked()))
	}
	return got
}

// readings returns a text in the language that knows most of its words, or in each of those that know as many. English
// comes first: the others are not looked at where it knows every word.
func readings(h heard, a topic) []reading {
	r, marked := read(h, a, english())
	_, most, mostOwn := marked.scan()
	best := []reading{r}
	if most == len(marked.tokens) {
		return best
	}
	for _, l := range languages()[1:] {
		r, marked := read(h, a, l)
		_, covered, own := marked.scan()
		if covered > most || covered == most && own > mostOwn {
			best, most, mostOwn = nil, covered, own
		}
		if covered == most && own == mostOwn {
			best = append(best, r)
		}
	}
	return best
}

// isEchoOf reports whether a whole reply is a piece of what we said ourselves.
func (h heard) isEchoOf(asked Question) bool {
	return h.words() >= echoWords && slices.ContainsFunc([]string{asked.Text, asked.Said}, func(ours string) bool {
		return hear(ours).has(h.joined)
	})
}

// Names reports whether a reply names the machine or the act, so that it can be told apart from replies to other open
// questions.
func (q Question) Names(reply string) bool {
	return slices.ContainsFunc(readings(hear(head(reply)), topicOf(q)), func(r reading) bool {
		m := r.marked()
		return slices.ContainsFunc(m.indexes(), func(at int) bool { return m.named(at) > 0 || m.actAt(at) })
	})
}

// NamesMachine reports whether what the voice said names the machine, in any language.
func (q Question) NamesMachine(said string) bool {
	h := hear(head(said))
	a := topicOf(Question{Machines: q.Machines})
	return slices.ContainsFunc(languages(), func(l *language) bool {
		r, _ := read(h, a, l)
		calls := r.calls()
		return slices.ContainsFunc(r.indexes(), func(at int) bool { return r.calledAt(at, calls) > 0 })
	})
}

// NamesAct reports whether what the voice said names the act, in any language: each word of its key, or for an edit the
// number of its files, or each of them.
func (q Question) NamesAct(said string) bool {
	h := hear(head(said))
	if len(q.Files) > 0 {
		return h.hasAll(q.Files, nil) || slices.ContainsFunc(languages(), func(l *language) bool {
			return slices.ContainsFunc(l.numbers[strconv.Itoa(len(q.Files))], h.has)
		})
	}
	return len(q.Key) > 0 && slices.ContainsFunc(languages(), func(l *language) bool { return h.hasAll(q.Key, l) })
}

// hasAll reports whether every word of some names was said, or what a language calls it.
func (h heard) hasAll(names []string, l *language) bool {
	for _, name := range names {
		for _, t := range hear(name).tokens {
			if !h.has(t) && (l == nil || !slices.ContainsFunc(l.names[t], h.has)) {
				return false
			}
		}
	}
	return true
}

// Again returns the words that ask once more for a plain answer, in the language that knows most words of the reply,
// else of the question as it was said, else in English.
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

// knows returns how many words of a text a language lists.
func (l *language) knows(text string) int {
	h := hear(head(text))
	_, _, own := reading{heard: h, l: l}.scan()
	return own
}

// AsksAgain reports whether the voice asked once more for a plain answer, in the words of [Question.Again].
func AsksAgain(said string) bool {
	h := hear(head(said))
	return slices.ContainsFunc(languages(), func(l *language) bool { return h.has(hear(l.again).joined) })
}

// Quotes reports whether words are what was said: each of them was, in this order, and no word that denies
// was left out.
func Quotes(words string, said ...string) bool {
	all, given := hear(strings.Join(said, "\n")), hear(words)
	if len(given.tokens) == 0 || all.denies() != given.denies() {
		return false
	}
	rest := all.tokens
	for _, t := range given.tokens {
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

// head is as much of a text as is looked at: enough to find what denies in more than a yes may hold.
func head(text string) string {
	if len(text) <= maxHeadBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxHeadBytes], "")
}
