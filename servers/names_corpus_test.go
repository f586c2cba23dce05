package servers

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
)

// A corpus has a fleet, and spoken names for its parts. It was written without knowledge of the resolver.
type corpus struct {
	specs    []Spec
	sessions map[string][]namedThread // by machine, newest first; "" is all of them
	cases    []spokenName
	now      time.Time
}

// A spokenName means one thing, none, or several of which one has to be asked for.
type spokenName struct {
	Kind     string   `json:"kind"` // machine, project, session
	Said     string   `json:"said"`
	On       string   `json:"on"`        // the machine that is known already, "" for none
	Want     []string `json:"want"`      // machines or ids of sessions
	WantFull []string `json:"want_full"` // machine/project
	Ask      bool     `json:"ask"`
	None     bool     `json:"none"`
	Lang     string   `json:"lang"`
	Why      string   `json:"why"`
}

// tuned reports whether the resolver was tuned with this name. The other half of the names is for checking only.
func (c spokenName) tuned() bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(c.Said))
	return h.Sum32()%2 == 0
}

func readCorpus(t testing.TB) corpus {
	t.Helper()
	text, err := os.ReadFile("testdata/names/fleet.json")
	must(t, err)
	var fleet struct {
		Machines []struct {
			Name    string
			Aliases []string
		}
		Projects []struct{ Machine, Name, Dir string }
		Sessions []struct {
			Machine, ID, Title, Branch, Dir string
			Updated                         time.Time
		}
	}
	must(t, json.Unmarshal(text, &fleet))
	c, threads := corpus{sessions: map[string][]namedThread{}}, map[string][]Thread{}
	for _, m := range fleet.Machines {
		s := Spec{Name: m.Name, Aliases: m.Aliases, Projects: map[string]string{}, Dial: (&fakeServer{}).dial}
		for _, p := range fleet.Projects {
			if p.Machine == m.Name {
				s.Projects[p.Name] = p.Dir
			}
		}
		c.specs = append(c.specs, s)
	}
	must(t, check(c.specs))
	for _, s := range fleet.Sessions {
		threads[s.Machine] = append(threads[s.Machine],
			Thread{ID: s.ID, Title: s.Title, Branch: s.Branch, Dir: s.Dir, Updated: s.Updated})
		if s.Updated.After(c.now) {
			c.now = s.Updated
		}
	}
	for _, spec := range c.specs {
		list := spec.name(threads[spec.Name])
		slices.SortFunc(list, func(a, b namedThread) int { return b.Updated.Compare(a.Updated) })
		c.sessions[spec.Name], c.sessions[""] = list, append(c.sessions[""], list...)
	}
	text, err = os.ReadFile("testdata/names/cases.jsonl")
	must(t, err)
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var one spokenName
		must(t, json.Unmarshal(lines.Bytes(), &one))
		if one.Kind == "project" {
			one.Want = one.WantFull
		}
		c.cases = append(c.cases, one)
	}
	return c
}

// An outcome is the result of resolving a spoken name.
type outcome string

const (
	outFound  outcome = "found"
	outAsked  outcome = "asked back" // with at most three candidates, what was meant among them
	outNone   outcome = "refused"    // rightly
	outMissed outcome = "missed"     // refused or asked back without need, or without the right candidate
	outWrong  outcome = "wrong"      // a wrong one was taken, or one that had to be asked about
)

// judge compares the resolver's result with the right one.
func (c spokenName) judge(taken string, asked []string) outcome {
	meant := func(name string) bool { return slices.Contains(c.Want, name) }
	switch {
	case taken != "" && len(c.Want) == 1 && !c.Ask && meant(taken):
		return outFound
	case taken != "":
		return outWrong
	case c.None && len(asked) == 0:
		return outNone
	case c.None || len(asked) == 0 || len(asked) > maxChoices:
		return outMissed
	case len(c.Want) <= maxChoices && within(c.Want, asked), len(c.Want) > maxChoices && within(asked, c.Want):
		return outAsked
	}
	return outMissed
}

func within(some, all []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

// hear gives a spoken name to the resolver as the tools do.
func (c corpus) hear(t testing.TB, book *namebook, one spokenName) (taken string, asked []string) {
	t.Helper()
	if one.Kind == "session" {
		return c.hearSession(t, one)
	}
	said, name := one.Said, func(at place) string { return strings.TrimSuffix(at.server+"/"+at.project, "/") }
	if one.On != "" {
		said = one.On + "/" + said
	}
	at, fault := book.resolve(said)
	if fault == nil {
		return name(at), nil
	}
	if fault.Code == handoff.CodeAmbiguousServer || fault.Near {
		for _, choice := range fault.Choices {
			at, fault := book.resolve(choice)
			if fault != nil {
				t.Errorf("%q: choice %q leads nowhere", one.Said, choice)
			}
			asked = append(asked, name(at))
		}
	}
	return "", asked
}

func (c corpus) hearSession(t testing.TB, one spokenName) (taken string, asked []string) {
	t.Helper()
	list := nameSearch{list: c.sessions[one.On], now: c.now}
	id, fault := list.find(one.Said)
	if fault == nil {
		return id, nil
	}
	if fault.Code == handoff.CodeAmbiguousSession || fault.Near {
		for _, choice := range fault.Choices {
			id, fault := list.find(choice)
			if fault != nil {
				t.Errorf("%q: choice %q leads nowhere", one.Said, choice)
			}
			asked = append(asked, id)
		}
	}
	return "", asked
}

// TestNamesAsSpoken scores the resolver with what people say.
func TestNamesAsSpoken(t *testing.T) {
	t.Parallel()
	c := readCorpus(t)
	book := newNamebook(c.specs)
	score := map[string]map[outcome]int{}
	for _, one := range c.cases {
		taken, asked := c.hear(t, book, one)
		got := one.judge(taken, asked)
		half := "other half"
		if one.tuned() {
			half = "tuned half"
		}
		for _, group := range []string{"all", half, "kind " + one.Kind, "language " + one.Lang} {
			if score[group] == nil {
				score[group] = map[outcome]int{}
			}
			score[group][got]++
		}
		if one.tuned() && (got == outMissed || got == outWrong) {
			t.Logf("%s: %q on %q: took %q, asked %q, want %q (%s)", got, one.Said, one.On, c.title(taken), c.titles(asked),
				c.titles(one.Want), one.Why)
		}
	}
	all := score["all"]
	if right := all[outFound] + all[outAsked] + all[outNone]; all[outWrong] > 0 || 100*right < 92*len(c.cases) {
		t.Errorf("%d right and %d wrong of %d", right, all[outWrong], len(c.cases))
	}
	for _, group := range slices.Sorted(maps.Keys(score)) {
		of := score[group]
		right := of[outFound] + of[outAsked] + of[outNone]
		all := right + of[outMissed] + of[outWrong]
		t.Logf(
			"%-16s %3d of %3d right (%.1f %%): %d found, %d asked back, %d refused; %d missed, %d wrong",
			group,
			right,
			all,
			100*float64(right)/float64(all),
			of[outFound],
			of[outAsked],
			of[outNone],
			of[outMissed],
			of[outWrong],
		)
	}
}

func (c corpus) title(id string) string {
	for machine, list := range c.sessions {
		if machine == "" {
			continue
		}
		for _, s := range list {
			if s.ID == id {
				return fmt.Sprintf("%s: %s", machine, s.Title)
			}
		}
	}
	return id
}

func (c corpus) titles(ids []string) (out []string) {
	for _, id := range ids {
		out = append(out, c.title(id))
	}
	return out
}
