package work

import (
	"encoding/json"
	"slices"

	"switchboard/handoff"
)

// keptRequest is the JSON of a request that waits or is paused: all that the agent is to be told.
type keptRequest struct {
	Input   []keptPart        `json:"input"`
	Context []handoff.Context `json:"context,omitempty"`
	After   handoff.TurnID    `json:"after,omitempty"`
	From    handoff.Target    `json:"from,omitzero"`
	Tree    bool              `json:"worktree,omitempty"`
	Goal    bool              `json:"goal,omitempty"`
}

// A keptPart is one [handoff.Part].
type keptPart struct {
	Text  string `json:"text,omitempty"`
	Image string `json:"image,omitempty"` // its address
}

// encodeRequest returns a request as a [keptRequest].
func encodeRequest(req handoff.Request) string {
	w := keptRequest{Context: req.Context, After: req.After, From: req.From, Tree: req.Worktree, Goal: req.Goal}
	for _, p := range req.Input {
		switch p := p.(type) {
		case handoff.Text:
			w.Input = append(w.Input, keptPart{Text: string(p)})
		case handoff.Image:
			w.Input = append(w.Input, keptPart{Image: p.URL})
		}
	}
	return handoff.Encode(w)
}

// restoreRequest restores a request from what [encodeRequest] returned, or only its prompt if that is "". Context that
// req has already replaces kept context with the same key.
func restoreRequest(req *handoff.Request, kept, prompt string) {
	var w keptRequest
	if kept == "" || json.Unmarshal([]byte(kept), &w) != nil {
		req.Input = handoff.TextInput(prompt)
		return
	}
	now := req.Context
	before := slices.DeleteFunc(w.Context, func(c handoff.Context) bool {
		return slices.ContainsFunc(now, func(other handoff.Context) bool { return other.Key == c.Key })
	})
	req.Input, req.Context, req.After, req.From = nil, slices.Concat(before, now), w.After, w.From
	req.Worktree, req.Goal = w.Tree, w.Goal
	for _, p := range w.Input {
		if p.Image != "" {
			req.Input = append(req.Input, handoff.Image{URL: p.Image})
		} else {
			req.Input = append(req.Input, handoff.Text(p.Text))
		}
	}
}
