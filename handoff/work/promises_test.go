package work

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

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
