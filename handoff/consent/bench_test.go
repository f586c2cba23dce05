package consent

import "testing"

// BenchmarkRead reads the replies of the corpus, each with one of its questions.
func BenchmarkRead(b *testing.B) {
	var lines []corpusLine
	for _, half := range halves {
		lines = append(lines, readCorpus(b, half.file, half.asked)...)
	}
	for i := 0; b.Loop(); i++ {
		l := lines[i%len(lines)]
		Read(l.text, l.asked[0])
	}
}
