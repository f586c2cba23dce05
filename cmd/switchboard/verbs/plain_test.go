package verbs

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

// TestJSONSteersNothing: JSON leaves C1 controls, DEL and bidi marks as they are, and a terminal obeys them: they are
// escaped, and mean the same.
func TestJSONSteersNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const wild = "\u009b2J\u202e\u007f\u2028"
		event := strings.Replace(ended, "Done.", wild, 1)
		questions := `{"items":[{"id":"q","label":"q1","text":"` + wild + `"}]}`
		f := &far{t: t, paths: map[string][]http.HandlerFunc{
			"GET " + work + "/events": {says(200, event)},
			"GET /fleet/questions":    {says(200, questions)},
			"GET /fleet/servers":      {says(200, questions)},
		}}
		for name, verb := range map[string]func(*Terminal) error{
			"handoff": func(tm *Terminal) error { _, err := tm.follow(t.Context(), "r1"); return err },
			"answer":  func(tm *Terminal) error { return tm.answer(t.Context(), nil) },
			"servers": func(tm *Terminal) error { return tm.servers(t.Context()) },
		} {
			var out, errs bytes.Buffer
			tm := f.terminal(&out, &errs)
			tm.JSON = true
			err := verb(tm)
			if strings.ContainsFunc(strings.TrimSpace(out.String()), steers) {
				t.Errorf("%s: %q", name, out.String())
			}
			was, _ := json.Marshal(wild)
			var got any
			again := json.Unmarshal(out.Bytes(), &got)
			back, _ := json.Marshal(got)
			if err != nil || again != nil || !bytes.Contains(back, bytes.Trim(was, `"`)) {
				t.Errorf("%s: %v %v %s", name, err, again, back)
			}
		}
	})
}
