package consent

import (
	"strings"
	"testing"
)

// minOrders is in how many ways a language orders each act at least: the imperative, politely, and to let it.
const minOrders = 8

// ordered are the acts that an agent asks for most, each with a question. Set once.
var ordered = map[string]Question{
	"push":    sixQuestions[0],
	"install": sixQuestions[1],
	"test":    sixQuestions[2],
	"edit":    sixQuestions[3],
	"copy":    sixQuestions[4],
	"fetch":   about("curl docs", bigpc, "Bigpc wants to fetch a page. May it?"),
	"delete":  hardQuestions[2],
}

// TestOrders holds that every language has the orders of every act, that each is a yes to the question of its act, and
// that one that is asked back is none.
func TestOrders(t *testing.T) {
	for _, l := range languages() {
		for act, q := range ordered {
			orders := 0
			for _, phrases := range l.acts[act] {
				for _, p := range phrases {
					if p.kind != kindOrder {
						continue
					}
					orders++
					text := strings.Join(p.tokens, " ")
					if isDense([]rune(text)[0]) {
						text = p.joined
					}
					if got := Read(text, q); got != Yes && got != Echo {
						t.Errorf("%s: %s: %q is %s", l.code, act, text, got)
					}
					if got := Read(text+"?", q); got == Yes {
						t.Errorf("%s: %s: %q asked back is a yes", l.code, act, text)
					}
				}
			}
			if orders < minOrders {
				t.Errorf("%s: %d orders of %s", l.code, orders, act)
			}
		}
	}
}
