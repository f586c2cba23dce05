package handoff_test

import (
	"testing"

	"switchboard/handoff"
)

func TestTestsOfWork(t *testing.T) {
	ran := func(line string, exit int) handoff.RecordItem {
		return handoff.RecordItem{Kind: handoff.ItemCommand, Text: line, Exit: &exit}
	}
	for name, c := range map[string]struct {
		items []handoff.RecordItem
		want  handoff.Tests
	}{
		"none":            {[]handoff.RecordItem{ran("git status", 1)}, ""},
		"failed":          {[]handoff.RecordItem{ran("go test ./...", 1)}, "failed"},
		"mended":          {[]handoff.RecordItem{ran("go test ./...", 1), ran("cd web && npm run test -- --run", 0)}, "passed"},
		"broken at last":  {[]handoff.RecordItem{ran("make -j4 test", 0), ran("python -m pytest -q", 2), ran("ls", 0)}, "failed"},
		"still running":   {[]handoff.RecordItem{{Kind: handoff.ItemCommand, Text: "cargo test", State: "running"}}, ""},
		"not a test":      {[]handoff.RecordItem{ran("go build ./test", 1), ran("cat latest", 1), ran("git commit -m contest", 1)}, ""},
		"a test's name":   {[]handoff.RecordItem{ran("./gradlew check", 1)}, "failed"},
		"only words":      {[]handoff.RecordItem{{Kind: handoff.ItemMessage, Text: "go test fails", Exit: new(1)}}, ""},
		"through a shell": {[]handoff.RecordItem{ran("/bin/bash -lc 'go test ./internal/auth/...'", 1)}, "failed"},
	} {
		if got := handoff.TestsOf(c.items); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
