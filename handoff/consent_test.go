package handoff

import (
	"bufio"
	"os"
	"strings"
	"testing"
)

// corpusQuestion is what was asked of the people whose replies are in testdata.
var corpusQuestion = ConsentQuestion{
	Acts: []string{"npm", "install"}, Machines: []string{"bigpc", "big pc"},
	Text: "Bigpc wants to run npm install in the project api. May it?",
}

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
// not an acceptance may count as one, and few acceptances may be missed.
func TestCorpus(t *testing.T) {
	for _, file := range []string{"b.tsv"} {
		t.Run(file, func(t *testing.T) {
			accepts, missed := 0, 0
			for _, l := range readCorpus(t, file) {
				got := ReadConsent(l.text, corpusQuestion)
				switch {
				case l.verdict == "accept":
					accepts++
					if got != ConsentYes {
						missed++
						t.Logf("missed (%s): %s %s %q", got, l.lang, l.kind, l.text)
					}
				case got == ConsentYes:
					t.Errorf("false accept: %s %s %s %q", l.verdict, l.lang, l.kind, l.text)
				case l.verdict == "decline" && got != ConsentNo:
					t.Logf("decline read as %s: %s %q", got, l.lang, l.text)
				}
			}
			t.Logf("%d acceptances, %d missed", accepts, missed)
			if missed*50 > accepts {
				t.Errorf("%d of %d acceptances missed, more than 2 %%", missed, accepts)
			}
		})
	}
}

// TestConsentWords holds that no phrase of an acceptance contains one that denies or holds off.
func TestConsentWords(t *testing.T) {
	for i, book := range tongues {
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
