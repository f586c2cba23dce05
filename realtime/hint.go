package realtime

import "unicode/utf8"

const (
	// maxHint bounds what is told of a request before it is complete, in bytes: server and thread stand
	// before the prompt.
	maxHint = 4 << 10
	// hintEvery is how many pieces pass between hints when none ends a word.
	hintEvery = 20
	// lateHints is how often a request is hinted at once its prompt has begun: nothing else will follow.
	lateHints = 2
	// keyPrompt is the last property of a request. A hint needs only the properties before it.
	keyPrompt = "prompt"
)

// A hint reads the arguments of one request as they come: the beginning of a JSON object. It is pure.
type hint struct {
	response, call, tool string // Set once

	text    []byte // so far
	idle    int    // pieces since the last hint
	late    int    // hints since the prompt began
	prompt  bool   // it has begun
	over    bool   // no more hints
	quoted  bool   // inside a string
	escaped bool   // after a backslash
	depth   int    // of objects and lists
	word    int    // where the newest string began
	key     string // the newest whole string
}

// add takes a piece and reports whether the router should look at text now.
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

// read goes through a piece and reports whether it ends a string or begins the prompt.
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
