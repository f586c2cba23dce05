package verbs

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"switchboard/handoff"
)

// A runLine is an event of work as the API gives it; what it does not have is empty.
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

// A talk writes what an agent says while it says it: its messages to out, the rest of what goes on to err. It is
// pure but for these.
type talk struct {
	out, err io.Writer
	name     string // of the program
	handle   func(handoff.RecordQuestion) string

	headed  bool
	record  handoff.Record              // as it was told last
	kinds   map[string]handoff.ItemKind // of items that were begun, by id
	written map[string]string           // of messages, by id
	done    map[string]bool             // items that are told to their end
	unread  error                       // why what the agent says was not written whole; nil: it was
	open    string                      // the message in the middle of whose line we are
	said    []string                    // whole messages
}

// newTalk takes where to write, the program's name, and how a question is named for an answer.
func newTalk(out, err io.Writer, name string, handle func(handoff.RecordQuestion) string) *talk {
	return &talk{out: out, err: err, name: name, handle: handle, kinds: map[string]handoff.ItemKind{},
		written: map[string]string{}, done: map[string]bool{}}
}

// tell takes an event.
func (t *talk) tell(e runLine) {
	if e.Record != nil {
		t.record = *e.Record
	}
	switch e.Type {
	case "placed", "noted", "promised", "usage": // the header waits for the title
		return
	}
	t.head()
	switch e.Type {
	case "snapshot":
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

// happened tells what is no doing of the agent's.
func (t *talk) happened(e runLine) {
	switch e.Type {
	case "waiting":
		t.note("waits for the work before it (%s)", cmp.Or(t.record.Waits, "in this session"))
	case "joined":
		t.note("somebody else's work had just begun there, and took the words")
	case "question":
		if e.Question != nil {
			t.note("%s", t.question(*e.Question))
		}
	case "given_up":
		t.note("nobody answered in time, so it was declined")
	case "steered":
		t.note("its words went into the work that runs there; this is what comes of it:")
	case "silent":
		t.note("no sign of it for long; it is watched on")
	case "lost":
		t.note("%s was lost, and is looked for", t.record.Server)
	}
}

// question words a question, and how it is answered.
func (t *talk) question(q handoff.RecordQuestion) string {
	return fmt.Sprintf("%s asks (%s): %s\n  answer with: %s answer %s %s", q.Server, q.Label, asked(q), t.name,
		t.handle(q), replies(q))
}

// head tells once where the work goes.
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
	_, _ = fmt.Fprintln(t.err, Plain(fmt.Sprintf(format, args...))) // who does not look on is not told
}

func (t *talk) endLine() {
	if t.open != "" {
		t.write("\n")
	}
	t.open = ""
}

// write writes what the agent says. A pipe that closed takes no more, and the work goes on.
func (t *talk) write(text string) {
	_, err := io.WriteString(t.out, text)
	t.unread = cmp.Or(t.unread, err)
}

// item tells an item that was begun or that is done.
func (t *talk) item(it handoff.RecordItem) {
	_, begun := t.kinds[it.ID]
	t.kinds[it.ID] = it.Kind
	over := it.State != "running"
	if t.done[it.ID] || it.Kind == handoff.ItemReasoning {
		return
	}
	t.done[it.ID] = over
	if it.Kind == handoff.ItemMessage {
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

// maxStep bounds what is shown of a step, in bytes.
const maxStep = 400

// message writes what of a message was not written yet.
func (t *talk) message(it handoff.RecordItem, over bool) {
	rest, more := strings.CutPrefix(it.Text, t.written[it.ID])
	if !more { // it is another text now, or its beginning is cut
		t.endLine()
		rest = it.Text
	}
	t.piece(it.ID, rest)
	t.written[it.ID] = it.Text
	if over {
		t.said = append(t.said, strings.TrimSpace(it.Text))
		t.endLine()
	}
}

// piece writes a piece of a message.
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

// delta writes a piece that follows what was written. After a gap the message waits until it is whole.
func (t *talk) delta(e runLine) {
	if t.kinds[e.ItemID] != handoff.ItemMessage || t.done[e.ItemID] {
		return
	}
	have := t.written[e.ItemID]
	if e.At != nil && *e.At != len(have) {
		return
	}
	t.written[e.ItemID] = have + e.Delta
	t.piece(e.ItemID, e.Delta)
}

// end tells the outcome: the answer, if it was not among the messages, and what went wrong.
func (t *talk) end(r handoff.Record) {
	t.record = r
	t.head()
	t.endLine()
	if text := strings.TrimSpace(r.Text); text != "" && !slices.Contains(t.said, text) {
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
	if r.Error != nil && r.Outcome == handoff.OutcomeInterrupted {
		line = "cut off"
	}
	if r.Error != nil {
		line = strings.TrimSpace(line + ": " + r.Error.Message + " " + r.Error.Next)
		if r.Error.Detail != "" {
			line += " (" + r.Error.Detail + ")"
		}
	}
	t.note("%s", line)
}
