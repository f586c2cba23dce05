package servers

import (
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
)

// minPrefix is how much of an id must be given: less is rather a word.
const minPrefix = 6

// minStem is how much of a title's word must be said.
const minStem = 4

// maxSessionChoices is how many sessions an unknown name is answered with.
const maxSessionChoices = 10

// A named thread is one that the resolver can find. Its label is made of its title alone, so that it stays the
// same whatever else is on the server. Two threads may have the same one.
type named struct {
	Thread
	Label string
	API   bool // a program made it
}

func name(threads []Thread) []named {
	out := make([]named, len(threads))
	for i, t := range threads {
		out[i] = named{Thread: t, Label: label(t.Title)}
	}
	return out
}

// fullThread returns the canonical form of a thread name that needs no list: nothing, [handoff.NewThread] or a full id.
// It returns false for any other.
func (s Spec) fullThread(said string) (string, bool) {
	said = strings.TrimSpace(said)
	switch {
	case said == "":
		return "", true
	case s.IsThread != nil && s.IsThread(said):
		return said, true
	case strings.Join(words(said), "") == handoff.NewThread:
		return handoff.NewThread, true
	}
	return "", false
}

// byID finds a thread by its full id, which alone is unique whatever else is on the server.
func byID(said string, list []named) (named, bool) {
	said = strings.TrimSpace(said)
	if i := slices.IndexFunc(list, func(t named) bool { return t.ID == said }); i >= 0 {
		return list[i], true
	}
	found := slices.DeleteFunc(slices.Clone(list), func(t named) bool { return !strings.EqualFold(t.ID, said) })
	if len(found) != 1 { // ids of some kind may differ in case alone
		return named{}, false
	}
	return found[0], true
}

// A nameSearch looks for what a session is called in a list, at one time.
type nameSearch struct {
	list []named
	now  time.Time
}

// find finds the one thread that a name means: id, start of the id, title or label, words of the title, those
// with words that tell sessions of one title apart, or nearly the title. It never guesses.
func (s nameSearch) find(said string) (string, *handoff.Error) {
	found := s.match(said, searches)
	switch {
	case len(found) == 1:
		return found[0].ID, nil
	case len(found) > 1:
		fault := handoff.Fault(handoff.CodeAmbiguousSession, sayable(said), "")
		fault.Choices = s.apart(found[:min(len(found), maxChoices)])
		return "", fault
	}
	fault := handoff.Fault(handoff.CodeUnknownSession, sayable(said), "")
	fault.Choices = likest(keys(without(words(sayable(said)), sessionFillers)), func(yield func([]string, string) bool) {
		for _, t := range s.list {
			if !yield(slices.Concat(keys(words(t.Label)), keys(words(t.Title))), t.Label) {
				return
			}
		}
	})
	if fault.Near = len(fault.Choices) > 0; fault.Near {
		return "", fault
	}
	for _, t := range s.list {
		if len(fault.Choices) < maxSessionChoices && !slices.Contains(fault.Choices, t.Label) {
			fault.Choices = append(fault.Choices, t.Label)
		}
	}
	return "", fault
}

// The ways to mean a thread, the surest first. The first that fits any thread decides.
const (
	sureSearches = 3 // these leave no doubt about what was said
	searches     = 6
)

// match returns the threads that fit a name in the surest of the first ways in which any does.
func (s nameSearch) match(said string, ways int) []named {
	if t, ok := byID(said, s.list); ok {
		return []named{t}
	}
	if said = strings.TrimSpace(said); len(said) > maxSpoken {
		return nil
	}
	for _, fits := range s.matchers(said)[:ways] {
		found := slices.DeleteFunc(slices.Clone(s.list), func(t named) bool { return !fits(t) })
		if made := slices.DeleteFunc(slices.Clone(found), func(t named) bool { return t.API }); len(made) > 0 {
			return made // people rarely mean what a program made
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

func (s nameSearch) matchers(said string) []func(named) bool {
	full := words(said)
	bare := without(full, sessionFillers)
	wanted, loose := keys(full), keys(bare)
	return []func(named) bool{
		func(t named) bool {
			return len(said) >= minPrefix && len(t.ID) > len(said) && strings.EqualFold(t.ID[:len(said)], said)
		},
		func(t named) bool {
			return overlap(keys(words(t.Label)), wanted) || overlap(keys(words(t.Title)), wanted)
		},
		func(t named) bool {
			return overlap(keys(without(words(t.Label), sessionFillers)), loose) ||
				overlap(keys(without(words(t.Title), sessionFillers)), loose)
		},
		func(t named) bool { return len(bare) > 0 && hasWords(words(t.Title), digits(bare)) },
		func(t named) bool { return s.pointsTo(t, full) },
		func(t named) bool {
			return slices.ContainsFunc(slices.Concat(keys(words(t.Label)), keys(words(t.Title))), func(have string) bool {
				return slices.ContainsFunc(slices.Concat(wanted, loose), func(w string) bool { return near(w, have) })
			})
		},
	}
}

// pointsTo reports whether some words are of a thread's title and all others of what tells it from its like.
func (s nameSearch) pointsTo(t named, said []string) bool {
	said = digits(without(said, apartFillers))
	title := words(t.Title)
	if len(title) == 0 {
		title = words(t.Label)
	}
	rest := slices.DeleteFunc(slices.Clone(said), func(w string) bool { return hasWords(title, []string{w}) })
	if len(rest) == len(said) {
		return false
	}
	about := slices.Concat(words(t.Dir), words(t.Branch))
	for minutes := range 3 { // an age that was said is a little older by now
		about = append(about, words(handoff.Ago(s.now.Add(-time.Duration(minutes)*time.Minute), t.Updated))...)
	}
	return hasWords(about, rest)
}

// hasWords reports whether every word wanted is one of the title, or begins one.
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

// apart names threads so that each can be told from the others by ear, and is found by what was said: by the
// label, else with directory, branch and age as far as they differ. Only threads that are alike in all of that
// are named by id.
func (s nameSearch) apart(found []named) []string {
	choices := make([]string, len(found))
	for i, t := range found {
		choices[i] = t.Label
		if s.alone(t, choices[i]) {
			continue
		}
		choices[i] = strings.Join(append([]string{sayable(spokenTitle(t))}, s.differences(t, found)...), ", ")
		if !s.alone(t, choices[i]) {
			choices[i] = t.ID
		}
	}
	return choices
}

// maxAlike is how many threads of one label are told apart in a list: of more, only the id tells anything.
const maxAlike = 100

// unlike gives the threads of a list whose label others have too a name of their own, by id.
func unlike(list []named, now time.Time) map[string]string {
	byLabel := map[string][]named{}
	for _, t := range list {
		byLabel[t.Label] = append(byLabel[t.Label], t)
	}
	names := map[string]string{}
	for _, alike := range byLabel {
		if len(alike) == 1 {
			continue
		}
		apart := nameSearch{alike[:min(len(alike), maxAlike)], now}.apart(alike[:min(len(alike), maxAlike)])
		for i, t := range alike {
			if names[t.ID] = t.ID; i < len(apart) {
				names[t.ID] = apart[i]
			}
		}
	}
	return names
}

func spokenTitle(t named) string {
	if title := strings.TrimSpace(t.Title); title != "" {
		return title
	}
	return t.Label
}

// alone reports whether a name means just this thread.
func (s nameSearch) alone(t named, said string) bool {
	found := s.match(said, searches)
	return len(found) == 1 && found[0].ID == t.ID
}

// differences says in what a thread differs from one of the others.
func (s nameSearch) differences(t named, others []named) []string {
	var parts []string
	differs := func(of func(named) string) bool {
		return of(t) != "" && slices.ContainsFunc(others, func(o named) bool { return of(o) != of(t) })
	}
	if differs(func(o named) string { return o.Dir }) {
		parts = append(parts, "in "+lastOf(t.Dir, others))
	}
	if differs(func(o named) string { return o.Branch }) {
		parts = append(parts, "on "+sayable(t.Branch))
	}
	if differs(func(o named) string { return handoff.Ago(s.now, o.Updated) }) {
		parts = append(parts, handoff.Ago(s.now, t.Updated))
	}
	return parts
}

// lastOf returns as much of the end of a directory as tells it from those of others.
func lastOf(dir string, others []named) string {
	elements := strings.Split(strings.Trim(dir, "/"), "/")
	for n := 1; n <= len(elements); n++ {
		end := strings.Join(elements[len(elements)-n:], "/")
		if !slices.ContainsFunc(others, func(o named) bool { return o.Dir != dir && strings.HasSuffix(o.Dir, "/"+end) }) {
			return end
		}
	}
	return dir
}
