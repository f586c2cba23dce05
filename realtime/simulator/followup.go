package simulator

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/handoff/tools"
)

// reSorry is how a correction may begin.
const reSorry = `(?:(?:no|nope|actually|sorry|wait|oops)[, ]+)*`

// followupForms are those of sentences that only mean something after what was said or done before.
type followupForms struct {
	again, result, details, elsewhere, also, corrects, which forms
}

// followups are compiled when the first sentence is read, and never changed.
var followups = sync.OnceValue(func() *followupForms {
	return &followupForms{
		again: anyOf(`(?:(?:can you )?(?:say|repeat) (?:that|it)(?: again)?|repeat|(?:say )?again|once more|pardon(?: me)?|sorry|what|what was that|what did you say|come again|i did(?: not|n't) (?:get|catch|hear|understand) (?:that|it))$`),
		result: anyOf(`(?:(?:read|tell|give)(?: me)? (?:again )?(?:the|its|that) (?:last |latest |final )?(?:answer|result|reply|output|outcome)s?(?: again)?|what (?:was|is) the (?:last |latest )?(?:answer|result|outcome|reply)|what(?:'s| is| was| were) the results?` +
			`|what did (?:it|they|codex|the agent) (?:say|answer|find|report)|did (?:the tests?|they|it|that|everything) (?:pass|work|fail|succeed|go through)(?: now| this time)?|(?:and )?how did (?:it|that|they) go)$`),
		details: anyOf(`(?:tell me more(?: about (?:it|that))?|more about (?:it|that)|(?:give me )?(?:the )?details|what (?:has |have you |did you |did it )?(?:changed?|edited)|(?:which|what) files (?:did (?:you|it)|were|have been|are)(?: been)? changed?)$`),
		elsewhere: anyOf(reSorry+`(?:make (?:it|that)|i (?:meant?|said)|i was thinking of|use|try)(?: it| that)?(?: on)? `+reName+`(?:,? (?:instead|please|i mean|i meant))?$`,
			reSorry+`(?:(?:do|run|try) (?:it|that) )?(?:on|at) `+reName+`,? (?:instead|i mean|i meant|rather)$`, reSorry+`(?:do|run|try) (?:it|that)(?: on)? `+reName+` instead$`),
		corrects: anyOf(`(?:(?:no|nope|actually|sorry|wait|oops|i mean)[, ]+)+(?:not (?:on )?[\w.-]+,? (?:but )?)?(?:on )?` + reName + `(?:,? (?:i mean|i meant|instead|please))?$`),
		also: anyOf(`(?:and |now )?(?:(?:do|run|try) )?(?:it|that|the same(?: thing)?)(?: again)? (?:on|at) `+reName+`(?:,? (?:too|as well|also))?$`,
			`(?:and |also |now )+(?:on|at) `+reName+`(?:,? (?:too|as well|also))?$`, `(?:on|at) `+reName+`,? (?:too|as well|also)$`),
		which: anyOf(`(?:stop )?(?:(?:the )?(?:one|work) )?(?:(?:on|at) )?` + reName + `$`),
	}
})

// forms are the ways to say one thing.
type forms []*regexp.Regexp

func anyOf(patterns ...string) forms {
	var all forms
	for _, p := range patterns {
		all = append(all, pattern(p))
	}
	return all
}

// find returns the parts of the first form that a sentence has; nil: none.
func (f forms) find(s string) []string {
	for _, re := range f {
		if m := re.FindStringSubmatch(s); m != nil {
			return m
		}
	}
	return nil
}

// reFails finds that something went wrong in what an agent reports.
var reFails = regexp.MustCompile(`(?i)\b(?:fails?|failed|failing|broken?)\b`)

// What the brain says to sentences that refer to something.
const (
	saySaidNothing = "I have said nothing yet."
	sayStopNothing = "All right, nothing is stopped."
)

// followed takes a sentence that refers to what was said or done before.
func (b *brain) followed(h Heard, text string) ([]Move, bool) {
	s := plain(text, b.machines)
	bare := strings.TrimRight(strings.Join(strings.Fields(strings.ReplaceAll(text, "’", "'")), " "), " .!?")
	bare = strings.TrimRight(strings.TrimSuffix(bare, "please"), " ,")
	switch {
	case followups().again.find(bare) != nil:
		if b.said == "" {
			return says(saySaidNothing), true
		}
		return says(b.said), true
	case followups().result.find(s) != nil:
		if b.news == "" {
			return b.pursue(h, errand{intent: intent{wish: wishStatus}}), true
		}
		return says(b.news), true
	case b.news != "" && followups().details.find(s) != nil:
		return b.pursue(h, errand{intent: intent{wish: wishRead, server: b.last}}), true
	}
	return b.corrected(h, bare, s)
}

// startsOver returns what a caller says after "no, wait", or "".
func startsOver(text string) string {
	text = strings.TrimSpace(text)
	if lead := reStartsOver.FindString(text); lead != "" {
		return text[len(lead):]
	}
	return ""
}

var reStartsOver = pattern(reSorry)

// corrected gives the last work to another machine, instead of the one that has it or beside it.
func (b *brain) corrected(h Heard, bare, s string) ([]Move, bool) {
	if b.lastWork == "" {
		return nil, false
	}
	instead := true
	m := followups().corrects.find(bare)
	if m == nil {
		m = followups().elsewhere.find(s)
	}
	if m == nil {
		m, instead = followups().also.find(s), false
	}
	if m == nil || !isKnown(m[1], b.machines) {
		return nil, false
	}
	server := canonical(m[1], b.machines)
	if server == b.last {
		return nil, false
	}
	var moves []Move
	if instead && b.busy[b.last] {
		moves = call(h, tools.StopWork, tools.StopArguments{Server: b.last}, nil)
	}
	return append(moves, b.work(h, errand{intent: intent{wish: wishWork, server: server, work: b.lastWork}})...), true
}

// unclear remembers that stop_work asks which work is meant.
func (b *brain) unclear(o Output) {
	out := gjson.Parse(o.Text)
	if o.Tool != tools.StopWork || !readable(o.Text) || out.Get("status").String() != tools.StatusUnclear {
		return
	}
	e := errand{intent: intent{wish: wishStop}}
	for _, choice := range out.Get("choices").Array() {
		server, title, _ := strings.Cut(choice.String(), ", ")
		e.choices = append(e.choices, listedSession{title: title, server: server})
	}
	b.asking = &e
}

// stopChosen takes the answer to which work shall be stopped.
func (b *brain) stopChosen(h Heard, e errand, text string) ([]Move, bool) {
	s := plain(text, b.machines)
	if decisionIn(text) == handoff.DecisionDecline && b.named(text) == "" {
		return says(sayStopNothing), true
	}
	server := ""
	found := pick(e.choices, s)
	switch m := followups().which.find(s); {
	case pausedAll.MatchString(strings.TrimPrefix(s, "stop ")):
		server = "all"
	case m != nil && isKnown(m[1], b.machines):
		server = canonical(m[1], b.machines)
	case len(found) == 1:
		server = found[0].server
	default:
		return nil, false
	}
	return call(h, tools.StopWork, tools.StopArguments{Server: server}, nil), true
}

// keep keeps what was said, for who asks for it again, and which machines are at work.
func (b *brain) keep(moves []Move, h Heard) {
	for _, m := range h.Messages {
		if server, ended := endedOn(m); ended {
			b.news = spokenMessage(m)
			delete(b.busy, server)
			b.noteFailure(server, m)
		}
	}
	for _, o := range h.Outputs {
		out := gjson.Parse(o.Text)
		if status := out.Get("status").String(); readable(o.Text) && isWork(o.Tool) && slices.Contains([]string{"done", "failed"}, status) {
			b.news = spokenOutput(o)
			delete(b.busy, out.Get("server").String())
			b.noteFailure(out.Get("server").String(), o.Text)
		}
	}
	if say, ok := firstSay(moves); ok {
		b.said = say
	}
}

func isWork(tool string) bool {
	return tool == tools.Codex || tool == tools.QueueNext || tool == tools.RunOnServer
}

func firstSay(moves []Move) (string, bool) {
	for _, m := range moves {
		if say, ok := m.(Say); ok {
			return say.Text, true
		}
	}
	return "", false
}

// endedOn returns the machine whose work a system message tells the end of.
func endedOn(message string) (string, bool) {
	if server, _, ok := strings.Cut(message, " is done"); ok && !strings.Contains(server, " ") {
		return server, true
	}
	if rest, ok := strings.CutPrefix(message, "The work on "); ok {
		server, _, _ := strings.Cut(rest, " ")
		return server, true
	}
	return "", false
}

// noteFailure remembers where something failed last: that is what "fix it" means.
func (b *brain) noteFailure(server, told string) {
	switch {
	case reFails.MatchString(told):
		b.failed = server
	case b.failed == server:
		b.failed = ""
	}
}
