package consent

import (
	"slices"
	"strings"
)

// Bounds of an echo.
const (
	echoTokens     = 3  // words of ours in a row are an echo; two can be the caller's own: "go ahead"
	nearEchoTokens = 5  // words of ours, nearly in a row
	maxEchoWords   = 80 // of ours are looked at
)

// isEchoOf tells whether a whole reply is a piece of what we said ourselves.
func (h heard) isEchoOf(ask asking) bool {
	return slices.ContainsFunc(ask.ours, func(ours []string) bool { return isEcho(h.tokens, ours) })
}

func isEcho(reply, ours []string) bool {
	if len(reply) < echoTokens {
		return false
	}
	for i := range len(ours) - len(reply) + 1 {
		if startsWith(ours[i:], reply) {
			return true
		}
	}
	return strings.Contains(strings.Join(ours, ""), strings.Join(reply, "")) // written with other spaces
}

// nearEchoOf tells whether a reply is our question with a few words misheard, and each word that denies is
// one of ours, in its place: "may I run MPM install, yes or no".
func (h heard) nearEchoOf(ask asking) bool {
	for _, ours := range ask.ours {
		if h.nearly(ours[:min(len(ours), maxEchoWords)]) {
			return true
		}
	}
	return false
}

func (h heard) nearly(ours []string) bool {
	if len(h.tokens) < nearEchoTokens {
		return false
	}
	// best[i][j] is how many tokens of the reply from i on stand in this order in ours from j on.
	best := make([][]int, len(h.tokens)+1)
	for i := range best {
		best[i] = make([]int, len(ours)+1)
	}
	for i := len(h.tokens) - 1; i >= 0; i-- {
		for j := len(ours) - 1; j >= 0; j-- {
			best[i][j] = max(best[i+1][j], best[i][j+1])
			if h.tokens[i] == ours[j] {
				best[i][j] = max(best[i][j], 1+best[i+1][j+1])
			}
		}
	}
	if 4*best[0][0] < 3*len(h.tokens) {
		return false
	}
	for i, j := 0, 0; i < len(h.tokens); {
		switch {
		case j < len(ours) && h.tokens[i] == ours[j] && best[i][j] == 1+best[i+1][j+1]:
			i, j = i+1, j+1
		case j < len(ours) && best[i][j] == best[i][j+1]:
			j++
		case h.denies(i):
			return false
		default:
			i++
		}
	}
	return true
}
