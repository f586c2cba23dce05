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

// Each plays every archive that a pattern matches, in a test of its name. There are at least so many.
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

// Parts are the lines of each part of an archive, without comments.
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

// A ladder is the record of who said what to whom at which fake millisecond.
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

// columnOrder sorts rungs of one millisecond: what comes in, what is asked of the fleet, what goes out; in
// a column, those of one agent or request stay together, in their order.
var columnOrder = []string{"call", "page", "store", "agent", "say", "end"}

// Record takes what happens, in one of the columns call, page, store, agent, say and end.
func (l *ladder) Record(column, what, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := rung{at: time.Since(l.began), column: column, index: len(l.rungs), text: strings.TrimSpace(what + ": " + text)}
	if column == "agent" || column == "say" || column == "store" || what == "notice" { // told beside what the page asks
		r.who = what
	}
	if text == "detach" { // beside what goes on, so after it
		r.who += " ~"
	}
	l.rungs = append(l.rungs, r)
}

// Ladder returns what was recorded so far.
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

// Heard reports whether the voice model was given such words.
func (l *ladder) Heard(words string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.rungs, func(r rung) bool { return r.column == "say" && strings.Contains(r.text, words) })
}
