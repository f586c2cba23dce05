package simulator

import (
	"strings"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/handoff/tools"
)

// learn implements [mind]: the brain learns machines and paused work from calls and their outputs, also from those that
// a client replays.
func (b *brain) learn(it *item) {
	switch {
	case it.kind == "function_call" && it.status == "completed" &&
		(it.name == tools.Codex || it.name == tools.QueueNext):
		if server := gjson.Get(it.arguments, "server").String(); server != "" {
			b.previousMachine, b.lastMachine, b.lastCall = b.lastMachine, server, it.callID
		}
	case it.kind == "function_call_output" && readable(it.output):
		out := gjson.Parse(it.output)
		if it.callID == b.lastCall {
			b.learnPlace(out)
		}
		b.learnNames(out)
		b.learnPaused(out)
	}
}

// recall reads the messages of another session: questions in them that no answer has closed are still open.
func (b *brain) recall(past []*item) {
	answers := map[string]string{} // the questions that calls answer
	for _, it := range past {
		switch {
		case it.kind == "message" && it.role == "system":
			b.noteMessage(it.text())
		case it.kind == "function_call" && it.name == tools.AnswerAgent && readable(it.arguments):
			answers[it.callID] = gjson.Get(it.arguments, "question").String()
		case it.kind == "function_call_output" && readable(it.output) && answers[it.callID] != "":
			if gjson.Get(it.output, "status").String() == "done" {
				b.forgetQuestions(func(q question) bool { return q.label == answers[it.callID] })
			}
		}
	}
}

// asksToGoOn reports whether a message asks to continue an answer that the end of another session cut.
func asksToGoOn(message string) bool { return strings.Contains(message, "Go on where you were cut") }

// asksToRepeat reports whether a message asks to repeat what may not have been heard.
func asksToRepeat(message string) bool {
	return strings.Contains(message, "say that again if it matters")
}

// unsaid returns the part of an answer to of that was not said, or all of it if what was said is no prefix of it.
func unsaid(said string, of Heard) string {
	whole := spokenNews(of)
	left, found := strings.CutPrefix(whole, strings.TrimSpace(said))
	if !found {
		return whole
	}
	return strings.TrimSpace(left)
}

// learnPlace learns from the answer to the last work which machine it went to. If that does not exist, or cannot be
// reached, the next work without a machine must not go there.
func (b *brain) learnPlace(out gjson.Result) {
	switch handoff.Code(out.Get("code").String()) {
	case handoff.CodeUnknownServer, handoff.CodeAmbiguousServer, handoff.CodeUnreachable:
		b.lastMachine, b.lastCall = b.previousMachine, ""
		return
	}
	if server := out.Get("server").String(); server != "" {
		b.know(server, server)
		b.lastMachine = server
	}
}

func (b *brain) learnNames(out gjson.Result) {
	for _, entry := range out.Get("items").Array() {
		if server := entry.Get("server"); server.Exists() {
			b.know(server.String(), server.String())
			continue
		}
		name := entry.Get("name").String()
		b.know(name, name)
		for _, alias := range entry.Get("aliases").Array() {
			b.know(alias.String(), name)
		}
	}
}

// maxMachines bounds the names that the brain remembers; a fleet is far smaller.
const maxMachines = 1000

func (b *brain) know(alias, name string) {
	if alias != "" && name != "" && len(b.machines) < maxMachines {
		b.machines[strings.ToLower(alias)] = name
	}
}
