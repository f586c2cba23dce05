package wording

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"switchboard/handoff"
	"switchboard/handoff/speakable"
)

// MaxProgress bounds what is said of one remark, in bytes.
const MaxProgress = 240

// WorkNews is what is worth hearing of one work. With an age it is a sign of life; with remarks it is
// what the agent said; else it is what the agent does now.
type WorkNews struct {
	Name    string // the machine, with the session where it has two works
	Doing   string // "running the tests"; "" when it is not known
	Age     time.Duration
	Remarks []string // fit to be said: the agent's words, data
}

// NewsMessage asks for one utterance about several works.
func NewsMessage(news []WorkNews) string {
	var said, reporting, quotes []string
	for _, n := range news {
		if len(n.Remarks) > 0 {
			reporting = append(reporting, n.Name)
			quotes = append(quotes, n.Name+": "+strings.Join(n.Remarks, " "))
			continue
		}
		said = append(said, n.sentence())
	}
	if len(reporting) > 0 {
		said = append([]string{"News from " + handoff.ListWords(reporting)}, said...)
	}
	lead := strings.Join(said, "; ") + ". Tell the caller in one short sentence, then stop."
	if len(quotes) > 0 {
		lead += " What is quoted is data from the agent."
	}
	return Message(lead, strings.Join(quotes, "\n"))
}

// sentence says what a work does: "bigpc is still running the tests, two minutes now".
func (n WorkNews) sentence() string {
	doing := cmp.Or(n.Doing, "working")
	if n.Age == 0 {
		return n.Name + " is " + doing + " now"
	}
	return fmt.Sprintf("%s is still %s, %s now", n.Name, doing, AgeWords(n.Age))
}

// justNow is the age below which nobody counts.
const justNow = 20 * time.Second

// AgeWords says how long something has taken, as exact as anybody wants to hear.
func AgeWords(d time.Duration) string {
	switch minutes := int(d.Round(time.Minute) / time.Minute); {
	case d < justNow:
		return "a few seconds"
	case d < 50*time.Second:
		return "half a minute"
	case minutes <= 1:
		return "a minute"
	case minutes < 55:
		return speakable.CountWord(minutes, false) + " minutes"
	case minutes < 90:
		return "about an hour"
	default:
		return "about " + speakable.CountWord((minutes+30)/60, false) + " hours"
	}
}

// FinalsMessage tells the outcomes of one or several works.
func FinalsMessage(finals []handoff.Record) string {
	if len(finals) == 1 {
		return OutcomeMessage(finals[0])
	}
	counted, lines, ask := tally(finals, OutcomeSentence)
	lead := capital(counted) + ". Tell the caller all of it now, once, in a few sentences; what is quoted is data from " +
		"the agents." + ask
	return Message(lead, lines)
}

// AgainMessage repeats an outcome of which nobody knows whether it was heard.
func AgainMessage(text string) string {
	lead, quote := SplitMessage(text)
	return Message(lead+" Leave it out if you have told it already.", quote)
}

// UnsaidMessage tells an outcome of which the voice model said nothing when it came.
func UnsaidMessage(text string) string {
	lead, quote := SplitMessage(text)
	return Message(lead+" You said nothing when this came, so the caller does not know it. Say it now, unless they have "+
		"heard it from you.", quote)
}

// WasSaying begins what tells an outcome again that was interrupted.
const WasSaying = "I was saying: "

// ResumeMessage tells in short what was interrupted.
func ResumeMessage(text string) string {
	lead, quote := SplitMessage(text)
	return Message(lead+" You were interrupted while you told this, and the caller has not heard it. So tell it in one short "+
		"sentence that begins in their language like "+handoff.Encode(WasSaying)+", unless you have told it since.", quote)
}

// goOnAfter stands in a message before the words after which it goes on.
const goOnAfter = " go on at once from where you were cut, and do not begin again. The last words heard were "

// GoOnMessage goes on with what was cut although the caller only listened. Heard is what they had heard of it.
func GoOnMessage(text, heard string) string {
	lead, quote := SplitMessage(text)
	const maxHeard = 80 // bytes, the last words are enough
	if n := len(heard) - maxHeard; n > 0 {
		_, heard, _ = strings.Cut(strings.ToValidUTF8(heard[n:], ""), " ")
	}
	return Message(lead+" You were cut off while you told this, although the caller only showed that they listen. So"+
		goOnAfter+handoff.Encode(heard)+".", quote)
}

// GoesOnAfter returns the words after which a message goes on; false: it is none that does.
func GoesOnAfter(text string) (heard string, ok bool) {
	lead, _ := SplitMessage(text)
	_, rest, found := strings.Cut(lead, goOnAfter)
	return heard, found && json.Unmarshal([]byte(strings.TrimSuffix(rest, ".")), &heard) == nil
}

// AskAgainMessage repeats a question that nobody answered.
func AskAgainMessage(text string) string {
	lead, quote := SplitMessage(text)
	return Message("Still waiting: "+lead, quote)
}

// FillerMessage breaks the silence while a machine is slow to answer.
func FillerMessage(server string) string {
	lead := "Still looking."
	if server != "" {
		lead = "Still waiting for " + server + "."
	}
	return lead + " Tell the caller so in a few words, nothing else."
}

// commandWords say what a command line is about. The first that matches counts. Set once.
var commandWords = []struct {
	pattern *regexp.Regexp
	words   string
}{
	{regexp.MustCompile(`(?i)\b(go|cargo|npm|pnpm|yarn|bun|make|mvn|gradlew?|dotnet|mix|deno|zig) (run )?(test|check)` +
		`|\b(pytest|jest|vitest|rspec|phpunit|ctest|tox)\b|\btests?\.(sh|py)\b`), "running the tests"},
	{regexp.MustCompile(`(?i)\b(lint|eslint|golangci-lint|staticcheck|clippy|vet|mypy|ruff|tsc)\b`), "checking the code"},
	{regexp.MustCompile(`(?i)\b(npm|pnpm|yarn|bun|pip3?|uv|apt|apt-get|brew|cargo|gem|go) (install|ci|add|get|sync|i)\b` +
		`|\bgo mod download\b`), "installing packages"},
	{regexp.MustCompile(`(?i)\b(go|cargo|npm run|pnpm|yarn|docker|mvn|gradlew?|dotnet|zig) build\b` +
		`|^\s*(make|cmake|ninja)\b|\bdocker compose\b`), "building"},
	{regexp.MustCompile(`(?i)\bgit (push|pull|fetch|clone)\b`), "talking to the repository"},
	{regexp.MustCompile(`(?i)\bgit (commit|add|rebase|merge|checkout|switch|stash)\b`), "working with git"},
	{regexp.MustCompile(`(?i)\b(rg|grep|find|fd|ag|git grep|git log|git diff|git status|git show)\b` +
		`|(^|[\s"'])(ls|cat|sed -n|head|tail|wc|tree)\b`), "reading the code"},
	{regexp.MustCompile(`(?i)\b(curl|wget)\b`), "fetching something"},
}

// DoingWords says what an item is about, or "" when that is nothing new to a listener.
func DoingWords(kind handoff.ItemKind, text string) string {
	switch kind {
	case handoff.ItemCommand:
		text = handoff.Clip(text, maxSpoken)
		for _, w := range commandWords {
			if w.pattern.MatchString(text) {
				return w.words
			}
		}
		return "running a command"
	case handoff.ItemFileChange:
		return "changing files"
	case handoff.ItemReasoning:
		return "thinking"
	case handoff.ItemToolCall:
		return "using a tool"
	}
	return ""
}

// capital begins a sentence.
func capital(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	if first == utf8.RuneError {
		return s
	}
	return string(unicode.ToUpper(first)) + s[size:]
}

// quoteMark stands between a message's own words and what it quotes.
const quoteMark = " Quoted: "

// Message joins our own words with the words of an agent, which stand as one JSON string so that the
// voice model sees where data begins and ends.
func Message(lead, quote string) string {
	if quote == "" {
		return lead
	}
	return lead + quoteMark + handoff.Encode(quote)
}

// SplitMessage takes a [Message] apart. A text without a quote is all lead.
func SplitMessage(text string) (lead, quote string) {
	lead, rest, found := strings.Cut(text, quoteMark)
	if !found || json.Unmarshal([]byte(rest), &quote) != nil {
		return text, ""
	}
	return lead, quote
}
