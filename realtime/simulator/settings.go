package simulator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tidwall/gjson"
)

// settings are the session object as clients see it. They are immutable: patch returns new ones.
type settings struct {
	Type         string   `json:"type"`
	Object       string   `json:"object"`
	ID           string   `json:"id"`
	Expires      int64    `json:"expires_at"` // in Unix seconds
	Model        string   `json:"model"`
	Instructions string   `json:"instructions"`
	Modalities   []string `json:"output_modalities"`
	Tools        []tool   `json:"tools"`
	ToolChoice   any      `json:"tool_choice"`
	MaxTokens    any      `json:"max_output_tokens"`
	Truncation   any      `json:"truncation"`
	Prompt       any      `json:"prompt"`
	Tracing      any      `json:"tracing"`
	Include      any      `json:"include"`
	Parallel     any      `json:"parallel_tool_calls,omitempty"`
	Reasoning    any      `json:"reasoning,omitempty"`
	Audio        struct {
		Input struct {
			Format         format         `json:"format"`
			NoiseReduction any            `json:"noise_reduction"`
			Transcription  any            `json:"transcription"`
			TurnDetection  *turnDetection `json:"turn_detection"`
		} `json:"input"`
		Output struct {
			Format format  `json:"format"`
			Speed  float64 `json:"speed"`
			Voice  any     `json:"voice"`
		} `json:"output"`
	} `json:"audio"`
}

// newSettings returns the defaults of the GA protocol.
func newSettings() settings {
	s := settings{Type: "realtime", Object: "realtime.session", Model: Name, Modalities: []string{"audio"},
		Tools: []tool{}, ToolChoice: "auto", MaxTokens: "inf", Truncation: "auto"}
	s.Audio.Input.Format, s.Audio.Output.Format = pcmFormat, pcmFormat
	s.Audio.Input.TurnDetection = &turnDetection{Type: "server_vad", Create: true, Interrupt: true, Threshold: 0.5,
		Prefix: 300, Silence: 500}
	s.Audio.Output.Speed, s.Audio.Output.Voice = 1, "marin"
	return s
}

// patch applies a session.update: objects are merged, all else is replaced, and null means none or the default. The
// model's name and ids are never changed. spoke: sound of the assistant was sent, so the voice cannot be changed.
func (s settings) patch(update []byte, spoke bool) (settings, *fault) {
	next := settings{}
	if raw, err := json.Marshal(s); err != nil || json.Unmarshal(raw, &next) != nil {
		return s, refusal("invalid_json", "", "The session is not valid JSON.")
	}
	if update := gjson.ParseBytes(update); update.IsObject() { // before the fields of other kinds of sessions
		switch kind := update.Get("type").String(); kind {
		case "realtime":
		case "":
			return s, missing("session.type")
		default:
			return s, invalid("session.type", kind, "realtime")
		}
	}
	if f := decodeStrictly(update, &next, "session"); f != nil {
		return s, f
	}
	next.Object, next.ID, next.Expires, next.Model = s.Object, s.ID, s.Expires, s.Model
	if next.Tools == nil {
		next.Tools = []tool{}
	}
	if next.Audio.Output.Voice == nil {
		next.Audio.Output.Voice = "marin"
	}
	switch voice := next.Audio.Output.Voice; {
	case next.Audio.Output.Speed < 0.25 || next.Audio.Output.Speed > 1.5:
		return s, invalid("session.audio.output.speed", fmt.Sprint(next.Audio.Output.Speed))
	case spoke && fmt.Sprint(voice) != fmt.Sprint(s.Audio.Output.Voice):
		return s, refusal("cannot_update_voice", "session.audio.output.voice",
			"Cannot update a conversation's voice if assistant audio is present.")
	}
	if f := checkModalities(next.Modalities, "session"); f != nil {
		return s, f
	}
	return next, checkTools(next.Tools, "session")
}

// A tool is one of a session or a response, as the client sent it.
type tool struct {
	json.RawMessage
	kind, name string
}

// UnmarshalJSON reads what the model needs of it.
func (t *tool) UnmarshalJSON(raw []byte) error {
	t.RawMessage = bytes.Clone(raw)
	t.kind, t.name = gjson.GetBytes(raw, "type").String(), gjson.GetBytes(raw, "name").String()
	return nil
}

// A turnDetection says how the end of speech is noticed, and what follows.
type turnDetection struct {
	Create      bool     `json:"create_response"`
	Eagerness   string   `json:"eagerness,omitempty"`
	IdleTimeout *float64 `json:"idle_timeout_ms,omitempty"`
	Interrupt   bool     `json:"interrupt_response"`
	Prefix      int      `json:"prefix_padding_ms,omitempty"`
	Silence     int      `json:"silence_duration_ms,omitempty"`
	Threshold   float64  `json:"threshold,omitempty"`
	Type        string   `json:"type"`
}

// UnmarshalJSON begins with the defaults of the type: settings of turn detection are replaced, never merged.
func (t *turnDetection) UnmarshalJSON(raw []byte) error {
	const path = "session.audio.input.turn_detection"
	type plain turnDetection
	next := plain{Create: true, Interrupt: true}
	switch kind := gjson.GetBytes(raw, "type"); kind.String() {
	case "server_vad":
		next.Threshold, next.Prefix, next.Silence = 0.5, 300, 500
	case "semantic_vad":
		next.Eagerness = "auto"
	case "":
		return missing(path + ".type")
	default:
		return invalid(path+".type", kind.String(), "server_vad", "semantic_vad")
	}
	if f := decodeStrictly(raw, &next, path); f != nil {
		return f
	}
	if next.Threshold < 0 || next.Threshold > 1 || next.Silence < 0 {
		return invalid(path, fmt.Sprint(next.Threshold))
	}
	*t = turnDetection(next)
	return nil
}

// vad returns the settings of the detector. Semantic detection, which would have to understand the words, is simulated
// by energy and another length of silence.
func (t turnDetection) vad() vadSettings {
	if t.Type == "semantic_vad" {
		silence := map[string]time.Duration{"low": 1500 * time.Millisecond, "high": 400 * time.Millisecond}[t.Eagerness]
		if silence == 0 {
			silence = 800 * time.Millisecond
		}
		return vadSettings{level: quietRMS / 2, silence: silence}
	}
	return vadSettings{level: max(t.Threshold, 0.1) * quietRMS, silence: time.Duration(t.Silence) * time.Millisecond}
}

// UnmarshalJSON reads a format of sound.
func (f *format) UnmarshalJSON(raw []byte) error {
	type plain format
	next := plain{}
	if err := json.Unmarshal(raw, &next); err != nil {
		return err
	}
	switch {
	case next.Type == formatPCM && (next.Rate == 0 || next.Rate == pcmFormat.Rate):
		*f = pcmFormat
	case next.Type == formatPCM:
		return invalid("format.rate", fmt.Sprint(next.Rate), "24000")
	case next.Type == formatPCMU || next.Type == formatPCMA:
		*f = format{Type: next.Type}
	default:
		return invalid("format.type", next.Type, formatPCM, formatPCMU, formatPCMA)
	}
	return nil
}

func checkModalities(m []string, path string) *fault {
	if len(m) != 1 || m[0] != "audio" && m[0] != "text" {
		return invalid(path+".output_modalities", fmt.Sprint(m), "['text']", "['audio']")
	}
	return nil
}

func checkTools(tools []tool, path string) *fault {
	for i, t := range tools {
		at := fmt.Sprintf("%s.tools[%d]", path, i)
		switch {
		case t.kind != "function" && t.kind != "mcp":
			return invalid(at+".type", t.kind, "function", "mcp")
		case t.kind == "function" && t.name == "":
			return missing(at + ".name")
		}
	}
	return nil
}

// callable returns the names of the functions that a response may call. A choice of one of them is not obeyed.
func callable(tools []tool, choice any) (names []string) {
	for _, t := range tools {
		if t.kind == "function" && choice != "none" {
			names = append(names, t.name)
		}
	}
	return names
}
