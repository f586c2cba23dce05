package simulator

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// recorded returns one turn of a recorded conversation as its client A saw it, without the lines that match noise.
// Several deltas in a row count once, since their number depends on the model.
func recorded(t *testing.T, file string, noise ...string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	must(t, err)
	var lines []string
	begun := false
	for scanner := bufio.NewScanner(bytes.NewReader(data)); scanner.Scan(); {
		var entry struct {
			Conn, Dir string
			Msg       json.RawMessage
		}
		var m message
		if err := json.Unmarshal(scanner.Bytes(), &entry); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if entry.Conn != "A" || entry.Dir == "close" {
			continue
		}
		if err := json.Unmarshal(entry.Msg, &m); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		line := m.line()
		if entry.Dir == ">" {
			line = "> " + m.Method
			if m.Method == "" {
				line = "> answer"
			}
			begun = begun || m.Method == "turn/start"
		}
		if begun && m.Error == nil {
			lines = append(lines, line)
		}
	}
	return tidy(lines, noise)
}

// tidy leaves out noise and repeated deltas. A thread's announcement may come between any two lines.
func tidy(lines, noise []string) []string {
	noise = append(noise, "> answer", "< warning", "< thread/started", "< thread/goal/cleared")
	lines = slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		return slices.ContainsFunc(noise, func(n string) bool { return strings.HasPrefix(line, n) })
	})
	return slices.CompactFunc(lines, func(a, b string) bool {
		return a == b && strings.HasSuffix(strings.ToLower(a), "delta")
	})
}

func scripted(steps ...Step) *World {
	return NewWorld(Config{Script: func(p Prompt) []Step {
		if p.Steered {
			return []Step{Say{Text: "as you like "}}
		}
		return steps
	}})
}

const usageNoise = "< thread/tokenUsage/updated"

// A recording is one turn of the real one, and how to make the simulator do the same.
type recording struct {
	file   string
	script []Step
	noise  []string
	drive  func(*client, string) // nil to start a turn
	last   string                // the last notification, "" for turn/completed
}

func recordings() []recording {
	touch := Ask{Command: "touch approved.txt", Lines: []Line{{Text: "made it"}}, Exit: 1,
		Accepted: []Step{Say{Text: "done "}}, Declined: []Step{Say{Text: "well then "}}}
	asked := func(decision string) func(*client, string) {
		return func(c *client, thread string) {
			c.request("turn/start", c.turn(thread, "go"))
			c.answer(*c.until("item/commandExecution/requestApproval").ID, decision)
		}
	}
	return append(wordRecordings(), []recording{
		{file: "basic.jsonl", script: []Step{Say{Text: "hello 0 hello 1 "}}},
		{file: "failed.jsonl", script: []Step{Fail{"high demand"}}},
		{file: "approval-accept.jsonl", script: []Step{touch}, drive: asked("accept")},
		{file: "approval-decline.jsonl", script: []Step{touch}, drive: asked("decline")},
		{file: "approval-cancel.jsonl", script: []Step{touch}, drive: asked("cancel")},
		{
			file: "approval-interrupt.jsonl", script: []Step{touch}, noise: []string{usageNoise, "< account/"},
			last: "serverRequest/resolved",
			drive: func(c *client, thread string) {
				c.request("turn/start", c.turn(thread, "go"))
				c.until("item/commandExecution/requestApproval")
				c.request("turn/interrupt", `{"threadId":"`+thread+`","turnId":""}`)
			},
		},
		{
			file: "interrupt.jsonl", script: []Step{Pause{time.Hour}},
			drive: func(c *client, thread string) {
				c.request("turn/start", c.turn(thread, "go"))
				for c.until("item/completed").line() != "< item/completed userMessage" {
				}
				c.request("turn/interrupt", `{"threadId":"`+thread+`","turnId":""}`)
			},
		},
	}...)
}

// wordRecordings are the recordings with questions and with steers.
func wordRecordings() []recording {
	return []recording{
		{
			file: "input.jsonl", script: []Step{Input{Queries: []Query{{Text: "Which env?"}},
				Answered: func(a []string) []Step { return []Step{Say{Text: "thanks "}} }}},
			drive: func(c *client, thread string) {
				c.request("turn/start", c.turn(thread, "go"))
				c.result(*c.until("item/tool/requestUserInput").ID, `{"answers":{"q1":{"answers":["staging"]}}}`)
			},
		},
		{
			file: "permissions.jsonl", script: []Step{Permit{Network: true, Granted: []Step{Say{Text: "ok "}}}},
			drive: func(c *client, thread string) {
				c.request("turn/start", c.turn(thread, "go"))
				c.result(*c.until("item/permissions/requestApproval").ID,
					`{"permissions":{"network":{"enabled":true}},"scope":"turn"}`)
			},
		},
		{
			file: "steer.jsonl", script: []Step{Say{Text: "w w w w w w ", Every: 200 * time.Millisecond}},
			noise: []string{usageNoise, "< account/"},
			drive: func(c *client, thread string) {
				id := field[string](c.t, c.call("turn/start", c.turn(thread, "go")).Result, "turn", "id")
				c.until("item/agentMessage/delta")
				c.until("item/agentMessage/delta")
				c.request("turn/steer", `{"threadId":"`+thread+`","expectedTurnId":"`+id+`","input":[{"type":"text",`+
					`"text":"steered"}]}`)
			},
		},
		{
			file: "steer-command.jsonl", script: []Step{Run{Command: "sleep 1",
				Lines: []Line{{Text: "slept", After: 400 * time.Millisecond}}}},
			drive: func(c *client, thread string) {
				id := field[string](c.t, c.call("turn/start", c.turn(thread, "go")).Result, "turn", "id")
				for c.until("item/started").line() != "< item/started commandExecution" {
				}
				c.request("turn/steer", `{"threadId":"`+thread+`","expectedTurnId":"`+id+`","input":[{"type":"text",`+
					`"text":"steered"}]}`)
			},
		},
	}
}

// TestOrderIsAsRecorded compares what the simulator sends with what codex 0.169 sent.
func TestOrderIsAsRecorded(t *testing.T) {
	t.Parallel()
	for _, row := range recordings() {
		t.Run(row.file, func(t *testing.T) {
			t.Parallel()
			c := connect(t, serve(t, scripted(row.script...), "bigpc"))
			thread := c.start()
			c.seen = nil
			if row.drive == nil {
				c.request("turn/start", c.turn(thread, "go"))
			} else {
				row.drive(c, thread)
			}
			if row.last == "" {
				row.last = "turn/completed"
			}
			c.until(row.last)
			want := recorded(t, row.file, row.noise...)
			want = slices.DeleteFunc(want, func(line string) bool {
				// The steered recording also tries two requests that are refused.
				return line == "> turn/steer" && row.file == "steer.jsonl"
			})
			got := slices.DeleteFunc(tidy(c.seen, row.noise),
				func(line string) bool { return line == "> turn/steer" && row.file == "steer.jsonl" })
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("recorded (-) and simulated (+):\n%s", diff)
			}
		})
	}
}
