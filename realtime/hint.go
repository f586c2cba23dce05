package realtime

import "unicode/utf8"

const (
	// maxHint bounds the text of a hint, in bytes: the server and thread come before the prompt.
	maxHint = 4 << 10
	// hintEvery is after how many pieces a hint is due although none of them completes a string.
	hintEvery = 20
	// lateHints is the number of hints after the prompt has begun: no property follows it.
	lateHints = 2
	// keyPrompt is the name of the last property of a request. A hint needs only the properties before it.
	keyPrompt = "prompt"
)

// A hint scans the arguments of one request, a JSON object, as they arrive, and decides when the router should be told
// of what there is. It is pure.
type hint struct {
	response, call, tool string // Set once

	text    []byte // the arguments so far
	idle    int    // pieces since the last hint
	late    int    // hints since the prompt began
	prompt  bool   // the prompt has begun
	over    bool   // no more hints
	quoted  bool   // inside a string
	escaped bool   // after a backslash
	depth   int    // of objects and lists
	word    int    // where in text the newest string began
	key     string // the newest complete string
}

// add adds a piece and reports whether the router should be told of text now.
func (h *hint) add(piece string) bool {
	if h.over {
		return false
	}
	news := h.read(piece)
	h.idle++
	if len(h.text) > maxHint {
		h.over = true
		n := maxHint
		for n > 0 && !utf8.RuneStart(h.text[n]) {
			n--
		}
		h.text = h.text[:n]
		return news
	}
	if !news && h.idle < hintEvery {
		return false
	}
	h.idle = 0
	if h.prompt {
		h.late++
		h.over = h.late == lateHints
	}
	return true
}

// read scans a piece and reports whether it ends a string or begins the prompt.
func (h *hint) read(piece string) (news bool) {
	for i := range len(piece) {
		b := piece[i]
		h.text = append(h.text, b)
		switch {
		case h.escaped:
			h.escaped = false
		case h.quoted && b == '\\':
			h.escaped = true
		case b == '"':
			if h.quoted = !h.quoted; h.quoted {
				h.word = len(h.text)
				break
			}
			h.key, news = string(h.text[h.word:len(h.text)-1]), true
		case h.quoted:
		case b == '{', b == '[':
			h.depth++
		case b == '}', b == ']':
			h.depth--
		case b == ':' && h.depth == 1 && h.key == keyPrompt:
			h.prompt, news = true, true
		}
	}
	return news
}
