package spoken

import (
	"slices"
	"unicode/utf8"
)

// The likeness of two words, from 0 to 1.
const (
	same   = 1.0
	stem   = 0.9  // another form of the word
	sounds = 0.85 // the same sound, or one other letter in a long word: as sure as a recogniser is
	heard  = 0.8  // the least for a name to be taken
	likely = 0.6  // the least for a name to be asked about
)

// minSure is how many letters a word needs to be taken for another word that only sounds like it.
const minSure = 4

// alike returns the likeness of two words. joined: one of them is joined from several. Numbers are equal or unlike.
func alike(a, b word, joined bool) float64 {
	n, m := utf8.RuneCountInString(a.text), utf8.RuneCountInString(b.text)
	short, long := min(n, m), max(n, m)
	switch {
	case a.text == b.text:
		return same
	case short < 2 || a.figures() || b.figures() || 5*short < 3*long:
		return 0
	}
	common := commonPrefix(a.text, b.text)
	soundAlike := a.sound != "" && a.sound == b.sound
	doubled := common > 0 && undouble(a.text) == undouble(b.text) // "minni" for "mini"
	stemmed := !joined && common >= minSure && 5*common >= 3*long // "quarantining" for "quarantine"
	bonus := 0.0                                                  // the sound helps, most where words begin alike
	switch {
	case min(len(a.sound), len(b.sound)) < 2:
	case a.sound[0] == b.sound[0]:
		bonus = 0.25
	default:
		bonus = 0.1
	}
	edits := distance([]rune(a.text), []rune(b.text), long/2)
	switch {
	case short < minSure && (soundAlike || edits == 1 && short == minSure-1): // "cpu" for "gpu"
		return likely
	case short < minSure:
		return 0
	case stemmed:
		return stem
	case doubled,
		soundAlike && len(a.sound) > 2 && short > minSure, // "censor" for "sensor"
		common > 0 && edits == 1 && short > minSure,       // "labtop" for "laptop"
		common > 0 && edits == 2 && short >= 2*minSure:    // "malservr" for "mailserver"
		return sounds
	}
	score := 1 - float64(edits)/float64(long)
	if score+bonus < likely {
		return 0
	}
	if bonus > 0 {
		most := max(len(a.sound), len(b.sound))
		between := distance([]rune(a.sound), []rune(b.sound), most)
		score = max(score, min(score+bonus, 0.95-float64(between)/float64(most)))
	}
	if score < likely {
		return 0
	}
	return min(score, heard-0.05)
}

// undouble replaces double letters by single ones.
func undouble(text string) string {
	letters := []rune(text)
	return string(slices.Compact(letters))
}

// commonPrefix returns the length of the common prefix of two words, in letters.
func commonPrefix(a, b string) int {
	n, rest := 0, []rune(b)
	for _, r := range a {
		if n == len(rest) || rest[n] != r {
			break
		}
		n++
	}
	return n
}

// distance counts insertions, deletions, substitutions and swaps of neighbours. If it is more than limit, it returns
// limit+1.
func distance(a, b []rune, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(row[j-1]+1, last[j]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], limit+1)
}
