package servers

import (
	"cmp"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"switchboard/handoff"
	"switchboard/servers/spoken"
)

// maxChoices is how many candidates the error for an ambiguous name has: more cannot be spoken.
const maxChoices = 3

// A place is the meaning of a server name: a server, or a project on it.
type place struct {
	server  string
	project string
}

// say returns a name of the place that can be spoken, and that the resolver understands.
func (p place) say() string {
	if p.project == "" {
		return p.server
	}
	return p.project + " on " + p.server
}

// A rank is the kind of name that matched. Lower ranks come first and hide higher ones: so a machine's own name is
// never taken for a project of another machine.
type rank int

const (
	rankName     rank = iota // the name or an alias
	rankHost                 // the host, or its first label
	rankProject              // "server/project", "project on server", or only the project
	rankLoose                // the name, an alias or the host without spoken.AroundMachines
	rankLooseAll             // projects without spoken.AroundMachines
	ranks
)

// A heardPlace is one name of a place.
type heardPlace struct {
	place
	name  spoken.Name
	alone bool // the name is only the project's, without its server's
}

// A namebook is the resolver's table of all forms of all names. It is made once and only read.
type namebook struct {
	servers []string                  // Set once: in configured order
	dirs    map[string][]string       // Set once: projects of each server, sorted
	index   [ranks]map[string][]place // Set once: places by key
	heard   []heardPlace              // Set once: all names, for comparing with a name that was misheard
}

func newNamebook(specs []Spec) *namebook {
	b := &namebook{dirs: map[string][]string{}}
	for i := range b.index {
		b.index[i] = map[string][]place{}
	}
	for _, s := range specs {
		b.servers = append(b.servers, s.Name)
		b.dirs[s.Name] = slices.Sorted(maps.Keys(s.Projects))
		b.addServer(s)
	}
	return b
}

func (b *namebook) addServer(s Spec) {
	own := place{server: s.Name}
	names := append([]string{s.Name}, s.Aliases...)
	for _, name := range names {
		b.add(rankName, spoken.Words(name), own)
		b.add(rankLoose, spoken.Without(spoken.Words(name), spoken.AroundMachines), own)
		b.heard = append(b.heard, heardPlace{place: own, name: spoken.NewName(name)})
	}
	for _, host := range hostNames(s.Host) {
		b.add(rankHost, spoken.Words(host), own)
		b.add(rankLoose, spoken.Without(spoken.Words(host), spoken.AroundMachines), own)
		if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err != nil {
			b.heard = append(b.heard, heardPlace{place: own, name: spoken.NewName(host)})
		}
	}
	for _, project := range b.dirs[s.Name] {
		p, at := spoken.Words(project), place{server: s.Name, project: project}
		b.add(rankProject, p, at)
		b.add(rankLooseAll, spoken.Without(p, spoken.AroundMachines), at)
		b.heard = append(b.heard, heardPlace{place: at, name: spoken.NewName(project), alone: true})
		for _, name := range names {
			n := spoken.Words(name)
			b.heard = append(b.heard, heardPlace{place: at, name: spoken.NewName(project + " " + name)})
			for _, link := range []string{"on", "at", "in"} {
				b.add(rankProject, slices.Concat(p, []string{link}, n), at)
			}
			b.add(rankProject, slices.Concat(n, []string{"/"}, p), at)
			if p, n := spoken.Without(p, spoken.AroundMachines), spoken.Without(n, spoken.AroundMachines); len(p) > 0 && len(n) > 0 {
				b.add(rankLooseAll, slices.Concat(p, n), at)
				b.add(rankLooseAll, slices.Concat(n, p), at)
			}
		}
	}
}

func (b *namebook) add(r rank, name []string, at place) {
	for _, key := range spoken.Keys(name) {
		if !slices.Contains(b.index[r][key], at) {
			b.index[r][key] = append(b.index[r][key], at)
		}
	}
}

// hostNames returns the host and, unless it is an address, its first label.
func hostNames(host string) []string {
	if host == "" {
		return nil
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	label, _, found := strings.Cut(host, ".")
	if err == nil || !found || label == "" {
		return []string{host}
	}
	return []string{host, label}
}

// resolve returns the one place that a spoken or written name means. It never guesses: if several places fit equally,
// its error names them.
func (b *namebook) resolve(said string) (place, *handoff.Error) {
	said = strings.TrimSpace(said)
	switch {
	case said == "" && len(b.servers) == 1:
		return place{server: b.servers[0]}, nil
	case said == "" && len(b.servers) == 0:
		return place{}, handoff.Fault(handoff.CodeMalformed, "no machine is configured", "")
	case said == "":
		return place{}, &handoff.Error{Code: handoff.CodeMalformed, Subject: "which machine is meant",
			Choices: slices.Clone(b.servers)}
	case len(said) > spoken.MaxName:
		return place{}, b.unknown(said)
	case slices.Contains(b.servers, said):
		return place{server: said}, nil
	}
	full := spoken.Words(said)
	bare := spoken.Without(full, spoken.AroundMachines)
	for _, try := range []struct {
		rank rank
		keys []string
	}{
		{rankName, spoken.Keys(full)}, {rankHost, spoken.Keys(full)}, {rankProject, spoken.Keys(full)},
		{rankName, spoken.Keys(spoken.Without(full, spoken.Articles))},
		{rankLoose, spoken.Keys(bare)}, {rankLooseAll, spoken.Keys(bare)},
	} {
		var found []place
		for _, key := range try.keys {
			found = append(found, b.index[try.rank][key]...)
		}
		if len(found) > 0 {
			return b.only(said, found)
		}
	}
	if server, project, ok := strings.Cut(said, "/"); ok {
		return b.within(said, server, project)
	}
	return b.hear(said, slices.Values(b.heard), spoken.Fit.Whole)
}

// hear finds a place by a name that was perhaps misheard. It returns the place if only one of the names fits enough.
// Else its error asks about at most [maxChoices] names that are similar.
func (b *namebook) hear(said string, names iter.Seq[heardPlace], enough func(spoken.Fit) bool) (place, *handoff.Error) {
	if len(said) > spoken.MaxName {
		return place{}, b.unknown(said)
	}
	query := spoken.NewQuery(said, spoken.ByLength, func(string) bool { return false })
	fits := map[place]spoken.Fit{}
	for name := range names {
		if f := query.Fit(name.name, spoken.Name{}); f.Better(fits[name.place]) {
			fits[name.place] = f
		}
	}
	found, sure := spoken.BestFits(fits, enough, func(x, y place) int {
		server := slices.Index(b.servers, x.server) - slices.Index(b.servers, y.server)
		return cmp.Or(server, strings.Compare(x.project, y.project))
	})
	switch {
	case len(found) == 0:
		return place{}, b.unknown(said)
	case sure:
		return b.only(said, found)
	}
	found = slices.DeleteFunc(found, func(at place) bool { // projects that fit only because of their machine
		own, ok := fits[place{server: at.server}]
		return at.project != "" && ok && own.Score() >= fits[at].Score()
	})
	fault := handoff.Fault(handoff.CodeUnknownServer, sayable(said), "")
	fault.Near = true
	for _, at := range found[:min(len(found), maxChoices)] {
		fault.Choices = append(fault.Choices, at.say())
	}
	return place{}, fault
}

// within resolves "server/project" if the whole name did not match.
func (b *namebook) within(said, server, project string) (place, *handoff.Error) {
	at, fault := b.resolve(server)
	if fault != nil || strings.Contains(project, "/") || at.project != "" {
		return place{}, b.unknown(said)
	}
	at, fault = b.project(at.server, project)
	if fault != nil {
		fault.Subject = sayable(said)
	}
	return at, fault
}

// project finds a project of one server.
func (b *namebook) project(server, said string) (place, *handoff.Error) {
	full := spoken.Words(said)
	wanted := slices.Concat(spoken.Keys(full), spoken.Keys(spoken.Without(full, spoken.AroundMachines)))
	var found []place
	for _, name := range b.dirs[server] {
		at := place{server: server, project: name}
		if name == said {
			return at, nil
		}
		if spoken.Overlap(spoken.Keys(spoken.Words(name)), wanted) {
			found = append(found, at)
		}
	}
	if len(found) > 0 {
		return b.only(said, found)
	}
	at, fault := b.hear(said, func(yield func(heardPlace) bool) {
		for _, name := range b.heard {
			if name.server == server && name.alone && !yield(name) {
				return
			}
		}
	}, spoken.Fit.Part)
	if fault == nil || fault.Near || fault.Code == handoff.CodeAmbiguousServer {
		return at, fault
	}
	fault.Choices = []string{server}
	for _, name := range b.dirs[server] {
		fault.Choices = append(fault.Choices, place{server: server, project: name}.say())
	}
	return place{}, fault
}

// only returns the place if only one was found, or else an error.
func (b *namebook) only(said string, found []place) (place, *handoff.Error) {
	slices.SortFunc(found, func(x, y place) int { // in configured order
		server := slices.Index(b.servers, x.server) - slices.Index(b.servers, y.server)
		return cmp.Or(server, strings.Compare(x.project, y.project))
	})
	found = slices.Compact(found)
	switch len(found) {
	case 0:
		return place{}, b.unknown(said)
	case 1:
		return found[0], nil
	}
	fault := handoff.Fault(handoff.CodeAmbiguousServer, sayable(said), "")
	for _, at := range found[:min(len(found), maxChoices)] {
		fault.Choices = append(fault.Choices, at.say())
	}
	return place{}, fault
}

// unknown returns the error for a name that nothing fits. It names all servers.
func (b *namebook) unknown(said string) *handoff.Error {
	fault := handoff.Fault(handoff.CodeUnknownServer, sayable(said), "")
	fault.Choices = slices.Clone(b.servers)
	return fault
}
