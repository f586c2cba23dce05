package evidence

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"switchboard/handoff"
	"switchboard/handoff/consent"
)

// A timeline is a call with questions, as lines of seconds and what happens then.
type timeline struct {
	t     *testing.T
	e     Evidence
	began time.Time
	asks  map[string]timelineQuestion
	heard map[string][]time.Time // when it began, by what was said or typed
	spoke []time.Time            // when they began to speak
	again bool                   // the words that ask again are shown
}

// timelineQuestions are what agents may ask in a timeline.
var timelineQuestions = map[string]timelineQuestion{
	"install": askedInTimeline("bigpc", "npm install", "Bigpc wants to run npm install. May it?"),
	"push":    askedInTimeline("laptop", "git push origin main", "The laptop wants to run git push origin main. May it?"),
	"test":    askedInTimeline("bigpc", "npm test", "Bigpc wants to run npm test. May it?"),
	"status":  askedInTimeline("bigpc", "git status", "Bigpc wants to run git status. May it?"),
	"fetch":   askedInTimeline("bigpc", "git fetch --prune", "Bigpc wants to run git fetch. May it?"),
	"long": askedInTimeline("bigpc", "npx eslint src web tests docs tools",
		"Bigpc wants to run npx eslint. May it?"),
	"upstream": askedInTimeline("bigpc", "git push upstream main", "bigpc asks for permission to run a command"),
	"write":    askedInTimeline("bigpc", "cat a.txt > notes.md", "bigpc asks for permission to run a command"),
	"edit":     editsInTimeline("bigpc", "/src/api/cart.go", "/src/api/cart_test.go"),
	"sudo":     askedInTimeline("bigpc", "sudo reboot", "Bigpc wants to run sudo reboot. May it?"),
	"env": inWords(openInTimeline("bigpc", "env", "Bigpc asks: which environment?",
		handoff.Question{Kind: handoff.QuestionInput, Text: "Which environment?", Words: true})),
}

func inWords(q timelineQuestion) timelineQuestion {
	q.Shown.Words = true
	return q
}

// A timelineQuestion is a question with how we ask it.
type timelineQuestion struct {
	handoff.OpenQuestion
	text string
}

func (q timelineQuestion) about() consent.Question {
	return AskedAbout(q.OpenQuestion, q.text)
}

func askedInTimeline(server, command, text string) timelineQuestion {
	return openInTimeline(server, command, text, handoff.Question{Kind: handoff.QuestionCommand, Command: command})
}

func editsInTimeline(server string, files ...string) timelineQuestion {
	return openInTimeline(server, "edit", server+" asks for permission to change files",
		handoff.Question{Kind: handoff.QuestionFileChange, Changes: files})
}

func openInTimeline(server, name, text string, q handoff.Question) timelineQuestion {
	q.ID, q.Cwd = handoff.QuestionID(server+":1:"+name), "/src/api"
	q.Decisions = []handoff.Decision{handoff.DecisionAccept, handoff.DecisionDecline}
	return timelineQuestion{handoff.OpenQuestion{Others: []string{map[string]string{"bigpc": "laptop"}[server]},
		Shown: handoff.RecordQuestion{Server: server}, Question: q, Workspace: "/src/api", Names: []string{server},
		Project: map[string]string{"laptop": "website"}[server],
	}, text}
}

func newTimeline(t *testing.T) *timeline {
	return &timeline{
		t: t, began: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), asks: timelineQuestions, heard: map[string][]time.Time{},
	}
}

func (l *timeline) at(second string) time.Time {
	d, err := time.ParseDuration(second + "s")
	if err != nil {
		l.t.Fatal(err)
	}
	return l.began.Add(d)
}

// play performs a line and returns the ruling of a claim, else "".
func (l *timeline) play(line string) string {
	f := strings.Fields(line)
	at := l.at(f[0])
	switch f[1] {
	case "open":
		o := l.asks[f[2]]
		if len(f) > 3 {
			o.Level = f[3]
		}
		l.e.Open(o.OpenQuestion, o.text)
	case "ask": // the announcement goes out; its utterance is named after the question and the time
		l.e.Announced(l.asks[f[2]].Question.ID, f[2], at)
	case "said": // as it was to be said, or in other words
		said := strings.Join(f[3:], " ")
		if q := l.asks[f[2]].Question; said == "" {
			said = fmt.Sprintf("%s wants to do %s %s. May it?", l.asks[f[2]].Names[0], q.Command, strings.Join(q.Changes, " "))
		}
		l.e.Said(handoff.Said{ID: f[2], At: at, Text: said})
	case "mumbled": // it is not known what was said
		l.e.Said(handoff.Said{ID: f[2], At: at})
	case "voice": // the voice says something else
		l.e.Voiced(handoff.Voiced{Text: strings.Join(f[2:], " "), From: at})
	case "unsaid": // the voice model did not say it
		l.e.Said(handoff.Said{ID: f[2]})
	case "cut":
		l.e.Said(handoff.Said{ID: f[2], At: at, Cut: true})
	case "spoke":
		l.spoke = append(l.spoke, at)
		l.e.Spoke(handoff.Spoke{At: at})
	case "lost": // what they said, since the second that follows if it does, could not be transcribed
		h := handoff.Heard{Lost: true}
		if len(f) > 2 {
			h.Began = l.at(f[2])
		}
		l.e.Heard(h)
	case "undated": // the voice does not know when they began
		text := strings.Join(f[2:], " ")
		l.heard[text] = append(l.heard[text], l.spoke...)
		l.e.Heard(handoff.Heard{Text: text})
	case "heard", "typed", "seen", "loose": // seen: typed, with the page before them; loose: by whomever
		text := strings.Join(f[2:], " ")
		l.heard[text] = append(l.heard[text], at)
		l.e.Heard(handoff.Heard{Text: text, Typed: f[1] != "heard",
			Shown: f[1] == "seen" || f[1] == "loose", Loose: f[1] == "loose", Began: at})
	case "close":
		l.e.Closed(l.asks[f[2]].Question.ID, at)
	case "quote": // an answer in words
		o := l.asks[f[2]]
		v := l.e.Judge(Claim{Question: o.Question.ID, Hash: handoff.CommandHash(o.Question, o.Shown.Server),
			Words: strings.Join(f[3:], " "), Came: at.Add(-transcriptWait)}, at)
		return l.ruling(v)
	case "claim": // "10 claim install accept", with "@6" when it came earlier than just before
		o := l.asks[f[2]]
		c := Claim{Question: o.Question.ID, Hash: handoff.CommandHash(o.Question, o.Shown.Server), Wants: handoff.Decision(f[3]),
			Came: at.Add(-lastWord)}
		for _, extra := range f[4:] {
			if came, ok := strings.CutPrefix(extra, "@"); ok {
				c.Came = l.at(came)
			} else {
				c.Hash = extra
			}
		}
		return l.ruling(l.e.Judge(c, at))
	default:
		l.t.Fatalf("no verb in %q", line)
	}
	return ""
}

// ruling returns a judgment as the timelines write it.
func (l *timeline) ruling(v Judgment) string {
	out := v.Ruling.String()
	if v.Decision != "" {
		out += " " + string(v.Decision) + " by " + v.By
	}
	// A yes ages, and is written down, by the reply that it was.
	if v.Allows() && !slices.ContainsFunc(l.heard[v.Transcript], v.Said.Equal) {
		l.t.Errorf("%s by %q of %v", out, v.Transcript, v.Said)
	}
	if v.Allows() && !v.Heard.IsZero() && (v.Heard.After(v.Said) && v.By == handoff.ByVoice || v.Asked == "") {
		l.t.Errorf("%s by %q of %v, but %q was heard at %v", out, v.Transcript, v.Said, v.Asked, v.Heard)
	}
	if v.Allows() && v.By == handoff.ByVoice && v.Heard.IsZero() {
		l.t.Errorf("%s, and nothing is known of what was heard", out)
	}
	if v.Fault != nil {
		out += " (" + v.Fault.Subject + ")"
	}
	out = strings.TrimSuffix(out, " ()")
	if v.Again != "" && l.again {
		out += " " + v.Again
	}
	return out
}

// TestEvidence plays the calls of testdata/timelines.txtar, and holds what is judged at each claim.
func TestEvidence(t *testing.T) {
	calls, err := txtar.ParseFile("testdata/timelines.txtar")
	if err != nil || len(calls.Files) < 100 {
		t.Fatalf("%d calls, %v", len(calls.Files), err)
	}
	for _, call := range calls.Files {
		t.Run(call.Name, func(t *testing.T) {
			script, want, _ := strings.Cut(strings.TrimSpace(string(call.Data)), "\n= ")
			l := newTimeline(t)
			l.again = strings.Contains(want, ".;")
			var got []string
			for line := range strings.Lines(script) {
				if r := l.play(strings.TrimSpace(line)); r != "" {
					got = append(got, r)
				}
			}
			if joined := strings.Join(got, "; "); joined != want {
				t.Errorf("got  %s\nwant %s", joined, want)
			}
		})
	}
}

// readingsOf is what each text says to each question.
func readingsOf(names, texts []string) map[string]consent.Reply {
	reads := map[string]consent.Reply{}
	for _, name := range names {
		for _, text := range texts {
			reads[name+text] = consent.Read(text, timelineQuestions[name].about())
		}
	}
	return reads
}

// plainYes is when the newest unused yes to a question began after it had been heard; 0: there is none.
func plainYes(
	name string, heard map[string]float64, used map[float64]bool, clean map[float64]string, reads map[string]consent.Reply,
) float64 {
	found := 0.0
	for at, text := range clean {
		if h, ok := heard[name]; ok && at > h && !used[at] && reads[name+text] == consent.Yes {
			found = max(found, at)
		}
	}
	return found
}

// overruled reports whether a no came after a yes.
func overruled(name string, found float64, clean map[float64]string, reads map[string]consent.Reply) bool {
	for at, text := range clean {
		if at > found && reads[name+text] == consent.No {
			return true
		}
	}
	return false
}

// ambiguous reports whether another question had been asked when a yes came that did not name this one.
func ambiguous(name string, found float64, clean map[float64]string, asked map[string]float64) bool {
	for other, at := range asked {
		if other != name && at < found && !timelineQuestions[name].about().Names(clean[found]) {
			return true
		}
	}
	return false
}

// TestAnsweredElsewhere: where a yes counts only on the machine itself, one by voice is refused with the reason, and a
// no is judged.
func TestAnsweredElsewhere(t *testing.T) {
	at := time.Now()
	q := askedInTimeline("mini", "npm test", "Mini wants to run npm test. May it?").OpenQuestion
	q.Question.ID, q.Shown.ID, q.Shown.There = "q1", "q1", "its owner lets nobody else answer its agents"
	var e Evidence
	e.Open(q, "Mini wants to run npm test. May it?")
	hash := handoff.CommandHash(q.Question, q.Shown.Server)
	for _, c := range []Claim{
		{Question: "q1", Hash: hash, Wants: handoff.DecisionAccept, Came: at}, {Question: "q1", Hash: hash, Words: "yes", Came: at},
	} {
		if v := e.Judge(c, at); v.Ruling != RulingTap || v.Fault.Code != handoff.CodeRefused || v.Fault.Why != q.Shown.There {
			t.Errorf("%+v: %v %v", c, v.Ruling, v.Fault)
		}
	}
	if v := e.Judge(Claim{Question: "q1", Hash: hash, Wants: handoff.DecisionDecline, Came: at}, at); v.Ruling == RulingTap {
		t.Errorf("a no: %v", v.Fault)
	}
}

// TestEvidenceWorlds plays calls by chance and holds what must be true in each: nothing is accepted
// without a plain yes that began after that very question had been heard, that decided nothing before, and
// that was not overruled, and that named the question if another one had been asked; and nothing high is
// accepted at all.
func TestEvidenceWorlds(t *testing.T) {
	texts := []string{"yes", "go ahead", "yes on bigpc", "push it", "yes push it", "no", "wait", "okay, wait, don't",
		"what?", "thanks", "run npm install", "hm", "yes install it", ""}
	names := []string{"install", "push", "test", "sudo"}
	accepts := 0
	reads := readingsOf(names, texts)
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 7))
		l := newTimeline(t)
		heard, used, asked := map[string]float64{}, map[float64]bool{}, map[string]float64{}
		clean := map[float64]string{}
		var script []string
		now := 0.0
		do := func(format string, args ...any) string {
			line := fmt.Sprintf("%.1f ", now) + fmt.Sprintf(format, args...)
			script = append(script, line)
			return l.play(line)
		}
		for range 60 {
			now += float64(1+r.IntN(20)) / 10
			name := names[r.IntN(1+r.IntN(len(names)))]
			switch r.IntN(10) {
			case 0:
				do("open %s", name)
			case 1, 2:
				do("open %s", name)
				do("ask %s", name)
				delete(heard, name)
				if _, ok := asked[name]; !ok {
					asked[name] = now
				}
				if now++; r.IntN(4) > 0 {
					do("said %s", name)
					heard[name] = now
				}
			case 3:
				do("cut %s", name)
			case 4:
				do("spoke")
			case 5, 6, 8:
				text := texts[r.IntN(len(texts))]
				do("heard %s", text)
				clean[now] = text
			default:
				got := do("claim %s accept", name)
				if strings.HasPrefix(got, "decline") {
					delete(asked, name)
				}
				if !strings.HasPrefix(got, "accept") {
					continue
				}
				accepts++
				if found := plainYes(name, heard, used, clean, reads); found == 0 || name == "sudo" ||
					overruled(name, found, clean, reads) || ambiguous(name, found, clean, asked) {
					t.Fatalf("seed %d: %s\n%s", seed, got, strings.Join(script, "\n"))
				}
				for at := range clean {
					used[at] = used[at] || at > heard[name]
				}
				delete(heard, name)
				delete(asked, name)
			}
		}
	}
	t.Logf("%d acceptances", accepts)
	if accepts < 80 {
		t.Errorf("only %d acceptances: the worlds show nothing", accepts)
	}
}

// TestCommandHash holds that whatever differs in an act differs in its hash.
func TestCommandHash(t *testing.T) {
	q := handoff.Question{Turn: "t", Kind: handoff.QuestionCommand, Text: "May this run?", Command: "ls", Cwd: "/src",
		Changes: []string{"a", "b"}}
	seen := map[string]string{}
	for name, change := range map[string]func(*handoff.Question){
		"same":        func(*handoff.Question) {},
		"turn":        func(q *handoff.Question) { q.Turn = "u" },
		"connection":  func(q *handoff.Question) { q.Connection = "b" },
		"kind":        func(q *handoff.Question) { q.Kind = handoff.QuestionInput },
		"text":        func(q *handoff.Question) { q.Text = "" },
		"command":     func(q *handoff.Question) { q.Command = "ls " },
		"cwd":         func(q *handoff.Question) { q.Cwd = "/" },
		"changes":     func(q *handoff.Question) { q.Changes = []string{"a b"} },
		"bytes":       func(q *handoff.Question) { q.Command = "ls\xff" },
		"other bytes": func(q *handoff.Question) { q.Command = "ls\xfe" },
	} {
		other := q
		change(&other)
		h := handoff.CommandHash(other, "bigpc")
		if was, ok := seen[h]; ok || len(h) != 64 {
			t.Errorf("%s and %s have the hash %s", name, was, h)
		}
		seen[h] = name
	}
	if _, ok := seen[handoff.CommandHash(q, "laptop")]; ok {
		t.Error("another server has the same hash")
	}
	if handoff.TranscriptHash("") != "" || handoff.TranscriptHash("yes") == handoff.TranscriptHash("no") {
		t.Error("transcripts are not told apart")
	}
}

// TestTheirWords: an agent gets words that were said, in their order, and no denial is lost.
func TestTheirWords(t *testing.T) {
	for _, tt := range []struct {
		said  []string
		words string
		want  bool
	}{
		{[]string{"use the staging one, please"}, "staging", true},
		{[]string{"Use the staging one, please."}, "use staging", true},
		{[]string{"the main", "branch"}, "main branch", true},
		{[]string{"der Hauptzweig"}, "Hauptzweig", true},
		{[]string{"ステージング"}, "ステージング", true},
		{[]string{"use staging"}, "production", false},
		{[]string{"use staging"}, "staging use", false},
		{[]string{"not staging, production"}, "staging", false},
		{[]string{"not staging, production"}, "not staging, production", true},
		{[]string{"production"}, "not production", false},
		{[]string{"what did it ask?"}, "yes", false},
		{[]string{"staging"}, "", false},
		{[]string{"staging"}, "...", false},
		{nil, "yes", false},
	} {
		var said []*utterance
		for _, text := range tt.said {
			said = append(said, &utterance{Heard: handoff.Heard{Text: text}})
		}
		if got := theirWords(tt.words, said); got != tt.want {
			t.Errorf("%q of %q: %t", tt.words, tt.said, got)
		}
	}
}

// TestAskedAbout holds which words of a question a yes may repeat.
func TestAskedAbout(t *testing.T) {
	for _, tc := range []struct {
		q    handoff.Question
		want []string
	}{
		{handoff.Question{Kind: handoff.QuestionCommand, Command: "npm install zod vite react"},
			[]string{"npm", "install", "zod", "vite", "react"}},
		{handoff.Question{Kind: handoff.QuestionCommand,
			Command: `bash -lc "cd /src && /usr/bin/git push --force origin main"`},
			[]string{"/src", "git", "push", "origin", "main"}},
		{handoff.Question{Kind: handoff.QuestionCommand, Command: "rm -r build"}, []string{"rm", "build"}},
		{handoff.Question{Kind: handoff.QuestionFileChange, Changes: []string{"/src/a.go", "b.go", "c.go", "d.go"}},
			[]string{"edit", "files"}},
		{handoff.Question{Kind: handoff.QuestionCopy}, []string{"copy"}},
		{handoff.Question{Kind: handoff.QuestionInput, Text: "Which one?"}, nil},
	} {
		if got := AskedAbout(handoff.OpenQuestion{Question: tc.q}, "bigpc asks"); !slices.Equal(got.Acts, tc.want) {
			t.Errorf("%v %q: %q, want %q", tc.q.Kind, tc.q.Command, got.Acts, tc.want)
		}
	}
}

// TestAskedAnew: a question that the agent asks anew, changed, takes the place of the closed one also for its next
// field.
func TestAskedAnew(t *testing.T) {
	at := time.Now()
	form := func(text string) handoff.OpenQuestion {
		q := handoff.Question{ID: "q1", Words: true, Text: text, Asks: []handoff.Ask{{Text: "Which branch?"}, {Text: "Which tag?"}}}
		return handoff.OpenQuestion{Question: q, Shown: handoff.RecordQuestion{ID: "q1", Words: true, Server: "mini"}}
	}
	var e Evidence
	e.Open(form("Before the connection was lost:"), "")
	e.Closed("q1", at)
	now := form("After that:")
	e.Open(now, "")
	e.Closed("q1", at)
	e.Next("q1", 1)
	claim := Claim{Question: "q1", Hash: handoff.CommandHash(now.Question, "mini"), Words: "v2", Came: at}
	if v := e.Judge(claim, at); v.Ruling == RulingTap || v.Ruling == RulingClosed {
		t.Errorf("%v: %v", v.Ruling, v.Fault)
	}
}
