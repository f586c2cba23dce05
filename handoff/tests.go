package handoff

import (
	"regexp"
	"slices"
	"strings"
)

// Tests is how tests ended that an agent ran; "": it ran none, or it cannot be told.
type Tests string

// How tests end.
const (
	TestsPassed Tests = "passed"
	TestsFailed Tests = "failed"
	// TestsUnknown is of work from before it was noted: what it ran tells.
	TestsUnknown Tests = "unknown"
)

// testCommand matches the beginning of a command that runs tests, where a command may stand: what else names such a
// tool looks for it, installs it or tells of it.
var testCommand = regexp.MustCompile(`(?:^|[;&|(\n]|-l?c ['"]|\bssh \S+ ['"])\s*` +
	`(?:(?:\w+=\S*|sudo|time|env|exec|nice|timeout \S+|npx|bunx|(?:pnpm|yarn|bundle) exec` +
	`|(?:uv|poetry|pipenv|hatch) run|python[\d.]* -m|docker compose (?:exec|run)(?: -\S+)* \S+) +)*(?:[^\s;&|('"]*/)?` +
	`(?:(?:go|cargo|npm|pnpm|yarn|bun|deno|make|just|mix|swift|dotnet|flutter|dart|zig|bazel|rake|rails|composer|sbt` +
	`|lein|stack|cabal|gradle|gradlew|mvn|mvnw|meson)(?: (?:run|-\S+))* (?:test|tests|check|spec)` +
	`|(?:pytest|py\.test|tox|nox|jest|vitest|mocha|ava|rspec|phpunit|ctest|gotestsum|cargo nextest run|bats|unittest))` +
	`(?:[:\s;&|)'"]|$)`)

// testWords are what each match of [testCommand] has one of.
var testWords = []string{"test", "check", "spec", "tox", "nox", "mocha", "ava", "bats", "jest", "unit"}

var (
	// emptyRun matches options with which such a command runs no test. Go runs benchmarks alone where -run names no
	// test.
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

// Bounds of what is looked at, in bytes: a list looks at many.
const (
	maxTestLine   = 512     // of a command line
	maxTestOutput = 8 << 10 // the end of its output
)

// noneCollected is how pytest ends when it finds no test.
const noneCollected = 5

// TestsOf tells how the last run of tests among what was done ended. Work whose tests failed is not green, whatever its
// outcome.
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

// testsOf tells how the tests of one command line ended. A command that runs none can fail, but never pass.
func testsOf(line string, exit int, output string) Tests {
	if !slices.ContainsFunc(testWords, func(word string) bool { return strings.Contains(line, word) }) { // which is fast
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
