package evidence

import (
	"testing"

	"switchboard/handoff"
)

// TestTheirWords: an agent gets words that were said, in their order, and no denial is lost.
func TestTheirWords(t *testing.T) {
	for _, tt := range []struct {
		said  []string
		words string
		want  bool
	}{
		{[]string{"use the staging one, please"}, "staging", true},
		{[]string{"Use the staging one, please."}, "use staging", true},
		{[]string{"the main", "branch"}, "main branch", true},
		{[]string{"der Hauptzweig"}, "Hauptzweig", true},
		{[]string{"ステージング"}, "ステージング", true},
		{[]string{"use staging"}, "production", false},
		{[]string{"use staging"}, "staging use", false},
		{[]string{"not staging, production"}, "staging", false},
		{[]string{"not staging, production"}, "not staging, production", true},
		{[]string{"production"}, "not production", false},
		{[]string{"what did it ask?"}, "yes", false},
		{[]string{"staging"}, "", false},
		{[]string{"staging"}, "...", false},
		{nil, "yes", false},
	} {
		var said []*utterance
		for _, text := range tt.said {
			said = append(said, &utterance{Heard: handoff.Heard{Text: text}})
		}
		if got := theirWords(tt.words, said); got != tt.want {
			t.Errorf("%q of %q: %t", tt.words, tt.said, got)
		}
	}
}
