package servers

import (
	"context"
	"slices"
	"strings"

	"switchboard/handoff"
)

// What a grant does not allow is as if it did not exist: its names are unknown, and its sessions are in no list.

// book returns the names that a grant may use. There are as many books as configured grants differ.
func (f *Fleet) book(g handoff.Grant) *namebook {
	if g.Servers == nil {
		return f.names
	}
	key := strings.Join(slices.Sorted(slices.Values(g.Servers)), "/")
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.books[key]
	if b == nil {
		var specs []Spec
		for _, k := range f.connectors {
			if g.AllowsServer(k.spec.Name) {
				specs = append(specs, k.spec)
			}
		}
		b = newNamebook(specs)
		f.books[key] = b
	}
	return b
}

// allowed returns the servers that a grant may use.
func (f *Fleet) allowed(g handoff.Grant) []*connector {
	return slices.DeleteFunc(slices.Clone(f.connectors), func(k *connector) bool { return !g.AllowsServer(k.spec.Name) })
}

// seen returns the threads of a server that the caller may know of, and marks those that programs made.
func (f *Fleet) seen(ctx context.Context, g handoff.Grant, server string, threads []named) []named {
	seen := slices.DeleteFunc(slices.Clone(threads), func(t named) bool { return f.hidden(g.Caller, server, t.ID) })
	byAPI := f.byAPI(ctx, g.Caller)
	for i := range seen {
		seen[i].API = byAPI(server, seen[i].ID)
	}
	return seen
}
