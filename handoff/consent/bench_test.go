package consent

import "testing"

// BenchmarkRead reads the replies of the corpus, each with one of its questions.
func BenchmarkRead(b *testing.B) {
	lines := corpus(b)
	for i := 0; b.Loop(); i++ {
		l := lines[i%len(lines)]
		Read(l.text, l.asked[0])
	}
}

// TestWordsAreSmall bounds what the word lists keep in memory: nothing before a reply is read, and little after it.
func TestWordsAreSmall(t *testing.T) {
	phrases, size := 0, 0
	for _, l := range languages() {
		for _, of := range l.acts {
			for range of.all() {
				phrases++
			}
			size += cap(of.data) + 4*cap(of.blocks)
		}
	}
	t.Logf("%d phrases of %d languages in %d KiB", phrases, len(languages()), size>>10)
	if size > 768<<10 {
		t.Errorf("the word lists take %d bytes", size)
	}
}

// BenchmarkLists builds the word lists of all languages, as the first reply that is not in English does.
func BenchmarkLists(b *testing.B) {
	codes := []string{}
	for _, l := range languages() {
		codes = append(codes, l.code)
	}
	for b.Loop() {
		scratch := &listing{}
		for _, code := range codes {
			mustParse(code, scratch)
		}
	}
}
