package codex

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchboard/handoff"
)

// What an app-server tells of an edit, each file as hunks.
func TestChangesOfAnEdit(t *testing.T) {
	var w wireItem
	must(t, json.Unmarshal([]byte(`{"type":"fileChange","id":"i1","status":"completed","changes":[
		{"path":"a.go","kind":{"type":"update","move_path":"b.go"},"diff":"@@ -1,2 +1,2 @@\n one\n-two\n+2\n"},
		{"path":"new.md","kind":{"type":"add"},"diff":"# New\n\ntext\n"},
		{"path":"old.md","kind":{"type":"delete"},"diff":"gone"},
		{"path":"odd","kind":7,"diff":""}]}`), &w))
	want := []handoff.FileChange{
		{Path: "a.go", Kind: "update", To: "b.go", Diff: "@@ -1,2 +1,2 @@\n one\n-two\n+2\n", Added: 1, Removed: 1},
		{Path: "new.md", Kind: "add", Diff: "@@ -0,0 +1,3 @@\n+# New\n+\n+text\n", Added: 3},
		{Path: "old.md", Kind: "delete", Diff: "@@ -1,1 +0,0 @@\n-gone\n", Removed: 1},
		{Path: "odd"},
	}
	if diff := cmp.Diff(want, w.item().Changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}

	w.Changes = []fileChange{{Path: "a", Kind: json.RawMessage(`{"type":"add"}`),
		Diff: strings.Repeat("line\n", handoff.MaxDiff)}, {Path: "b", Diff: "@@ -1 +1 @@\n-x\n+y\n"}}
	got := w.changes()
	if size := len(got[0].Diff) + len(got[1].Diff); size > handoff.MaxDiff || !got[0].Cut ||
		!strings.HasSuffix(got[0].Diff, "+line\n") || got[0].Added != handoff.MaxDiff {
		t.Errorf("kept %d bytes of %d lines, cut %v and %v", size, got[0].Added, got[0].Cut, got[1].Cut)
	}
}
