package simulator

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// unknown is the answer to prompts that the agent does not know.
const unknown = "I am only a simulated agent: I can run the tests, fix the failing one, push the branch, write and " +
	"publish the release notes and run the benchmarks; " +
	"for real work list your servers in switchboard.yaml, or start Switchboard with --codex."

// wordEvery is the pause between the words of a message.
const wordEvery = 45 * time.Millisecond

// promptWords are the words of a prompt, in lower case.
type promptWords []string

// any reports whether the prompt has one of the words.
func (s promptWords) any(words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(s, w) })
}

// An intent is one kind of prompt, and the plan for it.
type intent struct {
	name    string
	matches func(promptWords) bool
	plan    func(Session) []Step
}

// intents are the prompts that the agent knows, the rarest first. Set once.
var intents = []intent{
	{"no push", func(s promptWords) bool { return s.any("push", "pushed") && s.any("don't", "dont", "not", "never") },
		func(Session) []Step { return []Step{say("I leave the branch as it is and push nothing.")} }},
	{"push", func(s promptWords) bool { return s.any("push") }, pushSteps},
	{"publish", func(s promptWords) bool { return s.any("publish") }, publishSteps},
	{"notes", func(s promptWords) bool {
		return s.any("changelog") || s.any("release") && s.any("note", "notes")
	}, notesSteps},
	{"benchmarks", func(s promptWords) bool {
		return s.any("benchmark", "benchmarks", "bench") ||
			s.any("build", "compile") && s.any("everything", "all", "long", "whole")
	}, benchSteps},
	{"branch", func(s promptWords) bool { return s.any("branch") && s.any("which", "what") }, branchSteps},
	{"changes", func(s promptWords) bool {
		return s.any("changed", "status", "diff", "happened", "summary", "summarize", "summarise") ||
			s.any("what") && s.any("did", "done")
	}, changesSteps},
	{"fix", func(s promptWords) bool {
		return s.any("fix", "repair", "mend", "correct") &&
			(len(s) == 1 || s.any("it", "that", "this", "test", "tests", "failure", "failing", "them", "bug"))
	}, fixSteps},
	{"tests", func(s promptWords) bool {
		return s.any("test", "tests") && !s.any("write", "add", "create", "delete", "remove", "rename")
	}, testSteps},
	{"stop", func(s promptWords) bool { return s.any("stop", "cancel", "abort") && len(s) <= 3 }, stopSteps},
}

// intentOf returns the intent of a prompt, by its words. An unknown prompt has an intent without a name.
func intentOf(prompt string) intent {
	words := promptWords(strings.FieldsFunc(strings.ToLower(strings.ReplaceAll(prompt, "’", "'")), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\''
	}))
	for _, in := range intents {
		if in.matches(words) {
			return in
		}
	}
	return intent{plan: func(s Session) []Step {
		if s.steered {
			return []Step{say("I stopped to hear you, but that I do not know. " + unknown)}
		}
		return []Step{say(unknown)}
	}}
}

func stopSteps(s Session) []Step {
	if s.steered {
		return []Step{say("All right, I stop here.")}
	}
	return []Step{say("Nothing is running here, so there is nothing to stop.")}
}

func branchSteps(s Session) []Step {
	return []Step{say("It is on the branch " + s.branch + ".")}
}

func say(text string) Say { return Say{Text: text, Every: wordEvery} }

func lines(after time.Duration, texts ...string) []Line {
	out := make([]Line, len(texts))
	for i, text := range texts {
		out[i] = Line{Text: text, After: after}
	}
	return out
}

const testPause = 450 * time.Millisecond

// testRun is the command that runs the tests in a repository.
func testRun(s Session) Run {
	run := Run{Command: "go test ./..."}
	if !isShop(s.dir) {
		run.Lines = lines(testPause, "ok  \tnotes/collect\t0.204s", "ok  \tnotes/render\t0.318s",
			"ok  \tnotes/cmd/notes\t0.091s")
		return run
	}
	run.Lines = lines(testPause, "ok  \tshop/cart\t0.412s", "ok  \tshop/catalog\t0.268s")
	if s.failing {
		run.Exit = 1
		run.Lines = append(run.Lines, lines(testPause, "--- FAIL: TestRefreshExpiredToken (0.01s)",
			"    refresh_test.go:58: an expired token was accepted",
			"FAIL", "FAIL\tshop/internal/auth\t0.187s")...)
	} else {
		run.Lines = append(run.Lines, lines(testPause, "ok  \tshop/internal/auth\t0.171s")...)
	}
	run.Lines = append(run.Lines, lines(testPause, "ok  \tshop/internal/mail\t0.093s", "ok  \tshop/payments\t0.731s")...)
	if s.failing {
		run.Lines = append(run.Lines, Line{Text: "FAIL", After: testPause / 3})
	}
	return run
}

func testSteps(s Session) []Step {
	run := testRun(s)
	steps := []Step{Think{"I run the whole suite.", 500 * time.Millisecond}, run}
	if run.Exit != 0 {
		return append(steps, Effect{FactSawFailure}, say("Four packages pass, `internal/auth` does not.\n\n"+
			"One test fails: TestRefreshExpiredToken, because the refresh accepts a token that has expired."))
	}
	return append(steps, Effect{FactTestsPassed}, say("I ran `go test ./...`; every package is fine.\n\nAll tests pass."))
}

// fixDiff is the change that fixes the failing test.
const fixDiff = `@@ -41,7 +41,7 @@ func (s *Service) Refresh(token string) (Session, error) {
 	claims, err := s.parse(token)
 	if err != nil {
 		return Session{}, err
 	}
-	if claims.Expires.After(s.now()) && !claims.Renewable {
+	if !claims.Expires.After(s.now()) {
 		return Session{}, ErrExpired
 	}
`

func fixSteps(s Session) []Step {
	switch {
	case !s.sawFailure:
		return []Step{say("Nothing has failed in this session, so there is nothing to fix yet; ask me to run the tests " +
			"first.")}
	case !s.failing:
		return []Step{say("TestRefreshExpiredToken already passes: somebody has fixed it.")}
	}
	s.failing = false
	return []Step{
		Think{"The refresh looks at the expiry the wrong way round.", 700 * time.Millisecond},
		say("The refresh checks the expiry the wrong way round; I correct that and run the tests again."),
		Edit{Changes: []Change{{Path: s.dir + "/internal/auth/refresh.go", Diff: fixDiff}}, For: 600 * time.Millisecond},
		Effect{FactFixed},
		testRun(s),
		Effect{FactTestsPassed},
		say("`Refresh` in `internal/auth/refresh.go` now refuses a token whose time is over.\n\n" +
			"I fixed the check, and all tests pass now."),
	}
}

func pushSteps(s Session) []Step {
	if s.pushed {
		return []Step{say("The branch " + s.branch + " is pushed already, and nothing has changed since.")}
	}
	return []Step{
		Think{"Pushing reaches the network, so I ask first.", 300 * time.Millisecond},
		Ask{
			Command: "git push origin " + s.branch,
			Reason:  "The branch " + s.branch + " has commits that the remote does not have.",
			Lines: lines(400*time.Millisecond, "Enumerating objects: 9, done.", "Writing objects: 100% (5/5), 612 bytes, done.",
				"To git.example.com:shop.git",
				"   3f2a1c9..8d41b07  "+s.branch+" -> "+s.branch),
			Accepted: []Step{Effect{FactPushed}, say("The branch " + s.branch + " is pushed.")},
			Declined: []Step{say("I did not push the branch, because you said no.")},
		},
	}
}

func notesSteps(s Session) []Step {
	return []Step{
		Think{"I read what was merged since the last release.", 500 * time.Millisecond},
		say("I read the log since version 2.3 first."),
		Run{Command: "git log --oneline v2.3..HEAD", Lines: lines(300*time.Millisecond,
			"8d41b07 checkout: remember the address", "5c90e1d auth: refuse expired tokens",
			"a17b3f2 catalog: search without accents", "3f2a1c9 mail: send receipts once")},
		say("There are four changes worth telling: the checkout, sign-in, search and receipts. I write them up."),
		Edit{Changes: []Change{{Path: s.dir + "/NOTES-2.4.md", Add: true, Diff: "# Version 2.4\n\n" +
			"- The checkout remembers your address.\n- Sign-in refuses tokens that have expired.\n" +
			"- Search finds words without their accents.\n- Receipts are sent once.\n"}}, For: 900 * time.Millisecond},
		Effect{FactNotes},
		say("The notes are in `NOTES-2.4.md`.\n\nThe release notes for version 2.4 are written: four entries, each one " +
			"line."),
	}
}

// publishSteps asks for the version of the notes, as a question in words.
func publishSteps(Session) []Step {
	return []Step{
		Think{"The notes do not say which version they are for, so I ask.", 300 * time.Millisecond},
		Input{Queries: []Query{{Text: "Which version are the release notes for?", Options: []string{"2.4", "2.4.1", "2.5"}}},
			Answered: published},
	}
}

// reVersion matches a version as people say it.
var reVersion = regexp.MustCompile(`\d+(?:\.\d+)*`)

// published returns the steps after the version was given.
func published(answers []string) []Step {
	answer := strings.NewReplacer(" point ", ".", " dot ", ".").Replace(strings.Join(answers, " "))
	version := reVersion.FindString(answer)
	switch {
	case strings.TrimSpace(answer) == "":
		return []Step{say("I published nothing, because I got no version.")}
	case version == "":
		return []Step{say("I found no version number in that answer, so I published nothing.")}
	}
	return []Step{
		Run{Command: "notes publish --version " + version,
			Lines: lines(400*time.Millisecond, "checked 4 entries", "published version "+version)},
		Effect{FactPublished},
		say("`notes publish` went through.\n\nThe release notes are published for version " + version + "."),
	}
}

func benchSteps(Session) []Step {
	names := []string{
		"CartAdd", "CartTotal", "CatalogSearch", "CatalogAccents", "CheckoutPrice", "CheckoutTax", "AuthLogin",
		"AuthRefresh", "MailRender", "MailQueue", "PaymentsSign", "PaymentsVerify", "InvoicePDF", "SessionLoad",
	}
	run := Run{Command: "go test -run xxx -bench . ./..."}
	for i, name := range names {
		run.Lines = append(run.Lines, Line{Text: fmt.Sprintf("%-25s %s", "Benchmark"+name+"-8",
			benchFigures[i%len(benchFigures)]), After: time.Second})
	}
	return []Step{
		Think{"The benchmarks take a quarter of a minute.", 400 * time.Millisecond},
		run,
		Effect{FactMeasured},
		say("The benchmarks are done, all fourteen of them.\n\nInvoices are the slowest part, at 41 milliseconds each."),
	}
}

// benchFigures are the printed results of benchmarks. Set once.
var benchFigures = []string{
	"1204113       987 ns/op", "  88214     13502 ns/op", "   9127    121877 ns/op", "     28  41093220 ns/op",
}

// changesSteps returns the answer about what the session did.
func changesSteps(s Session) []Step {
	text := "Nothing has been changed in this session yet."
	if n := len(s.done); n == 1 {
		text = "One thing was done in this session: I " + s.done[0] + "."
	} else if n > 1 {
		text = "In this session I " + strings.Join(s.done[:n-1], ", then ") + ", and last I " + s.done[n-1] + "."
	}
	return []Step{Think{"Looking at what was done here.", 300 * time.Millisecond}, say(text)}
}

// isShop reports whether a directory is in the shop.
func isShop(dir string) bool { return dir == shopDir || strings.HasPrefix(dir, shopDir+"/") }
