package call

import (
	"slices"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/consent"
)

// Bounds of what a call remembers of the caller's words.
const (
	maxWords     = 6    // number of utterances with words, the newest: context for agents
	maxWordSize  = 2000 // bytes of one
	maxSentences = 8    // the newest
)

// A hearing is what the caller said in a call: transcripts of their speech and text that they typed, as the voice
// reports them, and no other text of the conversation. The loop of the call owns it.
type hearing struct {
	texts     []string    // oldest first, at most maxWords
	spoke     time.Time   // the newest beginning of anything they said
	sentences []*sentence // as they came, at most maxSentences
}

// A sentence is something that the caller said or typed.
type sentence struct {
	began        time.Time
	interrupting bool // somebody spoke when it began, or it was typed into the speech
	told         bool // its words have come, or never will
	hushed       bool // they only asked for quiet
}

// begins notes that the caller began a sentence.
func (h *hearing) begins(at time.Time, interrupting bool) *sentence {
	if at.After(h.spoke) {
		h.spoke = at
	}
	if len(h.sentences) == maxSentences {
		h.sentences = slices.Delete(h.sentences, 0, 1)
	}
	s := &sentence{began: at, interrupting: interrupting}
	h.sentences = append(h.sentences, s)
	return s
}

// add takes a finalized utterance.
func (h *hearing) add(e handoff.Heard, now time.Time) {
	s := h.of(e)
	if e.Began.IsZero() {
		e.Began = now
	}
	if s == nil {
		s = h.begins(e.Began, e.Into)
	} else if e.Began.After(h.spoke) {
		h.spoke = e.Began
	}
	s.told, s.hushed = true, s.interrupting && consent.Hush(e.Text)
	if e.Text == "" {
		return
	}
	if len(h.texts) == maxWords {
		h.texts = slices.Delete(h.texts, 0, 1)
	}
	h.texts = append(h.texts, handoff.Clip(e.Text, maxWordSize))
}

// of returns the sentence whose transcript this is: the one that began then, or else the newest before it that has no
// transcript. If the beginning is not known, it is the oldest without one, as transcripts come in order. nil: the
// sentence was not reported, or is typed.
func (h *hearing) of(e handoff.Heard) *sentence {
	if e.Typed {
		return nil
	}
	var found *sentence
	for _, s := range h.sentences {
		switch {
		case s.began.Equal(e.Began):
			return s
		case s.told, e.Began.IsZero() && found != nil, !e.Began.IsZero() && s.began.After(e.Began):
		default:
			found = s
		}
	}
	return found
}

// asked returns the sentence that began at a time; if there is none, the newest.
func (h *hearing) asked(began time.Time) *sentence {
	for _, s := range slices.Backward(h.sentences) {
		if s.began.Equal(began) {
			return s
		}
	}
	if n := len(h.sentences); n > 0 {
		return h.sentences[n-1]
	}
	return &sentence{told: true}
}
