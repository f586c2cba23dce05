package consent

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of what of a question may be repeated in a yes.
const (
	maxActWords    = 8 // words of the acts
	maxNameTokens  = 4 // tokens of a machine's name
	maxActPhrases  = 16
	maxMachineName = 16
)

// asking is what the words of the question add to the harmless ones.
type asking struct {
	machines []string   // written together
	book     phrasebook // what a yes may repeat
	acts     map[string]bool
}

func askedWords(q Question) asking {
	a := asking{book: phrasebook{}, acts: map[string]bool{}}
	for _, name := range q.Machines[:min(len(q.Machines), maxMachineName)] {
		tokens := hear(name).tokens
		a.called(tokens)
		if len(tokens) > 1 && (tokens[0] == "the" || tokens[0] == "my") { // "the desktop" is also "desktop"
			a.called(tokens[1:])
		}
	}
	for _, act := range q.Acts[:min(len(q.Acts), maxActPhrases)] {
		for _, t := range hear(act).tokens {
			if len(a.acts) < maxActWords && harmlessAct(t) {
				a.acts[t] = true
			}
		}
	}
	for _, row := range actForms {
		if a.mentions(row.any) {
			for _, form := range row.forms {
				a.add(form, kindTopic)
			}
			for _, verb := range row.verbs {
				a.verb(verb)
			}
		}
	}
	for t := range a.acts {
		a.add([]string{t}, kindTopic)
		a.add([]string{"run", "the", t}, kindYes)
	}
	a.numbers(hear(q.Text).tokens)
	return a
}

// numbers lets a reply repeat a number of the question, written or spelled, and no other.
func (a *asking) numbers(ours []string) {
	for _, row := range numberForms {
		if !slices.ContainsFunc(row, func(form []string) bool { return slices.Contains(ours, form[0]) }) {
			continue
		}
		for _, form := range row {
			a.add(form, kindTopic)
			a.add([]string{"all", form[0]}, kindTopic)
			a.add([]string{"all", "of", "the", form[0]}, kindTopic)
		}
	}
}

// called lets a reply say the machine's name, in whatever pieces it is heard.
func (a *asking) called(name []string) {
	if len(name) > 0 && len(name) <= maxNameTokens && (len(name) > 1 || harmlessAct(name[0])) {
		a.machines = append(a.machines, strings.Join(name, ""))
	}
}

func (a *asking) add(tokens []string, kind phraseKind) {
	a.book.add(tokens, kind)
}

// verb lets a reply say the act itself: "install it". The bare verb only follows a yes.
func (a *asking) verb(verb string) {
	a.add([]string{verb}, kindTopic)
	for _, object := range []string{"it", "that", "this", "them"} {
		a.add([]string{verb, object}, kindYes)
	}
	for t := range a.acts {
		if t != verb {
			a.add([]string{verb, "the", t}, kindYes)
		}
	}
}

func (a asking) mentions(words map[string]bool) bool {
	for t := range a.acts {
		if words[t] {
			return true
		}
	}
	return false
}

// at calls take for what of the question the tokens begin with.
func (a asking) at(tokens []string, take func(length int, kind phraseKind)) {
	a.book.at(tokens, take)
	for t := range a.acts {
		if soundsLike(tokens[0], t) {
			take(1, kindTopic)
		}
	}
	for _, n := range []int{a.machine(tokens), a.after(tokens, "on"), a.after(tokens, "tell"), a.after(tokens, "let")} {
		if n > 0 {
			take(n, kindTopic)
		}
	}
}

// after is the length of "on bigpc" or "on the laptop" at the front, or 0.
func (a asking) after(tokens []string, word string) int {
	at := 0
	for at < len(tokens) && (at == 0 && tokens[at] == word || at == 1 && tokens[at] == "the") {
		at++
	}
	if at == 0 || at == len(tokens) {
		return 0
	}
	if n := a.machine(tokens[at:]); n > 0 {
		return at + n
	}
	return 0
}

// machine is the length of the machine's name at the front, however its parts are spaced and its letters
// spelled ("big pea sea"), or 0.
func (a asking) machine(tokens []string) int {
	var joined strings.Builder
	for n, t := range tokens[:min(len(tokens), maxNameTokens)] {
		if letter, ok := letterNames[t]; ok && n > 0 {
			t = letter
		}
		joined.WriteString(t)
		if slices.Contains(a.machines, joined.String()) {
			return n + 1
		}
	}
	return 0
}

// named tells whether the tokens name the machine or the act.
func (a asking) named(tokens []string) bool {
	for i, t := range tokens {
		if a.acts[t] || a.machine(tokens[i:]) > 0 {
			return true
		}
		found := false
		a.book.at(tokens[i:], func(int, phraseKind) { found = true })
		if found {
			return true
		}
	}
	return false
}

// loaded are words that change what a yes means. A command or a machine that contains them cannot make
// them harmless: agents write commands.
var loaded = setOf("if unless when whenever while until till once only just all always every everything everyone any anything both " +
	"each ever again twice more other others another also too and or but because since instead rather maybe perhaps " +
	"probably possibly hardly barely later after before first last next then than without with except safe say says said " +
	"he she they we you i me my your who what why how where which would could should might think guess suppose want " +
	"user caller system agent assistant wenn falls immer alle alles si quand toujours tout siempre todo sempre tutto tudo " +
	"als altijd alles jezeli jesli zawsze wszystko eger her alltid om allt")

// harmlessAct tells whether a word of a question may be repeated in a yes.
func harmlessAct(token string) bool {
	if utf8.RuneCountInString(token) < 2 || loaded[token] || strings.Trim(token, "0123456789") == "" {
		return false
	}
	one := heard{tokens: []string{token}, apart: []bool{true}}
	return !one.has(denyWords) && !one.has(holdWords)
}

func setOf(list string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		set[w] = true
	}
	return set
}
