package realtime

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// maxSaid is how many responses are remembered in words: those that are still being heard. The oldest
// goes first; then the router is not told what was said, which it can do without.
const maxSaid = 8

// maxWords bounds the words of each, in bytes: some minutes of speech.
const maxWords = 16 << 10

// saidWords is what a response said, as the model wrote it down.
type saidWords struct{ response, text string }

// keepWords remembers what a response said: the router compares it with what was to be asked.
func (c *Call) keepWords(id string, response gjson.Result) {
	var said []string
	for _, item := range response.Get("output").Array() {
		for _, part := range item.Get("content").Array() {
			for _, name := range []string{"transcript", "text"} {
				if text := strings.TrimSpace(part.Get(name).String()); text != "" {
					said = append(said, text)
				}
			}
		}
	}
	if len(said) == 0 {
		return
	}
	text := strings.Join(said, " ")
	c.said = append(c.said, saidWords{id, strings.Clone(strings.ToValidUTF8(text[:min(len(text), maxWords)], ""))})
	if n := len(c.said) - maxSaid; n > 0 {
		c.said = slices.Delete(c.said, 0, n)
	}
}

// wordsOf returns what a response said; "" if that is not known.
func (c *Call) wordsOf(response string) string {
	for _, s := range c.said {
		if s.response == response {
			return s.text
		}
	}
	return ""
}
