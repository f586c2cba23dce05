package wording

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
)

// notSaid are the codes that no voice tells: there is no call yet, or none any more, or the subject is the sentence.
var notSaid = []handoff.Code{
	handoff.CodeUnauthorized, handoff.CodeNoKey, handoff.CodeSecretOver, handoff.CodeLoginOver, handoff.CodeForbidden,
	handoff.CodeAttached, handoff.CodeVoiceUnreachable, handoff.CodeVoiceKey, handoff.CodeVoiceModel,
	handoff.CodeVoiceLimit, handoff.CodeVoiceGone, handoff.CodeSlowClient, handoff.CodeSoundFormat, handoff.CodeOutdated, handoff.CodeSettings,
}

// inEnglish are the codes whose subject says in English what is wrong: it is for the voice model, or for nobody.
var inEnglish = []handoff.Code{
	handoff.CodeMalformed, handoff.CodeTooLarge, handoff.CodeNotFound, handoff.CodeNotGranted, handoff.CodeLimited,
}

// params returns the parameters of a sentence, in their order by name.
func (s sentence) params() []string {
	var names []string
	for i, part := range s {
		if i%2 == 1 && !slices.Contains(names, part) {
			names = append(names, part)
		}
	}
	slices.Sort(names)
	return names
}

// forms are the plurals of a language.
func (l Language) forms() []string {
	forms := map[string]bool{}
	for n := 1; n <= 200; n++ {
		forms[l.form(n)] = true
	}
	return slices.Sorted(maps.Keys(forms))
}

// TestSentences: every language has every sentence, with the parameters of the English one, and no other.
func TestSentences(t *testing.T) {
	wanted := map[string][]string{} // by name, without plurals; those are in counted
	counted := map[string][]string{}
	for name, s := range spoken()[English]() {
		if base, form, _ := cutLast(name); slices.Contains(English.forms(), form) {
			params := append(s.params(), counted[base]...)
			slices.Sort(params)
			counted[base] = slices.Compact(params)
			continue
		}
		wanted[name] = s.params()
	}
	for code, meaning := range handoff.Vocabulary {
		if !slices.Contains(notSaid, code) {
			wanted["code."+string(code)] = nil
			if strings.Contains(meaning.Spoken, "%s") && !slices.Contains(inEnglish, code) {
				wanted["code."+string(code)] = []string{"it"}
			}
		}
	}
	for l, read := range spoken() {
		have := read()
		names := map[string]bool{}
		check := func(name string, params []string, number bool) {
			s, ok := have[name]
			if !ok {
				t.Errorf("%s has no sentence %s", l, name)
				return
			}
			names[name] = true
			got := s.params()
			if number && slices.Contains(params, "n") && !slices.Contains(got, "n") { // "there is one more"
				params = slices.DeleteFunc(slices.Clone(params), func(p string) bool { return p == "n" })
			}
			if !slices.Equal(got, params) {
				t.Errorf("%s, %s: parameters %v, want %v", l, name, got, params)
			}
		}
		for name, params := range wanted {
			if l == English && strings.HasPrefix(name, "code.") {
				continue
			}
			check(name, params, false)
		}
		for base, params := range counted {
			if _, one := have[base]; one && l != English {
				check(base, params, false)
				continue
			}
			for _, form := range l.forms() {
				check(base+"."+form, params, form == "one" || form == "two")
			}
		}
		for name, s := range have {
			if !names[name] {
				t.Errorf("%s has a sentence %s, which nobody says", l, name)
			}
			for i, text := range s {
				if i%2 == 0 && strings.ContainsAny(text, "{}%") || strings.Contains(text, "  ") {
					t.Errorf("%s, %s: %q", l, name, text)
				}
			}
		}
	}
}

func cutLast(name string) (before, after string, found bool) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return name, "", false
	}
	return name[:i], name[i+1:], true
}

// TestSentencesAreSaid: the code says each sentence, with exactly its parameters.
func TestSentencesAreSaid(t *testing.T) {
	said := map[string]bool{"language": true}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	check := func(name string, got []string) {
		slices.Sort(got)
		found := false
		for full, s := range spoken()[English]() {
			if base, form, _ := cutLast(full); full == name || base == name && slices.Contains(English.forms(), form) {
				found, said[full] = true, true
				for _, p := range s.params() {
					if !slices.Contains(got, p) {
						t.Errorf("%s is said without %s", full, p)
					}
				}
			}
		}
		if !found {
			t.Errorf("%s is said, and there is none", name)
		}
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains([]string{"say", "plural", "ago", "join"}, method.Sel.Name) {
				return true
			}
			name, ok := literal(call.Args[0])
			if !ok { // the methods themselves, and what a program does, which has no parameters
				return true
			}
			var with []string
			from := map[string]int{"say": 1, "plural": 2}[method.Sel.Name]
			switch method.Sel.Name {
			case "ago":
				with = []string{"n"}
			case "join":
				with = []string{"a", "b"}
			default:
				for i := from; i < len(call.Args); i += 2 {
					key, _ := literal(call.Args[i])
					with = append(with, key)
				}
			}
			check(name, with)
			return true
		})
	}
	for _, w := range commandWords {
		check(w.name, nil)
	}
	for name := range spoken()[English]() {
		if !said[name] && !strings.HasPrefix(name, "why.") {
			t.Errorf("nobody says %s", name)
		}
	}
}

// TestWhysAreKnown: why an answer does not count is said in each language, wherever the reason stands.
func TestWhysAreKnown(t *testing.T) {
	found := 0
	for _, path := range []string{"../errors.go", "../store_down.go", "../evidence/judge.go", "../risk/risk.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 || !strings.HasPrefix(strings.ToLower(spec.Names[0].Name), "why") {
				return true
			}
			why, _ := literal(spec.Values[0])
			if found++; Language("de").Why(why) == why {
				t.Errorf("%s, %s is said in English: %q", path, spec.Names[0].Name, why)
			}
			return true
		})
	}
	if found != len(whys())-1 { // and the router's, of a copy
		t.Errorf("there are %d reasons, and %d sentences", found, len(whys()))
	}
}

func literal(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(lit.Value)
	return s, err == nil
}

// TestPlurals are examples of Unicode's CLDR.
func TestPlurals(t *testing.T) {
	for l, forms := range map[Language]map[string][]int{
		"de": {"one": {1}, "other": {2, 5, 11, 21, 101}},
		"ja": {"other": {1, 2, 11}},
		"pl": {"one": {1}, "few": {2, 4, 22, 34, 102}, "many": {5, 11, 12, 14, 21, 25, 112}},
		"ru": {"one": {1, 21, 101}, "few": {2, 4, 22, 103}, "many": {5, 11, 12, 14, 19, 111}},
		"ar": {"one": {1}, "two": {2}, "few": {3, 10, 103}, "many": {11, 99, 111}, "other": {100, 102}},
	} {
		for form, numbers := range forms {
			for _, n := range numbers {
				if got := l.form(n); got != form {
					t.Errorf("%s %d: %s, want %s", l, n, got, form)
				}
			}
		}
	}
}

// TestMissingIsEnglish: what a language has not, and what is no language, is English.
func TestMissingIsEnglish(t *testing.T) {
	rec := handoff.Record{Server: "bigpc", Outcome: handoff.OutcomeFailed,
		Fault: handoff.Fault(handoff.CodeUnreachable, "bigpc", "")}
	for _, l := range []Language{"", "en", "xx"} {
		if got := l.OutcomeSentence(rec); got != "bigpc is not answering." || !l.IsEnglish() {
			t.Errorf("%q: %s", l, got)
		}
		if got := l.Ago(time.Unix(7200, 0), time.Unix(0, 0)); got != "2 hours ago" {
			t.Errorf("%q: %s", l, got)
		}
	}
	if got := Language("de").say("no such sentence"); got != "" {
		t.Errorf("%q", got)
	}
}

// TestGerman are sentences of several parts as they are said.
func TestGerman(t *testing.T) {
	const l = Language("de")
	now := time.Unix(1e9, 0)
	fault := &handoff.Error{Code: handoff.CodeUnknownServer, Subject: "mac", Choices: []string{"a", "b", "c", "d"}}
	near := *fault
	near.Near, near.Choices = true, []string{"bigpc", "build"}
	for got, want := range map[string]string{
		l.Fault(fault): "Ich kenne keine Maschine namens mac. Es gibt a, b, c und 1 weitere.",
		l.Fault(&near): "Ich kenne keine Maschine namens mac. Meinst du bigpc oder build?",
		l.Fault(handoff.Fault(handoff.CodeNoConsent, "the answer was not plain", "")): "Ich brauche eine klare Antwort: die Antwort war nicht eindeutig.",
		l.Fault(handoff.Fault(handoff.CodeVoiceGone, "", "")):                         "The voice model ended the call.",
		l.AgeWords(2 * time.Minute):                                                   "2 Minuten",
		l.AgeWords(3 * time.Hour):                                                     "etwa 3 Stunden",
		l.Ago(now, now.Add(-3*24*time.Hour)):                                          "vor 3 Tagen",
		l.EarlyAnswer(handoff.Record{Server: "bigpc", Title: "Auth refactor", Why: handoff.WhyContinued}, handoff.WaitsNot).Say:                    "Ich bin dran, auf bigpc, weiter in der Sitzung Auth refactor.",
		l.NewsMessage([]Open{{Server: "bigpc", Doing: l.DoingWords(handoff.ItemCommand, "go test ./..."), Beats: true, Age: 2 * time.Minute}}).Say: "bigpc ist schon 2 Minuten dabei: die Tests laufen.",
	} {
		if got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

// TestHindiAges: an age stands before a postposition, and bends.
func TestHindiAges(t *testing.T) {
	const l = Language("hi")
	now := time.Unix(1e9, 0)
	for got, want := range map[string]string{
		l.AgeWords(time.Hour):              "लगभग एक घंटे",
		l.Ago(now, now.Add(-time.Hour)):    "1 घंटे पहले",
		l.Ago(now, now.Add(-50*time.Hour)): "2 दिन पहले",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestOutcomesInAnotherLanguage: the sentence of a record is said in the language, unless only the record has it.
func TestOutcomesInAnotherLanguage(t *testing.T) {
	const l = Language("de")
	rec := func(o handoff.Outcome, text string, fault *handoff.Error) handoff.Record {
		r := handoff.Record{Server: "bigpc", Outcome: o, Text: text, Fault: fault}
		r.Spoken = English.OutcomeSentence(r)
		return r
	}
	lost := rec(handoff.OutcomeUnknown, "", handoff.Fault(handoff.CodeSessionGone, "auth", ""))
	restarted := lost // its fault names the machine then
	restarted.Fault = handoff.Fault(handoff.CodeSessionGone, "bigpc", "")
	dropped := rec(handoff.OutcomeCancelled, "", handoff.Fault(handoff.CodePaused, "bigpc", ""))
	dropped.Spoken = WasDropped
	for _, tt := range []struct {
		rec  handoff.Record
		want string
	}{
		{rec(handoff.OutcomeResult, "Alle Tests bestehen.", nil), "Alle Tests bestehen."},
		{rec(handoff.OutcomeResult, "", nil), "bigpc ist fertig; es gibt nichts zu berichten."},
		{rec(handoff.OutcomeFailed, "", handoff.Fault(handoff.CodeUnreachable, "bigpc", "")), "bigpc antwortet nicht."},
		{lost, "Die Sitzung auth gibt es nicht mehr."},
		{restarted, "The session auth no longer exists."},
		{dropped, "Das wurde verworfen; es wurde nichts begonnen."},
	} {
		if got := l.OutcomeSentence(tt.rec); got != tt.want {
			t.Errorf("%s, want %s", got, tt.want)
		}
	}
	away := l.FinalsMessage([]handoff.Record{rec(handoff.OutcomeResult, "Alle Tests bestehen.", nil), lost}, WhenAway)
	const said = "Während du weg warst: 1 fertig, 1 fehlgeschlagen: Die Sitzung auth gibt es nicht mehr. bigpc, fertig: Alle Tests bestehen."
	if away.Say != said {
		t.Errorf("%s\nwant %s", away.Say, said)
	}
}

// TestQuestionsAreAsked: in every language a question ends with a question of its own.
func TestQuestionsAreAsked(t *testing.T) {
	q := handoff.RecordQuestion{Kind: handoff.QuestionCommand, Server: "bigpc", Label: "q1", Command: "git push"}
	question := regexp.MustCompile(`^¿?\p{L}.*[?？؟]$`)
	for _, l := range Languages() {
		if got := Language(l).QuestionMessage(q).Ask; !question.MatchString(got) {
			t.Errorf("%s asks %q", l, got)
		}
	}
}
