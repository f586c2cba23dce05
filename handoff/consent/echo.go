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
	return len(h.tokens) >= echoTokens && slices.ContainsFunc(ask.ours, func(ours []string) bool {
		return strings.Contains(strings.Join(ours, ""), strings.Join(h.tokens, "")) // perhaps written with other spaces
	})
}

// recalls tells whether a reply only repeats what was asked about, with a yes in passing: "the tests, ah yes, the
// tests" says that somebody remembers, and orders nothing.
func (h heard) recalls(ask asking) bool {
	h = h.fluent()
	for at := range h.tokens {
		for _, l := range languages() {
			if l.book.has(h.tokens[at:], kindYes, kindWeak) {
				return l.book.any(h.tokens[at:], func(n int, kind phraseKind) bool {
					return (kind == kindYes || kind == kindWeak) && h.repeatsAround(at, at+n, ask)
				})
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
	return slices.ContainsFunc(languages(), func(l *language) bool {
		return ask.has(h.tokens, l, kindOrder, kindGo, kindYes, kindDo)
	})
}

// nearEchoOf tells whether a reply is our question with a few words misheard, and each word that denies is
// one of ours, in its place: "may I run MPM install, yes or no".
func (h heard) nearEchoOf(ask asking) bool {
	return slices.ContainsFunc(ask.ours, func(ours []string) bool { return h.nearly(ours[:min(len(ours), maxEchoWords)]) })
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

// isBareCommand tells whether a reply is the command of the question, in words of the question, and where it runs or what
// it is about, in any language, and says nothing of its own: "npm install in the project", "allow npm install in api",
// "pip install requests з інтернету".
func (h heard) isBareCommand(ask asking) bool {
	if len(h.tokens) < echoTokens || !slices.ContainsFunc(h.tokens, func(t string) bool { return ask.programs[t] }) {
		return false
	}
	frame := slices.ContainsFunc(h.indexes(), h.agreesAt) // or "let it", "allow it to": who says more than a word orders
	english().book.at(h.tokens, func(n int, kind phraseKind) { frame = frame || n > 1 && (kind == kindYes || kind == kindDo) })
	return !frame && slices.ContainsFunc(languages(), func(l *language) bool {
		for at := 0; at < len(h.tokens); {
			length := ask.machine(h.tokens[at:])
			if t := h.tokens[at]; ask.acts[t] || at+1 < len(h.tokens) && ask.ourWord(t) && !h.denies(at) && !pleases[t] {
				length = max(length, 1)
			}
			ask.after(h.tokens, at, l, func(end int, kind phraseKind) {
				if kind == kindLink || kind == kindIn || kind == kindPlace {
					length = max(length, end-at)
				}
			})
			ask.actAt(h.tokens[at:], l, func(n int, kind phraseKind) {
				if kind == kindTopic && at > 0 { // "pip install requests from the internet"
					length = max(length, n)
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

// ourWord tells whether a word is one with which the question was asked.
func (a asking) ourWord(word string) bool {
	return slices.ContainsFunc(a.ours, func(ours []string) bool { return slices.Contains(ours, word) })
}

// isCitation tells whether a reply only names the act and its object, in the form in which a language names what is done
// and orders nothing: an infinitive, a noun, the bare verb of Chinese. "In einer Kopie weitermachen" is the question heard
// back; "mach in einer Kopie weiter" is an order. English has one form for both: there it is an order, unless its words
// stand so in the question.
func (h heard) isCitation(ask asking) bool {
	return len(h.tokens) > 1 && len(h.questions) == 0 && slices.ContainsFunc(languages(), func(l *language) bool {
		return len(l.citations) > 0 && h.cites(l, ask)
	})
}

// cites tells whether a reply is wholly the act as a language cites it, and what it is about.
func (h heard) cites(l *language, ask asking) bool {
	type part struct{ verb, thing bool }
	reached := make([][]part, len(h.tokens)+1)
	reached[0] = []part{{}}
	for at := range h.tokens {
		if len(reached[at]) == 0 { // no reading of what stands before ends here
			continue
		}
		add := func(n int, more part) {
			for _, p := range reached[at] {
				p.verb, p.thing = p.verb || more.verb, p.thing || more.thing
				if !slices.Contains(reached[at+n], p) {
					reached[at+n] = append(reached[at+n], p)
				}
			}
		}
		ask.at(h.tokens[at:], l, func(n int, kind phraseKind) {
			verb := l.isCitation(h.tokens[at : at+n])
			if verb || kind == kindTopic || kind == kindCount || kind == kindThing {
				add(n, part{verb, !verb})
			}
		})
		if l.book.has(h.tokens[at:], kindWeak, kindFill) { // a yes or a particle
			return false
		}
		l.book.at(h.tokens[at:], func(n int, kind phraseKind) {
			if kind == kindLink || kind == kindIn || kind == kindPost || kind == kindPlace {
				add(n, part{})
			}
		})
	}
	return slices.Contains(reached[len(h.tokens)], part{true, true})
}

// isCitation tells whether words are a verb in the form in which a language cites it.
func (l *language) isCitation(tokens []string) bool {
	joined := strings.Join(tokens, "")
	return slices.ContainsFunc(l.citations, func(end string) bool {
		return joined == end || len(tokens) == 1 && !isDense([]rune(joined)[0]) && len(joined) > len(end)+1 && strings.HasSuffix(joined, end)
	})
}
