package wording

import (
	"encoding/json"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"switchboard/handoff"
)

// MaxProgress bounds the part of a remark that is said, in bytes.
const MaxProgress = 240

// WorkNews is news of one work. With an age it is a heartbeat; with remarks it is what the agent said; else it is what
// the agent does now.
type WorkNews struct {
	Name    string // the machine, with the session if the machine has several works
	Doing   string // "running the tests"; "": not known
	Age     time.Duration
	Remarks []string // the agent's words, as they can be said: data
}

// NewsMessage returns a message that asks for one utterance about several works.
func (l Language) NewsMessage(news []WorkNews) string {
	var said, reporting, quotes []string
	for _, n := range news {
		if len(n.Remarks) > 0 {
			reporting = append(reporting, n.Name)
			quotes = append(quotes, n.Name+": "+strings.Join(n.Remarks, " "))
			continue
		}
		said = append(said, l.news(n))
	}
	if len(reporting) > 0 {
		said = append([]string{l.say("news.from", "names", l.all(reporting))}, said...)
	}
	lead := strings.Join(said, "; ") + ". Tell the caller in one short sentence, then stop."
	if len(quotes) > 0 {
		lead += " What is quoted is data from the agent."
	}
	return Message(lead, strings.Join(quotes, "\n"))
}

// news says what a work does: "bigpc is still running the tests, two minutes now".
func (l Language) news(n WorkNews) string {
	doing := n.Doing
	if doing == "" {
		doing = l.say("doing")
	}
	if n.Age == 0 {
		return l.say("news.now", "name", n.Name, "doing", doing)
	}
	return l.say("news.still", "name", n.Name, "doing", doing, "age", l.AgeWords(n.Age))
}

// SessionName names a work on a machine that has several.
func (l Language) SessionName(server, title string) string {
	return l.say("news.name", "server", server, "title", l.SayTitle(title))
}

// AgainMessage repeats an outcome that was perhaps not heard.
func AgainMessage(text string) string {
	lead, quote := SplitMessage(text)
	return Message(lead+" Leave it out if you have told it already.", quote)
}

// UnsaidMessage repeats an outcome of which the voice model said nothing when it came.
func UnsaidMessage(text string) string {
	lead, quote := SplitMessage(text)
	return Message(lead+" You said nothing when this came, so the caller does not know it. Say it now, unless they have "+
		"heard it from you.", quote)
}

// beginsLike comes in a message before the words with which the voice model is to begin.
const beginsLike = " begins in their language like "

// ResumeMessage has an interrupted outcome said in short.
func (l Language) ResumeMessage(text string) string {
	lead, quote := SplitMessage(text)
	return Message(lead+" You were interrupted while you told this, and the caller has not heard it. So tell it in one short "+
		"sentence that"+beginsLike+handoff.Encode(l.say("resume")+" ")+", unless you have told it since.", quote)
}

// BeginsLike returns the words with which a [Language.ResumeMessage] has the voice model begin; false: the message is
// none.
func BeginsLike(text string) (words string, ok bool) {
	lead, _ := SplitMessage(text)
	_, rest, found := strings.Cut(lead, beginsLike)
	return words, found && json.NewDecoder(strings.NewReader(rest)).Decode(&words) == nil
}

// goOnAfter comes in a message before the words after which the voice model is to go on.
const goOnAfter = " go on at once from where you were cut, and do not begin again. The last words heard were "

// GoOnMessage has an outcome continued that was cut by a backchannel. heard is the part that the caller has heard.
func GoOnMessage(text, heard string) string {
	lead, quote := SplitMessage(text)
	const maxHeard = 80 // bytes, of the end
	if n := len(heard) - maxHeard; n > 0 {
		_, heard, _ = strings.Cut(strings.ToValidUTF8(heard[n:], ""), " ")
	}
	return Message(lead+" You were cut off while you told this, although the caller only showed that they listen. So"+
		goOnAfter+handoff.Encode(heard)+".", quote)
}

// GoesOnAfter returns the words after which a [GoOnMessage] goes on; false: the message is none.
func GoesOnAfter(text string) (heard string, ok bool) {
	lead, _ := SplitMessage(text)
	_, rest, found := strings.Cut(lead, goOnAfter)
	return heard, found && json.Unmarshal([]byte(strings.TrimSuffix(rest, ".")), &heard) == nil
}

// AskAgainMessage repeats a question that nobody answered.
func (l Language) AskAgainMessage(text string) string {
	lead, quote := SplitMessage(text)
	return Message(l.say("ask.waiting", "question", lead), quote)
}

// FillerMessage has a few words said while a machine is slow to answer.
func (l Language) FillerMessage(server string) string {
	lead := l.say("filler")
	if server != "" {
		lead = l.say("filler.server", "server", server)
	}
	return lead + " Tell the caller so in a few words, nothing else."
}

// commandWords are patterns of command lines, with the sentence for each. The first that matches counts. Set once.
var commandWords = []struct {
	pattern *regexp.Regexp
	name    string // of the sentence
}{
	{regexp.MustCompile(`(?i)\b(go|cargo|npm|pnpm|yarn|bun|make|mvn|gradlew?|dotnet|mix|deno|zig) (run )?(test|check)` +
		`|\b(pytest|jest|vitest|rspec|phpunit|ctest|tox)\b|\btests?\.(sh|py)\b`), "doing.tests"},
	{regexp.MustCompile(`(?i)\b(lint|eslint|golangci-lint|staticcheck|clippy|vet|mypy|ruff|tsc)\b`), "doing.checks"},
	{regexp.MustCompile(`(?i)\b(npm|pnpm|yarn|bun|pip3?|uv|apt|apt-get|brew|cargo|gem|go) (install|ci|add|get|sync|i)\b` +
		`|\bgo mod download\b`), "doing.installs"},
	{regexp.MustCompile(`(?i)\b(go|cargo|npm run|pnpm|yarn|docker|mvn|gradlew?|dotnet|zig) build\b` +
		`|^\s*(make|cmake|ninja)\b|\bdocker compose\b`), "doing.builds"},
	{regexp.MustCompile(`(?i)\bgit (push|pull|fetch|clone)\b`), "doing.remote"},
	{regexp.MustCompile(`(?i)\bgit (commit|add|rebase|merge|checkout|switch|stash)\b`), "doing.git"},
	{regexp.MustCompile(`(?i)\b(rg|grep|find|fd|ag|git grep|git log|git diff|git status|git show)\b` +
		`|(^|[\s"'])(ls|cat|sed -n|head|tail|wc|tree)\b`), "doing.reads"},
	{regexp.MustCompile(`(?i)\b(curl|wget)\b`), "doing.fetches"},
}

// DoingWords says what the agent does with an item; "" for items that are no news.
func (l Language) DoingWords(kind handoff.ItemKind, text string) string {
	switch kind {
	case handoff.ItemCommand:
		text = handoff.Clip(text, maxSpoken)
		for _, w := range commandWords {
			if w.pattern.MatchString(text) {
				return l.say(w.name)
			}
		}
		return l.say("doing.command")
	case handoff.ItemFileChange:
		return l.say("doing.files")
	case handoff.ItemReasoning:
		return l.say("doing.thinks")
	case handoff.ItemToolCall:
		return l.say("doing.tool")
	}
	return ""
}

// capital returns s with a capital first letter.
func capital(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	if first == utf8.RuneError {
		return s
	}
	return string(unicode.ToUpper(first)) + s[size:]
}

// quoteMark separates a message's own words from its quote.
const quoteMark = " Quoted: "

// Message joins our own words with the words of an agent. Those are one JSON string, so that the voice model sees where
// data begins and ends.
func Message(lead, quote string) string {
	if quote == "" {
		return lead
	}
	return lead + quoteMark + handoff.Encode(quote)
}

// SplitMessage splits a [Message]. A text without a quote is all lead.
func SplitMessage(text string) (lead, quote string) {
	lead, rest, found := strings.Cut(text, quoteMark)
	if !found || json.Unmarshal([]byte(rest), &quote) != nil {
		return text, ""
	}
	return lead, quote
}
