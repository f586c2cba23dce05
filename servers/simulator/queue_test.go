package simulator

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// last is the newest thread of a machine.
func last(w *World) Thread {
	all := w.Threads("bigpc")
	return all[len(all)-1]
}

func (c *client) of(thread string) string { return `{"threadId":"` + thread + `"}` }

// waits waits until the newest thread of a machine is as wanted.
func waits(t *testing.T, w *World, what string, ok func(Thread) bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(last(w)); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: %+v", what, last(w))
		}
	}
}

// TestQueueIsHeldBack: an interrupt holds the queue back until a turn completes; a crash does not lose it.
func TestQueueIsHeldBack(t *testing.T) {
	t.Parallel()
	w := NewWorld(Config{Script: func(p Prompt) []Step {
		if p.Text == "hang" {
			return []Step{Hang{}}
		}
		return []Step{Say{Text: p.Text}}
	}})
	addr, stop := serveUntil(t, w, "bigpc")
	c := connect(t, addr)
	thread := c.start()
	add := func(text string) string {
		t.Helper()
		return field[string](t, c.call("thread/queue/add", c.turn(thread, text)).Result, "queuedSubmission", "id")
	}
	c.call("turn/start", c.turn(thread, "hang"))
	first, second, third := add("one"), add("two"), add("three")
	if got := last(w); got.Queued != 3 || got.Turns != 1 {
		t.Errorf("%+v", got)
	}
	entry := func(id string) string { return `{"threadId":"` + thread + `","queuedSubmissionId":"` + id + `"}` }
	if got := c.refused("thread/queue/start", entry(first)); got != "-32600 a turn is already active" {
		t.Error(got)
	}
	c.call("thread/queue/delete", entry(second))
	if got := c.refused("thread/queue/delete", entry(second)); !strings.Contains(got, "queued submission not found") {
		t.Error(got)
	}
	c.call("turn/interrupt", `{"threadId":"`+thread+`","turnId":""}`)
	add("four") // held back as well
	if got := last(w); got.Running != "" || got.Queued != 3 {
		t.Errorf("after an interrupt: %+v", got)
	}
	c.call("thread/queue/start", entry(third)) // out of turn; its end lets the others go
	waits(t, w, "the queue", func(at Thread) bool { return at.Queued == 0 && at.Running == "" && at.Turns == 4 })

	c.call("turn/start", c.turn(thread, "hang"))
	add("five")
	stop()
	c = connect(t, serve(t, w, "bigpc"))
	if got := last(w); got.Queued != 1 || got.Running != "" {
		t.Errorf("after a crash: %+v", got)
	}
	c.call("thread/resume", c.of(thread))
	waits(t, w, "the queue after a crash", func(at Thread) bool { return at.Queued == 0 && at.Turns == 6 && at.Running == "" })
	var prompts []string
	for _, s := range w.Starts("bigpc") {
		if s.Queued {
			prompts = append(prompts, s.Prompt)
		}
	}
	if got := strings.Join(prompts, " "); got != "three one four five" {
		t.Errorf("queued work began as %q", got)
	}
}

func TestQueueRefusals(t *testing.T) {
	t.Parallel()
	w := scripted(Hang{})
	c := connect(t, serve(t, w, "bigpc"))
	thread := c.start()
	for params, want := range map[string]string{
		c.of(missing): "thread not found: " + missing,
		c.of(thread):  "missing field `clientUserMessageId`",
		`{}`:          "missing field `threadId`",
	} {
		if got := c.refused("thread/queue/add", params); !strings.Contains(got, want) {
			t.Errorf("%s: %s", params, got)
		}
	}
	if got := c.refused("thread/queue/start", c.of(thread)); !strings.Contains(got, "missing field `queuedSubmissionId`") {
		t.Error(got)
	}
	w.SetFaults("bigpc", Faults{NoQueue: true})
	for _, method := range []string{"thread/queue/add", "thread/queue/list"} {
		if got := c.refused(method, c.turn(thread, "x")); !strings.HasPrefix(got, "-32600 Invalid request: unknown variant `"+method+"`") {
			t.Error(got)
		}
	}
}

// TestFork: the copy has the turns of its source under their ids, and nothing of what runs there.
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
	w.SetFaults("bigpc", Faults{InUse: true}) // copies need no hold of their source
	m := c.call("thread/fork", c.of(thread))
	clone := field[string](t, m.Result, "thread", "id")
	if clone == thread || field[string](t, m.Result, "thread", "forkedFromId") != thread || field[string](t, m.Result, "thread", "status", "type") != "idle" {
		t.Errorf("%s", m.Result)
	}
	list := c.call("thread/turns/list", c.of(clone)).Result
	var page struct {
		Data []struct {
			ID, Status  string
			CompletedAt *int64
		}
	}
	if err := json.Unmarshal(list, &page); err != nil || len(page.Data) != 1 || page.Data[0].ID != turn || page.Data[0].Status != "interrupted" || page.Data[0].CompletedAt != nil {
		t.Errorf("%s", list)
	}
	c.call("turn/start", c.turn(clone, "go on"))
	if running := last(w).Running; running == "" || running == turn {
		t.Errorf("in the copy runs %q", running)
	}
}

// TestSnapshotsLie: for a moment a turn is shown as interrupted, and only there.
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

// TestHeldElsewhere: what is not loaded is held by another process; what is loaded goes on.
func TestHeldElsewhere(t *testing.T) {
	t.Parallel()
	w := scripted(Say{Text: "hello"})
	c := connect(t, serve(t, w, "bigpc"))
	thread := c.start()
	c.call("turn/start", c.turn(thread, "go"))
	c.until("turn/completed")
	w.SetFaults("bigpc", Faults{InUse: true})
	c.call("thread/resume", c.of(thread))
	w.Unload("bigpc")
	c.until("thread/closed")
	if got := c.refused("thread/resume", c.of(thread)); got != "-32600 thread "+thread+" already has an active writer" {
		t.Error(got)
	}
}

// TestAnswersThatAreNone: nonsense and errors answer nothing, and rights are not granted by them.
func TestAnswersThatAreNone(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]Step{
		"item/tool/requestUserInput": Input{Queries: []Query{{Text: "Which?", Options: []string{"a"}}, {Text: "Why?", Secret: true}},
			Answered: func(a []string) []Step { return []Step{Say{Text: "<" + strings.Join(a, "|") + ">"}} }},
		"mcpServer/elicitation/request":    Elicit{Tool: "danger", Granted: []Step{Say{Text: "granted"}}, Refused: []Step{Say{Text: "<|>"}}},
		"item/permissions/requestApproval": Permit{Reason: "to save", Network: true, Write: []string{"/tmp"}, Granted: []Step{Say{Text: "granted"}}, Refused: []Step{Say{Text: "<|>"}}},
	} {
		for _, answer := range []string{`{}`, `{"answers":7,"permissions":[]}`, `{"permissions":{"network":{"enabled":true}}}`} {
			c := connect(t, serve(t, scripted(step), "bigpc"))
			c.request("turn/start", c.turn(c.start(), "go"))
			c.result(*c.until(name).ID, answer)
			var end struct {
				Turn struct{ Items []struct{ Text string } }
			}
			if err := json.Unmarshal(c.until("turn/completed").Params, &end); err != nil || len(end.Turn.Items) != 1 || end.Turn.Items[0].Text != "<|>" {
				t.Errorf("%s %s: %+v, %v", name, answer, end, err)
			}
		}
	}
}
