package consent

import (
	"bufio"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// corpusFile is a file to read for a figure, beside those that are held: lines of EXPECTED, LANG, QUESTION, KIND, TEXT
// with the numbers of sixQuestions, separated by tabs.
var corpusFile = flag.String("corpus", "", "a `file` of replies to read for a figure")

// The questions of those files whose lines do not say to which one they reply, and of the one that has its own. Set
// once.
var askedIn = map[string][]Question{
	"a.tsv": {
		about("git push origin main", bigpc, "Bigpc asks: may I run git push origin main? Yes or no?"),
		about("npm install zod vite react", []string{"laptop"},
			"Laptop wants to install three npm packages. Shall I allow it?"),
		about("rm build", bigpc, "Big pc asks for permission: may I delete the build folder? Please say yes or no."),
	},
	"b.tsv": {about("npm install", bigpc, "Bigpc wants to run npm install in the project api. May it?")},
	"c.tsv": {
		about("npm test", bigpc, "May I run the tests on bigpc?"),
		about("npm install", bigpc, "May I run npm install on bigpc?"),
		about("git push origin main", bigpc, "May I push to origin main on bigpc?"),
		about("edit files main.go api.go api_test.go", bigpc, "May I edit three files on bigpc?"),
		about("copy session", bigpc, "That session is open in a terminal on bigpc. Shall I go on in a copy?"),
	},
	"k.tsv": hardQuestions,
}

// about is what is asked by a command.
func about(command string, machines []string, text string) Question {
	q := Question{Acts: strings.Fields(strings.TrimSuffix(command, " session")), Machines: machines, Text: text}
	if files, ok := strings.CutPrefix(command, "edit files "); ok {
		q.Acts, q.Files = []string{"edit", "files"}, strings.Fields(files)
	}
	return q
}

// A corpusLine is a reply and what it may count as.
type corpusLine struct {
	file, expected, lang, kind, text string
	asked                            []Question // it is a reply to one of them
	got                              Reply      // to the one to which it is a yes, or to the first
}

func readCorpus(t testing.TB, name string) []corpusLine {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	file := filepath.Base(name)
	asked := askedIn[file]
	if asked == nil {
		asked = sixQuestions
	}
	var out []corpusLine
	for s := bufio.NewScanner(f); s.Scan(); {
		if strings.HasPrefix(s.Text(), "#") || s.Text() == "" {
			continue
		}
		p := strings.Split(s.Text(), "\t")
		those := asked
		if n := len(p); n == 5 { // with the number of its question
			at, err := strconv.Atoi(strings.TrimPrefix(p[2], "Q"))
			if err != nil || at < 1 || at > len(asked) {
				t.Fatalf("%s: no such question: %q", file, s.Text())
			}
			those, p = asked[at-1:at], slices.Delete(p, 2, 3)
		} else if n != 4 {
			t.Fatalf("%s: a line has four parts, or five: %q", file, s.Text())
		}
		if p[1] == "uk" && p[0] == "unclear" && p[2] == "other-language" {
			continue // it has been learned since
		}
		l := corpusLine{file: file, expected: p[0], lang: p[1], kind: p[2], text: p[3], asked: those}
		out = append(out, l)
	}
	return out
}

// corpus returns the lines of all files that are held, which are read once.
func corpus(t testing.TB) []corpusLine {
	t.Helper()
	corpusOnce.Do(func() { corpusLines = readCorpora(t) })
	return corpusLines
}

var (
	corpusOnce  sync.Once
	corpusLines []corpusLine // Set once, by corpusOnce
)

func readCorpora(t testing.TB) []corpusLine {
	t.Helper()
	names, err := filepath.Glob("testdata/replies/*.tsv")
	if err != nil || len(names) < 23 {
		t.Fatal(len(names), err)
	}
	var out []corpusLine
	for _, name := range names {
		out = append(out, readCorpus(t, name)...)
	}
	return heardBack(out)
}

// heardBack reads lines: as a reply to the question to which it is a yes, or to the first.
func heardBack(lines []corpusLine) []corpusLine {
	for i := range lines {
		for n, q := range lines[i].asked {
			if got := Read(lines[i].text, q); n == 0 || got == Yes {
				lines[i].got = got
			}
		}
	}
	return lines
}

// A score counts what was read of some lines.
type score struct {
	replies, yes, yesRead    int // of all yeses
	plain, plainRead         int // of plain ones of at most six words
	short, shortRead         int // of all of at most six words
	falseAccepts, yesRefused int
	no, noRead               int
}

// shortWords is how many words a plain yes has at most.
const shortWords = 6

func (s *score) add(l corpusLine) {
	s.replies++
	got := 0
	if l.got == Yes {
		got = 1
	}
	switch {
	case l.expected == "accept":
		s.yes, s.yesRead = s.yes+1, s.yesRead+got
		if hear(l.text).words() <= shortWords {
			s.short, s.shortRead = s.short+1, s.shortRead+got
			if l.kind == "plain" {
				s.plain, s.plainRead = s.plain+1, s.plainRead+got
			}
		}
		if l.got == No {
			s.yesRefused++
		}
	case l.got == Yes:
		s.falseAccepts++
	}
	if l.expected == "decline" {
		s.no++
		if l.got == No {
			s.noRead++
		}
	}
}

func (s *score) log(t *testing.T, name string) {
	percent := func(part, of int) float64 { return 100 * float64(part) / float64(max(of, 1)) }
	t.Logf("%-6s %5d replies: %d false accepts; "+
		"yeses of up to %d words: plain ones %d of %d (%.1f %%), all %d of %d (%.1f %%); "+
		"all yeses %d of %d (%.1f %%), %d read as a no; noes %d of %d (%.1f %%)",
		name, s.replies, s.falseAccepts, shortWords,
		s.plainRead, s.plain, percent(s.plainRead, s.plain), s.shortRead, s.short, percent(s.shortRead, s.short),
		s.yesRead, s.yes, percent(s.yesRead, s.yes), s.yesRefused, s.noRead, s.no, percent(s.noRead, s.no))
}

// TestCorpus holds the reader to what people decided before it was written: nothing that is not a yes may count as
// one, and of a hundred plain yeses of at most six words at least 94 are read. With -corpus it reads one more file,
// and prints it.
func TestCorpus(t *testing.T) {
	var lines []corpusLine
	if *corpusFile == "" {
		lines = corpus(t)
	} else {
		lines = heardBack(readCorpus(t, *corpusFile))
	}
	var all score
	files, languages := map[string]*score{}, map[string]*score{}
	count := func(in map[string]*score, name string, l corpusLine) {
		if in[name] == nil {
			in[name] = &score{}
		}
		in[name].add(l)
	}
	for _, l := range lines {
		all.add(l)
		count(files, l.file, l)
		count(languages, l.lang, l)
		switch {
		case l.expected != "accept" && l.got == Yes:
			t.Errorf("%s: false accept: %s %s %s %q", l.file, l.expected, l.lang, l.kind, l.text)
		case l.expected == "decline" && l.got != No:
			t.Logf("%s: no read as %s: %s %s %q", l.file, l.got, l.lang, l.kind, l.text)
		case l.expected == "accept" && l.got != Yes:
			t.Logf("%s: missed (%s): %s %s %q", l.file, l.got, l.lang, l.kind, l.text)
		}
	}
	for _, by := range []map[string]*score{files, languages} {
		for _, name := range slices.Sorted(maps.Keys(by)) {
			by[name].log(t, name)
		}
	}
	all.log(t, "all")
	if *corpusFile == "" && all.plainRead*100 < all.plain*94 {
		t.Errorf("%d of %d plain yeses are read", all.plainRead, all.plain)
	}
}

var (
	bigpc      = []string{"bigpc", "big pc"}
	bigDesktop = []string{"bigpc", "big pc", "the desktop"}
)

// sixQuestions are numbered in the files. Set once.
var sixQuestions = []Question{
	about("git push origin main", bigDesktop, "Bigpc asks: may I run git push origin main? Yes or no?"),
	about("npm install", []string{"laptop", "api"},
		"Laptop wants to run npm install in the project api. Shall I allow it?"),
	about("go test", bigDesktop, "Bigpc asks whether it may run the tests with go test ./... . Is that okay?"),
	about("edit files cart.go cart_test.go", []string{"laptop", "shop"},
		"Laptop asks for permission to edit two files in the project shop: cart.go and cart_test.go. May it?"),
	about("copy session", bigDesktop,
		"The session checkout flow is open in another program on bigpc. Shall I continue in a copy of it?"),
	about("pip install requests", []string{"mini", "the mac mini"},
		"Mini wants to download a package from the internet with pip install requests. Allow it?"),
}

// hardQuestions are numbered in k.tsv. Set once.
var hardQuestions = []Question{
	about("npm test", bigDesktop, "Bigpc asks whether it may run the tests with npm test. Is that okay?"),
	about("git push origin main", bigDesktop, "Bigpc asks: may I run git push origin main? Yes or no?"),
	about("rm build", []string{"laptop"}, "Laptop asks for permission to delete the build folder. May it?"),
	about("edit files parser.go lexer.go", bigDesktop,
		"Bigpc wants to edit two files: parser.go and lexer.go. Shall I allow it?"),
	about("pip install requests", []string{"mini", "the mac mini"},
		"Mini wants to download and install a package with pip install requests. Allow it?"),
	about("fetch docs.example.com", bigDesktop, "Bigpc wants to fetch a page from docs.example.com. May it?"),
}
