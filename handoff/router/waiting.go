package router

import (
	"encoding/json"
	"fmt"
	"slices"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// maxWaiting bounds the requests of a caller that wait or are paused, in bytes: pictures may be in them. What comes on
// top is refused.
const maxWaiting = 32 << 20

// waitingWords is what is kept of a request whose words wait or are paused: all that the agent is to be told.
type waitingWords struct {
	Input   []waitingPart     `json:"input"`
	Context []handoff.Context `json:"context,omitempty"`
	After   handoff.TurnID    `json:"after,omitempty"`
	From    handoff.Target    `json:"from,omitzero"`
}

// A waitingPart is one [handoff.Part].
type waitingPart struct {
	Text  string `json:"text,omitempty"`
	Image string `json:"image,omitempty"` // its address
}

// waitingOf writes a request down.
func waitingOf(req handoff.Request) string {
	w := waitingWords{Context: req.Context, After: req.After, From: req.From}
	for _, p := range req.Input {
		switch p := p.(type) {
		case handoff.Text:
			w.Input = append(w.Input, waitingPart{Text: string(p)})
		case handoff.Image:
			w.Input = append(w.Input, waitingPart{Image: p.URL})
		}
	}
	return handoff.Encode(w)
}

// restoreWords gives a request its words back, or only those of the prompt where no more was kept. What is told
// beside them now comes in the place of what was told under the same name then.
func restoreWords(req *handoff.Request, kept, prompt string) {
	var w waitingWords
	if kept == "" || json.Unmarshal([]byte(kept), &w) != nil {
		req.Input = handoff.TextInput(prompt)
		return
	}
	now := req.Context
	before := slices.DeleteFunc(w.Context, func(c handoff.Context) bool {
		return slices.ContainsFunc(now, func(other handoff.Context) bool { return other.Key == c.Key })
	})
	req.Input, req.Context, req.After, req.From = nil, slices.Concat(before, now), w.After, w.From
	for _, p := range w.Input {
		if p.Image != "" {
			req.Input = append(req.Input, handoff.Image{URL: p.Image})
		} else {
			req.Input = append(req.Input, handoff.Text(p.Text))
		}
	}
}

// wait keeps the whole request of a record as long as it waits or is paused; "" lets go of it. An error means that
// there is no room for it.
func (g *registry) wait(id, whole string) *handoff.Error {
	g.mu.Lock()
	defer g.mu.Unlock()
	sum := len(whole)
	for _, rec := range g.records {
		if rec.ID != id {
			sum += len(rec.waiting)
		}
	}
	rec := g.findLocked(id)
	switch {
	case len(whole) > ledger.MaxRequest:
		return tooMuchWaits("one request that waits", ledger.MaxRequest)
	case whole != "" && sum > maxWaiting:
		return tooMuchWaits("all that waits", maxWaiting)
	case rec != nil:
		rec.waiting = whole
	}
	return nil
}

func tooMuchWaits(what string, most int) *handoff.Error {
	what = fmt.Sprintf("%s has at most %d megabytes, pictures included", what, most>>20)
	return handoff.Fault(handoff.CodeTooLarge, what, "")
}
