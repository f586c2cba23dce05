package handoff

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// An Ask is one part of a question that is answered in words: a field of a form.
type Ask struct {
	Text     string   `json:"text"`
	Options  []string `json:"options,omitempty"`  // answers that are offered, no two alike
	Only     bool     `json:"only,omitempty"`     // no other answers than these count
	Many     bool     `json:"many,omitempty"`     // several of the options may be chosen
	Optional bool     `json:"optional,omitempty"` // it may be left out
	Secret   bool     `json:"secret,omitempty"`   // the answer is typed on the page, never said
}

// A Reply answers a question in words, by Words or by Answers.
type Reply struct {
	Words   string     // a line for each [Ask]; the only Ask gets all of them
	Answers [][]string // the answers to each Ask; none: it is left out
}

// Picks is [Question.Picks].
func (q RecordQuestion) Picks() bool { return Question{Words: q.Words, Kind: q.Kind}.Picks() }

// Picks reports whether the words choose among acts: such a choice allows something, and is judged as a yes is. It
// names one of the options; a yes alone chooses nothing.
func (q Question) Picks() bool {
	return q.Words && q.Kind != QuestionInput && q.Kind != QuestionElicitation
}

// Fields returns what is asked, one by one: a question in words without Asks has one field.
func (q Question) Fields() []Ask {
	if len(q.Asks) > 0 {
		return q.Asks
	}
	return []Ask{{Text: q.Text}}
}

// Read returns the answers to each field of the question, offered ones as they are written there. The error, of
// [CodeMalformed], says which field has no answer that fits. A reply that leaves everything out is none.
func (q Question) Read(r Reply) ([][]string, error) {
	fields, answers := q.Fields(), r.Answers
	if answers == nil {
		lines := []string{r.Words}
		if len(fields) > 1 {
			lines = strings.Split(r.Words, "\n")
			for len(lines) > len(fields) && lines[len(lines)-1] == "" {
				lines = lines[:len(lines)-1]
			}
		}
		for i, line := range lines {
			if i < len(fields) {
				answers = append(answers, fields[i].split(line))
			}
		}
		if len(lines) != len(fields) {
			answers = nil
		}
	}
	if len(answers) != len(fields) {
		return nil, Fault(CodeMalformed, "each question needs an answer, one on a line", "")
	}
	read, empty := make([][]string, len(fields)), true
	for i, a := range fields {
		var err error
		if read[i], err = a.fit(answers[i]); err != nil {
			return nil, err
		}
		empty = empty && len(read[i]) == 0
	}
	if empty {
		return nil, Fault(CodeMalformed, "nothing is answered", "")
	}
	return read, nil
}

// Read returns the answers of some words to one field, as [Question.Read] does.
func (a Ask) Read(words string) ([]string, error) { return a.fit(a.split(words)) }

// split returns the answers that some words have. Several are listed, with a comma or an "and" between them. Words that
// are no such list are one answer of their own.
func (a Ask) split(words string) []string {
	words = strings.TrimSpace(words)
	if words == "" || a.Optional && slices.Contains(skips, plainWords(words)) {
		return nil
	}
	if a.Many && a.option(words) == "" {
		if all := a.list(words); all != nil {
			return all
		}
	}
	return []string{words}
}

// list returns the options that words list, or nil if there is anything else in them.
func (a Ask) list(words string) (all []string) {
	rest := plainWords(words)
	for rest != "" {
		best, length := "", 0
		for _, o := range a.Options {
			if plain := plainWords(o); len(plain) > length && startsWith(rest, plain) {
				best, length = o, len(plain)
			}
		}
		if length == 0 {
			i := slices.IndexFunc(ands, func(and string) bool { return startsWith(rest, and) })
			if i < 0 {
				return nil
			}
			length = len(ands[i])
		} else if !slices.Contains(all, best) {
			all = append(all, best)
		}
		rest = strings.TrimSpace(rest[length:])
	}
	return all
}

// startsWith reports whether text starts with whole words.
func startsWith(text, words string) bool {
	rest, is := strings.CutPrefix(text, words)
	return is && words != "" && (rest == "" || rest[0] == ' ')
}

// fit returns answers as the field takes them.
func (a Ask) fit(answers []string) ([]string, error) {
	var fitting []string
	for _, answer := range answers {
		answer = strings.TrimSpace(answer)
		if answer == "" {
			continue
		}
		option := a.option(answer)
		switch {
		case option != "":
			answer = option
		case a.Only:
			return nil, Fault(CodeMalformed, "the answers to “"+ClipRunes(a.Text, 80)+"” are "+ListWords(a.Options), "")
		}
		if !slices.Contains(fitting, answer) {
			fitting = append(fitting, answer)
		}
	}
	switch {
	case len(fitting) == 0 && !a.Optional:
		return nil, Fault(CodeMalformed, "“"+ClipRunes(a.Text, 80)+"” needs an answer", "")
	case len(fitting) > 1 && !a.Many:
		return nil, Fault(CodeMalformed, "“"+ClipRunes(a.Text, 80)+"” takes one answer", "")
	}
	return fitting, nil
}

// option returns the option that an answer names, or "": first as it is written, then whatever its letter case and
// punctuation.
func (a Ask) option(answer string) string {
	if slices.Contains(a.Options, answer) {
		return answer
	}
	plain, found := plainWords(answer), ""
	for _, o := range a.Options {
		if plain != "" && plainWords(o) == plain {
			if found != "" { // it names two
				return ""
			}
			found = o
		}
	}
	return found
}

// plainWords returns the words of a text in lower case, without punctuation around them.
func plainWords(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune(",;、，", r)
	})
	for i, w := range words {
		if bare := strings.TrimFunc(w, unicode.IsPunct); bare != "" || utf8.RuneCountInString(w) > 1 {
			words[i] = bare
		}
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}

// ands stand between the answers of a list, and skips leave a field out, in the languages that are spoken here. Set
// once.
var (
	ands = strings.Fields("and plus und y e et en och i ve и та і और と 和 و와 과")

	skips = []string{
		"skip", "skip it", "skip that", "skip this", "skip this one", "skip that one", "leave it out", "leave it empty",
		"überspringen", "auslassen", "leer lassen", "omitir", "saltar", "déjalo vacío", "passer", "passe", "laisse vide",
		"salta", "saltalo", "lascia vuoto", "pular", "pule", "deixe em branco", "overslaan", "sla over", "hoppa över",
		"pomiń", "atla", "пропустить", "пропусти", "пропустити", "छोड़ दो", "スキップ", "건너뛰기", "跳过", "تخطي", "تخطى",
	}
)
