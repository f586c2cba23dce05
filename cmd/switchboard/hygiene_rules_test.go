package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A houseCase is a small house and the breaches in it.
type houseCase struct {
	name  string
	files map[string]string
	want  []string
}

const tidy = "// Package sessions is small. It must not know voice.\npackage sessions\n"

// importCases break the import tables.
func importCases() []houseCase {
	return []houseCase{
		{"clean", map[string]string{"sessions/a.go": tidy, "sessions/b.go": "package sessions\n\nimport \"switchboard/handoff\"\n"}, nil},
		{"wrong side", map[string]string{"sessions/a.go": tidy + "\nimport \"switchboard/realtime\"\n"},
			[]string{"sessions/a.go:4: imports switchboard/realtime: it is what the stores share, so it may know none"}},
		{"wrong side in a test", map[string]string{"sessions/redis/a.go": tidy, "sessions/redis/a_test.go": "package redis_test\n\nimport (\n\t\"switchboard/sessions/redis\"\n\t\"switchboard/sessions/sessionstest\"\n\t\"switchboard/web\"\n)\n"},
			[]string{"sessions/redis/a_test.go:6: imports switchboard/web: it only remembers, and is not the other store"}},
		{"library", map[string]string{"web/a.go": "// Package web is small. It must not know Redis.\npackage web\n\nimport \"github.com/redis/go-redis/v9\"\n"},
			[]string{"web/a.go:4: imports github.com/redis/go-redis/v9, which is for sessions/redis: a Redis is one place to remember in"}},
		{"library for tests", map[string]string{"sessions/a.go": tidy + "\nimport \"github.com/google/go-cmp/cmp\"\n", "sessions/a_test.go": "package sessions\n\nimport \"github.com/google/go-cmp/cmp\"\n"},
			[]string{"sessions/a.go:4: imports github.com/google/go-cmp/cmp, which is for * tests: comparing is for tests"}},
		{"gorilla in cmd", map[string]string{"cmd/switchboard/a.go": "// Command switchboard is small. It wires.\npackage main\n\nimport \"github.com/gorilla/websocket\"\n",
			"cmd/switchboard/a_test.go": "package main\n\nimport \"github.com/gorilla/websocket\"\n"},
			[]string{"cmd/switchboard/a.go:4: imports github.com/gorilla/websocket, which is for realtime, servers/transport, servers/joined, servers/joined/host, realtime/simulator, servers/simulator, servers/codex tests, web/peers tests, cmd/switchboard tests: sockets belong to the fronts and the far ends"}},
		{"unknown library", map[string]string{"sessions/a.go": tidy + "\nimport \"example.com/x\"\n"},
			[]string{"sessions/a.go:4: imports example.com/x, which nobody may yet: add it to the table with its reason"}},
		{"slow libraries", map[string]string{"servers/responses/a.go": "// Package responses is small. It must not know much.\npackage responses\n\nimport (\n\t\"github.com/openai/openai-go/v3/packages/ssestream\"\n\t\"github.com/openai/openai-go/v3\"\n)\n",
			"cmd/switchboard/a_test.go": "package main\n\nimport \"github.com/openai/openai-go/v3/live\"\n"},
			[]string{"cmd/switchboard/a_test.go:3: imports github.com/openai/openai-go/v3/live, which nobody may: it is slow to build; realtime is what clients use",
				"servers/responses/a.go:6: imports github.com/openai/openai-go/v3, which nobody may: building it takes longer than all of Switchboard, and 2 GB: its subpackages do as well"}},
		{"clock in a pure room", map[string]string{"realtime/filter/a.go": "// Package filter is small. It must not know much.\npackage filter\n\nimport (\n\t\"strings\"\n\t\"net/http\"\n\t\"time\"\n)\n", "realtime/filter/a_test.go": "package filter\n\nimport \"time\"\n"},
			[]string{"realtime/filter/a.go:6: imports net/http: its decisions know no time, no socket and no lock", "realtime/filter/a.go:7: imports time: its decisions know no time, no socket and no lock"}},
		{"mixed imports", map[string]string{"sessions/a.go": tidy, "sessions/a_test.go": "package sessions\n\nimport (\n\t\"fmt\"\n\t\"switchboard/handoff\"\n\t\"testing\"\n)\n"}, []string{
			"sessions/a_test.go:5: imports are grouped: the standard library's, others', ours", "sessions/a_test.go:6: imports are grouped: the standard library's, others', ours"}},
		{"unknown package", map[string]string{"utils/a.go": "// Package utils is small. It must not know much.\npackage utils\n\nimport \"switchboard/handoff\"\n"},
			[]string{"utils/a.go:4: package utils is not in the import table: add it with its reason"}},
	}
}

// shapeCases break the other rules.
func shapeCases() []houseCase {
	long := strings.Repeat("\n", 110)
	return []houseCase{
		{"no package comment", map[string]string{"sessions/a.go": "package sessions\n"}, []string{"sessions:1: has 0 package comments [], and needs one"}},
		{"two package comments", map[string]string{"sessions/a.go": tidy, "sessions/b.go": tidy}, []string{"sessions:1: has 2 package comments [sessions/a.go sessions/b.go], and needs one"}},
		{"poor package comment", map[string]string{"sessions/a.go": "// Package sessions is small.\npackage sessions\n"}, []string{
			`sessions/a.go:1: package comment does not tell what the package "must not know"`, "sessions/a.go:1: package comment has less than two sentences"}},
		{"long file", map[string]string{"web/page/a.js": strings.Repeat("//\n", 501), "web/page/b.css": strings.Repeat("\n", 500)},
			[]string{"web/page/a.js:501: has 501 lines, the budget is 500"}},
		{"long functions", map[string]string{"sessions/a.go": tidy + "\nfunc a() {" + long + "}\n\nvar b = func() {" + long + "}\n\nfunc c() {" + long[:98] + "\n}\n"},
			[]string{"sessions/a.go:4: a has 111 lines, the budget is 100", "sessions/a.go:116: b has 111 lines, the budget is 100"}},
		{"wide comments", map[string]string{"sessions/a.go": tidy + "\n// " + strings.Repeat("a", 117) + "\n\n\t// " + strings.Repeat("ä", 114) + "\n"},
			[]string{"sessions/a.go:6: a comment has 121 columns, the budget is 120"}},
		{"init", map[string]string{"sessions/a.go": tidy + "\nfunc init() {}\n\ntype t int\n\nfunc (t) init() {}\n"}, []string{"sessions/a.go:4: init runs before anybody asked: use a function"}},
		{"interfaces", map[string]string{"sessions/a.go": tidy + "\nvar a interface{}\n\ntype b interface{ c(); d(); e() }\n\ntype f interface {\n\tb\n\tc()\n\td()\n\te()\n\tf()\n}\n\ntype g interface {\n\tb\n\tf\n\tc()\n\th\n}\n"},
			[]string{"sessions/a.go:4: interface{} is called any", "sessions/a.go:8: an interface with 4 methods, the budget is 3"}},
		{"no comments", map[string]string{"sessions/a.go": tidy + `
type A int
func B() {}
func (A) C() {}
func (*a[T]) D() {}
const E = 1
var F, g int // told
// H is told.
type H int
const (
	I = 1
	J = 2 // told
)
// K and L are told.
var (
	K int
	L int
)
type a[T any] int
`}, []string{"sessions/a.go:4: A is exported and has no comment", "sessions/a.go:5: B is exported and has no comment",
			"sessions/a.go:6: C is exported and has no comment", "sessions/a.go:8: E is exported and has no comment", "sessions/a.go:13: I is exported and has no comment"}},
		{"syntax", map[string]string{"sessions/a.go": tidy, "sessions/b.go": "package"}, []string{"sessions/b.go:1: does not parse: sessions/b.go:1:8: expected 'IDENT', found 'EOF'"}},
	}
}

// Each rule of the house can be broken, and is then told with its place.
func TestHygieneFindsBreaches(t *testing.T) {
	for _, tt := range slices.Concat(importCases(), shapeCases()) {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, b := range inspect(tt.files) {
				got = append(got, fmt.Sprintf("%s:%d: %s", b.file, b.line, b.reason))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if got := inspectModule("module a\n\nreplace b => ../b\n"); len(got) != 1 || got[0].line != 3 {
		t.Errorf("go.mod: %v", got)
	}
}
