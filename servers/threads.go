package servers

import (
	"regexp"
	"slices"
	"strings"

	"switchboard/handoff"
)

// minPrefix is how much of an id must be given: less is rather a word.
const minPrefix = 6

// minStem is how much of a title's word must be said.
const minStem = 4

// maxSessionChoices is how many sessions an unknown name is answered with.
const maxSessionChoices = 10

// uuid is the form of a Codex thread id.
var uuid = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// A named thread is one that the resolver can find.
type named struct {
	Thread
	Label string
}

func name(threads []Thread) []named {
	labelled := labels(threads)
	out := make([]named, len(threads))
	for i, t := range threads {
		out[i] = named{t, labelled[t.ID]}
	}
	return out
}

// settled tells whether a thread name needs no list: nothing, [handoff.NewThread] or a full id. The
// second result is the name in canonical form.
func settled(said string) (string, bool) {
	said = strings.TrimSpace(said)
	switch {
	case said == "":
		return "", true
	case uuid.MatchString(said):
		return said, true
	case strings.Join(words(said), "") == handoff.NewThread:
		return handoff.NewThread, true
	}
	return "", false
}

// exactThread finds a thread by full id or label. These are unique, whatever else is on the server.
func exactThread(said string, list []named) (string, bool) {
	said = strings.TrimSpace(said)
	for _, t := range list {
		if t.ID == said {
			return t.ID, true
		}
	}
	if len(said) > maxSpoken {
		return "", false
	}
	wanted := keys(words(said))
	for _, t := range list {
		if overlap(keys(words(t.Label)), wanted) {
			return t.ID, true
		}
	}
	return "", false
}

// findThread finds the one thread of a server that a name means: id, label, start of the id, title, words
// of the title, or nearly the label or title. It never guesses.
func findThread(said string, list []named) (string, *handoff.Error) {
	if id, ok := exactThread(said, list); ok {
		return id, nil
	}
	said = strings.TrimSpace(said)
	if len(said) <= maxSpoken {
		for _, match := range threadMatchers(said) {
			if found := slices.DeleteFunc(slices.Clone(list), func(t named) bool { return !match(t) }); len(found) > 0 {
				return onlyThread(said, found)
			}
		}
	}
	fault := handoff.Fault(handoff.CodeUnknownSession, sayable(said), "")
	for _, t := range list[:min(len(list), maxSessionChoices)] {
		fault.Choices = append(fault.Choices, t.Label)
	}
	return "", fault
}

// threadMatchers are the ways to mean a thread, the surest first. The first that fits any thread decides.
func threadMatchers(said string) []func(named) bool {
	full := words(said)
	bare := without(full, sessionFillers)
	wanted, loose := keys(full), keys(bare)
	return []func(named) bool{
		func(t named) bool {
			return len(said) >= minPrefix && len(t.ID) > len(said) && strings.EqualFold(t.ID[:len(said)], said)
		},
		func(t named) bool { return overlap(keys(words(t.Title)), wanted) },
		func(t named) bool {
			return overlap(keys(without(words(t.Label), sessionFillers)), loose) ||
				overlap(keys(without(words(t.Title), sessionFillers)), loose)
		},
		func(t named) bool { return len(bare) > 0 && hasWords(words(t.Title), digits(bare)) },
		func(t named) bool {
			return slices.ContainsFunc(slices.Concat(keys(words(t.Label)), keys(words(t.Title))), func(have string) bool {
				return slices.ContainsFunc(slices.Concat(wanted, loose), func(w string) bool { return near(w, have) })
			})
		},
	}
}

// hasWords tells whether every word wanted is one of the title, or begins one.
func hasWords(title, wanted []string) bool {
	title = digits(title)
	for _, w := range wanted {
		if !slices.ContainsFunc(title, func(have string) bool {
			return have == w || len(w) >= minStem && strings.HasPrefix(have, w)
		}) {
			return false
		}
	}
	return true
}

func onlyThread(said string, found []named) (string, *handoff.Error) {
	if len(found) == 1 {
		return found[0].ID, nil
	}
	fault := handoff.Fault(handoff.CodeAmbiguousSession, sayable(said), "")
	for _, t := range found[:min(len(found), maxChoices)] {
		fault.Choices = append(fault.Choices, t.Label)
	}
	return "", fault
}
