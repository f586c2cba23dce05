package mask

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchboard/handoff"
)

// TestBegin: a call that the provider carries begins with what its client asked for, and what is ours beside that.
func TestBegin(t *testing.T) {
	t.Parallel()
	tools := []handoff.Tool{{Name: "codex", Description: "Works.", Parameters: json.RawMessage(`{"type":"object"}`)}}
	const ours = `{"type":"function","name":"codex","description":"Works.","parameters":{"type":"object"}}`
	const heard = `"transcription":{"model":"` + TranscriptionModel + `"}`
	for name, c := range map[string]struct{ asked, effort, want string }{
		"nothing": {"", "", `{"type":"realtime","instructions":"Guide.","tools":[` + ours + `],"audio":{"input":{` + heard + `}}}`},
		"what it says of reasoning stands": {`{"type":"realtime","reasoning":{"effort":"high"}}`, "low",
			`{"type":"realtime","reasoning":{"effort":"high"},"instructions":"Guide.","tools":[` + ours + `],"audio":{"input":{` + heard + `}}}`},
		"effort": {"", "low", `{"type":"realtime","reasoning":{"effort":"low"},"instructions":"Guide.","tools":[` + ours + `],"audio":{"input":{` + heard + `}}}`},
		"its own": {`{"type":"realtime","model":"other","instructions":"Be a pirate.","tools":[{"type":"function","name":"weather"}],` +
			`"audio":{"input":{"format":{"type":"audio/pcmu"},"transcription":{"model":"w"}},"output":{"voice":"cedar","format":{"type":"audio/pcmu"}}}}`, "",
			`{"type":"realtime","instructions":"Be a pirate.","tools":[{"type":"function","name":"weather"},` + ours + `],` +
				`"audio":{"input":{"transcription":{"model":"w"}},"output":{"voice":"cedar"}}}`},
		"a forced choice leaves no room for ours": {`{"type":"realtime","tool_choice":"required","tools":[{"type":"function","name":"weather"}]}`, "",
			`{"type":"realtime","instructions":"Guide.","tool_choice":"required","tools":[{"type":"function","name":"weather"}],"audio":{"input":{` + heard + `}}}`},
	} {
		var got, want any
		if err := json.Unmarshal(Begin([]byte(c.asked), tools, handoff.Guide{Whole: "Guide."}, c.effort), &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
