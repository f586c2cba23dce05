// Package speakable takes from an agent's Markdown what can be said: prose without paths, hashes, code and
// marks, cut at the end of a sentence.
//
// It must not know who speaks, to whom, or why. The whole text is for the page, not for here.
package speakable
