package web

import (
	"testing"

	"switchboard/handoff"
)

func TestEditsOfWork(t *testing.T) {
	edits := editsOf([]handoff.RecordItem{
		{State: "done", Changes: []handoff.FileChange{{Path: "a", Added: 2, Removed: 1}, {Path: "b", Added: 1}}},
		{State: "done", Changes: []handoff.FileChange{{Path: "a", Removed: 1}}},
		{State: "failed", Changes: []handoff.FileChange{{Path: "c", Added: 9}}},
	})
	if edits == nil || *edits != (editSum{Files: 2, Added: 3, Removed: 2}) {
		t.Errorf("edits %+v", edits)
	}
}
