package consent

import (
	"maps"
	"slices"
	"sort"
	"strings"
)

// A table holds phrases in order, in little memory. Set once.
type table struct {
	text string   // the phrases, one after the other
	ends []uint32 // where each ends in text
	does []kind
}

func newTable(phrases map[string]kind) table {
	var t table
	var text strings.Builder
	for _, p := range slices.Sorted(maps.Keys(phrases)) {
		text.WriteString(p)
		t.ends, t.does = append(t.ends, uint32(text.Len())), append(t.does, phrases[p])
	}
	t.text, t.ends, t.does = text.String(), slices.Clip(t.ends), slices.Clip(t.does)
	return t
}

func (t table) phrase(i int) string {
	from := uint32(0)
	if i > 0 {
		from = t.ends[i-1]
	}
	return t.text[from:t.ends[i]]
}

// find returns what words do, and reports whether a longer phrase begins with them.
func (t table) find(words string) (does kind, more bool) {
	i, found := sort.Find(len(t.does), func(i int) int { return strings.Compare(words, t.phrase(i)) })
	if found {
		does, i = t.does[i], i+1
	}
	return does, i < len(t.does) && strings.HasPrefix(t.phrase(i), words)
}
