// Package speakable takes from an agent's Markdown what can be said: prose without paths, hashes, code and
// marks, cut at the end of a sentence.
//
// It must not know who speaks, to whom, or why. The page shows the whole text; this package never does.
package speakable
