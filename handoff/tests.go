package handoff

import (
	"regexp"
	"slices"
)

// Tests is how tests ended that an agent ran; "": it ran none.
type Tests string

// How tests end.
const (
	TestsPassed Tests = "passed"
	TestsFailed Tests = "failed"
)

// testLine matches a command line that runs tests.
var testLine = regexp.MustCompile(`(?:^|[\s;&|('"])(?:` +
	`(?:go|cargo|npm|pnpm|yarn|bun|deno|make|just|mix|swift|dotnet|flutter|dart|zig|bazel|rake|bin/rails|rails|composer|sbt|lein|stack|cabal|gradle|\./gradlew|mvn|\./mvnw|meson)(?: (?:run|-\S+))* (?:test|tests|check|spec)\b` +
	`|(?:pytest|py\.test|tox|nox|jest|vitest|mocha|ava|rspec|phpunit|ctest|gotestsum|nextest|bats|unittest)\b)`)

// maxTestLine is how much of a command line is looked at, in bytes: a list looks at many.
const maxTestLine = 256

// TestsOf tells how the last run of tests among what was done ended. Work whose tests failed is not green, whatever its
// outcome.
func TestsOf(items []RecordItem) Tests {
	for _, it := range slices.Backward(items) {
		if it.Kind != ItemCommand || it.Exit == nil || !testLine.MatchString(it.Text[:min(len(it.Text), maxTestLine)]) {
			continue
		}
		if *it.Exit == 0 {
			return TestsPassed
		}
		return TestsFailed
	}
	return ""
}
