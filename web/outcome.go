package web

import (
	"regexp"
	"slices"

	"switchboard/handoff"
)

// tests matches a command line that runs tests.
var tests = regexp.MustCompile(`(?:^|[\s;&|('"])(?:` +
	`(?:go|cargo|npm|pnpm|yarn|bun|deno|make|just|mix|swift|dotnet|flutter|dart|zig|bazel|rake|bin/rails|rails|composer|sbt|lein|stack|cabal|gradle|\./gradlew|mvn|\./mvnw|meson)(?: (?:run|-\S+))* (?:test|tests|check|spec)\b` +
	`|(?:pytest|py\.test|tox|nox|jest|vitest|mocha|ava|rspec|phpunit|ctest|gotestsum|nextest|bats|unittest)\b)`)

// maxTestLine is how much of a command line is looked at, in bytes: a list looks at many.
const maxTestLine = 256

// testsOf tells how the last run of tests ended: "passed", "failed" or "" for none. Green work whose tests failed is not
// green.
func testsOf(items []handoff.RecordItem) string {
	for _, it := range slices.Backward(items) {
		if it.Kind != handoff.ItemCommand || it.Exit == nil || !tests.MatchString(it.Text[:min(len(it.Text), maxTestLine)]) {
			continue
		}
		if *it.Exit == 0 {
			return "passed"
		}
		return "failed"
	}
	return ""
}

// An editSum is how much was edited.
type editSum struct {
	Files   int `json:"files"`
	Added   int `json:"added"` // lines, edit by edit
	Removed int `json:"removed"`
}

func editsOf(items []handoff.RecordItem) *editSum {
	var n editSum
	files := map[string]bool{}
	for _, it := range items {
		if it.State != "done" {
			continue
		}
		for _, c := range it.Changes {
			files[c.Path] = true
			n.Added, n.Removed = n.Added+c.Added, n.Removed+c.Removed
		}
	}
	if n.Files = len(files); n.Files == 0 {
		return nil
	}
	return &n
}

// withoutDiffs leaves of changes what a list has room for.
func withoutDiffs(changes []handoff.FileChange) []handoff.FileChange {
	short := slices.Clone(changes)
	for i := range short {
		short[i].Cut = short[i].Cut || short[i].Diff != ""
		short[i].Diff = ""
	}
	return short
}
