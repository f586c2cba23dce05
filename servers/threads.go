package servers

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/servers/spoken"
)

// minPrefix is the least length of an id's prefix. A shorter text is rather a word.
const minPrefix = 6

// maxSessionChoices is how many sessions the error for an unknown name has.
const maxSessionChoices = 10

// A namedThread is a thread with its names for the resolver. Its label depends on its title only, so that other threads
// do not change it. Two threads may have the same label.
type namedThread struct {
	Thread
	Label string
	API   bool // a program made it

	server string
	words  []string    // of the title, numbers in digits
	whole  []string    // the keys of label and title
	bare   []string    // the keys of label and title without fillers
	title  spoken.Name // for comparing with a name that was misheard
	about  spoken.Name // its machine, directory and branch, which may be said too
	apart  []string    // the words of its directory and branch, numbers in digits
}

// name adds names to the threads of a server.
func (s Spec) name(threads []Thread) []namedThread {
	out := make([]namedThread, len(threads))
	machine := strings.Join(append([]string{s.Name}, s.Aliases...), " ")
	for i, t := range threads {
		t := namedThread{Thread: t, Label: label(t.Title), server: s.Name}
		t.Created, t.Updated = writable(t.Created), writable(t.Updated)
		title, label := spoken.Words(spokenTitle(t)), spoken.Words(t.Label)
		t.words = spoken.Digits(title)
		t.whole = slices.Concat(spoken.Keys(label), spoken.Keys(title))
		t.bare = slices.Concat(spoken.Keys(spoken.Without(label, spoken.AroundSessions)),
			spoken.Keys(spoken.Without(title, spoken.AroundSessions)))
		t.title = spoken.NewName(spokenTitle(t))
		t.about = spoken.NewName(strings.Join([]string{path.Base(t.Dir), t.Branch, machine}, " ")).Single()
		t.apart = spoken.Digits(slices.Concat(spoken.Words(t.Dir), spoken.Words(t.Branch)))
		out[i] = t
	}
	return out
}

// writable returns a time that a machine named, or the zero time for one that JSON cannot have.
func writable(at time.Time) time.Time {
	if _, err := at.MarshalJSON(); err != nil {
		return time.Time{}
	}
	return at
}

// filter returns the threads of a list for which fit is true.
func filter(list []namedThread, fit func(namedThread) bool) (found []namedThread) {
	for i := range list {
		if fit(list[i]) {
			found = append(found, list[i])
		}
	}
	return found
}

// fullThread returns the canonical form of a thread name that can be resolved without a list: "", [handoff.NewThread]
// or a full id. It returns false for any other name.
func (s Spec) fullThread(said string) (string, bool) {
	said = strings.TrimSpace(said)
	switch {
	case said == "":
		return "", true
	case s.IsThread != nil && s.IsThread(said):
		return said, true
	case strings.Join(spoken.Words(said), "") == handoff.NewThread:
		return handoff.NewThread, true
	}
	return "", false
}

// byID finds a thread by its full id.
func byID(said string, list []namedThread) (namedThread, bool) {
	said = strings.TrimSpace(said)
	if i := slices.IndexFunc(list, func(t namedThread) bool { return t.ID == said }); i >= 0 {
		return list[i], true
	}
	found := filter(list, func(t namedThread) bool { return strings.EqualFold(t.ID, said) })
	if len(found) != 1 { // ids of some kinds may differ only in case
		return namedThread{}, false
	}
	return found[0], true
}

// A nameSearch looks for what a session is called in a list, at one time.
type nameSearch struct {
	list  []namedThread
	now   time.Time
	known map[string]result // by name: what was looked for before; nil: nothing is kept
}

// A result has the threads that a name can mean, and whether the only one is surely meant.
type result struct {
	found []namedThread
	sure  bool
}

// find returns the id of the one thread that a name means. The name may be the id or a prefix of it, the title or
// label, words of the title, perhaps with its directory, branch or age, or a misheard title. It never guesses.
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

// The numbers of matchers, the surest first. The first one that any thread matches decides.
const (
	sureSearches = 3 // of those that leave no doubt
	searches     = 4 // of all
)

// match returns the threads that a name matches. It tries the first ways matchers in their order, and uses the first
// one that any thread matches.
func (s nameSearch) match(said string, ways int) []namedThread {
	if t, ok := byID(said, s.list); ok {
		return []namedThread{t}
	}
	if said = strings.TrimSpace(said); len(said) > spoken.MaxName {
		return nil
	}
	for _, fits := range s.matchers(said)[:ways] {
		if found := filter(s.list, fits); len(found) > 0 {
			return byPeople(found)
		}
	}
	return nil
}

// byPeople returns threads without those that programs made, unless there are no others: people rarely mean these.
func byPeople(found []namedThread) []namedThread {
	ofPeople := filter(found, func(t namedThread) bool { return !t.API })
	if len(ofPeople) == 0 {
		return found
	}
	return ofPeople
}

func (s nameSearch) matchers(said string) []func(namedThread) bool {
	full := spoken.Words(said)
	bare := spoken.Without(full, spoken.AroundSessions)
	wanted, loose := spoken.Keys(full), spoken.Keys(bare)
	telling := spoken.Digits(spoken.Without(full, spoken.AroundPlaces))
	return []func(namedThread) bool{
		func(t namedThread) bool {
			return len(said) >= minPrefix && len(t.ID) > len(said) && strings.EqualFold(t.ID[:len(said)], said)
		},
		func(t namedThread) bool { return spoken.Overlap(t.whole, wanted) },
		func(t namedThread) bool { return spoken.Overlap(t.bare, loose) },
		func(t namedThread) bool { return s.pointsTo(t, telling) },
	}
}

// search returns the threads that a name can mean, and whether the only one is surely meant.
func (s nameSearch) search(said string) (found []namedThread, sure bool) {
	if found, sure = s.byName(said); sure && len(found) == 1 || len(said) > spoken.MaxName {
		return found, sure
	}
	if t, ok := s.ranked(said); ok {
		return []namedThread{t}, true
	}
	return found, sure
}

// ranked finds one of several threads of the same name by its place among them: "the older nightly run", "nightly run,
// number 2 of 3".
func (s nameSearch) ranked(said string) (namedThread, bool) {
	rest := spoken.Digits(spoken.Words(said))
	wanted, n := "", len(rest)-4
	if i := slices.IndexFunc(rest, func(w string) bool { return w == "older" || w == "newer" }); i >= 0 {
		wanted = "the " + rest[i] + " one"
		after := i + 1
		if after < len(rest) && rest[after] == "1" { // the word "one", as digits has it
			after++
		}
		rest = slices.Delete(rest, i, after)
	} else if n > 0 && rest[n] == "number" {
		wanted, rest = strings.Join(rest[n:], " "), rest[:n]
	}
	if wanted == "" {
		return namedThread{}, false
	}
	found, sure := s.byName(strings.Join(rest, " "))
	if !sure || len(found) > maxAlike {
		return namedThread{}, false
	}
	i := slices.IndexFunc(found, func(t namedThread) bool { return placeAmong(t, found) == wanted })
	if i < 0 {
		return namedThread{}, false
	}
	return found[i], true
}

// placeAmong returns words for the place of a thread among several. Work in the threads does not change it. Of two, one
// is the older if it was begun first and not used last; else threads are numbered in the order in which they were made,
// from 1.
func placeAmong(t namedThread, of []namedThread) string {
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

// byName returns the threads that a name can mean, from the cache if there is one.
func (s nameSearch) byName(said string) (found []namedThread, sure bool) {
	if before, known := s.known[said]; known {
		return before.found, before.sure
	}
	found, sure = s.look(said)
	if s.known != nil {
		s.known[said] = result{found, sure}
	}
	return found, sure
}

// look is byName without the cache. If the name is the title of several threads, or sounds like other titles too, these
// are also found.
func (s nameSearch) look(said string) (found []namedThread, sure bool) {
	if t, ok := byID(said, s.list); ok {
		return []namedThread{t}, true
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
		if sure && !slices.ContainsFunc(found, func(f namedThread) bool { return f.ID == t.ID }) {
			found = append(found, t)
		}
	}
	return byPeople(found), true
}

// hear returns the threads whose titles sound like a name, the most similar first. sure reports whether they are
// similar enough for a single one to be meant. A word such as "latest" selects the newest of several.
func (s nameSearch) hear(said string) (found []namedThread, sure bool) {
	if len(said) > spoken.MaxName {
		return nil, false
	}
	common := map[string]int{}
	for _, t := range s.list {
		for w := range t.title.Words() {
			common[w]++
		}
	}
	weighs := func(w string) float64 { // by how few titles have it
		return 1 + math.Log2(float64(len(s.list)+1)/float64(max(common[w], 1+len(s.list)/100)))
	}
	query := spoken.NewQuery(said, weighs, func(w string) bool { return common[w] > 0 })
	fits := make(map[int]spoken.Fit, len(s.list))
	for i, t := range s.list {
		if f := query.Fit(t.title, t.about); f.Any() {
			fits[i] = f
		}
	}
	at, sure := spoken.BestFits(fits, spoken.Fit.Part, func(a, b int) int { return a - b })
	for _, i := range at {
		found = append(found, s.list[i])
	}
	found = byPeople(found)
	if sure && spoken.SaysNewest(said) {
		slices.SortStableFunc(found, func(a, b namedThread) int { return b.Updated.Compare(a.Updated) })
		if len(found) > 1 && found[0].Updated.After(found[1].Updated) {
			found = found[:1]
		}
	}
	return found, sure
}

// pointsTo reports whether some words are of a thread's title, and all others of its directory, branch or age.
func (s nameSearch) pointsTo(t namedThread, said []string) bool {
	inTitle, rest := 0, []string(nil)
	for _, w := range said {
		if hasWord(t.words, w) {
			inTitle += len(w)
		} else {
			rest = append(rest, w)
		}
	}
	if inTitle == 0 || len(rest) == 0 && inTitle < spoken.MinStem {
		return false
	}
	rest = slices.DeleteFunc(rest, func(w string) bool { return hasWord(t.apart, w) })
	for minutes := 0; len(rest) > 0 && minutes < 3; minutes++ { // the age was spoken up to some minutes ago
		age := spoken.Digits(spoken.Words(handoff.Ago(s.now.Add(-time.Duration(minutes)*time.Minute), t.Updated)))
		rest = slices.DeleteFunc(rest, func(w string) bool { return hasWord(age, w) })
	}
	return len(rest) == 0
}

// hasWord reports whether a word is a word of the title, or its beginning.
func hasWord(title []string, wanted string) bool {
	for _, have := range title {
		if have == wanted || len(wanted) >= spoken.MinStem && strings.HasPrefix(have, wanted) {
			return true
		}
	}
	return false
}

// apart returns a name of one of several threads that can be spoken and that finds only this thread: its label, or its
// title with directory, branch and age as far as they differ, and with its place among the threads if need be. If no
// such name finds it, apart returns its id.
func (s nameSearch) apart(t namedThread, others []namedThread) string {
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

// maxAlike is how many threads of the same label get names of their own; further ones are named by their ids.
const maxAlike = 100

// nameApart replaces the labels of shown sessions of a server that other sessions in its list have too, by names of
// their own.
func nameApart(shown []handoff.SessionInfo, server string, list []namedThread, now time.Time) {
	byLabel := map[string][]namedThread{}
	for _, t := range list {
		byLabel[t.Label] = append(byLabel[t.Label], t)
	}
	for _, alike := range byLabel {
		if len(alike) == 1 {
			continue
		}
		some := alike[:min(len(alike), maxAlike)]
		search := nameSearch{list: some, now: now, known: map[string]result{}}
		for i, s := range shown {
			at := slices.IndexFunc(alike, func(t namedThread) bool { return s.Server == server && t.ID == s.ID })
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

func spokenTitle(t namedThread) string {
	if title := strings.TrimSpace(t.Title); title != "" {
		return title
	}
	return t.Label
}

// alone reports whether a name means only this thread.
func (s nameSearch) alone(t namedThread, said string) bool {
	found, sure := s.search(said)
	return sure && len(found) == 1 && found[0].ID == t.ID
}

// differences returns words for the directory, branch and age of a thread, as far as others differ in them.
func (s nameSearch) differences(t namedThread, others []namedThread) []string {
	var parts []string
	differs := func(of func(namedThread) string) bool {
		return of(t) != "" && slices.ContainsFunc(others, func(o namedThread) bool { return of(o) != of(t) })
	}
	if differs(func(o namedThread) string { return o.Dir }) {
		parts = append(parts, "in "+lastOf(t.Dir, others))
	}
	if differs(func(o namedThread) string { return o.Branch }) {
		parts = append(parts, "on "+sayable(t.Branch))
	}
	if differs(func(o namedThread) string { return handoff.Ago(s.now, o.Updated) }) {
		parts = append(parts, handoff.Ago(s.now, t.Updated))
	}
	return parts
}

// lastOf returns the shortest end of a directory that differs from the ends of other threads' directories.
func lastOf(dir string, others []namedThread) string {
	elements := strings.Split(strings.Trim(dir, "/"), "/")
	for n := 1; n <= len(elements); n++ {
		end := strings.Join(elements[len(elements)-n:], "/")
		alsoEnds := func(o namedThread) bool { return o.Dir != dir && strings.HasSuffix(o.Dir, "/"+end) }
		if !slices.ContainsFunc(others, alsoEnds) {
			return end
		}
	}
	return dir
}
