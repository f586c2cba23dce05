package simulator

import (
	"encoding/json"
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

// maxSummary bounds the outcomes of a summary that are said; its lead has their number.
const maxSummary = 4

// spokenMessage returns what to say of a system message: the first sentence of its lead and two sentences of its quote;
// two of each outcome if it has several, or one of each if it is a summary. A message that gives the words to say is
// said in these, and one that says to say nothing gives "".
func spokenMessage(text string) string {
	var words string
	_, given, found := strings.Cut(text, "Say it like this: ")
	if found && json.Unmarshal([]byte(given), &words) == nil {
		return words
	}
	if q, ok := readQuestion(text); ok {
		return q.spoken
	}
	if len(readPaused(text)) > 0 {
		return spokenPaused(text)
	}
	lead, quote := wording.SplitMessage(text)
	if strings.Contains(strings.ToLower(lead), "say nothing") {
		return ""
	}
	n := 1
	if strings.Contains(lead, "can only be answered on the machine") { // the second sentence says where
		n = 2
	}
	outcomes, short := []string{quote}, false
	lines := strings.Split(quote, "\n")
	switch {
	case strings.Contains(lead, "all of it"):
		outcomes = lines
	case strings.Contains(lead, "as one sentence") && len(lines) > 1:
		outcomes, short = lines[:min(len(lines), maxSummary)], true
	}
	begins, again := wording.BeginsLike(text)
	again = again && quote != ""
	for i, outcome := range outcomes {
		if outcomes[i] = spokenQuote(outcome); again || short {
			outcomes[i] = firstSentences(outcomes[i], 1)
		}
	}
	quote = strings.Join(outcomes, " ")
	if again {
		return begins + quote
	}
	lead = strings.NewReplacer("the caller was", "you were", "the caller", "you").Replace(firstSentences(lead, n))
	all := strings.TrimSpace(lead + " " + quote)
	if heard, ok := wording.GoesOnAfter(text); ok {
		if _, rest, found := strings.Cut(all, heard); found && strings.TrimSpace(rest) != "" {
			return strings.TrimSpace(rest)
		}
	}
	return all
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
func spokenPaused(message string) string {
	lead, quote := wording.SplitMessage(message)
	said := []string{firstSentences(lead, 1)}
	for line := range strings.SplitSeq(quote, "\n") {
		line = strings.TrimSpace(firstSentences(rePaused.ReplaceAllString(line, "It was: $2"), 2))
		if line != "" && strings.IndexByte(".!?", line[len(line)-1]) < 0 {
			line += "."
		}
		said = append(said, line)
	}
	return strings.Join(append(said, sayPaused), " ")
}
