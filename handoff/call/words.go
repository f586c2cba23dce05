package call

import (
	"slices"
	"time"

	"switchboard/handoff"
)

// Bounds of what a call remembers of the caller's words.
const (
	maxWords    = 6    // last utterances, given to agents as context
	maxWordSize = 2000 // bytes of one
)

// A hearing is what the caller said in a call. The loop of the call owns it. Only what the voice reports as theirs is
// in it: transcripts of their speech and text they typed, never what was put into the conversation by somebody else.
type hearing struct {
	words []string  // oldest first, at most maxWords
	spoke time.Time // the newest beginning of anything they said
}

// add takes a finalized utterance.
func (h *hearing) add(e handoff.Heard, now time.Time) {
	if e.Began.IsZero() {
		e.Began = now
	}
	h.began(e.Began)
	if e.Text == "" {
		return
	}
	if len(h.words) == maxWords {
		h.words = slices.Delete(h.words, 0, 1)
	}
	h.words = append(h.words, handoff.Clip(e.Text, maxWordSize))
}

// began notes that the caller began to speak.
func (h *hearing) began(at time.Time) {
	if at.After(h.spoke) {
		h.spoke = at
	}
}

// spokeSince reports whether the caller began to say anything after a time.
func (h *hearing) spokeSince(at time.Time) bool { return h.spoke.After(at) }
