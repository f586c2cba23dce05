package handoff

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// halves are the two halves of the corpus with what was asked of the people who replied. The first was
// written by somebody who did not see the reader; its sum is held so that it is never edited to pass.
var halves = []struct {
	file  string
	sum   string
	asked []ConsentQuestion
}{
	{"a.tsv", "76737e114efe1d949d8c5da0a51c3a74d5a6a0d5ae00418379732dfec28fe317", []ConsentQuestion{
		AskedAbout(Question{Kind: QuestionCommand, Command: "git push origin main"}, bigpc, "Bigpc asks: may I run git push origin main? Yes or no?"),
		AskedAbout(Question{Kind: QuestionCommand, Command: "npm install zod vite react"}, []string{"laptop"}, "Laptop wants to install three npm packages. Shall I allow it?"),
		AskedAbout(Question{Kind: QuestionCommand, Command: "rm -r build"}, bigpc, "Big pc asks for permission: may I delete the build folder? Please say yes or no."),
	}},
	{"b.tsv", "", []ConsentQuestion{
		AskedAbout(Question{Kind: QuestionCommand, Command: "npm install"}, bigpc, "Bigpc wants to run npm install in the project api. May it?"),
	}},
}

var bigpc = []string{"bigpc", "big pc"}

// A corpusLine is a reply and what it may count as.
type corpusLine struct{ verdict, lang, kind, text string }

func readCorpus(t testing.TB, file string) []corpusLine {
	t.Helper()
	f, err := os.Open("testdata/replies/" + file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var out []corpusLine
	for s := bufio.NewScanner(f); s.Scan(); {
		if strings.HasPrefix(s.Text(), "#") || s.Text() == "" {
			continue
		}
		p := strings.Split(s.Text(), "\t")
		if len(p) != 4 {
			t.Fatalf("%s: a line has four parts: %q", file, s.Text())
		}
		out = append(out, corpusLine{p[0], p[1], p[2], p[3]})
	}
	return out
}

// TestCorpus holds the reader of consent to what people decided before it was written: nothing that is
// not an acceptance may count as one, and of a hundred acceptances at most two may be missed.
func TestCorpus(t *testing.T) {
	replies, accepts, missed := 0, 0, 0
	for _, half := range halves {
		for _, l := range readCorpus(t, half.file) {
			replies++
			got := readAny(l.text, half.asked)
			switch {
			case l.verdict == "accept":
				accepts++
				if got != ConsentYes {
					missed++
					t.Logf("%s: missed (%s): %s %s %q", half.file, got, l.lang, l.kind, l.text)
				}
			case got == ConsentYes:
				t.Errorf("%s: false accept: %s %s %s %q", half.file, l.verdict, l.lang, l.kind, l.text)
			case l.verdict == "decline" && got != ConsentNo:
				t.Logf("%s: decline read as %s: %s %q", half.file, got, l.lang, l.text)
			}
		}
	}
	t.Logf("%d replies, %d acceptances, %d missed", replies, accepts, missed)
	if replies < 500 || missed*50 > accepts {
		t.Errorf("%d of %d acceptances missed, more than 2 %%, or too few replies (%d)", missed, accepts, replies)
	}
}

// aliasesOfAll are names that people give to machines; some of them are words of everyday speech.
var aliasesOfAll = []string{"the desktop", "big pc", "my workstation", "the big one", "basement server", "go", "stop", "yes", "no", "all", "the other one", "it"}

// TestCorpusWithAliases holds that the aliases of a machine, whatever they are, make no false accept: each
// that a person may give is known as a name of the machine that asks.
func TestCorpusWithAliases(t *testing.T) {
	for _, half := range halves {
		asked := slices.Clone(half.asked)
		for i := range asked {
			asked[i].Machines = slices.Concat(asked[i].Machines, aliasesOfAll)
		}
		for _, l := range readCorpus(t, half.file) {
			got, before := readAny(l.text, asked), readAny(l.text, half.asked)
			switch {
			case l.verdict != "accept" && got == ConsentYes:
				t.Errorf("%s: false accept: %s %s %s %q", half.file, l.verdict, l.lang, l.kind, l.text)
			case before == ConsentYes && got != ConsentYes:
				t.Errorf("%s: an alias loses a yes: %q", half.file, l.text)
			}
		}
	}
}

// TestAliases holds by which names a yes may mean its machine.
func TestAliases(t *testing.T) {
	q := AskedAbout(Question{Kind: QuestionCommand, Command: "git push"}, []string{"bigpc", "the desktop", "my workstation", "basement box"}, "bigpc asks for permission to run a command")
	for text, want := range map[string]Consent{
		"yes, on the desktop":               ConsentYes,
		"yes on desktop please":             ConsentYes,
		"the desktop, yes":                  ConsentYes,
		"yes, on my workstation":            ConsentYes,
		"sure, on the workstation":          ConsentYes,
		"yes on the basement box":           ConsentYes,
		"yes, on big pc":                    ConsentYes,
		"the desktop":                       ConsentUnclear,
		"yes, on the laptop":                ConsentUnclear,
		"yes, on the desktops":              ConsentUnclear,
		"yes, but on the desktop":           ConsentUnclear,
		"yes, not on the desktop":           ConsentNo,
		"is the desktop asking?":            ConsentUnclear,
		"yes on the desktop and the laptop": ConsentUnclear,
	} {
		if got := ReadConsent(text, q); got != want {
			t.Errorf("%q is %s, not %s", text, got, want)
		}
	}
	for text, want := range map[string]bool{"yes, on the desktop": true, "desktop": true, "yes": false, "yes, on the laptop": false} {
		if got := q.NamedIn(text); got != want {
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

// readAny is yes when the reply is a yes to any of the questions: an acceptance answers one of them, and
// nothing else may be a yes to whichever it was.
func readAny(text string, asked []ConsentQuestion) Consent {
	got := ConsentUnclear
	for _, q := range asked {
		switch ReadConsent(text, q) {
		case ConsentYes:
			return ConsentYes
		case ConsentNo:
			got = ConsentNo
		}
	}
	return got
}

// TestConsentWords holds that no phrase of an acceptance contains one that denies or holds off.
func TestConsentWords(t *testing.T) {
	for i, book := range tongues {
		if len(book) < 20 {
			t.Errorf("language %d has %d words", i, len(book))
		}
		for _, phrases := range book {
			for _, p := range phrases {
				h := heardWords{tokens: p.tokens, apart: make([]bool, len(p.tokens))}
				h.apart[0] = true
				if h.has(denyWords) || h.has(holdWords) {
					t.Errorf("language %d: %q (%d) denies or holds off", i, p.tokens, p.kind)
				}
			}
		}
	}
}

// naysayers are all words that deny or hold off.
func naysayers() []string {
	var out []string
	for _, set := range []map[string][][]string{denyWords, holdWords} {
		for _, first := range slices.Sorted(maps.Keys(set)) {
			for _, p := range set[first] {
				out = append(out, strings.Join(p, " "))
			}
		}
	}
	return out
}

// acceptances are the replies of the corpus that are read as a yes, with their question.
func acceptances(t testing.TB) (texts []string, asked []ConsentQuestion) {
	for _, half := range halves {
		for _, l := range readCorpus(t, half.file) {
			for _, q := range half.asked {
				if ReadConsent(l.text, q) == ConsentYes {
					texts, asked = append(texts, l.text), append(asked, q)
					break
				}
			}
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
	for i, text := range texts {
		fields := strings.Fields(text)
		for at := range len(fields) + 1 {
			for range 6 {
				word := words[turn%len(words)]
				turn++
				reply := strings.Join(slices.Concat(fields[:at], []string{word}, fields[at:]), " ")
				if ReadConsent(reply, asked[i]) == ConsentYes {
					t.Errorf("%q is a yes", reply)
				}
			}
		}
	}
	if turn < len(words) {
		t.Errorf("%d words, only %d turns", len(words), turn)
	}
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
		reply := string(runes[:cut]) + " " + words[magnitude(word)%len(words)] + " " + string(runes[cut:])
		if ReadConsent(reply, asked[i]) == ConsentYes {
			t.Errorf("%q is a yes", reply)
		}
	})
}

func magnitude(n int) int { return max(n, -(n + 1)) }

// FuzzReadConsent holds that any text is read without trouble, that what is added at the end of it as an
// unknown word leaves no yes, and that a yes is short.
func FuzzReadConsent(f *testing.F) {
	for _, half := range halves {
		for _, l := range readCorpus(f, half.file) {
			f.Add(l.text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		q := halves[0].asked[0]
		if ReadConsent(text, q) == ConsentYes && len(text) > maxReplyBytes {
			t.Errorf("a long yes: %q", text)
		}
		if ReadConsent(text+" zqxjv", q) == ConsentYes {
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
	yes := 0
	const replies = 4000
	for range replies {
		words := make([]string, 1+r.IntN(8))
		for i := range words {
			words[i] = common[r.IntN(len(common))]
		}
		if ReadConsent(strings.Join(words, " "), halves[0].asked[0]) == ConsentYes {
			yes++
		}
	}
	if yes > replies/1000 { // "do it" by chance
		t.Errorf("%d of %d replies of random words are a yes", yes, replies)
	}
}
