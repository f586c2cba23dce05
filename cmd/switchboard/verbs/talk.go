package verbs

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"switchboard/handoff"
)

// A runLine is an event of work from the API. Fields that an event does not have are empty.
type runLine struct {
	Type     string                  `json:"type"`
	Record   *handoff.Record         `json:"record"`
	Items    []handoff.RecordItem    `json:"items"`
	Item     *handoff.RecordItem     `json:"item"`
	ItemID   string                  `json:"item_id"`
	Delta    string                  `json:"delta"`
	At       *int                    `json:"at"`
	Question *handoff.RecordQuestion `json:"question"`
	Into     string                  `json:"into"`
}

// A talk prints work at a terminal while it runs: the agent's messages to its Out, everything else to its Err. Where
// Out is no terminal, each message is printed once it is whole: one that is withdrawn, since a connection was lost,
// comes again.
type talk struct {
	at *Terminal // Set once

	headed   bool                        // the header was printed
	record   handoff.Record              // from the latest event with one
	kinds    map[string]handoff.ItemKind // of the items that have begun, by id
	written  map[string]string           // the text of each message that was printed so far, by id
	done     map[string]bool             // items that were printed to their end
	writeErr error                       // the first error of writing to out
	open     string                      // id of the message whose last line is not finished; "": none
	messages []string                    // finished messages
	again    []string                    // finished messages that may come once more, under other ids
}

func newTalk(at *Terminal) *talk {
	return &talk{at: at, kinds: map[string]handoff.ItemKind{}, written: map[string]string{}, done: map[string]bool{}}
}

// tell prints an event.
func (t *talk) tell(e runLine) {
	if e.Record != nil {
		t.record = *e.Record
	}
	switch e.Type {
	case "placed", "noted", "promised", "usage": // not yet the header, which needs the title
		return
	}
	t.head()
	switch e.Type {
	case "snapshot":
		t.again = slices.Clone(t.messages)
		for _, it := range e.Items {
			if t.done[it.ID] {
				t.saidAgain(it.Text)
			}
		}
		for _, it := range e.Items {
			t.item(it)
		}
	case "item_started", "item":
		if e.Item != nil {
			t.item(*e.Item)
		}
	case "delta":
		t.delta(e)
	case "dropped":
		if t.written[e.ItemID] != "" {
			t.note("(that was withdrawn)")
		}
		delete(t.written, e.ItemID)
	default:
		t.happened(e)
	}
}

// happened prints an event that is not about an item of the agent.
func (t *talk) happened(e runLine) {
	switch e.Type {
	case "waiting":
		t.note("waits for the work before it (%s)", cmp.Or(t.record.Waits, "in this session"))
	case "joined":
		t.note("somebody else's work had just begun there, and took the words")
	case "question":
		if e.Question != nil {
			q := *e.Question
			t.note("%s asks (%s): %s\n  answer with: %s", q.Server, q.Label, questionText(q), t.at.command(q))
		}
	case "given_up":
		t.note("nobody answered in time, so it was declined")
	case "steered":
		t.note("its words went into the work that runs there; this is what comes of it:")
	case "silent":
		t.note("no sign of it for long; it is watched on")
	case "lost":
		t.again = slices.Clone(t.messages)
		t.note("%s was lost, and is looked for", t.record.Server)
	}
}

// head prints the header once: machine, session and id of the work.
func (t *talk) head() {
	if t.headed || t.record.Server == "" {
		return
	}
	t.headed = true
	where := t.record.Server
	if t.record.Project != "" {
		where += "/" + t.record.Project
	}
	session, why := "a session", t.record.Why
	switch {
	case t.record.Title != "":
		session = `"` + cell(t.record.Title, placeWidth) + `"`
	case why == handoff.WhyNew:
		session, why = "a new session", ""
	case why == handoff.WhyAside:
		session, why = "a side question", ""
	}
	if why != "" {
		session += ", " + why
	}
	t.note("%s, %s (%s)", where, session, t.record.ID)
}

// note writes a line for people.
func (t *talk) note(format string, args ...any) {
	t.endLine()
	_, _ = fmt.Fprintln(t.at.Err, Plain(fmt.Sprintf(format, args...))) // progress may get lost
}

// endLine ends the line of a message that is not finished.
func (t *talk) endLine() {
	if t.open != "" {
		t.write("\n")
	}
	t.open = ""
}

// write writes a message's text to out. An error is kept for the end: the work goes on although a pipe has closed.
func (t *talk) write(text string) {
	_, err := io.WriteString(t.at.Out, text)
	t.writeErr = cmp.Or(t.writeErr, err)
}

// item prints an item that has begun or ended.
func (t *talk) item(it handoff.RecordItem) {
	_, begun := t.kinds[it.ID]
	t.kinds[it.ID] = it.Kind
	over := it.State != "running"
	if t.done[it.ID] || it.Kind == handoff.ItemReasoning {
		return
	}
	t.done[it.ID] = over
	if it.Kind == handoff.ItemMessage {
		if !begun && over && t.saidAgain(it.Text) || !over && !t.at.Live {
			return
		}
		t.message(it, over)
		return
	}
	if !begun && it.Text != "" {
		mark := "- "
		if it.Kind == handoff.ItemCommand {
			mark = "$ "
		}
		t.note("%s", mark+handoff.Clip(strings.TrimSpace(it.Text), maxStep))
	}
	if over && it.Exit != nil && *it.Exit != 0 {
		t.note("  exit code %d", *it.Exit)
	}
}

// saidAgain reports whether a finished message was printed before, and comes once more after something was lost.
func (t *talk) saidAgain(text string) bool {
	i := slices.Index(t.again, strings.TrimSpace(text))
	if i >= 0 {
		t.again = slices.Delete(t.again, i, i+1)
	}
	return i >= 0
}

// maxStep bounds the text of a step, in bytes.
const maxStep = 400

// message prints the rest of a message that was not printed yet.
func (t *talk) message(it handoff.RecordItem, over bool) {
	rest, more := strings.CutPrefix(it.Text, t.written[it.ID])
	if !more { // the text was replaced, or its beginning was cut off
		t.endLine()
		rest = it.Text
	}
	t.piece(it.ID, rest)
	t.written[it.ID] = it.Text
	if over {
		t.messages = append(t.messages, strings.TrimSpace(it.Text))
		t.endLine()
	}
}

// piece prints a piece of a message.
func (t *talk) piece(id, text string) {
	if text == "" {
		return
	}
	if t.open != id {
		t.endLine()
	}
	t.write(Plain(text))
	t.open = id
}

// delta prints a piece that continues the printed text, on a terminal. After a gap, the rest is printed when the
// message is finished.
func (t *talk) delta(e runLine) {
	if t.kinds[e.ItemID] != handoff.ItemMessage || t.done[e.ItemID] || !t.at.Live {
		return
	}
	have := t.written[e.ItemID]
	if e.At != nil && *e.At != len(have) {
		return
	}
	t.written[e.ItemID] = have + e.Delta
	t.piece(e.ItemID, e.Delta)
}

// end prints the outcome: the answer, unless it was printed as a message, and what went wrong.
func (t *talk) end(r handoff.Record) {
	t.record = r
	t.head()
	t.endLine()
	if text := strings.TrimSpace(r.Text); text != "" && !slices.Contains(t.messages, text) {
		t.write(Plain(text) + "\n")
	}
	for _, words := range r.Undelivered {
		t.note("it never heard: %s", words)
	}
	if r.Outcome == handoff.OutcomeResult {
		return
	}
	line := map[handoff.Outcome]string{
		handoff.OutcomeFailed: "failed", handoff.OutcomeInterrupted: "stopped", handoff.OutcomeCancelled: "not begun",
		handoff.OutcomeUnknown: "nobody knows what became of it",
	}[r.Outcome]
	if r.Crashed() {
		line = "crashed"
	}
	if r.Error != nil {
		line = strings.TrimSpace(line + ": " + r.Error.Message + " " + r.Error.Next)
		if r.Error.Detail != "" {
			line += " (" + r.Error.Detail + ")"
		}
	}
	t.note("%s", line)
}
