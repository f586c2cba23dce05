package servers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"switchboard/handoff"
	"switchboard/servers/spoken"
)

// A registry has the servers of the fleet at one time, and their names. It is replaced, never changed.
type registry struct {
	names      *namebook             // Set once
	connectors []*connector          // Set once: in configured order
	byName     map[string]*connector // Set once: by names and aliases

	mu    sync.Mutex
	books map[string]*namebook // Guarded by mu: by the joined names of the servers that a grant allows
}

func newRegistry(connectors []*connector) *registry {
	r := &registry{
		names: newNamebook(specsOf(connectors)), connectors: connectors, byName: map[string]*connector{},
		books: map[string]*namebook{},
	}
	for _, k := range connectors {
		for _, alias := range k.spec.Aliases {
			r.byName[alias] = k // work may have been given by a former name
		}
	}
	for _, k := range connectors {
		r.byName[k.spec.Name] = k
	}
	return r
}

func specsOf(connectors []*connector) []Spec {
	var specs []Spec
	for _, k := range connectors {
		specs = append(specs, k.spec)
	}
	return specs
}

// book returns the names of the servers that a grant allows.
func (r *registry) book(g handoff.Grant) *namebook {
	allowed := specsOf(r.allowed(g))
	if len(allowed) == len(r.connectors) {
		return r.names
	}
	var names []string
	for _, s := range allowed {
		names = append(names, s.Name)
	}
	key := strings.Join(names, "/")
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.books[key]
	if b == nil {
		b = newNamebook(allowed)
		r.books[key] = b
	}
	return b
}

// allowed returns the servers that a grant may use.
func (r *registry) allowed(g handoff.Grant) []*connector {
	return slices.DeleteFunc(slices.Clone(r.connectors), func(k *connector) bool { return !k.spec.allows(g) })
}

// allows reports whether a grant may use a server. It also checks For, since the grant of a call may be older than the
// server.
func (s *Spec) allows(g handoff.Grant) bool {
	return g.AllowsServer(s.Name) && (s.For == nil || g.Caller == (handoff.Caller{}) ||
		slices.Contains(s.For, g.Caller.Principal))
}

// place resolves the server and project of a target.
func (r *registry) place(g handoff.Grant, t handoff.Target) (place, *handoff.Error) {
	names := r.book(g)
	at, fault := names.resolve(t.Server)
	if fault != nil || strings.TrimSpace(t.Project) == "" {
		return at, fault
	}
	named, fault := names.project(at.server, t.Project)
	if fault == nil && at.project != "" && at != named {
		return place{}, handoff.Fault(handoff.CodeMalformed, "two projects are named", "")
	}
	return named, fault
}

// connector returns the server of a resolved name. If the server was removed meanwhile, the error names no others,
// since it is not known here which of them the caller may use.
func (r *registry) connector(name string) (*connector, *handoff.Error) {
	if k := r.byName[name]; k != nil {
		return k, nil
	}
	return nil, handoff.Fault(handoff.CodeUnknownServer, sayable(name), "")
}

// errRemoved is the cause of a connector's end when its server is removed from the fleet.
var errRemoved = errors.New("the server was removed")

// Change removes servers from the fleet and adds others, which replace those of the same names. It does all or nothing;
// an error says what is wrong. The other servers keep their connections and their work.
func (f *Fleet) Change(drop []string, put []Spec) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	all, gone, added, err := f.changed(drop, put)
	if err != nil {
		return err
	}
	for _, k := range gone { // before its name stands for another server
		k.removed.Store(true)
		f.lists.forget(k.spec.Name)
	}
	f.now.Store(newRegistry(all))
	for _, k := range gone {
		k.leave(errRemoved)
	}
	for _, k := range added {
		if f.start == nil {
			k.after = nil // the server that it replaces never ran
			continue
		}
		f.start(k)
	}
	f.change()
	return nil
}

// Hold makes requests for threads of some servers, or for connections to them, wait until release. So no new work
// begins on a server between a check of its work and its change. Calls of Hold must not overlap.
func (f *Fleet) Hold(servers []string) (release func()) {
	released := make(chan struct{})
	var held []*connector
	for _, name := range servers {
		if k := f.now.Load().byName[name]; k != nil {
			k.hold.Store(&released)
			held = append(held, k)
		}
	}
	return func() {
		for _, k := range held {
			k.hold.Store(nil)
		}
		close(released)
	}
}

// Check reports what is wrong with a change, and makes none.
func (f *Fleet) Check(drop []string, put []Spec) error {
	_, _, _, err := f.changed(drop, put)
	return err
}

// changed returns the servers after a change, those that it removes, and those that it adds.
func (f *Fleet) changed(drop []string, put []Spec) (all, gone, added []*connector, err error) {
	for _, s := range put {
		added = append(added, newConnector(s, f.log, f.change, f.listChanged))
	}
	rest := slices.Clone(added) // those that replace no server
	for _, k := range f.now.Load().connectors {
		i := slices.IndexFunc(rest, func(next *connector) bool { return next.spec.Name == k.spec.Name })
		switch {
		case i >= 0:
			rest[i].after = k.ended
			all, gone, rest = append(all, rest[i]), append(gone, k), slices.Delete(rest, i, i+1)
		case slices.Contains(drop, k.spec.Name):
			gone = append(gone, k)
		default:
			all = append(all, k)
		}
	}
	all = append(all, rest...)
	return all, gone, added, check(specsOf(all))
}

// Retry shortens the wait before the next attempt to connect to a server, because its machine is back. While the
// attempt goes on, the server counts as connecting: its agent may be starting.
func (f *Fleet) Retry(server string) {
	if k := f.now.Load().byName[server]; k != nil {
		k.back.Store(true)
		k.hurry()
	}
}

// Run connects to all servers and keeps the connections until ctx ends. It returns nil when they are closed.
func (f *Fleet) Run(ctx context.Context) error {
	var work, tell sync.WaitGroup
	stop := make(chan struct{})
	tell.Go(func() { f.runCallbacks(stop) })
	f.lists.setOpen(true)
	work.Go(func() { f.keepTidy(ctx) })
	f.mu.Lock()
	f.start = func(k *connector) {
		own, leave := context.WithCancelCause(ctx)
		k.leave = leave
		work.Go(func() {
			defer leave(nil)
			defer close(k.ended)
			if k.after != nil {
				<-k.after // the server that it replaces may hold resources that it needs
			}
			k.run(own)
		})
	}
	for _, k := range f.now.Load().connectors {
		f.start(k)
	}
	f.mu.Unlock()
	<-ctx.Done()
	f.mu.Lock()
	f.start = nil
	f.mu.Unlock()
	f.lists.setOpen(false)
	work.Wait()
	f.lists.asks.Wait() // not for long, since the connections have ended
	close(stop)
	tell.Wait()
	return nil
}

// A SpecError says what is wrong with the spec of a server.
type SpecError struct{ Server, Why string }

// Error implements error.
func (e SpecError) Error() string { return fmt.Sprintf("server %q: %s", e.Server, e.Why) }

// check reports every fault of the specs at once, each a [SpecError].
func check(specs []Spec) error {
	var faults []error
	bad := func(server, format string, args ...any) {
		faults = append(faults, SpecError{server, fmt.Sprintf(format, args...)})
	}
	owners := map[string]string{} // servers by key
	claim := func(server, what, name string) {
		said := spoken.Keys(spoken.Words(name))
		if len(said) == 0 || strings.Contains(name, "/") {
			bad(server, "%s %q must have a letter or figure and no slash", what, name)
			return
		}
		for _, key := range said {
			if owner, taken := owners[key]; taken && owner != server {
				bad(server, "%s %q is also a name of server %q", what, name, owner)
				return
			}
			owners[key] = server
		}
	}
	var seen []string
	for _, s := range specs {
		if slices.Contains(seen, s.Name) {
			bad(s.Name, "is there twice")
			continue
		}
		seen = append(seen, s.Name)
		if s.Dial == nil {
			bad(s.Name, "no way to dial it")
		}
		claim(s.Name, "name", s.Name)
		for _, alias := range s.Aliases {
			claim(s.Name, "alias", alias)
		}
		projects := map[string]string{}
		for project := range s.Projects {
			said := spoken.Keys(spoken.Words(project))
			if len(said) == 0 || strings.Contains(project, "/") {
				bad(s.Name, "project %q must have a letter or figure and no slash", project)
				continue
			}
			if other, taken := projects[said[0]]; taken {
				first, second := min(project, other), max(project, other)
				bad(s.Name, "projects %q and %q sound the same", first, second)
			}
			projects[said[0]] = project
		}
	}
	return errors.Join(faults...)
}
