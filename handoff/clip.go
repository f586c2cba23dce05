package handoff

import "unicode/utf8"

// ellipsis marks that something is missing.
const ellipsis = "…"

// Clip shortens text to at most limit bytes at a rune boundary, and marks that something is missing. The
// limit is at least the mark's 3 bytes.
func Clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return Cut(text, limit-len(ellipsis)) + ellipsis
}

// ClipRunes is [Clip] with a limit in runes, the mark among them, for what people see in columns.
func ClipRunes(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	seen := 0
	for i := range text {
		if seen == limit-1 {
			if utf8.RuneCountInString(text[i:]) == 1 {
				return text
			}
			return text[:i] + ellipsis
		}
		seen++
	}
	return text
}

// Cut shortens text to at most limit bytes at a rune boundary, without a mark. A store's script does the same.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	limit = max(limit, 0)
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// Tail shortens text to at most its last limit bytes, from a rune boundary on, without a mark.
func Tail(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	text = text[len(text)-max(limit, 0):]
	for text != "" && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text
}
