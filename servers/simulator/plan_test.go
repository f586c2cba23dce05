package simulator

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestIntentOf(t *testing.T) {
	t.Parallel()
	for want, prompts := range map[string][]string{
		"tests": {"run the tests", "Run the tests again.", "test", "please run the test suite", "do the tests pass?",
			"are all tests green", "RUN TESTS"},
		"fix": {"fix it", "Fix it!", "fix", "please fix that", "fix the failing test", "can you repair it",
			"mend the test", "fix it and run the tests"},
		"push":       {"push it", "push the branch", "Push", "please push that", "git push"},
		"no push":    {"don't push it", "do not push", "don’t push the branch", "never push"},
		"notes":      {"write the release notes", "release notes please", "write the changelog"},
		"publish":    {"publish the release notes", "publish it", "please publish the notes"},
		"benchmarks": {"run the benchmarks", "benchmark it", "build everything", "do a long build"},
		"changes": {
			"what changed", "what changed?", "what did you do", "what have you done so far", "status", "give me a summary",
			"show me the diff",
		},
		"branch": {"which branch is it on", "What branch are you on?"},
		"stop":   {"stop", "stop it", "cancel that"},
		"": {"", "hello", "write a test for login", "add tests", "fix the typo in the readme", "refactor the parser",
			"what is the weather",
			"how do I make it real", "stop using tabs everywhere in the code"},
	} {
		for _, prompt := range prompts {
			if got := intentOf(prompt).name; got != want {
				t.Errorf("%q: intent %q, want %q", prompt, got, want)
			}
		}
	}
}

// outline names the steps of a plan.
func outline(steps []Step) string {
	var names []string
	for _, s := range steps {
		name := strings.ToLower(reflect.TypeOf(s).Name())
		switch s := s.(type) {
		case Run:
			name = fmt.Sprintf("run(%s)=%d", s.Command, s.Exit)
		case Ask:
			name = fmt.Sprintf("ask(%s)[%s|%s]", s.Command, outline(s.Accepted), outline(s.Declined))
		case Input:
			name = fmt.Sprintf("input[%s]", outline(s.Answered([]string{"version 2.5, please"})))
		case Effect:
			name = fmt.Sprintf("effect%d", s.Fact)
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// final returns the last message of a plan.
func final(steps []Step) string {
	if s, ok := steps[len(steps)-1].(Say); ok {
		return s.Text
	}
	return ""
}

func TestPlan(t *testing.T) {
	t.Parallel()
	shop := Session{dir: shopDir, branch: "auth-refactor", failing: true}
	saw, fixed, mended := shop, shop, shop
	saw.sawFailure = true
	fixed.failing = false
	mended.sawFailure, mended.failing = true, false
	pushed := shop
	pushed.pushed = true
	worked := shop
	worked.done = []string{"ran the tests", "fixed the check"}
	for _, row := range []struct {
		session Session
		prompt  string
		want    string
		says    string
	}{
		{shop, "run the tests", "think run(go test ./...)=1 effect0 say", "One test fails: TestRefreshExpiredToken"},
		{fixed, "run the tests", "think run(go test ./...)=0 effect1 say", "All tests pass."},
		{Session{dir: notesDir, failing: true}, "run the tests", "think run(go test ./...)=0 effect1 say", "All tests pass."},
		{saw, "fix it", "think say edit effect2 run(go test ./...)=0 effect1 say", "all tests pass now."},
		{shop, "fix it", "say", "Nothing has failed in this session"},
		{mended, "fix it", "say", "somebody has fixed it"},
		{shop, "push the branch", "think ask(git push origin auth-refactor)[effect3 say|say]", ""},
		{pushed, "push it", "say", "pushed already"},
		{shop, "don't push", "say", "push nothing"},
		{Session{dir: notesDir}, "write the release notes",
			"think say run(git log --oneline v2.3..HEAD)=0 say edit effect4 say", "are written"},
		{Session{dir: notesDir}, "publish the release notes", "think input[run(notes publish --version 2.5)=0 effect6 say]",
			""},
		{shop, "publish it", "think input[run(notes publish --version 2.5)=0 effect6 say]", ""},
		{shop, "run the benchmarks", "think run(go test -run xxx -bench . ./...)=0 effect5 say", "benchmarks are done"},
		{shop, "what changed", "think say", "Nothing has been changed"},
		{worked, "what changed", "think say", "I ran the tests, and last I fixed the check."},
		{shop, "stop", "say", "nothing to stop"},
		{shop, "make me a sandwich", "say", "simulated"},
		{Session{steered: true}, "stop", "say", "I stop here"},
		{Session{steered: true}, "hurry up", "say", "I stopped to hear you"},
	} {
		steps := row.session.Plan(Prompt{Text: row.prompt, Steered: row.session.steered})
		if got := outline(steps); got != row.want {
			t.Errorf("%q: %s\nwant %s", row.prompt, got, row.want)
		}
		if got := final(steps); !strings.Contains(got, row.says) {
			t.Errorf("%q ends with %q", row.prompt, got)
		}
		if again := row.session.Plan(Prompt{Text: row.prompt, Steered: row.session.steered}); outline(steps) != outline(again) ||
			!strings.Contains(outline(steps), "input") && !reflect.DeepEqual(steps, again) {
			t.Errorf("%q: two plans differ", row.prompt)
		}
	}
}

func TestPublished(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"2.5": "published for version 2.5.", "It is version 2 point 4, please.": "published for version 2.4.",
		"the third": "no version number",
		"":          "I got no version", "3": "published for version 3.", "$(reboot) 2.4; rm": "published for version 2.4.",
	} {
		if got := final(published([]string{said})); !strings.Contains(got, want) {
			t.Errorf("%q: %s", said, got)
		}
	}
}

// TestAnswersCanBeSaid: the last sentence is a paragraph of its own, without code.
func TestAnswersCanBeSaid(t *testing.T) {
	t.Parallel()
	s := Session{dir: shopDir, branch: "b", failing: true, sawFailure: true, done: []string{"ran the tests"}}
	for _, prompt := range []string{"run the tests", "fix it", "write the release notes", "run the benchmarks",
		"what changed", "hello", "stop", "don't push"} {
		text := final(s.Plan(Prompt{Text: prompt}))
		last := text[strings.LastIndex(text, "\n")+1:]
		if strings.ContainsAny(last, "`*#/") || !strings.HasSuffix(last, ".") || len(last) > 300 {
			t.Errorf("%q: %q cannot be said", prompt, last)
		}
	}
	if !strings.Contains(unknown, "--codex") || !strings.Contains(unknown, "simulated") {
		t.Error("it must say what it is and how to make it real")
	}
}

func TestPace(t *testing.T) {
	t.Parallel()
	s := Session{dir: shopDir, failing: true, sawFailure: true}
	for prompt, want := range map[string][2]time.Duration{
		"run the tests":           {3 * time.Second, 9 * time.Second},
		"fix it":                  {4 * time.Second, 10 * time.Second},
		"write the release notes": {4 * time.Second, 9 * time.Second},
		"run the benchmarks":      {12 * time.Second, 20 * time.Second},
		"what changed":            {0, 3 * time.Second},
		"hello":                   {0, 4 * time.Second},
	} {
		var took time.Duration
		work := NewWork(s.Plan, func(Fact) {})
		work.Hear(Prompt{Text: prompt})
		for act, more := work.Next(); more; act, more = work.Next() {
			took += act.For
		}
		if took < want[0] || took > want[1] {
			t.Errorf("%q takes %v, want %v to %v", prompt, took, want[0], want[1])
		}
	}
}
