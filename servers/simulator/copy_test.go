package simulator

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// last returns the newest thread of a machine.
func last(w *World) Thread {
	all := w.Threads("bigpc")
	return all[len(all)-1]
}

func (c *client) of(thread string) string { return `{"threadId":"` + thread + `"}` }

// TestFork: the copy has the turns of its source under the same ids, and nothing of its running turn.
func TestFork(t *testing.T) {
	t.Parallel()
	w := scripted(Say{Text: "half"}, Hang{})
	c := connect(t, serve(t, w, "bigpc"))
	if got := c.refused("thread/fork", c.of(missing)); got != "-32600 no rollout found for thread id "+missing {
		t.Error(got)
	}
	thread := c.start()
	if got := c.refused("thread/fork", c.of(thread)); got != "-32600 no rollout found for thread id "+thread {
		t.Error(got)
	}
	turn := field[string](t, c.call("turn/start", c.turn(thread, "go")).Result, "turn", "id")
	c.until("item/agentMessage/delta")
	w.SetFaults("bigpc", Faults{InUse: true}) // a source in use by another process can be copied
	m := c.call("thread/fork", c.of(thread))
	clone := field[string](t, m.Result, "thread", "id")
	if clone == thread || field[string](t, m.Result, "thread", "forkedFromId") != thread ||
		field[string](t, m.Result, "thread", "status", "type") != "idle" {
		t.Errorf("%s", m.Result)
	}
	list := c.call("thread/turns/list", c.of(clone)).Result
	var page struct {
		Data []struct {
			ID, Status  string
			CompletedAt *int64
		}
	}
	if err := json.Unmarshal(list, &page); err != nil || len(page.Data) != 1 || page.Data[0].ID != turn ||
		page.Data[0].Status != "interrupted" || page.Data[0].CompletedAt != nil {
		t.Errorf("%s", list)
	}
	c.call("turn/start", c.turn(clone, "go on"))
	if running := last(w).Running; running == "" || running == turn {
		t.Errorf("in the copy runs %q", running)
	}
}

// TestSnapshotsLie: for a moment a turn is shown as interrupted, in the lists alone.
func TestSnapshotsLie(t *testing.T) {
	t.Parallel()
	w := scripted(Hang{})
	c := connect(t, serve(t, w, "bigpc"))
	thread := c.start()
	c.call("turn/start", c.turn(thread, "go"))
	status := func() string {
		t.Helper()
		var page struct{ Data []struct{ Status string } }
		if err := json.Unmarshal(c.call("thread/turns/list", c.of(thread)).Result, &page); err != nil || len(page.Data) != 1 {
			t.Fatalf("%+v, %v", page, err)
		}
		return page.Data[0].Status
	}
	w.SetFaults("bigpc", Faults{FalseInterrupt: time.Hour})
	if got := status(); got != "interrupted" {
		t.Error(got)
	}
	w.SetFaults("bigpc", Faults{})
	if got := status(); got != "inProgress" {
		t.Error(got)
	}
}

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
