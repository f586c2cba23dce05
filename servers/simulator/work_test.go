package simulator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// acted does the work on a prompt, answers each question, and returns what was done. begins: whoever asks
// begins the item of the question.
func acted(yes, begins bool, steps ...Step) string {
	var did []string
	w := NewWork(func(Prompt) []Step { return steps }, func(f Fact) { did = append(did, fmt.Sprint("learn ", f)) })
	w.Hear(Prompt{Text: "go"})
	for act, more := w.Next(); more; act, more = w.Next() {
		busy := ""
		if w.Busy() {
			busy = "!"
		}
		what := []string{"wait", "begin", "add", "end", "ask", "tell", "rest"}[act.Does]
		if act.Item != nil && act.Does != Asks {
			what += " " + act.Item.Command + act.Text
		}
		if act.Does == Ends {
			what += act.Item.Text + act.Item.Output + act.Item.Status
		}
		if act.Does != Waits || act.For > 0 {
			did = append(did, busy+what)
		}
		if act.Does == Asks {
			if begins {
				act.Item.Status = ItemRunning
			}
			w.Answer(yes, "words")
		}
	}
	return strings.ReplaceAll(strings.Join(did, ", "), "\n", "/")
}

// TestWork: what an agent does of each step, in which order, and when it can be interrupted. A "!" is before an act
// after which it hears nothing.
func TestWork(t *testing.T) {
	t.Parallel()
	command := Run{Command: "a", Lines: []Line{{Text: "x", After: time.Second}}}
	ask := Ask{Command: "a", Lines: []Line{{Text: "x"}}, Exit: 1, Accepted: []Step{Effect{FactPushed}}, Declined: []Step{Hang{}}}
	for _, c := range []struct {
		yes, begins bool
		steps       []Step
		want        string
	}{
		{steps: []Step{Say{Text: "one two", Every: 1}, Fail{}}, want: "begin , add one , wait, add two, wait, end one two, tell"},
		{steps: []Step{Think{Text: "hm", For: 1}}, want: "begin , add hm, wait, end hm"},
		{steps: []Step{Effect{FactFixed}, command}, want: "learn 2, !begin a, !wait, !add ax/, end ax/completed"},
		{steps: []Step{Both{command, {Command: "b", Exit: 2}}},
			want: "!begin a, !begin b, !wait, !add ax/, !end ax/completed, end bfailed"},
		{steps: []Step{Edit{For: 1}, Pause{1}}, want: "!begin , !wait, end completed, wait"},
		{yes: true, steps: []Step{ask}, want: "!ask, !begin a, !add ax/, end ax/failed, learn 3"},
		{yes: true, begins: true, steps: []Step{ask}, want: "!ask, !add ax/, end ax/failed, learn 3"},
		{begins: true, steps: []Step{ask, Hang{}}, want: "!ask, rest, rest"},
		{yes: true, steps: []Step{Permit{Granted: []Step{Hang{}}}, Permit{Refused: []Step{Hang{}}}}, want: "!ask, rest, !ask"},
		{steps: []Step{Input{Answered: func(a []string) []Step { return []Step{Say{Text: a[0]}} }}},
			want: "!ask, begin , add words, end words"},
	} {
		if got := acted(c.yes, c.begins, c.steps...); got != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.steps, got, c.want)
		}
	}
}

// TestWorkIsLeft: new words end what was left, also a question, whose answer changes nothing then.
func TestWorkIsLeft(t *testing.T) {
	t.Parallel()
	var heard []string
	w := NewWork(func(p Prompt) []Step {
		heard = append(heard, fmt.Sprint(p.Text, " ", p.Steered))
		return []Step{Permit{Granted: []Step{Hang{}}}, Run{Command: "a"}}
	}, nil)
	w.Hear(Prompt{Text: "go"})
	if _, more := w.Next(); !more || !w.Busy() || !w.Acts() {
		t.Error("it does not ask")
	}
	if _, more := w.Next(); more {
		t.Error("it goes on before it has an answer")
	}
	w.Hear(Prompt{Text: "stop", Steered: true})
	w.Leave()
	w.Answer(true)
	if _, more := w.Next(); more || w.Busy() || w.Acts() || w.Open() {
		t.Error("something is left")
	}
	if want := []string{"go false", "stop true"}; !slices.Equal(heard, want) {
		t.Errorf("heard %v", heard)
	}
}
