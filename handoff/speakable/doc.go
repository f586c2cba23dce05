// Package speakable turns an agent's Markdown into text for speech: prose without paths, hashes, code and marks, cut at
// the end of a sentence.
//
// It must not know who speaks, to whom, or why. The whole text is on the page.
package speakable
