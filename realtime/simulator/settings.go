package simulator

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// settings are the session object as clients see it, and what the model reads of it. They are immutable: patch returns
// new ones.
type settings struct {
	object map[string]any // without id and expires_at
	view   settingsView
}

type settingsView struct {
	Instructions string   `json:"instructions"`
	Modalities   []string `json:"output_modalities"`
	Tools        []tool   `json:"tools"`
	ToolChoice   any      `json:"tool_choice"`
	Audio        struct {
		Input struct {
			Format        format         `json:"format"`
			Transcription *struct{}      `json:"transcription"`
			TurnDetection *turnDetection `json:"turn_detection"`
		} `json:"input"`
		Output audioOutput `json:"output"`
	} `json:"audio"`
}

type audioOutput struct {
	Format format  `json:"format"`
	Voice  any     `json:"voice"`
	Speed  float64 `json:"speed"`
}

type tool struct {
	Type string `json:"type"`
	Name string `json:"name"`
}

type turnDetection struct {
	Type      string  `json:"type"`
	Threshold float64 `json:"threshold"`
	Prefix    int     `json:"prefix_padding_ms"`
	Silence   int     `json:"silence_duration_ms"`
	Eagerness string  `json:"eagerness"`
	Create    bool    `json:"create_response"`
	Interrupt bool    `json:"interrupt_response"`
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

// defaults returns a new default session object of the GA protocol.
func defaults() map[string]any {
	return map[string]any{
		"type": "realtime", "object": "realtime.session", "model": Name,
		"instructions": "", "output_modalities": []any{"audio"}, "tools": []any{}, "tool_choice": "auto",
		"max_output_tokens": "inf", "truncation": "auto", "prompt": nil, "tracing": nil, "include": nil,
		"audio": map[string]any{
			"input": map[string]any{
				"format": pcmFormat(), "transcription": nil, "noise_reduction": nil,
				"turn_detection": detectionDefaults("server_vad"),
			},
			"output": map[string]any{"format": pcmFormat(), "voice": "marin", "speed": 1.0},
		},
	}
}

func pcmFormat() format { return format{Type: formatPCM, Rate: 24000} }

func detectionDefaults(kind string) map[string]any {
	d := map[string]any{"type": kind, "create_response": true, "interrupt_response": true}
	if kind == "semantic_vad" {
		d["eagerness"] = "auto"
		return d
	}
	d["threshold"], d["prefix_padding_ms"], d["silence_duration_ms"], d["idle_timeout_ms"] = 0.5, 300, 500, nil
	return d
}

// newSettings returns the defaults of a new connection.
func newSettings() settings {
	set, _ := read(defaults()) // tests show that they are valid
	return set
}

// patch applies a session.update: its fields replace those of the session, audio is merged field by field, and null
// means the default (for turn_detection, transcription, noise_reduction and tracing: none). The model's name and ids
// are never changed. spoke: sound of the assistant was sent, so the voice cannot be changed.
func (s settings) patch(update map[string]any, spoke bool) (settings, *fault) {
	switch kind := update["type"]; kind {
	case nil:
		return s, missing("session.type")
	case "realtime":
	default:
		return s, invalid("session.type", fmt.Sprint(kind), "realtime")
	}
	object := maps.Clone(s.object)
	for _, name := range slices.Sorted(maps.Keys(update)) {
		value := update[name]
		switch name {
		case "type", "id", "object", "expires_at", "model":
		case "audio":
			audio, f := patchAudio(object["audio"], value)
			if f != nil {
				return s, f
			}
			object["audio"] = audio
		case "instructions", "output_modalities", "tools", "tool_choice", "max_output_tokens", "truncation",
			"prompt", "tracing", "include", "parallel_tool_calls", "reasoning":
			if value == nil {
				value = defaults()[name]
			}
			object[name] = value
		default:
			return s, unknown("session." + name)
		}
	}
	next, f := read(object)
	if f == nil && spoke && fmt.Sprint(next.view.Audio.Output.Voice) != fmt.Sprint(s.view.Audio.Output.Voice) {
		f = refusal("cannot_update_voice", "session.audio.output.voice",
			"Cannot update a conversation's voice if assistant audio is present.")
	}
	if f != nil {
		return s, f
	}
	return next, nil
}

func patchAudio(old, update any) (any, *fault) {
	if update == nil {
		return old, nil
	}
	sections, ok := update.(map[string]any)
	if !ok {
		return nil, wrongType("session.audio", "object")
	}
	was, _ := old.(map[string]any)
	audio := maps.Clone(was)
	for _, side := range slices.Sorted(maps.Keys(sections)) {
		if side != "input" && side != "output" {
			return nil, unknown("session.audio." + side)
		}
		if sections[side] == nil {
			continue
		}
		patch, ok := sections[side].(map[string]any)
		if !ok {
			return nil, wrongType("session.audio."+side, "object")
		}
		was, _ := audio[side].(map[string]any)
		merged, f := patchSide(was, patch, "session.audio."+side)
		if f != nil {
			return nil, f
		}
		audio[side] = merged
	}
	return audio, nil
}

func patchSide(was, patch map[string]any, path string) (map[string]any, *fault) {
	side := maps.Clone(was)
	for _, name := range slices.Sorted(maps.Keys(patch)) {
		value := patch[name]
		if _, known := was[name]; !known {
			return nil, unknown(path + "." + name)
		}
		var f *fault
		switch {
		case name == "format":
			value, f = fullFormat(value, path+".format")
		case name == "turn_detection" && value != nil:
			value, f = fullDetection(value, path+".turn_detection")
		case name == "voice" && value == nil:
			value = "marin"
		case name == "speed" && value == nil:
			value = 1.0
		}
		if f != nil {
			return nil, f
		}
		side[name] = value
	}
	return side, nil
}

// fullFormat checks a format and returns it as clients see it.
func fullFormat(value any, path string) (format, *fault) {
	if value == nil {
		return pcmFormat(), nil
	}
	m, ok := value.(map[string]any)
	if !ok {
		return format{}, wrongType(path, "object")
	}
	switch kind := m["type"]; kind {
	case formatPCM:
		if rate := m["rate"]; rate != nil && fmt.Sprint(rate) != "24000" {
			return format{}, invalid(path+".rate", fmt.Sprint(rate), "24000")
		}
		return pcmFormat(), nil
	case formatPCMU, formatPCMA:
		return format{Type: fmt.Sprint(kind)}, nil
	case nil:
		return format{}, missing(path + ".type")
	default:
		return format{}, invalid(path+".type", fmt.Sprint(kind), formatPCM, formatPCMU, formatPCMA)
	}
}

func fullDetection(value any, path string) (any, *fault) {
	m, ok := value.(map[string]any)
	if !ok {
		return nil, wrongType(path, "object")
	}
	kind := m["type"]
	if kind == nil {
		return nil, missing(path + ".type")
	}
	if kind != "server_vad" && kind != "semantic_vad" {
		return nil, invalid(path+".type", fmt.Sprint(kind), "server_vad", "semantic_vad")
	}
	full := detectionDefaults(fmt.Sprint(kind))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if _, known := full[name]; !known {
			return nil, unknown(path + "." + name)
		}
		if m[name] != nil {
			full[name] = m[name]
		}
	}
	return full, nil
}

// read checks a session object and reads what the model needs of it.
func read(object map[string]any) (settings, *fault) {
	raw, err := json.Marshal(object)
	if err != nil {
		return settings{}, refusal("invalid_json", "", "The session is not valid JSON.")
	}
	view, f := decode[settingsView](raw, "session")
	if f != nil {
		return settings{}, f
	}
	if f := checkModalities(view.Modalities, "session"); f != nil {
		return settings{}, f
	}
	if f := checkTools(view.Tools, "session"); f != nil {
		return settings{}, f
	}
	if s := view.Audio.Output.Speed; s < 0.25 || s > 1.5 {
		return settings{}, invalid("session.audio.output.speed", fmt.Sprint(s))
	}
	if t := view.Audio.Input.TurnDetection; t != nil && (t.Threshold < 0 || t.Threshold > 1 || t.Silence < 0) {
		return settings{}, invalid("session.audio.input.turn_detection", fmt.Sprint(t.Threshold))
	}
	return settings{object: object, view: view}, nil
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
		case t.Type != "function" && t.Type != "mcp":
			return invalid(at+".type", t.Type, "function", "mcp")
		case t.Type == "function" && t.Name == "":
			return missing(at + ".name")
		}
	}
	return nil
}

// callable returns the names of the functions that a response may call, and the choice: auto, none, required or a name.
func callable(tools []tool, choice any) (names []string, how string) {
	how = "auto"
	switch c := choice.(type) {
	case string:
		how = c
	case map[string]any:
		if name, ok := c["name"].(string); ok && c["type"] == "function" {
			how = name
		}
	}
	if how == "none" {
		return nil, how
	}
	for _, t := range tools {
		if t.Type == "function" {
			names = append(names, t.Name)
		}
	}
	return names, how
}
