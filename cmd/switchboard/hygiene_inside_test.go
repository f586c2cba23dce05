package main

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestInsideNamesEverything: the help's page about the inside names every package, and every address of the service.
func TestInsideNamesEverything(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(house, "web/help/4-inside.md"))
	must(t, err)
	inside := string(page)
	address := regexp.MustCompile(`"(?:GET|POST|PUT|DELETE) (/[^"{]+)`)
	for file, text := range sources(t) {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			continue
		}
		dir := path.Dir(file)
		kit := strings.HasSuffix(dir, "test") || strings.HasPrefix(dir, ".")
		if !kit && !strings.Contains(inside, "`"+path.Base(dir)+"`") && !strings.Contains(inside, "`"+dir+"`") {
			t.Errorf("package %s is not named", dir)
		}
		if dir == "web" || path.Dir(dir) == "web" {
			for _, m := range address.FindAllStringSubmatch(text, -1) {
				if at := strings.TrimSuffix(m[1], "/"); !strings.Contains(inside, at) {
					t.Errorf("%s: %s is not named", file, at)
				}
			}
		}
	}
}
