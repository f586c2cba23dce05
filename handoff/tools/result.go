package tools

import (
	"cmp"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/wording"
)

// A Result is the result of a tool. Its JSON is the structured output.
type Result interface {
	// Text returns all of the JSON that a reader needs, as text, ids included.
	Text() string
	// within returns the result with long texts cut, and whole entries left out, until its JSON has at most limit
	// bytes.
	within(limit int) Result
}

// Answer is the result of a tool that does something: a sentence, and details.
type Answer struct{ wording.Answer }

// Statuses of an answer of [StopWork], beside "done" and "refused".
const (
	StatusUnclear  = "unclear"  // the caller is asked which work they mean
	StatusStopping = "stopping" // it stops, and has not stopped yet
)

func (a Answer) within(int) Result { return a }

// Text implements [Result].
func (a Answer) Text() string {
	out := lines{a.Say}
	out.add("Choices: ", strings.Join(a.Choices, "; "))
	out.add("", a.Note)
	out.add("", a.Next)
	out.add("The agent asks: ", a.Asked)
	if a.Result != a.Say {
		out.add("The agent says:\n", a.Result)
	}
	return out.String()
}

// WorkResult is the result of a tool that gives work: the state of the work when the front stops waiting.
type WorkResult struct {
	Record   handoff.Record
	Waits    handoff.Wait            // what it waits for before it begins
	Into     handoff.ID              // the other work that took its words, and has the outcome; "": none
	Question *handoff.RecordQuestion // the open question of its agent; nil: none
	Again    bool                    // the request is a repetition, and began nothing
}

// workOutput is the JSON of a [WorkResult].
type workOutput struct {
	Answer
	Work handoff.ID `json:"work_id"`
}

// output returns the JSON of the result, with the agent's whole answer.
func (w WorkResult) output() workOutput {
	out := workOutput{Work: cmp.Or(w.Into, handoff.ID(w.Record.ID))}
	switch {
	case w.Record.Why == handoff.WhyAdded && w.Record.Outcome == handoff.OutcomeResult:
		out.Answer = Answer{wording.English.AddedAnswer(w.Record)}
	case w.Record.Outcome != "":
		out.Answer = Answer{wording.English.OutcomeAnswer(w.Record)}
		out.Result = w.Record.Text
		if w.Again {
			out.Note = wording.AgainNote(w.Record, time.Now())
		}
	case w.Question != nil:
		out.Answer = Answer{wording.English.AskedAnswer(w.Record, *w.Question)}
	default:
		out.Answer = Answer{wording.English.GoesOnAnswer(w.Record, w.Waits)}
	}
	return out
}

// MarshalJSON gives the answer with the work's id.
func (w WorkResult) MarshalJSON() ([]byte, error) { return json.Marshal(w.output()) }

// Text implements [Result].
func (w WorkResult) Text() string { return w.output().Text() }

func (w WorkResult) within(limit int) Result { return w.output().within(limit) }

// Text implements [Result].
func (w workOutput) Text() string {
	out := lines{w.Answer.Text()}
	out.add("machine: ", w.Server)
	out.add("session: ", w.Session)
	out.add("question: ", w.Question)
	out.add("work_id: ", string(w.Work))
	return out.String()
}

func (w workOutput) within(limit int) Result {
	for size := len(w.Result); size > minResult && len(handoff.Encode(w)) > limit; {
		size = size * 3 / 4
		w.Result = handoff.Clip(w.Result, size)
	}
	return w
}

// minResult is how many bytes of an agent's answer are kept in any case.
const minResult = 64

// lines is a text that grows line by line.
type lines []string

// add appends a line, unless its text is empty.
func (l *lines) add(lead, text string) {
	if text != "" {
		*l = append(*l, lead+text)
	}
}

// left returns the text, with the number of entries that are left out.
func (l lines) left(more int) string {
	if more > 0 {
		l.add("", fmt.Sprintf("%d more are left out.", more))
	}
	return l.String()
}

func (l lines) String() string { return strings.Join(l, "\n") }

// Bounds of texts in a result that is too long as a whole, in bytes of JSON, so that one long text does not push out
// the other entries. Ids are never cut.
const (
	maxTitle    = 160
	maxWord     = 80  // a label, a branch, a version, the name of a project
	maxPath     = 200 // a directory, a problem in words
	maxLine     = 2 << 10
	maxSummary  = 1200 // the sentences to be said
	maxProjects = 20   // number of projects of one machine
	maxErrors   = 8    // number of machines that did not answer
)

// fit returns the result of build with the most entries, of n, whose JSON has at most limit bytes.
func fit(n, limit int, build func(keep int) Result) Result {
	return build(sort.Search(n, func(keep int) bool { return len(handoff.Encode(build(keep+1))) > limit }))
}

// clip shortens a text to at most limit bytes of JSON, beside the quotes, and marks that something is missing.
func clip(text string, limit int) string {
	for keep := limit; ; keep = cmp.Or(keep/2, 1) {
		text = handoff.Clip(text, max(keep, 8))
		if keep <= 8 || len(handoff.Encode(text))-2 <= limit {
			return text
		}
	}
}

// firstClipped returns at most n texts, each of at most limit bytes of JSON.
func firstClipped(texts []string, n, limit int) []string {
	var out []string
	for _, text := range texts[:min(n, len(texts))] {
		out = append(out, clip(text, limit))
	}
	return out
}
