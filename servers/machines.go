package servers

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
)

// Machines returns the servers of a grant as people see them, in configured order.
func (f *Fleet) Machines(g handoff.Grant) []handoff.Machine {
	connectors := f.now.Load().allowed(g)
	all := make([]handoff.Machine, len(connectors))
	for i, k := range connectors {
		v := k.now.Load()
		m := k.spec.About
		m.Name, m.Directory, m.VoiceApprovals = k.spec.Name, k.spec.Dir, cmp.Or(k.spec.VoiceApprovals, "medium")
		switch v.health {
		case handoff.HealthUp:
			m.Seen = time.Now()
			_, m.Archives = v.link.Catalog.(Archiver)
			_, m.Renames = v.link.Catalog.(Renamer)
		case handoff.HealthDown:
			m.NextTry = v.due
			fallthrough
		default:
			m.Seen = v.lost
		}
		if k.spec.Show != nil {
			k.spec.Show(&m)
		}
		all[i] = m
	}
	return all
}

// Test requests the list of a server's threads, and connects first if the server is not connected. It returns how long
// the answer took. It fails if the agent cannot work, as far as that can be found out.
func (f *Fleet) Test(ctx context.Context, g handoff.Grant, name string) (time.Duration, error) {
	k, err := f.allowedOne(g, name)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, waitConnecting+listTimeout)
	defer cancel()
	link, fault := k.link(ctx, true)
	if fault != nil {
		return 0, fault
	}
	began := time.Now()
	if _, fault := f.lists.ask(ctx, k, listWindow, waitConnecting+listTimeout); fault != nil {
		return 0, fault
	}
	took := time.Since(began)
	before := k.unfit()
	if link.Check != nil {
		err = link.Check(ctx)
	}
	if err == nil && k.unfit() != nil {
		err = k.unfit()
	}
	if k.unfit() != before {
		f.change()
	}
	if err != nil {
		err = k.spec.Explain(handoff.AsError(err), time.Time{})
	}
	return took, err
}

// Archive archives a session, or restores it. It fails if the kind cannot do that.
func (f *Fleet) Archive(ctx context.Context, g handoff.Grant, t handoff.Target, on bool) error {
	return f.alter(ctx, g, handoff.ActGive, t, func(ctx context.Context, c Catalog) error {
		if archiver, ok := c.(Archiver); ok {
			return archiver.Archive(ctx, t.Thread, on)
		}
		return handoff.Fault(handoff.CodeUnsupported, t.Server, "its kind keeps all sessions")
	})
}

// maxName bounds the name of a session, in bytes.
const maxName = 200

// RenameSession gives a session a name, which other programs see too. It fails if the kind cannot do that.
func (f *Fleet) RenameSession(ctx context.Context, g handoff.Grant, t handoff.Target, name string) error {
	name = strings.Join(strings.Fields(name), " ")
	if name == "" || len(name) > maxName {
		return handoff.Malformed("name", "a session's name has 1 to 200 bytes")
	}
	return f.alter(ctx, g, handoff.ActRename, t, func(ctx context.Context, c Catalog) error {
		if renamer, ok := c.(Renamer); ok {
			return renamer.Rename(ctx, t.Thread, name)
		}
		return handoff.Fault(handoff.CodeUnsupported, t.Server, "its kind names sessions itself")
	})
}

// alter makes a change that a server's list of sessions shows, and drops the list.
func (f *Fleet) alter(
	ctx context.Context, g handoff.Grant, act handoff.Act, t handoff.Target, change func(context.Context, Catalog) error,
) error {
	if err := g.May(act); err != nil {
		return err
	}
	k, err := f.allowedOne(g, t.Server)
	if err != nil {
		return err
	}
	t.Server = k.spec.Name // it may be an alias
	if f.hides(g.Caller, k, t.Thread, f.lists.sources(t.Server)) {
		return handoff.Fault(handoff.CodeUnknownSession, t.Thread, "")
	}
	ctx, cancel := context.WithTimeout(ctx, waitConnecting+listTimeout)
	defer cancel()
	link, fault := k.link(ctx, true)
	if fault != nil {
		return fault
	}
	if err := change(ctx, link.Catalog); err != nil {
		return f.lists.name(err, t)
	}
	f.lists.outdate(t.Server)
	return nil
}

// allowedOne finds a server of a grant by its name alone.
func (f *Fleet) allowedOne(g handoff.Grant, name string) (*connector, error) {
	k := f.now.Load().byName[name]
	if k == nil || !k.spec.allows(g) {
		return nil, handoff.Fault(handoff.CodeUnknownServer, handoff.Clip(name, 80), "")
	}
	return k, nil
}

// visible returns the threads of a server without those that are hidden from the caller, and marks those that programs
// made.
func (f *Fleet) visible(ctx context.Context, g handoff.Grant, k *connector, threads []namedThread) []namedThread {
	from := sources(threads)
	seen := slices.DeleteFunc(slices.Clone(threads), func(t namedThread) bool {
		return f.hides(g.Caller, k, t.ID, from)
	})
	byAPI := f.byAPI(ctx, g.Caller)
	for i := range seen {
		seen[i].API = byAPI(k.spec.Name, seen[i].ID)
	}
	return seen
}

// maxCopies is how far back the sources of a copy are followed, whose list is of another machine.
const maxCopies = 8

// hides reports whether a thread is hidden from a caller. Until the answer that names a copy has come, which may be
// lost, the copy is its source's: from has the sources of copies. An owner may be known by a former name of the server.
func (f *Fleet) hides(c handoff.Caller, k *connector, thread string, from map[string]string) bool {
	var line []string
	for id := thread; id != "" && len(line) < maxCopies; id = from[strings.ToLower(id)] {
		line = append(line, id)
	}
	names := append([]string{k.spec.Name}, k.spec.Aliases...)
	return slices.ContainsFunc(names, func(name string) bool { return f.hidden(c, name, line...) })
}

// sources returns the threads of which others are copies, by the ids of these.
func sources(lists ...[]namedThread) map[string]string {
	from := map[string]string{}
	for _, list := range lists {
		for _, t := range list {
			if t.From != "" {
				from[strings.ToLower(t.ID)] = t.From
			}
		}
	}
	return from
}
