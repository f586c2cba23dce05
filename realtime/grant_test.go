package realtime

import (
	"testing"
	"testing/synctest"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
)

// TestGrantedTools: the voice model gets the tools that the grant has, and our instructions only where it
// says so.
func TestGrantedTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStageOf(t, handoff.Grant{Caller: someone.Caller, Tools: []string{"status", "codex"}})
		s.fromModel(freshSession)
		up := s.wantSent(s.model, "session.update session.update")
		if got := gjson.Get(up[0], "session.tools.#.name").String(); got != `["codex","status"]` {
			t.Errorf("tools %s", got)
		}
		if gjson.Get(up[0], "session.instructions").Exists() {
			t.Error("our instructions were given")
		}
		s.close()
	})
}
