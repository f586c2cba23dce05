package codex

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"switchboard/handoff"
)

// TestReview: a decision of Codex's own reviewer, for which nobody was asked, is reported as an item, once. A review of
// an unknown form is ignored.
func TestReview(t *testing.T) {
	for name, c := range map[string]struct {
		review, action string
		want           string
		failed         bool
	}{
		"allowed": {`{"status":"approved","riskLevel":"low","userAuthorization":"high","rationale":"It was asked for."}`,
			`{"type":"command","source":"shell","command":"npm test","cwd":"/src"}`,
			"Codex's own reviewer allowed this: npm test (risk: low)\nIt was asked for.", false},
		"refused": {`{"status":"denied","riskLevel":null,"rationale":null}`,
			`{"type":"networkAccess","target":"https://evil.example:443","host":"evil.example","port":443}`,
			"Codex's own reviewer refused this: https://evil.example:443", true},
		"no time": {`{"status":"timedOut"}`, `{"type":"requestPermissions"}`,
			"Codex's own reviewer came to no decision on this: requestPermissions", true},
		"another shape": {`{"status":7}`, `[]`, "", false},
	} {
		t.Run(name, bubble(func(t *testing.T) {
			f, _, r := running(t)
			f.turnStarted(turn1)
			for range 2 {
				f.notify(noteReviewed, fmt.Sprintf(`{"threadId":%q,"turnId":%q,"reviewId":"r1","review":%s,"action":%s}`,
					thread1, turn1, c.review, c.action))
			}
			synctest.Wait()
			r.mu.Lock()
			defer r.mu.Unlock()
			var items []handoff.Item
			for _, u := range r.got {
				if done, ok := u.(handoff.ItemDone); ok {
					items = append(items, done.Item)
				}
			}
			switch {
			case c.want == "" && len(items) == 0:
			case len(items) != 1 || items[0].Text != c.want || items[0].Failed != c.failed || strings.TrimSpace(items[0].ID) == "":
				t.Errorf("shown %+v, want %q", items, c.want)
			}
			f.quiet()
		}))
	}
}
