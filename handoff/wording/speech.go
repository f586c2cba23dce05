package wording

import (
	"cmp"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"switchboard/handoff"
	"switchboard/handoff/speakable"
)

// MaxProgress bounds the part of a remark that is said, in bytes.
const MaxProgress = 240

// NewsMessage returns a message that asks for one utterance about open works.
func (l Language) NewsMessage(open []Open) Answer {
	a := Answer{Say: l.Brief(News{Open: open}), Note: "Tell the caller in one short sentence, then stop."}
	for _, w := range open {
		if w.Remark != "" {
			a.Details = append(a.Details, w.Server+": "+w.Remark)
		}
	}
	return a
}

// AgainMessage repeats an outcome that was perhaps not heard.
func AgainMessage(a Answer) Answer {
	a.Note += " Leave it out if you have told it already."
	return a
}

// UnsaidMessage repeats an outcome of which the voice model said nothing when it came.
func UnsaidMessage(a Answer) Answer {
	a.Note += " You said nothing when this came, so the caller does not know it. Say it now, unless they have heard it from " +
		"you."
	return a
}

// ResumeMessage offers an interrupted outcome again, in one sentence.
func (l Language) ResumeMessage(a Answer) Answer {
	said := cmp.Or(strings.TrimSpace(strings.TrimPrefix(a.Say, a.lead)), a.Say)
	first := cmp.Or(speakable.FirstSentence(said), said)
	if rest := strings.TrimSpace(said[len(first):]); rest != "" && len(a.Details) == 2 { // both are in the second
		first = l.say("list.clause", "a", clause(first), "b", rest)
	}
	a.Say = l.say("resume") + " " + first
	a.Note += " You were interrupted while you told this, and the caller has not heard it. So tell it in one short sentence " +
		"that begins in their language like say does, unless you have told it since."
	return a
}

// GoOnMessage has an outcome continued that was cut by a backchannel. heard is the part that the caller has heard.
func GoOnMessage(a Answer, heard string) Answer {
	if _, rest, found := strings.Cut(a.Say, heard); found && strings.TrimSpace(rest) != "" {
		a.Say = strings.TrimSpace(rest)
	}
	const maxHeard = 80 // bytes, of the end
	if n := len(heard) - maxHeard; n > 0 {
		_, heard, _ = strings.Cut(strings.ToValidUTF8(heard[n:], ""), " ")
	}
	a.Note += " You were cut off while you told this, although the caller only showed that they listen. So go on at once " +
		"from where you were cut, and do not begin again. The last words heard were " + handoff.Encode(heard) + "."
	return a
}

// AskAgainMessage repeats a question that nobody answered.
func (l Language) AskAgainMessage(a Answer) Answer {
	a.Say = l.say("ask.waiting", "question", a.Say)
	return a
}

// FillerMessage has a few words said while a machine is slow to answer.
func (l Language) FillerMessage(server string) Answer {
	a := Answer{Say: l.say("filler"), Note: "Tell the caller so in a few words, nothing else."}
	if server != "" {
		a.Say = l.say("filler.server", "server", server)
	}
	return a
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
