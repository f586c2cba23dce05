package mask

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// Begin returns the session with which a call of the provider begins that we will join. It is what the client asked
// for, a raw session or nil, with our tools. Where that says nothing of them, it has our instructions, our effort of
// reasoning ("": the model's own) and transcription of the caller. Formats of sound are left out: SDP agrees on them.
func Begin(asked []byte, tools []handoff.Tool, guide handoff.Guide, effort string) []byte {
	s := session{additions: additions{tools: tools, guide: guide.Whole, added: guide.Added}, created: true}
	update := events.Encode(events.Object{"type": events.TypeSessionUpdate, "session": json.RawMessage(`{"type":"realtime"}`)})
	if len(asked) > 0 {
		update = events.Set(update, "session", string(asked))
	}
	for path, none := range map[string]string{pathTools: "[]", "session.audio": "{}"} {
		if !gjson.GetBytes(update, path).Exists() {
			update = events.Set(update, path, none)
		}
	}
	for _, path := range []string{"session.audio.input.format", "session.audio.output.format"} {
		update = events.Remove(update, path)
	}
	update = s.change(update, "")
	if !s.now.instructed && s.guide != "" {
		update = events.Set(update, pathInstructions, events.Quote(s.instructions(s.now.ours)))
	}
	if effort != "" && !gjson.GetBytes(update, "session.reasoning").Exists() {
		update = events.Set(update, "session.reasoning", string(events.Encode(events.Object{"effort": effort})))
	}
	return []byte(gjson.GetBytes(update, "session").Raw)
}
