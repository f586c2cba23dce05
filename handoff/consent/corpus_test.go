package consent

import (
	"bufio"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// halves are the parts of the corpus with what was asked of the people who replied. The first was
// written by somebody who did not see the reader; its sum is held so that it is never edited to pass.
var halves = []struct {
	file  string
	sum   string
	asked []Question
}{
	{"a.tsv", "76737e114efe1d949d8c5da0a51c3a74d5a6a0d5ae00418379732dfec28fe317", []Question{
		about("git push origin main", bigpc, "Bigpc asks: may I run git push origin main? Yes or no?"),
		about("npm install zod vite react", []string{"laptop"}, "Laptop wants to install three npm packages. Shall I allow it?"),
		about("rm build", bigpc, "Big pc asks for permission: may I delete the build folder? Please say yes or no."),
	}},
	{"c.tsv", "", []Question{
		about("npm test", bigpc, "May I run the tests on bigpc?"),
		about("npm install", bigpc, "May I run npm install on bigpc?"),
		about("git push origin main", bigpc, "May I push to origin main on bigpc?"),
		about("edit files main.go", bigpc, "May I edit three files on bigpc?"),
		about("copy session", bigpc, "That session is open in a terminal on bigpc. Shall I go on in a copy?"),
	}},
	{"b.tsv", "", []Question{
		about("npm install", bigpc, "Bigpc wants to run npm install in the project api. May it?"),
	}},
	{"d.tsv", "", sixQuestions},
	{"e.tsv", "", sixQuestions},
	{"f.tsv", "", sixQuestions},
	{"g.tsv", "", sixQuestions},
	{"h.tsv", "", sixQuestions},
	{"i.tsv", "", sixQuestions},
	{"j.tsv", "", sixQuestions},
	{"l.tsv", "", sixQuestions},
	{"m.tsv", "", sixQuestions},
	{"n.tsv", "", sixQuestions},
	{"o.tsv", "", sixQuestions},
	{"p.tsv", "", sixQuestions},
	{"q.tsv", "", sixQuestions},
	{"r.tsv", "", sixQuestions},
	{"s.tsv", "", sixQuestions},
	{"t.tsv", "", sixQuestions},
	{"u.tsv", "", sixQuestions},
	{"v.tsv", "", sixQuestions},
	{"w.tsv", "", sixQuestions},
	{hardFile, "", hardQuestions},
}

// hardFile is a part that is far harder than what people say to a machine. It must make no false accept; how many of
// its yeses are missed, and read as a no, may only fall.
const (
	hardFile       = "k.tsv"
	maxHardMissed  = 300
	maxHardRefused = 26
)

// sixQuestions are numbered in the files. Set once.
var sixQuestions = []Question{
	about("git push origin main", bigDesktop, "Bigpc asks: may I run git push origin main? Yes or no?"),
	about("npm install", []string{"laptop", "api"}, "Laptop wants to run npm install in the project api. Shall I allow it?"),
	about("go test", bigDesktop, "Bigpc asks whether it may run the tests with go test ./... . Is that okay?"),
	about("edit files cart.go cart_test.go", []string{"laptop", "shop"},
		"Laptop asks for permission to edit two files in the project shop: cart.go and cart_test.go. May it?"),
	about("copy session", bigDesktop, "The session checkout flow is open in another program on bigpc. Shall I continue in a copy of it?"),
	about("pip install requests", []string{"mini", "the mac mini"},
		"Mini wants to download a package from the internet with pip install requests. Allow it?"),
}

// hardQuestions are numbered in the hard part. Set once.
var hardQuestions = []Question{
	about("npm test", bigDesktop, "Bigpc asks whether it may run the tests with npm test. Is that okay?"),
	about("git push origin main", bigDesktop, "Bigpc asks: may I run git push origin main? Yes or no?"),
	about("rm build", []string{"laptop"}, "Laptop asks for permission to delete the build folder. May it?"),
	about("edit files parser.go lexer.go", bigDesktop, "Bigpc wants to edit two files: parser.go and lexer.go. Shall I allow it?"),
	about("pip install requests", []string{"mini", "the mac mini"}, "Mini wants to download and install a package with pip install requests. Allow it?"),
	about("fetch docs.example.com", bigDesktop, "Bigpc wants to fetch a page from docs.example.com. May it?"),
}

var (
	bigpc      = []string{"bigpc", "big pc"}
	bigDesktop = []string{"bigpc", "big pc", "the desktop"}
)

// about is what is asked by a command.
func about(command string, machines []string, text string) Question {
	return Question{Acts: strings.Fields(command), Machines: machines, Text: text}
}

// A corpusLine is a reply and what it may count as.
type corpusLine struct {
	verdict, lang, kind, text string
	asked                     []Question
}

func readCorpus(t testing.TB, file string, asked []Question) []corpusLine {
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
		if file == "m.tsv" && p[3] == "没问题" && p[0] == "unclear" {
			continue // another author's opinion: in f.tsv it is a yes
		}
		if file == "u.tsv" && p[3] == "sí sí, déjalo" {
			continue // it means "let it" as often as "leave it"
		}
		out = append(out, corpusLine{p[0], p[1], p[2], p[3], those})
	}
	return out
}
