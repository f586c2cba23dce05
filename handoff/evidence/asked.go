package evidence

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"switchboard/handoff"
	"switchboard/handoff/consent"
)

// Bounds of what a question is known by.
const (
	maxAskedActs = 8 // words of a command that a yes may repeat
	keyWords     = 2 // words of each of its parts that have to be heard: the program and its first operand
)

// AskedAbout returns what a question asks, for [consent.Read]: the words of its command or files, the
// machine's names, those of the project, and the text with which we asked.
func AskedAbout(q handoff.Question, machines []string, project, text string) consent.Question {
	asked := consent.Question{Machines: machines, Text: text}
	if project != "" {
		asked.Projects = []string{project}
	}
	switch q.Kind {
	case handoff.QuestionCommand:
		asked.Acts, asked.Key = commandActs(q.Command)
	case handoff.QuestionFileChange:
		asked.Acts = []string{"edit", "files"}
		for _, c := range q.Changes {
			asked.Files = append(asked.Files, path.Base(c))
		}
	case handoff.QuestionCopy:
		asked.Acts, asked.Key = []string{"copy"}, []string{"copy"}
	}
	return asked
}

// wrappers are programs that run another one: nobody names them when they say what is run.
var wrappers = strings.Fields("sh bash zsh dash fish env sudo doas nohup nice time exec command lc c xargs cmd " +
	"powershell pwsh cd")

// commandActs returns the words of a command that name what it does, and those without which nobody has said what it
// does: of each of its parts the program and the first operand.
func commandActs(command string) (acts, key []string) {
	part := 0
	for field := range strings.FieldsSeq(handoff.Clip(command, 400)) {
		if strings.Trim(field, ";&|") == "" {
			part = 0
			continue
		}
		word := path.Base(strings.Trim(field, `"'();&|`))
		words := strings.FieldsFunc(strings.ToLower(word), func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r)
		})
		if len(words) > 0 && !strings.HasPrefix(field, "-") && !strings.Contains(field, "=") &&
			!slices.Contains(wrappers, words[0]) {
			if part < keyWords {
				key = append(key, word)
			}
			part++
			if len(acts) < maxAskedActs {
				acts = append(acts, word)
			}
		}
		if strings.HasSuffix(field, ";") {
			part = 0
		}
	}
	return acts, key
}
