package call

import (
	"slices"
	"switchboard/handoff"
	"sync"
	"time"
)

// Bounds of what a call remembers of the caller's words.
const (
	maxWords    = 6    // last utterances, given to agents as context
	maxHeard    = 32   // last utterances, as evidence of what they allowed
	maxWordSize = 2000 // bytes of one
)

// A hearing is what the caller said in a call. Only what the voice reports as theirs is in it: transcripts
// of their speech and text they typed, never what was put into the conversation by somebody else.
type hearing struct {
	mu      sync.Mutex
	list    []handoff.Heard // Guarded by mu: oldest first, at most maxHeard
	spoke   time.Time       // Guarded by mu: the newest beginning of anything they said
	changed chan struct{}   // Guarded by mu: closed at the next utterance
}

func newHearing() *hearing { return &hearing{changed: make(chan struct{})} }

// add takes a finalized utterance.
func (h *hearing) add(e handoff.Heard, now time.Time) {
	if e.Began.IsZero() {
		e.Began = now
	}
	h.began(e.Began)
	e.Text = handoff.Clip(e.Text, maxWordSize)
	h.mu.Lock()
	defer h.mu.Unlock()
	if e.Text != "" {
		h.list = append(h.list, e)
		if n := len(h.list) - maxHeard; n > 0 {
			h.list = slices.Clone(h.list[n:])
		}
	}
	close(h.changed)
	h.changed = make(chan struct{})
}

// began notes that the caller began to speak.
func (h *hearing) began(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at.After(h.spoke) {
		h.spoke = at
	}
}

// spokeSince tells whether the caller began to say anything after a time.
func (h *hearing) spokeSince(at time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.spoke.After(at)
}

// last returns the last words, oldest first.
func (h *hearing) last() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var words []string
	for _, e := range h.list[max(len(h.list)-maxWords, 0):] {
		words = append(words, e.Text)
	}
	return words
}

// since returns the utterances that began after a time, oldest first, and what is closed at the next one.
// Waiting tells that the caller began to say something of which the words have not come.
func (h *hearing) since(at time.Time) (list []handoff.Heard, waiting bool, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	newest := time.Time{}
	for _, e := range h.list {
		if e.Began.After(at) {
			list = append(list, e)
		}
		newest = e.Began
	}
	return list, h.spoke.After(newest) && h.spoke.After(at), h.changed
}
