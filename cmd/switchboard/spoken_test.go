package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
)

// listen waits until what came of the voice so far has been played, and hears these words in it: who
// answers a question before its end has not heard it.
func (p *phone) listen(words string) {
	p.t.Helper()
	p.hear(words)
	until(p.t, "the voice to end", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return time.Now().After(p.plays.Add(500 * time.Millisecond)) // and the router to have noticed
	})
}

// newestOf is the last piece of work with this prompt.
func (r *running) newestOf(prompt string) handoff.Record {
	r.t.Helper()
	works := r.handoffs()
	for _, w := range slices.Backward(works) {
		if strings.Contains(strings.ToLower(w.Prompt), strings.ToLower(prompt)) {
			return r.whole(w.ID)
		}
	}
	return handoff.Record{}
}

// ended waits until the newest work with a prompt has an outcome.
func (r *running) ended(prompt string) handoff.Record {
	r.t.Helper()
	var rec handoff.Record
	until(r.t, prompt+" to end", func() bool {
		rec = r.newestOf(prompt)
		return rec.Outcome != ""
	})
	return rec
}

// audited are the decisions that were written down, in order. The chain of the file is whole.
func audited(t *testing.T, dir string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
	must(t, err)
	_, err = sessions.ReadAuditDir(dir)
	must(t, err)
	var list []string
	for line := range bytes.Lines(data) {
		var entry struct{ Record handoff.AuditRecord }
		must(t, json.Unmarshal(line, &entry))
		list = append(list, fmt.Sprintf("%s by %s, %s, on %s", entry.Record.Decision, entry.Record.By, entry.Record.Tier, entry.Record.Server))
	}
	return list
}
