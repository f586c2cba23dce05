package simulator

import (
	"strings"

	"github.com/tidwall/gjson"

	"switchboard/handoff/speakable"
	"switchboard/handoff/wording"
)

// news are what the brain has to say: answers to calls, and system messages.
type news struct {
	Outputs  []Output
	Messages []string
}

// spoken returns what to say of them, in their order.
func (n news) spoken() string {
	var said []string
	for _, o := range n.Outputs {
		said = append(said, spokenOutput(o))
	}
	for _, m := range n.Messages {
		said = append(said, spokenMessage(m))
	}
	return strings.TrimSpace(strings.Join(said, " "))
}

// A cut is an answer that the end of another session cut.
type cut struct {
	said     string
	answered news
}

// unsaid returns the part that was not said, or all of it if what was said is no prefix of it.
func (c cut) unsaid() string {
	whole := c.answered.spoken()
	if left, found := strings.CutPrefix(whole, strings.TrimSpace(c.said)); found {
		return strings.TrimSpace(left)
	}
	return whole
}

// asksToGoOn reports whether a message asks to continue an answer that the end of another session cut.
func asksToGoOn(message string) bool { return strings.Contains(message, "Go on where you were cut") }

// asksToRepeat reports whether a message asks to repeat what may not have been heard.
func asksToRepeat(message string) bool {
	return strings.Contains(message, "say that again if it matters")
}

// spokenMessage returns what to say of a system message: what it has to be said. Of a text that is no message of
// Switchboard, it is the first sentence, unless it says to say nothing.
func spokenMessage(text string) string {
	a, ok := wording.ReadAnswer(text)
	switch q, open := readQuestion(a); {
	case !ok && strings.Contains(strings.ToLower(text), "say nothing"):
		return ""
	case !ok:
		return strings.NewReplacer("the caller was", "you were", "the caller", "you").Replace(firstSentences(text, 1))
	case open, a.Ask != "":
		return q.spoken
	case len(a.Paused) > 0:
		return spokenPaused(a)
	}
	return a.Say
}

func spokenQuote(quote string) string {
	return firstSentences(speakable.Speakable(inShell(quote), 600), 2)
}

// inShell returns the command inside a shell's -lc '…': the shell is not worth saying.
func inShell(command string) string {
	shell, inner, ok := strings.Cut(command, " -lc '")
	if inner, ended := strings.CutSuffix(inner, "'"); ok && ended && !strings.ContainsAny(shell, " \n") {
		return inner
	}
	return command
}

// spokenOutput returns what to say of an output: the field say of Switchboard's tools, or the beginning of another
// tool's text.
func spokenOutput(o Output) string {
	if !readable(o.Text) {
		return firstSentences(speakable.Speakable(o.Text, 600), 2)
	}
	out := gjson.Parse(o.Text)
	if !out.IsObject() {
		return firstSentences(out.String(), 2)
	}
	if say := out.Get("say"); say.Exists() { // "": there is nothing to say
		return say.String()
	}
	return "The tool has answered."
}

// firstSentences returns the first n sentences of a text. Punctuation inside a word ends no sentence.
func firstSentences(text string, n int) string {
	text = strings.Join(strings.Fields(text), " ")
	for i := range len(text) {
		if strings.IndexByte(".!?", text[i]) < 0 || i+1 < len(text) && text[i+1] != ' ' {
			continue
		}
		if n--; n == 0 {
			return text[:i+1]
		}
	}
	return text
}

// spokenPaused returns the spoken form of a message about paused work, without the ids.
func spokenPaused(a wording.Answer) string {
	said := []string{a.Say}
	if a.Server != "" { // else the work is named
		said = append(said, "It was: "+strings.TrimRight(firstSentences(a.Paused[0].Said, 1), ".")+".")
	}
	return strings.Join(append(said, sayPaused), " ")
}
