package handoff_test

import (
	"strings"
	"testing"

	"switchboard/handoff"
)

func TestTestsOfWork(t *testing.T) {
	ran := func(line string, exit int, output ...string) handoff.RecordItem {
		return handoff.RecordItem{Kind: handoff.ItemCommand, Text: line, Exit: &exit, Output: strings.Join(output, "\n")}
	}
	for name, c := range map[string]struct {
		items []handoff.RecordItem
		want  handoff.Tests
	}{
		"none":   {[]handoff.RecordItem{ran("git status", 1)}, ""},
		"failed": {[]handoff.RecordItem{ran("go test ./...", 1)}, "failed"},
		"mended": {
			[]handoff.RecordItem{ran("go test ./...", 1), ran("cd web && npm run test -- --run", 0)}, "passed",
		},
		"broken at last": {
			[]handoff.RecordItem{ran("make -j4 test", 0), ran("python -m pytest -q", 2), ran("ls", 0)}, "failed",
		},
		"still running": {[]handoff.RecordItem{{Kind: handoff.ItemCommand, Text: "cargo test", State: "running"}}, ""},
		"not a test": {
			[]handoff.RecordItem{ran("go build ./test", 1), ran("cat latest", 1), ran("git commit -m contest", 1)}, "",
		},
		"a test's name":   {[]handoff.RecordItem{ran("./gradlew check", 1)}, "failed"},
		"only words":      {[]handoff.RecordItem{{Kind: handoff.ItemMessage, Text: "go test fails", Exit: new(1)}}, ""},
		"through a shell": {[]handoff.RecordItem{ran("/bin/bash -lc 'go test ./internal/auth/...'", 1)}, "failed"},

		"a benchmark alone": {
			[]handoff.RecordItem{
				ran("go test -run xxx -bench .", 0, "goos: linux", "BenchmarkA-2 1 ns/op", "PASS", "ok  \tm\t1.2s"),
			},
			"",
		},
		"a benchmark after tests": {
			[]handoff.RecordItem{ran("go test ./...", 0), ran("go test -bench=. -run=^$ ./a", 0)}, "passed",
		},
		"a benchmark after failure": {
			[]handoff.RecordItem{ran("go test ./...", 1), ran("go test -run '^$' -bench . ./a", 0)}, "failed",
		},
		"tests and benchmarks": {[]handoff.RecordItem{ran("go test -bench . ./...", 0)}, "passed"},
		"then a benchmark": {
			[]handoff.RecordItem{ran("go test ./... && go test -run xxx -bench . ./a", 0)}, "passed",
		},
		"a benchmark that fails": {[]handoff.RecordItem{ran("go test -run xxx -bench .", 1)}, "failed"},
		"no test of that name": {
			[]handoff.RecordItem{
				ran(
					"go test ./a -run TestGone", 0, "testing: warning: no tests to run", "PASS", "ok  \tm/a\t0.1s [no tests to run]",
				),
			},
			"",
		},
		"no test files": {[]handoff.RecordItem{ran("go test ./...", 0, "?   \tm/a\t[no test files]")}, ""},
		"some without tests": {
			[]handoff.RecordItem{ran("go test ./...", 0, "?   \tm/a\t[no test files]", "ok  \tm/b\t(cached)")}, "passed",
		},
		"only built":      {[]handoff.RecordItem{ran("go test -c ./a", 0), ran("go test -list . ./a", 0)}, ""},
		"by its settings": {[]handoff.RecordItem{ran("pytest -c setup.cfg", 0)}, "passed"},
		"only compiled":   {[]handoff.RecordItem{ran("cargo test --no-run", 0)}, ""},
		"none in a crate": {
			[]handoff.RecordItem{ran("cargo test gone", 0, "running 0 tests", "test result: ok. 0 passed; 0 failed")}, "",
		},
		"only collected": {
			[]handoff.RecordItem{ran("python3 -m pytest --collect-only -q", 0, "12 tests collected")}, "",
		},
		"none collected": {[]handoff.RecordItem{ran("pytest -k gone", 5, "no tests ran in 0.01s")}, ""},
		"installed": {
			[]handoff.RecordItem{
				ran("pip install pytest", 0), ran("cat pytest.ini", 0), ran("which pytest", 0), ran("apk add bats", 1),
			},
			"",
		},
		"looked for": {
			[]handoff.RecordItem{ran("rg 'go test' .github", 0), ran("echo \"make test\"", 0), ran("git log --grep=jest", 0)},
			"",
		},
		"with what it needs": {
			[]handoff.RecordItem{ran("cd /src && CI=1 GOFLAGS=-count=1 timeout 60 go test ./...", 0)}, "passed",
		},
		"by its path":      {[]handoff.RecordItem{ran("./node_modules/.bin/vitest run", 0)}, "passed"},
		"through a runner": {[]handoff.RecordItem{ran("uv run pytest -q", 0), ran("npx jest", 1)}, "failed"},
		"cut by a pipe": {
			[]handoff.RecordItem{ran("go test ./... 2>&1 | tail -20", 0, "--- FAIL: TestA (0.00s)", "FAIL", "FAIL\tm/a\t0.1s")},
			"failed",
		},
		"cut, and all is well": {
			[]handoff.RecordItem{ran("go test ./... 2>&1 | tail -20", 0, "ok  \tm/a\t0.1s")}, "passed",
		},
		"never fails": {
			[]handoff.RecordItem{ran("pytest -q || true", 0, "2 failed, 3 passed in 0.1s")}, "failed",
		},
	} {
		if got := handoff.TestsOf(c.items); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// BenchmarkTestsOf: a list looks at each command of each piece of work.
func BenchmarkTestsOf(b *testing.B) {
	for name, line := range map[string]string{
		"script": strings.Repeat("python3 - <<'EOF'\nimport re; print(re.sub('a', 'b', open('x').read()))\n", 20),
		"names":  strings.Repeat("cat internal/auth/auth_test.go; ", 20),
	} {
		b.Run(name, func(b *testing.B) {
			items := make([]handoff.RecordItem, 200)
			for i := range items {
				items[i] = handoff.RecordItem{Kind: handoff.ItemCommand, Text: line, Exit: new(0)}
			}
			for b.Loop() {
				handoff.TestsOf(items)
			}
		})
	}
}
