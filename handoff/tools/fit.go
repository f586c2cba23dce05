package tools

import (
	"cmp"
	"sort"

	"switchboard/handoff"
)

// Bounds of texts in a result that does not fit as a whole, in bytes of JSON: a long one must not hide the other
// entries. Ids are never cut.
const (
	maxTitle    = 160
	maxWord     = 80  // a label, a branch, a version, the name of a project
	maxPath     = 200 // a directory, a problem in words
	maxLine     = 2 << 10
	maxSummary  = 1200 // what is to be said
	maxProjects = 20   // of one machine
	maxErrors   = 8    // machines that could not be asked
)

// fit leaves entries out until what build makes of the first keep of n is small enough.
func fit(n, limit int, build func(keep int) Result) Result {
	return build(sort.Search(n, func(keep int) bool { return len(handoff.Encode(build(keep+1))) > limit }))
}

// clip shortens a text to at most limit bytes of JSON, beside the quotes, and marks that something is missing.
func clip(text string, limit int) string {
	for keep := limit; ; keep = cmp.Or(keep/2, 1) {
		text = handoff.Clip(text, max(keep, 8))
		if keep <= 8 || len(handoff.Encode(text))-2 <= limit {
			return text
		}
	}
}

// firstClipped returns at most n texts, each of at most limit bytes of JSON.
func firstClipped(texts []string, n, limit int) []string {
	var out []string
	for _, text := range texts[:min(n, len(texts))] {
		out = append(out, clip(text, limit))
	}
	return out
}
