package simulator

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestBoth: commands of one step run at the same time, and each ends after its own last line.
func TestBoth(t *testing.T) {
	t.Parallel()
	lines := func(after time.Duration, texts ...string) (all []Line) {
		for _, text := range texts {
			all = append(all, Line{Text: text, After: after})
		}
		return all
	}
	w := scripted(Both{
		{Command: "slow", Lines: lines(30*time.Millisecond, "s1", "s2"), Exit: 1},
		{Command: "fast", Lines: lines(20*time.Millisecond, "f1", "f2")},
		{Command: "silent"},
	})
	c := connect(t, serve(t, w, "bigpc"))
	c.request("turn/start", c.turn(c.start(), "go"))
	var got []string
	commands := map[string]string{} // by item
	for !slices.Contains(got, "end") {
		m, ok := c.receive()
		if !ok {
			t.Fatalf("cut after %q", got)
		}
		switch m.Method {
		case "item/started", "item/completed":
			if field[string](t, m.Params, "item", "type") == "commandExecution" {
				id, command := field[string](t, m.Params, "item", "id"), field[string](t, m.Params, "item", "command")
				commands[id] = strings.Trim(command[strings.LastIndex(command, " ")+1:], "'")
				got = append(got, strings.TrimPrefix(m.Method, "item/")+" "+commands[id])
			}
		case "item/commandExecution/outputDelta":
			got = append(got, commands[field[string](t, m.Params, "itemId")]+" "+strings.TrimSpace(field[string](t, m.Params,
				"delta")))
		case "turn/completed":
			got = append(got, "end")
		}
	}
	want := []string{
		"started slow", "started fast", "started silent", "completed silent",
		"fast f1", "slow s1", "fast f2", "completed fast", "slow s2", "completed slow", "end",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestHolds: the last words wait for Release, and an interrupt does not.
func TestHolds(t *testing.T) {
	t.Parallel()
	w := NewWorld(Config{Holds: func(p Prompt) bool { return p.Text == "go" },
		Script: func(Prompt) []Step { return []Step{Say{Text: "first"}, Say{Text: "last"}} }})
	c := connect(t, serve(t, w, "bigpc"))
	thread := c.start()
	begin := func(text string) (turn string) {
		c.call("turn/start", c.turn(thread, text))
		return field[string](t, c.until("turn/started").Params, "turn", "id")
	}
	begin("another")
	c.until("turn/completed")
	turn := begin("go")
	c.until("item/completed") // of the prompt
	c.until("item/completed")
	c.call("turn/interrupt", `{"threadId":"`+thread+`","turnId":"`+turn+`"}`)
	if s := field[string](t, c.until("turn/completed").Params, "turn", "status"); s != "interrupted" {
		t.Errorf("it is %s", s)
	}
	begin("go")
	w.Release("bigpc")
	if s := field[string](t, c.until("turn/completed").Params, "turn", "status"); s != "completed" {
		t.Errorf("it is %s", s)
	}
}
