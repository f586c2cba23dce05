package web

import (
	"slices"

	"switchboard/handoff"
)

// An editSum is how much was edited.
type editSum struct {
	Files   int `json:"files"`
	Added   int `json:"added"` // lines, edit by edit
	Removed int `json:"removed"`
}

func editsOf(items []handoff.RecordItem) *editSum {
	var n editSum
	files := map[string]bool{}
	for _, it := range items {
		if it.State != "done" {
			continue
		}
		for _, c := range it.Changes {
			files[c.Path] = true
			n.Added, n.Removed = n.Added+c.Added, n.Removed+c.Removed
		}
	}
	if n.Files = len(files); n.Files == 0 {
		return nil
	}
	return &n
}

// withoutDiffs leaves of changes what a list has room for.
func withoutDiffs(changes []handoff.FileChange) []handoff.FileChange {
	short := slices.Clone(changes)
	for i := range short {
		short[i].Cut = short[i].Cut || short[i].Diff != ""
		short[i].Diff = ""
	}
	return short
}
