package handoff

import (
	"regexp"
	"slices"
	"strings"
)

// Tests is how a run of tests ended; "": none was run, or it is not known.
type Tests string

// The ends of a run of tests.
const (
	TestsPassed Tests = "passed"
	TestsFailed Tests = "failed"
	// TestsUnknown is for work of an older Switchboard, which did not store it. See [Record.Tests].
	TestsUnknown Tests = "unknown"
)

// testCommand matches the beginning of a command that runs tests, at a place where a command may begin. A test tool
// that is named elsewhere in a line is not run there, but searched for, installed or written about.
var testCommand = regexp.MustCompile(`(?:^|[;&|(\n]|-l?c ['"]|\bssh \S+ ['"])\s*` +
	`(?:(?:\w+=\S*|sudo|time|env|exec|nice|timeout \S+|npx|bunx|(?:pnpm|yarn|bundle) exec` +
	`|(?:uv|poetry|pipenv|hatch) run|python[\d.]* -m|docker compose (?:exec|run)(?: -\S+)* \S+) +)*(?:[^\s;&|('"]*/)?` +
	`(?:(?:go|cargo|npm|pnpm|yarn|bun|deno|make|just|mix|swift|dotnet|flutter|dart|zig|bazel|rake|rails|composer|sbt` +
	`|lein|stack|cabal|gradle|gradlew|mvn|mvnw|meson)(?: (?:run|-\S+))* (?:test|tests|check|spec)` +
	`|(?:pytest|py\.test|tox|nox|jest|vitest|mocha|ava|rspec|phpunit|ctest|gotestsum|cargo nextest run|bats|unittest))` +
	`(?:[:\s;&|)'"]|$)`)

// testWords are words of which each match of [testCommand] has at least one.
var testWords = []string{"test", "check", "spec", "tox", "nox", "mocha", "ava", "bats", "jest", "unit"}

var (
	// emptyRun matches options with which such a command runs no test. With -bench and -run, Go is assumed to run
	// benchmarks only.
	emptyRun = regexp.MustCompile(`\s-run[= ].*\s-bench\b|\s-bench\b.*\s-run[= ]` +
		`|\s-run[= ]['"]?(?:xxx|XXX|none|NONE|\^\$)['"]?(?:\s|$)` +
		`|\bgo(?: -\S+)* test\b.*\s-(?:c|list)\b` +
		`|\s--(?:no-run|collect-only|co|list|listTests|help|version|dry-run)(?:[\s'"]|$)`)
	nothingRan = regexp.MustCompile(`(?i)no tests? (?:to run|files|ran|found)|(?m:^running 0 tests)` +
		`|collected 0 items|\b0 passing`)
	somethingRan = regexp.MustCompile(`(?m)^ok\s+\S+\s+(?:[\d.]+s|\(cached\))(?:\s+coverage:.*)?$` +
		`|^running [1-9]\d* tests?|^--- (?:PASS|FAIL)|\b[1-9]\d* (?:passed|passing|failed|failing)\b`)
	someFailed = regexp.MustCompile(`(?m)^(?:FAIL\b|--- FAIL|FAILED\b|not ok\b|test result: FAILED)` +
		`|\b[1-9]\d* (?:failed|failing)\b`)
)

// Bounds of the text that is searched, in bytes, since a list of work searches many.
const (
	maxTestLine   = 512     // the beginning of a command line
	maxTestOutput = 8 << 10 // the end of its output
)

// noneCollected is the exit code of pytest when it finds no test.
const noneCollected = 5

// TestsOf returns how the last run of tests among the items ended. Work whose tests failed is not shown as a success,
// whatever its outcome.
func TestsOf(items []RecordItem) Tests {
	for _, it := range slices.Backward(items) {
		if it.Kind != ItemCommand || it.Exit == nil {
			continue
		}
		if how := testsOf(it.Text[:min(len(it.Text), maxTestLine)], *it.Exit, it.Output); how != "" {
			return how
		}
	}
	return ""
}

// testsOf returns how the tests of one command line ended. A command that runs no test can fail, but never pass.
func testsOf(line string, exit int, output string) Tests {
	// The regular expression is slow, so most lines are sorted out first.
	if !slices.ContainsFunc(testWords, func(word string) bool { return strings.Contains(line, word) }) {
		return ""
	}
	found := testCommand.FindAllStringIndex(line, -1)
	if found == nil {
		return ""
	}
	output = Tail(output, maxTestOutput)
	runs, masked := false, false
	for _, at := range found {
		options, _, _ := strings.Cut(line[at[1]-1:], "&&")
		end := strings.IndexAny(options, ";|\n")
		if end < 0 {
			end = len(options)
		}
		runs = runs || !emptyRun.MatchString(line[at[0]:at[1]-1]+options[:end])
		masked = masked || end < len(options) // its exit may be that of another command
	}
	nothing := nothingRan.MatchString(output) && !somethingRan.MatchString(output)
	switch {
	case exit == noneCollected && nothing:
		return ""
	case exit != 0, masked && someFailed.MatchString(output):
		return TestsFailed
	case !runs, nothing:
		return ""
	}
	return TestsPassed
}
