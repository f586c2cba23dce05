package simulator

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"switchboard/handoff/speakable"
	"switchboard/handoff/wording"
)

// spokenNews returns what to say of outputs and system messages, in their order.
func spokenNews(h Heard) string {
	var said []string
	for _, o := range h.Outputs {
		said = append(said, spokenOutput(o))
	}
	for _, m := range h.Messages {
		said = append(said, spokenMessage(m))
	}
	return strings.TrimSpace(strings.Join(said, " "))
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
			outcomes[i] = sentences(outcomes[i], 1)
		}
	}
	quote = strings.Join(outcomes, " ")
	if again {
		return begins + quote
	}
	lead = strings.NewReplacer("the caller was", "you were", "the caller", "you").Replace(sentences(lead, n))
	all := strings.TrimSpace(lead + " " + quote)
	if heard, ok := wording.GoesOnAfter(text); ok {
		if _, rest, found := strings.Cut(all, heard); found && strings.TrimSpace(rest) != "" {
			return strings.TrimSpace(rest)
		}
	}
	return all
}

func spokenQuote(quote string) string { return sentences(speakable.Speakable(inShell(quote), 600), 2) }

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
		return sentences(speakable.Speakable(o.Text, 600), 2)
	}
	out := gjson.Parse(o.Text)
	if !out.IsObject() {
		return sentences(out.String(), 2)
	}
	if say := out.Get("say"); say.Exists() { // "": there is nothing to say
		return say.String()
	}
	return "The tool has answered."
}

// readSessions reads the output of list_sessions; false: it is no list.
func readSessions(text string) ([]option, bool) {
	list := gjson.Get(text, "items")
	if !readable(text) || !list.IsArray() {
		return nil, false
	}
	var found []option
	for _, e := range list.Array() {
		found = append(found, option{id: e.Get("id").String(), title: e.Get("title").String(),
			label: e.Get("label").String(), server: e.Get("server").String()})
	}
	return found, true
}

// sentences returns the first n sentences of a text. Punctuation inside a word ends no sentence.
func sentences(text string, n int) string {
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
