package wording

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"switchboard/handoff"
)

// Fault returns the sentence about an error, with up to three choices and the number of others. In English it is
// [handoff.Error.Spoken].
func (l Language) Fault(e *handoff.Error) string {
	code, ok := l.find("code." + string(e.Code))
	if l.IsEnglish() || !ok {
		return e.Spoken()
	}
	s := code.with([]string{"it", cmp.Or(l.Why(e.About()), l.say("fault.it"))})
	n := min(len(e.Choices), 3)
	if n == 0 {
		return s
	}
	said := slices.Clone(e.Choices[:n])
	if more := len(e.Choices) - n; more > 0 {
		said = append(said, l.say("list.more", "n", strconv.Itoa(more)))
	}
	if e.Near {
		return l.say("fault.near", "fault", s, "list", l.join("list.or", said))
	}
	return l.say("fault.choices", "fault", s, "list", l.all(said))
}

// whys are the names of the sentences with reasons ("why."), by their English text. Set once.
var whys = sync.OnceValue(func() map[string]string {
	names := map[string]string{}
	for name, s := range spoken()[English]() {
		if strings.HasPrefix(name, "why.") {
			names[s[0]] = name
		}
	}
	return names
})

// Why translates a reason that is the subject of an error. Any other subject, such as a name, stays as it is.
func (l Language) Why(subject string) string {
	if name, ok := whys()[subject]; ok {
		return l.say(name)
	}
	return subject
}

// Refusal returns the answer to a function call that failed. The subject of the error may exist in English only, so the
// voice model, which can correct its arguments, gets the English sentence as well.
func (l Language) Refusal(e *handoff.Error) Answer {
	a := Answer{
		Status: string(handoff.OutcomeFailed), Code: e.Code, Choices: e.Choices[:min(len(e.Choices), 10)],
		Say: l.Fault(e), Next: e.NextStep(),
	}
	if !l.IsEnglish() && !strings.Contains(a.Say, l.Why(e.About())) {
		a.Note = "In English: " + e.Spoken()
	}
	return a
}
