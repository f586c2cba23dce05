package web

import (
	"context"
	"net/http"
	"slices"

	"switchboard/handoff"
)

// Front is the voice front. The request it gets has passed every check; the body of a call is in memory.
type Front interface {
	ServeWebSocket(w http.ResponseWriter, r *http.Request, g handoff.Grant)
	ServeCalls(w http.ResponseWriter, r *http.Request, g handoff.Grant)
	Hangup(g handoff.Grant, id string) error
}

// Calls lists the open calls of a caller, oldest first, and attaches to a call of the voice model's server. Say adds
// text that was typed on the page, as an item with an id, to a call whose sound goes directly to the voice model's
// server.
type Calls interface {
	Calls(g handoff.Grant) []handoff.CallInfo
	ServeAttach(w http.ResponseWriter, r *http.Request, g handoff.Grant, id string)
	Say(ctx context.Context, g handoff.Grant, id, item, text string) error
}

// Levels has how much each caller hears of running work.
type Levels interface {
	Level(ctx context.Context, c handoff.Caller) handoff.SpeechLevel
	SetLevel(ctx context.Context, c handoff.Caller, level handoff.SpeechLevel) error
}

// A Chip is a sentence that the page offers to a newcomer.
type Chip struct {
	Text string `json:"text"`           // sent when the chip is pressed
	Hint string `json:"hint,omitempty"` // what the sentence demonstrates, in a few words
}

// VoiceInfo is what the page shows about the voice model.
type VoiceInfo struct {
	Simulated bool   `json:"simulated"`
	Model     string `json:"model"`
	Host      string `json:"host,omitempty"` // of its server
	Chips     []Chip `json:"chips"`

	Language string `json:"language,omitempty"` // code of the language that the voice speaks; "": the caller's

	Prices *Prices `json:"prices,omitempty"` // nil: they are unknown, or the model costs nothing
}

// Prices are those of a voice model, in US dollars for a million tokens. The cached ones are for input that it had
// before.
type Prices struct {
	TextIn      float64 `json:"text_in"`
	TextCached  float64 `json:"text_cached"`
	TextOut     float64 `json:"text_out"`
	AudioIn     float64 `json:"audio_in"`
	AudioCached float64 `json:"audio_cached"`
	AudioOut    float64 `json:"audio_out"`
	ImageIn     float64 `json:"image_in"`
	ImageCached float64 `json:"image_cached"`
}

// VoiceFront has what takes part in calls.
type VoiceFront struct {
	Front  Front
	Calls  Calls
	Levels Levels
	Voice  VoiceInfo
}

// calls begins, joins and ends calls, and sets how much callers hear in them.
type calls struct{ VoiceFront }

func (c calls) realtime(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	c.Front.ServeWebSocket(w, r, g)
	return nil
}

func (c calls) create(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	c.Front.ServeCalls(w, r, g)
	return nil
}

func (c calls) attach(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	var body struct {
		CallID string `json:"call_id"`
	}
	if err := decode(r.Body, &body); err != nil {
		return err
	}
	c.Calls.ServeAttach(w, r, g, body.CallID)
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
	return done(w, c.Calls.Say(r.Context(), g, r.PathValue("id"), body.ID, body.Text))
}

func (c calls) list(w http.ResponseWriter, _ *http.Request, g handoff.Grant) error {
	return writeJSON(w, http.StatusOK, listOf(c.Calls.Calls(g)))
}

func (c calls) hangup(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	return done(w, c.Front.Hangup(g, r.PathValue("id")))
}

// levelInfo is how much callers hear of their work.
type levelInfo struct {
	Level handoff.SpeechLevel `json:"level"`
}

func (c calls) updates(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	return writeJSON(w, http.StatusOK, levelInfo{c.Levels.Level(r.Context(), g.Caller)})
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
	return done(w, c.Levels.SetLevel(r.Context(), g.Caller, body.Level))
}
