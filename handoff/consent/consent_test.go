package consent

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestCorpus holds the reader of consent to what people decided before it was written: nothing that is
// not an acceptance may count as one, and of a hundred acceptances at most two may be missed.
func TestCorpus(t *testing.T) {
	replies, accepts, missed, hardMissed, hardRefused := 0, 0, 0, 0, 0
	for _, l := range corpus(t) {
		replies++
		switch {
		case l.file == hardFile && l.verdict == "accept":
			if l.got != Yes {
				hardMissed++
			}
			if l.got == No {
				hardRefused++
			}
		case l.verdict == "accept":
			accepts++
			if l.got != Yes {
				missed++
				t.Logf("%s: missed (%s): %s %s %q", l.file, l.got, l.lang, l.kind, l.text)
			}
			if l.got == No {
				t.Errorf("%s: a yes is read as a no: %s %s %q", l.file, l.lang, l.kind, l.text)
			}
		case l.got == Yes:
			t.Errorf("%s: false accept: %s %s %s %q", l.file, l.verdict, l.lang, l.kind, l.text)
		case l.verdict == "decline" && l.got != No:
			t.Logf("%s: decline read as %s: %s %q", l.file, l.got, l.lang, l.text)
		}
	}
	t.Logf("%d replies, %d acceptances, %d missed; of the hard ones %d missed, %d refused", replies, accepts, missed, hardMissed, hardRefused)
	if hardMissed > maxHardMissed || hardRefused > maxHardRefused {
		t.Errorf("of the hard acceptances %d are missed and %d are read as a no", hardMissed, hardRefused)
	}
	if replies < 500 || missed*50 > accepts {
		t.Errorf("%d of %d acceptances missed, more than 2 %%, or too few replies (%d)", missed, accepts, replies)
	}
}

// aliasesOfAll are names that people give to machines; some of them are words of everyday speech.
var aliasesOfAll = []string{"the desktop", "big pc", "my workstation", "the big one", "basement server", "go", "stop", "yes", "no", "all", "the other one", "it"}

// TestCorpusWithAliases holds that the aliases of a machine, whatever they are, make no false accept: each
// that a person may give is known as a name of the machine that asks.
func TestCorpusWithAliases(t *testing.T) {
	lines := corpus(t)
	inParallel(len(lines)/nth(), func(i int) {
		l := lines[i*nth()]
		asked := slices.Clone(l.asked)
		for i := range asked {
			asked[i].Machines = slices.Concat(asked[i].Machines, aliasesOfAll)
		}
		got, _ := readAny(l.text, asked)
		switch {
		case l.kind == "other-machine", l.kind == "wrong-machine", l.kind == "named-machine" && l.verdict == "unclear", strings.HasSuffix(l.text, " on bigpc"), strings.HasSuffix(l.text, " gros PC"): // it may be an alias now
		case l.verdict != "accept" && got == Yes:
			t.Errorf("%s: false accept: %s %s %s %q", l.file, l.verdict, l.lang, l.kind, l.text)
		case l.got == Yes && got != Yes:
			t.Errorf("%s: an alias loses a yes: %q", l.file, l.text)
		}
	})
}

// TestAliases holds by which names a yes may mean its machine.
func TestAliases(t *testing.T) {
	q := about("git push", []string{"bigpc", "the desktop", "my workstation", "basement box"}, "bigpc asks for permission to run a command")
	for text, want := range map[string]Reply{
		"yes, on the desktop":               Yes,
		"yes on desktop please":             Yes,
		"the desktop, yes":                  Yes,
		"yes, on my workstation":            Yes,
		"sure, on the workstation":          Yes,
		"yes on the basement box":           Yes,
		"yes, on big pc":                    Yes,
		"the desktop":                       Nothing,
		"yes, on the laptop":                Unclear,
		"yes, on the desktops":              Unclear,
		"yes, but on the desktop":           Later,
		"yes, not on the desktop":           No,
		"is the desktop asking?":            Unclear,
		"yes on the desktop and the laptop": Unclear,
	} {
		if got := Read(text, q); got != want {
			t.Errorf("%q is %s, not %s", text, got, want)
		}
	}
	for text, want := range map[string]bool{"yes, on the desktop": true, "desktop": true, "yes": false, "yes, on the laptop": false} {
		if got := q.Names(text); got != want {
			t.Errorf("%q names the machine: %t", text, got)
		}
	}
}

// TestCorpusUntouched fails when the half that was written apart from the reader is edited.
func TestCorpusUntouched(t *testing.T) {
	for _, half := range halves {
		data, err := os.ReadFile("testdata/replies/" + half.file)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(data)); half.sum != "" && got != half.sum {
			t.Errorf("%s has the sum %s", half.file, got)
		}
	}
}

// readAny is yes when the reply is a yes to any of the questions, and to which: an acceptance answers one of them,
// and nothing else may be a yes to whichever it was.
func readAny(text string, asked []Question) (got Reply, to Question) {
	for _, q := range asked {
		switch Read(text, q) {
		case Yes:
			return Yes, q
		case No:
			got = No
		}
	}
	return got, Question{}
}

// A readLine is a line of the corpus with what it is read as.
type readLine struct {
	corpusLine
	file string
	got  Reply
	to   Question // to which it is a yes
}

// corpus is the whole corpus, read once.
func corpus(t testing.TB) []readLine {
	corpusOnce.Do(func() {
		for _, half := range halves {
			for _, l := range readCorpus(t, half.file, half.asked) {
				corpusRead = append(corpusRead, readLine{corpusLine: l, file: half.file})
			}
		}
		inParallel(len(corpusRead), func(i int) {
			l := &corpusRead[i]
			l.got, l.to = readAny(l.text, l.asked)
		})
	})
	return corpusRead
}

var (
	corpusOnce sync.Once
	corpusRead []readLine // Set once, by corpusOnce
)

// inParallel calls do for each number below n, on all processors.
func inParallel(n int, do func(i int)) {
	var wg sync.WaitGroup
	var next atomic.Int64
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	wg.Wait()
}

// TestConsentWords holds that no phrase of an acceptance denies or holds off, except one that is longer
// than what it contains.
func TestConsentWords(t *testing.T) {
	for _, l := range languages() {
		if len(l.book) < 20 {
			t.Errorf("%s has %d words", l.code, len(l.book))
		}
		for _, phrases := range l.book {
			for _, p := range phrases {
				h := hear(written(p.tokens))
				if len(p.tokens) == 1 && !h.own(l) { // one of another language, told apart in a reply
					continue
				}
				for _, s := range []signal{signalDeny, signalHold, signalUnsure, signalAsk} {
					if slices.ContainsFunc(marks()[s][p.tokens[0]], func(m mark) bool { return m.last && slices.Equal(m.tokens, p.tokens) }) {
						continue // it depends on what comes after it
					}
					if h.find(s, asking{}) == present {
						t.Errorf("%s: %q (%d) is a signal (%d)", l.code, p.tokens, p.kind, s)
					}
				}
			}
		}
	}
}

// own tells whether a word that is a signal is one in this language.
func (h heard) own(l *language) bool {
	return slices.ContainsFunc(l.signals[:], func(b phrasebook) bool {
		return slices.ContainsFunc(b[h.tokens[0]], func(p phrase) bool { return len(p.tokens) == 1 })
	})
}

// naysayers are all words that deny or hold off, but for those of one language that mean something harmless
// in another.
func naysayers() []string {
	var words []string
	for _, l := range languages() {
		for _, s := range []signal{signalDeny, signalHold} {
			for _, first := range slices.Sorted(maps.Keys(l.signals[s])) {
				for _, p := range l.signals[s][first] {
					if len(homograph(p.tokens)) == 0 && !p.last && !l.saysElse(p.tokens) { // the others deny only where nothing of the act follows
						words = append(words, written(p.tokens))
					}
				}
			}
		}
	}
	return words
}

// saysElse tells whether each word of a phrase says something harmless in one other language: "na ja".
func (l *language) saysElse(tokens []string) bool {
	return slices.ContainsFunc(languages(), func(other *language) bool {
		return other != l && !slices.ContainsFunc(tokens, func(t string) bool { return !other.says(t) })
	})
}

// says tells whether a word alone is harmless in a language.
func (l *language) says(token string) bool {
	return slices.ContainsFunc(l.book[token], func(p phrase) bool { return len(p.tokens) == 1 })
}

// homograph returns the languages that mean something harmless by a phrase.
func homograph(tokens []string) (in []string) {
	for _, l := range languages() {
		if slices.ContainsFunc(l.book[tokens[0]], func(p phrase) bool { return slices.Equal(p.tokens, tokens) }) {
			in = append(in, l.code)
		}
	}
	return in
}

// written writes tokens as people do.
func written(tokens []string) string {
	if r, _ := utf8.DecodeRuneInString(tokens[0]); isDense(r) && !unicode.Is(unicode.Hangul, r) {
		return strings.Join(tokens, "")
	}
	return strings.Join(tokens, " ")
}

// TestHomographs lists the words that deny or hold off in one language and are harmless in another: they are
// few, and each is told apart by the rest of the reply.
func TestHomographs(t *testing.T) {
	var got []string
	for _, l := range languages() {
		for _, s := range []signal{signalDeny, signalHold} {
			for _, first := range slices.Sorted(maps.Keys(l.signals[s])) {
				for _, p := range l.signals[s][first] {
					if in := homograph(p.tokens); len(in) > 0 && !p.last {
						got = append(got, fmt.Sprintf("%s in %s, not in %v", written(p.tokens), l.code, in))
					}
				}
			}
		}
	}
	want := []string{"no in de, not in [pl pt]", "no in en, not in [pl pt]", "nel in es, not in [it]", "para in es, not in [pt]", "pas in fr, not in [nl]", "sen in sv, not in [tr]", "once in tr, not in [en]"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// acceptances are the replies of the corpus that are read as a yes, with their question; under the race detector, some.
func acceptances(t testing.TB) (texts []string, asked []Question) {
	for i, l := range corpus(t) {
		if l.got == Yes && i%nth() == 0 {
			texts, asked = append(texts, l.text), append(asked, l.to)
		}
	}
	return texts, asked
}

// TestDenialAnywhere puts words that deny or hold off between the words of accepted replies: not one
// stays a yes. Every such word gets its turn.
func TestDenialAnywhere(t *testing.T) {
	words := naysayers()
	texts, asked := acceptances(t)
	turn := 0
	var replies []string
	var to []Question
	var put [][2]string
	for i, text := range texts {
		fields := strings.Fields(text)
		for at := range len(fields) + 1 {
			word := words[turn%len(words)]
			turn++
			put = append(put, [2]string{strings.Join(fields[:at], " "), word})
			replies, to = append(replies, strings.Join(slices.Concat(fields[:at], []string{word}, fields[at:]), " ")), append(to, asked[i])
		}
	}
	inParallel(len(replies), func(i int) {
		if Read(replies[i], to[i]) == Yes && !reassures(put[i][0], put[i][1], replies[i], to[i]) {
			t.Errorf("%q is a yes", replies[i])
		}
	})
	if nth() == 1 && turn < len(words) {
		t.Errorf("%d words, only %d turns", len(words), turn)
	}
}

// reassures tells whether a word that was put into a reply after some others stands in a reassurance, in which one more
// "not" means nothing: "I don't have no problem"; or in a clause that tells something, of which it denies a part.
func reassures(before, word, reply string, asked Question) bool {
	h, ask := hear(reply).unfused(), askedWords(asked)
	if h.correctsItself(ask) { // what is taken back is taken back
		return true
	}
	calm := h.reassured(ask)
	for at := range h.tokens {
		for _, l := range languages() {
			l.book.at(h.tokens[at:], func(n int, kind phraseKind) { // "don't hesitate"
				for i := at; kind == kindNod && n > 1 && i < at+n; i++ {
					calm[i] = true
				}
			})
		}
	}
	h.tellsIn(ask, func(t *teller, _ heard, spoken []*language) bool {
		if t.mark(spoken); len(t.inert) != len(calm) || !t.isYes() {
			return false
		}
		for i, inert := range t.inert {
			calm[i] = calm[i] || inert || t.scene[i]
			t.l.told.at(t.h.tokens[i:], func(n int, _ phraseKind) { // "is waiting"
				for j := i; n > 1 && j < i+n; j++ {
					calm[j] = true
				}
			})
		}
		return true
	})
	from := len(hear(before).unfused().tokens)
	return slices.Contains(calm[min(from, len(calm)):min(from+len(hear(word).unfused().tokens), len(calm))], true)
}

// FuzzDenialAnywhere cuts a denial into an accepted reply at any character.
func FuzzDenialAnywhere(f *testing.F) {
	words := naysayers()
	texts, asked := acceptances(f)
	f.Add(0, 3, 3)
	f.Add(17, 2, 40)
	f.Fuzz(func(t *testing.T, text, word, at int) {
		i := magnitude(text) % len(texts)
		runes := []rune(texts[i])
		cut := magnitude(at) % (len(runes) + 1)
		before, denial := string(runes[:cut]), words[magnitude(word)%len(words)]
		reply := before + " " + denial + " " + string(runes[cut:])
		if Read(reply, asked[i]) == Yes && !reassures(before, denial, reply, asked[i]) {
			t.Errorf("%q is a yes", reply)
		}
	})
}

// isPlainYes tells whether a text is a yes without clauses.
func isPlainYes(text string, ask asking) bool {
	h := hear(text).fluent()
	return h.bestOf(ask, h.sharedSteps(ask), nil) >= verdictYes
}

func magnitude(n int) int { return max(n, -(n + 1)) }

// FuzzRead holds that any text is read without trouble, that what is added at the end of it as an
// unknown word leaves no yes, and that a yes is short.
func FuzzRead(f *testing.F) {
	for _, half := range halves {
		for _, l := range readCorpus(f, half.file, half.asked) {
			f.Add(l.text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		q := halves[0].asked[0]
		if Read(text, q) == Yes && utf8.RuneCountInString(text) > maxReplyRunes {
			t.Errorf("a long yes: %q", text)
		}
		if isPlainYes(text+" zqxjv", askedWords(q)) && Read(text+" zqxjv", q) == Yes {
			t.Errorf("an unknown word at the end of a yes: %q", text)
		}
	})
}

// TestRandomWords holds that words by chance are practically never a yes: common English words that are
// not about consent, in replies of one to eight.
func TestRandomWords(t *testing.T) {
	common := strings.Fields("time person year way day thing man world life hand part child eye woman place work week case point " +
		"government company number group problem fact be have do say get make go know take see come think look want give use find " +
		"tell ask work seem feel try leave call good new first last long great little own other old right big high different small " +
		"large next early young important few public bad same able to of in for on with at by from up about into over after the and a that I it " +
		"he as you this but his they her she or an will my one all would there their")
	r := rand.New(rand.NewPCG(3, 5))
	replies := make([]string, 4000)
	for i := range replies {
		words := make([]string, 1+r.IntN(8))
		for i := range words {
			words[i] = common[r.IntN(len(common))]
		}
		replies[i] = strings.Join(words, " ")
	}
	var yes atomic.Int64
	inParallel(len(replies), func(i int) {
		if Read(replies[i], halves[0].asked[0]) == Yes {
			yes.Add(1)
		}
	})
	if yes.Load() > int64(len(replies))/1000 { // "do it" by chance
		t.Errorf("%d of %d replies of random words are a yes", yes.Load(), len(replies))
	}
}
