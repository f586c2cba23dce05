package responses

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"

	"switchboard/handoff"
)

// add adds an item to the output.
func (e *emitter) add(w *openItem, prefix string, it item) {
	w.begun, w.at = true, len(e.resp.Output)
	it.ID = prefix + strings.TrimPrefix(e.resp.ID, responsePrefix) + "_" + strconv.Itoa(w.at)
	e.resp.Output = append(e.resp.Output, it)
	e.emit(event{Type: evAdded, OutputIndex: new(w.at), Item: &it})
}

// done closes an item of the output.
func (e *emitter) done(at int) {
	it := e.resp.Output[at]
	e.emit(event{Type: evDone, OutputIndex: &at, Item: &it})
}

// about writes an event about an item.
func (e *emitter) about(w *openItem, ev event) {
	ev.ItemID, ev.OutputIndex = e.resp.Output[w.at].ID, new(w.at)
	switch ev.Type {
	case evText, evTextDone, evPart, evPartDone:
		ev.ContentIndex = new(0)
	case evThought, evThoughtEnd, evSummary, evSummaryEnd:
		ev.SummaryIndex = new(0)
	}
	e.emit(ev)
}

func (e *emitter) emit(ev event) {
	ev.Seq = e.seq
	e.seq++
	e.out = append(e.out, ev)
}

// lifecycle writes an event with the present response.
func (e *emitter) lifecycle(typ string) {
	now := e.resp
	now.Output = append([]item{}, e.resp.Output...)
	e.emit(event{Type: typ, Response: &now})
}

// ask ends the response with questions. The run waits for the answers, and another response continues it.
func (e *emitter) ask(open ...handoff.RecordQuestion) {
	e.cutAll()
	for _, q := range open {
		args := encode(asking{q.Text, q.Command, q.Cwd, q.Reason, q.Changes, q.Words, q.Asks, q.Beyond, q.Person})
		it := item{
			ID: approvalID(e.resp.ID, q.ID), Type: typeApproval, ServerLabel: e.label, Name: questionName(q), Arguments: &args,
		}
		e.asked = append(e.asked, it.ID)
		e.resp.Output = append(e.resp.Output, it)
		at := len(e.resp.Output) - 1
		e.emit(event{Type: evAdded, OutputIndex: &at, Item: &it})
		e.done(at)
	}
	e.close(completed, evCompleted)
}

// answerable reports whether a yes by the API, or its words, would be taken. Other questions wait for a person.
func answerable(q handoff.RecordQuestion) bool {
	return q.Words || q.Risk != "high" && q.There == ""
}

// approvalPrefix is the prefix of the ids of questions.
const approvalPrefix = "mcpr_"

// approvalID returns the id of a question in a response. Like the id of every item, it contains that of the response.
func approvalID(response string, q handoff.QuestionID) string {
	sum := sha256.Sum256([]byte(q))
	return approvalPrefix + strings.TrimPrefix(response, responsePrefix) + "_" + hex.EncodeToString(sum[:8])
}

func questionName(q handoff.RecordQuestion) string {
	switch q.Kind {
	case handoff.QuestionCommand:
		return "shell"
	case handoff.QuestionFileChange:
		return "apply_patch"
	}
	return string(q.Kind)
}

// asking is a question as the arguments of the tool that needs approval.
type asking struct {
	Text    string        `json:"text"`
	Command string        `json:"command,omitempty"`
	Cwd     string        `json:"cwd,omitempty"`
	Reason  string        `json:"reason,omitempty"`
	Changes []string      `json:"changes,omitempty"`
	Words   bool          `json:"answer_in_reason,omitempty"` // the answer is the reason of the approval
	Asks    []handoff.Ask `json:"asks,omitempty"`
	Beyond  string        `json:"beyond,omitempty"`
	Person  bool          `json:"person,omitempty"` // only a person can answer it, on the page
}

// cutAll ends all items of the queue: it writes finished ones whole, and ends the others as incomplete.
func (e *emitter) cutAll() {
	for len(e.queue) > 0 {
		w := e.queue[0]
		e.queue = e.queue[1:]
		if w.whole == nil {
			if !w.tool() && w.begun {
				e.writeText(w)
			}
			e.cut(w)
			continue
		}
		e.write(w)
		e.shown[w.of] = true
	}
}

// end closes the response with the outcome of its run.
func (e *emitter) end(rec handoff.Record) {
	e.flush()
	e.cutAll()
	switch {
	case rec.Outcome == handoff.OutcomeResult:
		e.answer(rec)
	case rec.Error != nil && (rec.Outcome != handoff.OutcomeInterrupted || rec.Crashed()):
		e.fail(failureCode(rec.Error.Code), rec.Error.Message)
	case rec.Outcome == handoff.OutcomeInterrupted, rec.Outcome == handoff.OutcomeCancelled:
		e.resp.IncompleteDetails = &details{Reason: "interrupted"}
		e.close(incomplete, evIncomplete)
	default:
		e.fail("server_error", "It cannot be told whether the work ran.")
	}
}

// failureCode returns OpenAI's code for a failure.
func failureCode(c handoff.Code) string {
	switch c {
	case handoff.CodeModelLimit, handoff.CodeLimited:
		return "rate_limit_exceeded"
	case handoff.CodeMalformed, handoff.CodeTooLarge, handoff.CodeContextFull, handoff.CodeUnsupported:
		return "invalid_prompt"
	}
	return "server_error"
}

// answer writes the agent's answer, unless it was written as a message, and completes the response.
func (e *emitter) answer(rec handoff.Record) {
	text := rec.Text
	if text == "" && len(e.resp.Output) == 0 { // the run ended in an earlier process, or went into other work
		text = rec.Spoken
	}
	if e.steeredInto != "" {
		text = "The words went into the work that runs in that session: " + responsePrefix + e.steeredInto
	}
	if e.exact {
		if text = plainJSON(text); text == "" {
			e.fail("server_error", "The agent's answer is not the JSON that was asked for.")
			return
		}
	}
	if text != "" && text != e.last {
		w := &openItem{kind: handoff.ItemMessage, text: []byte(text)}
		e.writeText(w)
		e.closeText(w, completed)
	}
	e.close(completed, evCompleted)
}

// plainJSON returns the JSON of an answer, without the Markdown fence that agents often put around it; "" if it is no
// JSON.
func plainJSON(text string) string {
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(text, "```"); ok {
		if _, inner, ok = strings.Cut(inner, "\n"); ok {
			text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(inner), "```"))
		}
	}
	if !json.Valid([]byte(text)) {
		return ""
	}
	return text
}

// fail ends the response with an error.
func (e *emitter) fail(code, message string) {
	e.cutAll()
	e.resp.Error = &failure{Code: code, Message: message}
	e.close(failed, evFailed)
}

// failed ends the response with an error that is not an event of the run.
func (e *emitter) failed(code, message string) []event {
	if !e.over() {
		e.fail(code, message)
	}
	return e.take(nil, handoff.Record{})
}

// cancel ends the response at its client's request. It removes the output, and nothing is added later.
func (e *emitter) cancel() []event {
	if !e.over() {
		e.cutAll()
		e.resp.Output = []item{}
		e.close(cancelled, evIncomplete)
	}
	return e.take(nil, handoff.Record{})
}

// close ends the response with a status.
func (e *emitter) close(status, typ string) {
	e.queue = nil
	e.resp.Status = status
	if status == completed {
		e.resp.CompletedAt = new(e.now().Unix())
	}
	e.lifecycle(typ)
}
