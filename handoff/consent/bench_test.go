package consent

import (
	"runtime"
	"testing"
)

// BenchmarkRead reads the replies of the corpus, each with one of its questions.
func BenchmarkRead(b *testing.B) {
	lines := corpus(b)
	for i := 0; b.Loop(); i++ {
		l := lines[i%len(lines)]
		Read(l.text, l.asked[0])
	}
}

// TestWordsAreSmall bounds what the word lists cost: nothing before a reply is read, and little after it.
func TestWordsAreSmall(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	lists := []*language{}
	for _, l := range languages() {
		lists = append(lists, mustParse(l.code))
	}
	after, phrases := heap(), 0
	for _, l := range lists {
		for _, of := range l.acts {
			phrases += len(of.does)
		}
	}
	t.Logf("%d phrases of %d languages in %d KiB", phrases, len(lists), (after-before)>>10)
	if after-before > 4<<20 {
		t.Errorf("the word lists take %d bytes", after-before)
	}
}

// BenchmarkLists builds the word lists of all languages, as the first reply that is not in English does.
func BenchmarkLists(b *testing.B) {
	codes := []string{}
	for _, l := range languages() {
		codes = append(codes, l.code)
	}
	for b.Loop() {
		for _, code := range codes {
			mustParse(code)
		}
	}
}
