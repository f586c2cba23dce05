package web

import (
	"net/http"
	"slices"

	"switchboard/handoff"
)

// calls begins, joins and ends calls, and sets how much callers hear in them.
type calls struct {
	front  Front  // Set once
	live   Calls  // Set once
	levels Levels // Set once
}

func (c calls) realtime(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	c.front.ServeWebSocket(w, r, g)
	return nil
}

func (c calls) create(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	c.front.ServeCalls(w, r, g)
	return nil
}

func (c calls) attach(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	var body struct {
		CallID string `json:"call_id"`
	}
	if err := decode(r.Body, &body); err != nil {
		return err
	}
	c.live.ServeAttach(w, r, g, body.CallID)
	return nil
}

// say takes text that was typed in a call whose sound goes directly to the voice model's server.
func (c calls) say(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	var body struct {
		ID   string `json:"id"`
		Text string `json:"text"`
	}
	if err := decode(r.Body, &body); err != nil {
		return err
	}
	return done(w, c.live.Say(r.Context(), g, r.PathValue("id"), body.ID, body.Text))
}

func (c calls) list(w http.ResponseWriter, _ *http.Request, g handoff.Grant) error {
	return writeJSON(w, http.StatusOK, listOf(c.live.Calls(g)))
}

func (c calls) hangup(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	return done(w, c.front.Hangup(g, r.PathValue("id")))
}

// levelInfo is how much callers hear of their work.
type levelInfo struct {
	Level handoff.SpeechLevel `json:"level"`
}

func (c calls) updates(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	return writeJSON(w, http.StatusOK, levelInfo{c.levels.Level(r.Context(), g.Caller)})
}

func (c calls) setUpdates(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	var body levelInfo
	if err := decode(r.Body, &body); err != nil {
		return err
	}
	if !slices.Contains(
		[]handoff.SpeechLevel{handoff.LevelQuiet, handoff.LevelMilestones, handoff.LevelChatty},
		body.Level,
	) {
		return handoff.Fault(handoff.CodeMalformed, "level is quiet, milestones or chatty", "")
	}
	return done(w, c.levels.SetLevel(r.Context(), g.Caller, body.Level))
}
