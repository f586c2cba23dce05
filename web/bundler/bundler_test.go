package bundler

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the bundle")

// filesOf reads the files of a directory by name.
func filesOf(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range paths {
		body, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(name)] = body
	}
	return files
}

// TestBundleIsCurrent: the bundle that is committed, and that browsers get, is that of the page beside it.
func TestBundleIsCurrent(t *testing.T) {
	const at = "../bundle"
	want, err := Bundle(filesOf(t, "../page"))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.RemoveAll(at); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(at, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, body := range want {
			if err := os.WriteFile(filepath.Join(at, name), body, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := filesOf(t, at); !maps.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("web/bundle has %q, and the page makes %q: run go generate ./web",
			slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

// TestBundleWantsWholeSheets: a brace too few puts all sheets that follow under one condition, which browsers take.
func TestBundleWantsWholeSheets(t *testing.T) {
	_, err := Bundle(map[string][]byte{
		"main.js": nil, "pcm.js": nil,
		"index.html": []byte(`  <link rel="stylesheet" href="page/wide.css">` + "\n"),
		"wide.css":   []byte("@media (max-width: 1079px) { p { margin: 0 }\n"),
	})
	if err == nil || !strings.Contains(err.Error(), `Expected "}"`) {
		t.Errorf("bundle: %v", err)
	}
}
