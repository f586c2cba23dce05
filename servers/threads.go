package servers

import (
	"fmt"
	"math"
	"path"
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

	server string
	words  []string // of the title, numbers in figures
	whole  []string // the keys of label and title
	bare   []string // the same without fillers
	title  spelled  // as it is compared with what was misheard
	about  spelled  // what else may be said of it: its machine, directory and branch
	apart  []string // the words of its directory and branch, numbers in figures
}

// name names the threads of a server.
func (s Spec) name(threads []Thread) []named {
	out := make([]named, len(threads))
	machine := strings.Join(append([]string{s.Name}, s.Aliases...), " ")
	for i, t := range threads {
		t := named{Thread: t, Label: label(t.Title), server: s.Name}
		title, label := words(spokenTitle(t)), words(t.Label)
		t.words = digits(title)
		t.whole = slices.Concat(keys(label), keys(title))
		t.bare = slices.Concat(keys(without(label, sessionFillers)), keys(without(title, sessionFillers)))
		t.title = spelling(spokenTitle(t))
		t.about = spelling(strings.Join([]string{path.Base(t.Dir), t.Branch, machine}, " ")).single()
		t.apart = digits(slices.Concat(words(t.Dir), words(t.Branch)))
		out[i] = t
	}
	return out
}

// those returns the threads of a list that fit.
func those(list []named, fit func(named) bool) (found []named) {
	for i := range list {
		if fit(list[i]) {
			found = append(found, list[i])
		}
	}
	return found
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
	found := those(list, func(t named) bool { return strings.EqualFold(t.ID, said) })
	if len(found) != 1 { // ids of some kind may differ in case alone
		return named{}, false
	}
	return found[0], true
}

// A nameSearch looks for what a session is called in a list, at one time.
type nameSearch struct {
	list  []named
	now   time.Time
	known map[string]meaning // by name: what was looked for before; nil: nothing is kept
}

// A meaning is the threads that a name can mean, and whether the only one is surely meant.
type meaning struct {
	found []named
	sure  bool
}

// find finds the one thread that a name means: id, start of the id, title or label, words of the title, those
// with words that tell sessions of one title apart, or nearly the title. It never guesses.
func (s nameSearch) find(said string) (string, *handoff.Error) {
	found, sure := s.search(said)
	if sure && len(found) == 1 {
		return found[0].ID, nil
	}
	fault := handoff.Fault(handoff.CodeUnknownSession, sayable(said), "")
	if len(found) > 0 {
		if fault.Near = !sure; sure {
			fault.Code = handoff.CodeAmbiguousSession
		}
		found = found[:min(len(found), maxChoices)]
		for _, t := range found {
			fault.Choices = append(fault.Choices, s.apart(t, found))
		}
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
	searches     = 4
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
		if found := those(s.list, fits); len(found) > 0 {
			return byPeople(found)
		}
	}
	return nil
}

// byPeople leaves out what a program made, unless there is nothing else: people rarely mean it.
func byPeople(found []named) []named {
	ofPeople := those(found, func(t named) bool { return !t.API })
	if len(ofPeople) == 0 {
		return found
	}
	return ofPeople
}

func (s nameSearch) matchers(said string) []func(named) bool {
	full := words(said)
	bare := without(full, sessionFillers)
	wanted, loose, telling := keys(full), keys(bare), digits(without(full, apartFillers))
	return []func(named) bool{
		func(t named) bool {
			return len(said) >= minPrefix && len(t.ID) > len(said) && strings.EqualFold(t.ID[:len(said)], said)
		},
		func(t named) bool { return overlap(t.whole, wanted) },
		func(t named) bool { return overlap(t.bare, loose) },
		func(t named) bool { return s.pointsTo(t, telling) },
	}
}

// search returns the threads that a name can mean, and whether the only one is surely meant.
func (s nameSearch) search(said string) (found []named, sure bool) {
	if found, sure = s.byName(said); sure && len(found) == 1 || len(said) > maxSpoken {
		return found, sure
	}
	if t, ok := s.ranked(said); ok {
		return []named{t}, true
	}
	return found, sure
}

// ranked finds the one of several threads of a name that its place among them means: "the older nightly run", "nightly
// run, number 2 of 3".
func (s nameSearch) ranked(said string) (named, bool) {
	spoken := digits(words(said))
	wanted, n := "", len(spoken)-4
	if i := slices.IndexFunc(spoken, func(w string) bool { return w == "older" || w == "newer" }); i >= 0 {
		wanted = "the " + spoken[i] + " one"
		after := i + 1
		if after < len(spoken) && spoken[after] == "1" { // the word "one", as digits has it
			after++
		}
		spoken = slices.Delete(spoken, i, after)
	} else if n > 0 && spoken[n] == "number" {
		wanted, spoken = strings.Join(spoken[n:], " "), spoken[:n]
	}
	if wanted == "" {
		return named{}, false
	}
	found, sure := s.byName(strings.Join(spoken, " "))
	if !sure || len(found) > maxAlike {
		return named{}, false
	}
	i := slices.IndexFunc(found, func(t named) bool { return placeAmong(t, found) == wanted })
	if i < 0 {
		return named{}, false
	}
	return found[i], true
}

// placeAmong says which of several threads one is, by nothing that changes while they are worked on: the older or the
// newer of two, where their beginning and their last use agree on that, else its number, the one that was made first
// being 1.
func placeAmong(t named, of []named) string {
	if len(of) == 2 {
		a, b := of[0], of[1]
		if begun, used := a.Created.Compare(b.Created), a.Updated.Compare(b.Updated); begun != 0 && begun != -used &&
			!a.Created.IsZero() && !b.Created.IsZero() {
			if (t.ID == a.ID) == (begun < 0) {
				return "the older one"
			}
			return "the newer one"
		}
	}
	number := 1
	for _, o := range of {
		if c := o.Created.Compare(t.Created); c < 0 || c == 0 && o.ID < t.ID {
			number++
		}
	}
	return fmt.Sprintf("number %d of %d", number, len(of))
}

// byName returns the threads that a name can mean.
func (s nameSearch) byName(said string) (found []named, sure bool) {
	if before, known := s.known[said]; known {
		return before.found, before.sure
	}
	found, sure = s.look(said)
	if s.known != nil {
		s.known[said] = meaning{found, sure}
	}
	return found, sure
}

// look is byName of a name that was not looked for before. A whole title that is part of others too may be theirs.
func (s nameSearch) look(said string) (found []named, sure bool) {
	if t, ok := byID(said, s.list); ok {
		return []named{t}, true
	}
	if found = s.match(said, searches); len(found) > 1 {
		return found, true
	}
	likely, sure := s.hear(said)
	if rest, pronoun := strings.CutSuffix(strings.ToLower(strings.TrimSpace(said)), " one"); !sure && pronoun {
		if again, surely := s.hear(rest); surely { // "the auth one"
			likely, sure = again, true
		}
	}
	if len(found) == 0 {
		return likely, sure
	}
	for _, t := range likely {
		if sure && !slices.ContainsFunc(found, func(f named) bool { return f.ID == t.ID }) {
			found = append(found, t)
		}
	}
	return byPeople(found), true
}

// hear returns the threads whose titles sound like what was said, the likest first, and whether they are so like that
// the only one is meant. "The latest" of several is the newest.
func (s nameSearch) hear(said string) (found []named, sure bool) {
	if len(said) > maxSpoken {
		return nil, false
	}
	common := map[string]int{}
	for _, t := range s.list {
		for _, w := range t.title.spans {
			if w.to-w.from == 1 {
				common[w.text]++
			}
		}
	}
	weighs := func(w string) float64 { // by how few titles have it
		return 1 + math.Log2(float64(len(s.list)+1)/float64(max(common[w], 1+len(s.list)/100)))
	}
	ways := hear(said, weighs, func(w string) bool { return common[w] > 0 })
	fits := make(map[int]fit, len(s.list))
	for i, t := range s.list {
		if f := best(ways, t.title, t.about); f.said > 0 {
			fits[i] = f
		}
	}
	at, sure := likest(fits, func(f fit) bool { return f.full || f.part() }, func(a, b int) int { return a - b })
	for _, i := range at {
		found = append(found, s.list[i])
	}
	found = byPeople(found)
	if sure && slices.ContainsFunc(spell(said), func(w word) bool { return slices.Contains(newest, w.text) }) {
		slices.SortStableFunc(found, func(a, b named) int { return b.Updated.Compare(a.Updated) })
		if len(found) > 1 && found[0].Updated.After(found[1].Updated) {
			found = found[:1]
		}
	}
	return found, sure
}

// pointsTo reports whether some words are of a thread's title and all others of what tells it from its like.
func (s nameSearch) pointsTo(t named, said []string) bool {
	inTitle, rest := 0, []string(nil)
	for _, w := range said {
		if hasWord(t.words, w) {
			inTitle += len(w)
		} else {
			rest = append(rest, w)
		}
	}
	if inTitle == 0 || len(rest) == 0 && inTitle < minStem {
		return false
	}
	rest = slices.DeleteFunc(rest, func(w string) bool { return hasWord(t.apart, w) })
	for minutes := 0; len(rest) > 0 && minutes < 3; minutes++ { // an age that was said is a little older by now
		age := digits(words(handoff.Ago(s.now.Add(-time.Duration(minutes)*time.Minute), t.Updated)))
		rest = slices.DeleteFunc(rest, func(w string) bool { return hasWord(age, w) })
	}
	return len(rest) == 0
}

// hasWord reports whether a word is one of the title, or begins one.
func hasWord(title []string, wanted string) bool {
	for _, have := range title {
		if have == wanted || len(wanted) >= minStem && strings.HasPrefix(have, wanted) {
			return true
		}
	}
	return false
}

// apart names one of several threads so that it can be told from the others by ear, and is found by what was said: by
// the label, else with directory, branch and age as far as they differ, else with its place among them. An id, which
// nobody can say, is left for what no name finds.
func (s nameSearch) apart(t named, others []named) string {
	if s.alone(t, t.Label) {
		return t.Label
	}
	name := strings.Join(append([]string{sayable(spokenTitle(t))}, s.differences(t, others)...), ", ")
	if alike, sure := s.byName(name); sure && len(alike) > 1 {
		name += ", " + placeAmong(t, alike)
	}
	if !s.alone(t, name) {
		return t.ID
	}
	return name
}

// maxAlike is how many threads of one label are told apart in a list: of more, only the id tells anything.
const maxAlike = 100

// nameApart gives the sessions of a server that are shown, and whose label others in its list have too, names of their
// own.
func nameApart(shown []handoff.SessionInfo, server string, list []named, now time.Time) {
	byLabel := map[string][]named{}
	for _, t := range list {
		byLabel[t.Label] = append(byLabel[t.Label], t)
	}
	for _, alike := range byLabel {
		if len(alike) == 1 {
			continue
		}
		some := alike[:min(len(alike), maxAlike)]
		search := nameSearch{list: some, now: now, known: map[string]meaning{}}
		for i, s := range shown {
			at := slices.IndexFunc(alike, func(t named) bool { return s.Server == server && t.ID == s.ID })
			switch {
			case at < 0:
			case at < len(some):
				shown[i].Label = search.apart(alike[at], some)
			default:
				shown[i].Label = s.ID
			}
		}
	}
}

func spokenTitle(t named) string {
	if title := strings.TrimSpace(t.Title); title != "" {
		return title
	}
	return t.Label
}

// alone reports whether a name means just this thread.
func (s nameSearch) alone(t named, said string) bool {
	found, sure := s.search(said)
	return sure && len(found) == 1 && found[0].ID == t.ID
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
