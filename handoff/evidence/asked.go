package evidence

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"switchboard/handoff"
	"switchboard/handoff/consent"
)

// maxAskedActs is how many words of a command a yes may repeat: its program, subcommand and first operands.
const maxAskedActs = 4

// AskedAbout returns what a question asks, for [consent.Read]: the words of its command or files, the
// machine's names, and the text with which we asked.
func AskedAbout(q handoff.Question, machines []string, text string) consent.Question {
	asked := consent.Question{Machines: machines, Text: text}
	switch q.Kind {
	case handoff.QuestionCommand:
		asked.Acts = commandActs(q.Command)
	case handoff.QuestionFileChange:
		asked.Acts = []string{"edit", "files"}
		for _, c := range q.Changes[:min(len(q.Changes), 3)] {
			asked.Acts = append(asked.Acts, path.Base(c))
		}
	case handoff.QuestionCopy:
		asked.Acts = []string{"copy", "session"}
	}
	return asked
}

// wrappers are programs that run another one: nobody names them when they say what is run.
var wrappers = strings.Fields("sh bash zsh dash fish env sudo doas nohup nice time exec command lc c xargs cmd powershell pwsh cd")

// commandActs takes the first words of a command that name what it does.
func commandActs(command string) []string {
	var out []string
	for field := range strings.FieldsSeq(handoff.Clip(command, 400)) {
		field = strings.Trim(field, `"'();&|`)
		if strings.HasPrefix(field, "-") || strings.Contains(field, "=") {
			continue
		}
		word := path.Base(field)
		words := strings.FieldsFunc(strings.ToLower(word), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if len(words) == 0 || slices.Contains(wrappers, words[0]) {
			continue
		}
		if out = append(out, word); len(out) == maxAskedActs {
			break
		}
	}
	return out
}
