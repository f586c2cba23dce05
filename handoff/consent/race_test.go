//go:build race

package consent

// everyNth thins the replies of the corpus where each read is slow; without the race detector all are read.
const everyNth = 7
