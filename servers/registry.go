package servers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"switchboard/handoff"
)

// A registry is the servers that there are at one time, and their names. It is replaced, never changed.
type registry struct {
	names      *namebook             // Set once
	connectors []*connector          // Set once: in configured order
	byName     map[string]*connector // Set once: by names and aliases

	mu    sync.Mutex
	books map[string]*namebook // Guarded by mu: the names of each set of servers that a grant has
}

func newRegistry(connectors []*connector) *registry {
	r := &registry{
		names: newNamebook(specsOf(connectors)), connectors: connectors, byName: map[string]*connector{},
		books: map[string]*namebook{},
	}
	for _, k := range connectors {
		for _, alias := range k.spec.Aliases {
			r.byName[alias] = k // work that was given under it goes on
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

// book returns the names that a grant may use. There are as many books as sets of servers that grants have.
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

// allows reports whether a grant may use a server. A call may be older than the server, and then its grant does not
// know whom that is for.
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

// connector returns the server of a resolved name. Where it was removed meanwhile, the others are not named: nobody
// knows here which of them the caller may use.
func (r *registry) connector(name string) (*connector, *handoff.Error) {
	if k := r.byName[name]; k != nil {
		return k, nil
	}
	return nil, handoff.Fault(handoff.CodeUnknownServer, sayable(name), "")
}

// errRemoved is why a connector ends whose server was taken out of the fleet.
var errRemoved = errors.New("the server was removed")

// Change takes servers out of the fleet and puts others in, in the place of those with the same names. Either all of
// that is done, or nothing and the error says what is wrong. Servers that stay keep their connections, and with these
// their work.
func (f *Fleet) Change(drop []string, put []Spec) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	all, gone, added, err := f.changed(drop, put)
	if err != nil {
		return err
	}
	for _, k := range gone { // before its name means another
		k.removed.Store(true)
		f.lists.forget(k.spec.Name)
	}
	f.now.Store(newRegistry(all))
	for _, k := range gone {
		k.leave(errRemoved)
	}
	for _, k := range added {
		if f.start == nil {
			k.after = nil // what was there before never ran
			continue
		}
		f.start(k)
	}
	f.change()
	return nil
}

// Hold lets nobody have a thread of some servers, or a connection to them, until release: who asks waits. So nothing
// new begins on a server between the look at what it does and its change. One at a time may hold servers.
func (f *Fleet) Hold(servers []string) (release func()) {
	released := make(chan struct{})
	var held []*connector
	for _, name := range servers {
		if k := f.now.Load().byName[name]; k != nil {
			k.held.Store(&released)
			held = append(held, k)
		}
	}
	return func() {
		for _, k := range held {
			k.held.Store(nil)
		}
		close(released)
	}
}

// Check reports what is wrong with a change, and makes none.
func (f *Fleet) Check(drop []string, put []Spec) error {
	_, _, _, err := f.changed(drop, put)
	return err
}

// changed returns the servers that there are after a change, those that go, and those that come.
func (f *Fleet) changed(drop []string, put []Spec) (all, gone, added []*connector, err error) {
	for _, s := range put {
		added = append(added, newConnector(s, f.log, f.change, f.news))
	}
	left := slices.Clone(added)
	for _, k := range f.now.Load().connectors {
		i := slices.IndexFunc(left, func(next *connector) bool { return next.spec.Name == k.spec.Name })
		switch {
		case i >= 0:
			left[i].after = k.ended
			all, gone, left = append(all, left[i]), append(gone, k), slices.Delete(left, i, i+1)
		case slices.Contains(drop, k.spec.Name):
			gone = append(gone, k)
		default:
			all = append(all, k)
		}
	}
	all = append(all, left...)
	return all, gone, added, check(specsOf(all))
}

// Retry connects to a server soon that is waited for, because something says that it is back.
func (f *Fleet) Retry(server string) {
	if k := f.now.Load().byName[server]; k != nil {
		k.hurry()
	}
}

// Run connects to every server at once and keeps the connections until ctx ends. It returns nil when
// they are closed.
func (f *Fleet) Run(ctx context.Context) error {
	var work, tell sync.WaitGroup
	stop := make(chan struct{})
	tell.Go(func() { f.tell(stop) })
	f.lists.mayAsk(true)
	f.mu.Lock()
	f.start = func(k *connector) {
		own, leave := context.WithCancelCause(ctx)
		k.leave = leave
		work.Go(func() {
			defer leave(nil)
			defer close(k.ended)
			if k.after != nil {
				<-k.after // what was there before has what this one needs
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
	f.lists.mayAsk(false)
	work.Wait()
	f.lists.asks.Wait() // soon: the connections have ended
	close(stop)
	tell.Wait()
	return nil
}

// A SpecError says what is wrong with a server among the others.
type SpecError struct{ Server, Why string }

// Error implements error.
func (e SpecError) Error() string { return fmt.Sprintf("server %q: %s", e.Server, e.Why) }

// check reports every fault of the specs at once, each a [SpecError].
func check(specs []Spec) error {
	var faults []error
	bad := func(server, format string, args ...any) {
		faults = append(faults, SpecError{server, fmt.Sprintf(format, args...)})
	}
	owners := map[string]string{} // spoken form -> server
	claim := func(server, what, name string) {
		said := keys(words(name))
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
		spoken := map[string]string{}
		for project := range s.Projects {
			said := keys(words(project))
			if len(said) == 0 || strings.Contains(project, "/") {
				bad(s.Name, "project %q must have a letter or figure and no slash", project)
				continue
			}
			if other, taken := spoken[said[0]]; taken {
				first, second := min(project, other), max(project, other)
				bad(s.Name, "projects %q and %q sound the same", first, second)
			}
			spoken[said[0]] = project
		}
	}
	return errors.Join(faults...)
}
