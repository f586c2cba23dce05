package codex

import (
	"encoding/json"
	"fmt"
	"strings"

	"switchboard/handoff"
)

// changes returns what an edit did to each file, with as much of the diffs as is kept; none where the paths are too
// long together.
func (w *wireItem) changes() []handoff.FileChange {
	room := handoff.MaxDiff
	var all []handoff.FileChange
	for i := range w.paths() {
		c := w.Changes[i].change()
		if len(c.Diff) > room {
			end := strings.LastIndexByte(c.Diff[:room], '\n') + 1
			c.Diff, c.Cut = c.Diff[:end], true
		}
		room -= len(c.Diff)
		all = append(all, c)
	}
	return all
}

// change translates what was done to one file. App-servers give the hunks of an update, and of a file that is added or
// deleted its text.
func (f fileChange) change() handoff.FileChange {
	var kind struct {
		Type string  `json:"type"`
		Move *string `json:"move_path"`
	}
	_ = json.Unmarshal(f.Kind, &kind) // a kind that is not known is shown as none
	c := handoff.FileChange{Path: f.Path, Kind: kind.Type, Diff: f.Diff}
	if kind.Move != nil {
		c.To = *kind.Move
	}
	if sign, whole := map[string]string{"add": "+", "delete": "-"}[kind.Type]; whole && f.Diff != "" && !strings.HasPrefix(f.Diff, "@@ ") {
		lines := strings.SplitAfter(strings.TrimSuffix(f.Diff, "\n"), "\n")
		head := fmt.Sprintf("@@ -0,0 +1,%d @@\n", len(lines))
		if kind.Type == "delete" {
			head = fmt.Sprintf("@@ -1,%d +0,0 @@\n", len(lines))
		}
		c.Diff = head + sign + strings.Join(lines, sign) + "\n"
	}
	for line := range strings.SplitSeq(c.Diff, "\n") {
		switch {
		case strings.HasPrefix(line, "+"):
			c.Added++
		case strings.HasPrefix(line, "-"):
			c.Removed++
		}
	}
	return c
}
