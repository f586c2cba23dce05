package main

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Code that runs something concurrently: by itself, or by a library that does.
var (
	concurrent = regexp.MustCompile(`(?m)^\s*go (func\b|\w[\w.]*\()|\.Go\(|\.RunParallel\(|\bAfterFunc\(|\bsynctest\.|\bnet\.(Dial|Listen|Pipe)`)
	outside    = regexp.MustCompile(`"(net/http/httptest|database/sql|github\.com/(gorilla|pion|redis|chromedp)/[^"]*|modernc\.org/[^"]*)"`)
	ofOurs     = regexp.MustCompile(`"switchboard/([^"]+)"`)
)

// TestHygieneOfRace: a package that is tested without -race runs nothing concurrently, nor does what it imports.
func TestHygieneOfRace(t *testing.T) {
	all, seen := sources(t), map[string]bool{}
	data, err := os.ReadFile(filepath.Join(house, ".ci", "norace"))
	must(t, err)
	var look func(dir, because string, tests bool)
	look = func(dir, because string, tests bool) {
		if seen[dir] && !tests {
			return
		}
		seen[dir] = true
		files := 0
		for file, text := range all {
			test := strings.HasSuffix(file, "_test.go")
			if path.Dir(file) != dir || path.Ext(file) != ".go" || test && !tests {
				continue
			}
			files++
			if does := concurrent.FindString(text) + outside.FindString(text); does != "" {
				t.Errorf("%s is tested without -race, and %s has %q: take it out of .ci/norace", because, file, does)
			}
			for _, other := range ofOurs.FindAllStringSubmatch(text, -1) {
				if other[1] != dir {
					look(other[1], because, false)
				}
			}
		}
		if files == 0 {
			t.Errorf(".ci/norace has %s, and there is no such package", dir)
		}
	}
	for dir := range strings.Lines(string(data)) {
		if dir = strings.TrimSpace(dir); dir != "" && !strings.HasPrefix(dir, "#") {
			look(dir, dir, true)
		}
	}
}
