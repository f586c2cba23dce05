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

// recalls tells whether a reply only repeats what was asked about, with a yes in passing: "the tests, ah yes, the
// tests" says that somebody remembers, and orders nothing.
func (h heard) recalls(ask asking) bool {
	h = h.fluent()
	for at := range h.tokens {
		for _, l := range languages {
			found, yes := false, 0
			l.book.at(h.tokens[at:], func(n int, kind phraseKind) {
				if kind == kindYes || kind == kindWeak {
					found, yes = found || h.repeatsAround(at, at+n, ask), n
				}
			})
			if yes > 0 {
				return found
			}
		}
	}
	return false
}

// isBareLet tells whether a reply is only an order to let somebody, who may be anybody: "let him". Who says so may mean
// that he be left alone, or do it himself.
func (h heard) isBareLet() bool {
	var said strings.Builder
	for _, t := range h.fluent().tokens {
		if !pleases[t] {
			said.WriteString(t)
		}
	}
	return bareLets[said.String()]
}

// bareLets are those orders, written together. Set once.
var bareLets = setOf("lethim lether пустьсам пустьсама пускаисам пускаисама хаисам хаисама нехаисам нехаисама хаи нехаи niechsam niechsama lassihnselbst lathonom lathenne")

// repeatsAround tells whether the words before some tokens, which name the act or the machine and order nothing, are
// those with which the reply ends after them.
func (h heard) repeatsAround(from, to int, ask asking) bool {
	for at := range from {
		for length := 1; length <= min(from-at, len(h.tokens)-to); length++ {
			part, last := h, h.tokens[len(h.tokens)-length:]
			part.tokens = h.tokens[at : at+length]
			if slices.Equal(part.tokens, last) && ask.named(last) && !part.orders(ask) {
				return true
			}
		}
	}
	return false
}

// orders tells whether words begin with a whole order of the act.
func (h heard) orders(ask asking) bool {
	return slices.ContainsFunc(languages, func(l *language) bool {
		found := false
		take := func(n int, kind phraseKind) {
			found = found || kind == kindOrder || kind == kindGo || kind == kindYes || kind == kindDo
		}
		l.book.at(h.tokens, take)
		ask.actAt(h.tokens, l, take)
		return found
	})
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

// isBareCommand tells whether a reply is the command of the question and where it runs, and says nothing of its own: "npm
// install" with "in the project" in any language. A program's name begins it.
func (h heard) isBareCommand(ask asking) bool {
	if len(h.tokens) < echoTokens || !ask.programs[h.tokens[0]] {
		return false
	}
	return slices.ContainsFunc(languages, func(l *language) bool {
		for at := 0; at < len(h.tokens); {
			length := max(ask.machine(h.tokens[at:]), 0)
			if ask.acts[h.tokens[at]] {
				length = max(length, 1)
			}
			ask.after(h.tokens, at, l, func(end int, kind phraseKind) {
				switch kind {
				case kindLink, kindIn, kindPlace:
					length = max(length, end-at)
				}
			})
			if length == 0 {
				return false
			}
			at += length
		}
		return true
	})
}
