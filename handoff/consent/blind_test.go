package consent

import (
	"os"
	"strings"
	"testing"
)

// TestBlind holds the figures of replies in ten languages whose author saw neither the lists nor the code. They are
// not tuned to.
func TestBlind(t *testing.T) {
	q := Question{Acts: []string{"npm", "run", "build"}, Machines: []string{"bigpc", "big pc"},
		Text: "bigpc asks for permission to run a command"}
	yeses := func(name string) (yes int) {
		replies, err := os.ReadFile("testdata/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(replies)) {
			if language, reply, ok := strings.Cut(strings.TrimSpace(line), "\t"); !ok {
				t.Errorf("%s: %q has no language", name, line)
			} else if Read(reply, q) == Yes {
				t.Logf("%s: %s %q is a yes", name, language, reply)
				yes++
			}
		}
		return yes
	}
	if n := yeses("blind_no_yes"); n > 0 {
		t.Errorf("%d of 300 replies that are no yes are read as one", n)
	}
	if n := yeses("blind_plain_yes"); n < 146 {
		t.Errorf("%d of 150 plain yeses are read, 146 were", n)
	}
}
