package simulator

import (
	"testing"
)

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
