package simulator

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestAnswersThatAreNone: invalid answers and errors count as no answer, and grant nothing.
func TestAnswersThatAreNone(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]Step{
		"item/tool/requestUserInput": Input{Queries: []Query{{Text: "Which?", Options: []string{"a"}},
			{Text: "Why?", Secret: true}},
			Answered: func(a []string) []Step { return []Step{Say{Text: "<" + strings.Join(a, "|") + ">"}} }},
		"mcpServer/elicitation/request": Elicit{Tool: "danger", Granted: []Step{Say{Text: "granted"}},
			Refused: []Step{Say{Text: "<|>"}}},
		"item/permissions/requestApproval": Permit{Reason: "to save", Network: true, Write: []string{"/tmp"},
			Granted: []Step{Say{Text: "granted"}}, Refused: []Step{Say{Text: "<|>"}}},
	} {
		for _, answer := range []string{`{}`, `{"answers":7,"permissions":[]}`,
			`{"permissions":{"network":{"enabled":true}}}`} {
			c := connect(t, serve(t, scripted(step), "bigpc"))
			c.request("turn/start", c.turn(c.start(), "go"))
			c.result(*c.until(name).ID, answer)
			var end struct {
				Turn struct{ Items []struct{ Text string } }
			}
			if err := json.Unmarshal(c.until("turn/completed").Params, &end); err != nil || len(end.Turn.Items) != 1 ||
				end.Turn.Items[0].Text != "<|>" {
				t.Errorf("%s %s: %+v, %v", name, answer, end, err)
			}
		}
	}
}
