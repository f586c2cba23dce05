package responses

import (
	"cmp"
	"encoding/json"
	"strings"

	"switchboard/handoff"
)

// ask ends the response with questions. The handoff waits for the answers, and another response continues it.
func (e *emitter) ask(open ...handoff.RecordQuestion) {
	e.cutAll()
	for _, q := range open {
		it := approvalItem(e.resp.ID, e.label, q)
		e.asked = append(e.asked, it.ID)
		e.append(it)
		e.done(len(e.resp.Output) - 1)
	}
	e.close(completed, evCompleted)
}

// end closes the response with the outcome of its handoff.
func (e *emitter) end(rec handoff.Record) {
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
	if text == "" && len(e.resp.Output) == 0 { // the handoff ended in an earlier process, or went into other work
		text = rec.Spoken
	}
	if e.steeredInto != "" {
		text = "The words went into the work that runs in that session: " + responsePrefix + string(e.steeredInto)
	}
	if e.exact {
		if text = plainJSON(text); text == "" {
			e.fail("server_error", "The agent's answer is not the JSON that was asked for.")
			return
		}
	}
	if text != "" && text != e.last {
		e.writeText(&openItem{kind: handoff.ItemMessage, whole: &handoff.Item{Text: text}})
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

// cancel ends the response at its client's request. It removes the output.
func (e *emitter) cancel() {
	e.cutAll()
	e.resp.Output = []item{}
	e.close(cancelled, evIncomplete)
}

// close ends the response with a status.
func (e *emitter) close(status, typ string) {
	e.resp.Status = status
	if status == completed {
		e.resp.CompletedAt = new(e.now().Unix())
	}
	e.lifecycle(typ)
}

// replay writes the events of a response that has ended, item by item.
func (e *emitter) replay(resp response) {
	for i, it := range resp.Output {
		e.append(it)
		e.done(i)
	}
	e.resp = resp
	e.lifecycle(cmp.Or(map[string]string{completed: evCompleted, failed: evFailed}[resp.Status], evIncomplete))
}
