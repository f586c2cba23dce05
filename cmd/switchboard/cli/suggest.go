package cli

import (
	"fmt"
	"strings"
)

// meant returns ", did you mean …?" with the known words that begin with a word or are close to it; "": none is.
func meant(word string, known []string) string {
	var quoted []string
	for _, k := range known {
		if strings.HasPrefix(k, word) || Distance(word, k) <= 2 {
			quoted = append(quoted, fmt.Sprintf("%q", k))
		}
	}
	switch len(quoted) {
	case 0:
		return ""
	case 1:
		return ", did you mean " + quoted[0] + "?"
	}
	return ", did you mean one of " + strings.Join(quoted, ", ") + "?"
}

// Distance returns the edit distance of two words: how many bytes to add, drop or change to make one of the other.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
