package simulator

import (
	"strings"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/handoff/tools"
)

// learn takes machines from calls and their outputs. An item that a client replays teaches the same.
func (b *brain) learn(it *item) {
	switch {
	case it.kind == "function_call" && (it.name == tools.Codex || it.name == tools.QueueNext) && it.status == "completed":
		if server := gjson.Get(it.arguments, "server").String(); server != "" {
			b.before, b.last, b.lastCall = b.last, server, it.callID
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

// recall takes what was told in another session: questions that no answer has closed are open still.
func (b *brain) recall(past []*item) {
	answers := map[string]string{} // the questions that calls answer
	for _, it := range past {
		switch {
		case it.kind == "message" && it.role == "system":
			b.told(it.text())
		case it.kind == "function_call" && it.name == tools.AnswerAgent && readable(it.arguments):
			answers[it.callID] = gjson.Get(it.arguments, "question").String()
		case it.kind == "function_call_output" && readable(it.output) && answers[it.callID] != "":
			if gjson.Get(it.output, "status").String() == "done" {
				b.forget(func(q question) bool { return q.label == answers[it.callID] })
			}
		}
	}
}

// goesOn reports whether a message asks to go on with what the end of another session cut.
func goesOn(message string) bool { return strings.Contains(message, "Go on where you were cut") }

// saysAgain reports whether a message asks to say again what may not have been heard.
func saysAgain(message string) bool { return strings.Contains(message, "say that again if it matters") }

// rest returns what was not said of an answer: all of it, where it was said in other words.
func rest(said string, of Heard) string {
	whole := spokenNews(of)
	left, found := strings.CutPrefix(whole, strings.TrimSpace(said))
	if !found {
		return whole
	}
	return strings.TrimSpace(left)
}

// learnPlace takes from the answer to the last work where it went. Work without a machine must not
// follow it to where nobody is.
func (b *brain) learnPlace(out gjson.Result) {
	switch handoff.Code(out.Get("code").String()) {
	case handoff.CodeUnknownServer, handoff.CodeAmbiguousServer, handoff.CodeUnreachable:
		b.last, b.lastCall = b.before, ""
		return
	}
	if server := out.Get("server").String(); server != "" {
		b.know(server, server)
		b.last = server
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

// maxMachines bounds what the brain remembers; the fleet is far smaller.
const maxMachines = 1000

func (b *brain) know(alias, name string) {
	if alias != "" && name != "" && len(b.machines) < maxMachines {
		b.machines[strings.ToLower(alias)] = name
	}
}
