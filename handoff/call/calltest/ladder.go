package calltest

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// Each plays every archive that a pattern matches, as a subtest with the archive's name. It fails if there are fewer
// than least.
func Each(t *testing.T, pattern string, least int, play func(t *testing.T, file string, archive *txtar.Archive)) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) < least {
		t.Fatalf("found %d archives, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			play(t, file, archive)
		})
	}
}

// Parts returns the lines of each part of an archive, without comments.
func Parts(archive *txtar.Archive) map[string][]string {
	parts := map[string][]string{}
	for _, f := range archive.Files {
		parts[f.Name] = Lines(string(f.Data))
	}
	return parts
}

// Lines returns the lines of a part of a ladder, without comments.
func Lines(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

// A ladder records who said what to whom, with fake milliseconds.
type ladder struct {
	began time.Time // Set once

	mu    sync.Mutex
	rungs []rung // Guarded by mu
}

// A rung is one line of a ladder.
type rung struct {
	at     time.Duration
	column string
	who    string
	index  int
	text   string
}

// columnOrder is the order of the columns within one millisecond: first what comes in, then requests to the fleet, then
// what goes out. Within a column, the rungs of one agent or request stay together, in their order.
var columnOrder = []string{"call", "page", "store", "agent", "say", "end"}

// Record adds a rung, in one of the columns call, page, store, agent, say and end.
func (l *ladder) Record(column, what, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := rung{at: time.Since(l.began), column: column, index: len(l.rungs), text: strings.TrimSpace(what + ": " + text)}
	if column == "agent" || column == "say" || column == "store" || what == "notice" { // concurrent, so sorted by who
		r.who = what
	}
	if text == "detach" { // concurrent with the agent's other rungs, so after them
		r.who += " ~"
	}
	l.rungs = append(l.rungs, r)
}

// Ladder returns the rungs so far, as text.
func (l *ladder) Ladder() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.SortFunc(l.rungs, func(a, b rung) int {
		return cmp.Or(cmp.Compare(a.at, b.at),
			cmp.Compare(slices.Index(columnOrder, a.column), slices.Index(columnOrder, b.column)),
			cmp.Compare(a.who, b.who), cmp.Compare(a.index, b.index))
	})
	var b strings.Builder
	for _, r := range l.rungs {
		if r.column == "end" {
			fmt.Fprintf(&b, "end   %s\n", strings.TrimPrefix(r.text, ": "))
			continue
		}
		fmt.Fprintf(&b, "%6d  %-6s %s\n", r.at.Milliseconds(), r.column, r.text)
	}
	return b.String()
}

// Heard reports whether the voice model was given these words.
func (l *ladder) Heard(words string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.rungs, func(r rung) bool { return r.column == "say" && strings.Contains(r.text, words) })
}
