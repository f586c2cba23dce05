package work

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"switchboard/handoff/phase"
)

var update = flag.Bool("update", false, "write the promises into ARCHITECTURE.md")

// TestPromises: each promise has a name of its own, and proofs that there are.
func TestPromises(t *testing.T) {
	there := map[string]bool{}
	test := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (e.Name() == "node_modules" || e.Name() == ".git" || e.Name() == ".tools"):
			return fs.SkipDir
		case strings.HasSuffix(path, ".go"):
			text, err := os.ReadFile(path)
			for _, m := range test.FindAllSubmatch(text, -1) {
				there[string(m[1])] = true
			}
			return err
		case strings.HasSuffix(path, ".txtar"):
			there[strings.TrimSuffix(e.Name(), ".txtar")] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, p := range Promises {
		if names[p.Name] || p.Says == "" || len(p.Proofs) == 0 {
			t.Errorf("%q is there twice, or says or proves nothing", p.Name)
		}
		names[p.Name] = true
		for _, proof := range p.Proofs {
			if !there[proof] {
				t.Errorf("%q: there is no %s", p.Name, proof)
			}
		}
	}
}

// TestArchitecture: ARCHITECTURE.md has the promises with their proofs as they are here, and every phase of a handoff.
func TestArchitecture(t *testing.T) {
	const name = "../../ARCHITECTURE.md"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), "<!-- promises -->\n")
	table, after, ok := strings.Cut(rest, "<!-- /promises -->\n")
	if !ok {
		t.Fatal("the promises have no place")
	}
	var want strings.Builder
	want.WriteString("| promise | what holds | proofs |\n|---|---|---|\n")
	for _, p := range Promises {
		fmt.Fprintf(&want, "| %s | %s | `%s` |\n", p.Name, p.Says, strings.Join(p.Proofs, "`, `"))
	}
	if table != want.String() && *update {
		all := before + "<!-- promises -->\n" + want.String() + "<!-- /promises -->\n" + after
		if err := os.WriteFile(name, []byte(all), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if table != want.String() {
		t.Error("the promises of ARCHITECTURE.md are not those of promises.go: " +
			"go test ./handoff/work -run TestArchitecture -update")
	}
	for p := phase.Resolving; p <= phase.Ended; p++ {
		if !strings.Contains(string(text), fmt.Sprintf("\n| `%s` | ", p)) {
			t.Errorf("phase %s has no row", p)
		}
	}
}
