package simulator

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/handoff/speakable"
	"switchboard/handoff/wording"
)

// spokenNews says what answers and system messages tell, in their order.
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

// maxSummary is how many outcomes of a summary are said; its lead counts them all.
const maxSummary = 4

// spokenMessage says a system message: the first sentence of its lead and two of what it quotes, or of each outcome
// where it tells several, or one of each where that is a summary. One that gives its words is said with those, and one
// that says it is not to be spoken is not.
func spokenMessage(text string) string {
	var words string
	if _, given, found := strings.Cut(text, "Say it like this: "); found && json.Unmarshal([]byte(given), &words) == nil {
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
	if strings.Contains(lead, "can only be answered on the machine") { // what follows tells where
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

// inShell takes the shell off a command that is wrapped in one: nobody wants to hear it.
func inShell(command string) string {
	shell, inner, ok := strings.Cut(command, " -lc '")
	if inner, ended := strings.CutSuffix(inner, "'"); ok && ended && !strings.ContainsAny(shell, " \n") {
		return inner
	}
	return command
}

// spokenOutput says an answer: its own sentence, else a short summary of its kind.
func spokenOutput(o Output) string {
	if !readable(o.Text) {
		return sentences(speakable.Speakable(o.Text, 600), 2)
	}
	out := gjson.Parse(o.Text)
	if !out.IsObject() {
		return sentences(out.String(), 2)
	}
	if say := out.Get("say"); say.Exists() { // "" where there is nothing to say
		return say.String()
	}
	if list := out.Get("items"); list.IsArray() {
		return summary(list.Array(), out.Get("more").Int())
	}
	if lines := out.Get("lines"); lines.IsArray() {
		return transcript(out, lines.Array())
	}
	for _, key := range []string{"result", "error.message", "message", "error", "text", "output"} {
		if v := out.Get(key); v.Type == gjson.String && v.Str != "" {
			return sentences(speakable.Speakable(v.Str, 600), 2)
		}
	}
	if status := out.Get("status").String(); status != "" {
		return "The answer is: " + status + "."
	}
	return "Done."
}

// summary says a list of machines or sessions.
func summary(list []gjson.Result, more int64) string {
	if len(list) == 0 {
		return "There is nothing to list."
	}
	var parts []string
	for _, entry := range list[:min(len(list), 4)] {
		parts = append(parts, entrySentence(entry))
	}
	if rest := int64(len(list)-len(parts)) + more; rest > 0 {
		parts = append(parts, fmt.Sprintf("%d more", rest))
	}
	return "There is " + handoff.ListWords(parts) + "."
}

func entrySentence(e gjson.Result) string {
	if name := e.Get("name").String(); name != "" {
		if health := e.Get("health").String(); health != "" {
			return name + ", which is " + health
		}
		return name
	}
	s := e.Get("title").String()
	if s == "" {
		s = e.Get("label").String()
	}
	if server := e.Get("server").String(); server != "" {
		s += " on " + server
	}
	if age := e.Get("age").String(); age != "" {
		s += ", " + age
	}
	return s
}

// transcript says what a session is about and the last thing its agent said.
func transcript(out gjson.Result, lines []gjson.Result) string {
	said := ""
	for _, line := range lines {
		if role := line.Get("role").String(); role == "agent" || role == "assistant" {
			said = line.Get("text").String()
		}
	}
	lead := "The session " + out.Get("title").String()
	if server := out.Get("server").String(); server != "" {
		lead += " on " + server
	}
	if status := out.Get("status").String(); status != "" && status != "unknown" {
		lead += " is " + status
	}
	if said == "" {
		return lead + "."
	}
	return lead + ". The last word there: " + sentences(speakable.Speakable(said, 600), 2)
}

// readSessions reads the entries of list_sessions; false when the output has none.
func readSessions(text string) ([]option, bool) {
	list := gjson.Get(text, "items")
	if !readable(text) || !list.IsArray() {
		return nil, false
	}
	var found []option
	for _, e := range list.Array() {
		s := option{id: e.Get("id").String(), title: e.Get("title").String(), server: e.Get("server").String()}
		if s.id == "" {
			s.id = e.Get("label").String()
		}
		if s.id != "" {
			found = append(found, s)
		}
	}
	return found, true
}

// sentences returns the first n sentences of a text. A point inside a word ends none.
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
