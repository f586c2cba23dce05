package servers

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"switchboard/handoff"
)

// Bounds of asking servers for their threads.
const (
	listTimeout  = 2 * time.Second        // a server that needs longer is named in Errors
	workTimeout  = 700 * time.Millisecond // for who works on what, which is only nice to know
	listWindow   = 100                    // threads asked of each server: more than anybody looks through
	listFreshFor = 2 * time.Second        // a list this young is not asked for again to see who works
)

// A listing is what a server answered last.
type listing struct {
	at      time.Time
	threads []named
}

// list asks a server for its threads.
func (f *Fleet) list(ctx context.Context, k *connector, timeout time.Duration) ([]named, *handoff.Error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	link, fault := k.link(ctx, false)
	if fault != nil {
		return nil, fault
	}
	threads, err := link.Catalog.List(ctx, listWindow)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, handoff.Fault(handoff.CodeUnreachable, k.spec.Name, "it did not answer in time")
	default:
		return nil, f.name(err, handoff.Target{Server: k.spec.Name})
	}
	list := name(threads)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lists[k.spec.Name] = listing{at: time.Now(), threads: list}
	return list, nil
}

func (f *Fleet) cached(server string) listing {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lists[server]
}

// findThread resolves a thread name in a place. A full id may come from the last list; everything else needs a
// fresh one, because a newer thread may fit as well.
func (f *Fleet) findThread(ctx context.Context, g handoff.Grant, at place, said string) (string, *handoff.Error) {
	k := f.byName[at.server]
	if t, ok := byID(said, f.seen(g, at.server, f.cached(at.server).threads)); ok {
		return t.ID, k.checkWithin(at.project, t.Dir, sayable(spokenTitle(t)))
	}
	list, fault := f.list(ctx, k, listTimeout)
	if fault != nil {
		return "", fault
	}
	return k.findWithin(at.project, said, nameSearch{f.seen(g, at.server, list), time.Now()})
}

// findWithin finds a thread of a project; "" is the whole server. What clearly names a session of another place
// is refused with that place, never taken.
func (k *connector) findWithin(project, said string, all nameSearch) (string, *handoff.Error) {
	dir := k.spec.Projects[project]
	within := nameSearch{slices.DeleteFunc(slices.Clone(all.list), func(t named) bool { return !inside(t.Dir, dir) }), all.now}
	id, fault := within.find(said)
	if fault == nil || fault.Code != handoff.CodeUnknownSession {
		return id, fault
	}
	if found := all.match(said, sureSearches); len(found) > 0 {
		elsewhere := handoff.Fault(handoff.CodeSessionElsewhere, sayable(said), "")
		for _, t := range found {
			if where := k.whereIs(t.Dir); len(elsewhere.Choices) < maxChoices && !slices.Contains(elsewhere.Choices, where) {
				elsewhere.Choices = append(elsewhere.Choices, where)
			}
		}
		return "", elsewhere
	}
	return "", fault
}

// checkWithin refuses a thread whose directory lies outside of a project. title is what it is called.
func (k *connector) checkWithin(project, dir, title string) *handoff.Error {
	if project == "" || inside(dir, k.spec.Projects[project]) {
		return nil
	}
	fault := handoff.Fault(handoff.CodeSessionElsewhere, title, "it is in "+dir+", not in "+project)
	fault.Choices = []string{k.whereIs(dir)}
	return fault
}

// whereIs says where a directory is: in the innermost project, else by its last element.
func (k *connector) whereIs(dir string) string {
	at := place{server: k.spec.Name}
	for project, root := range k.spec.Projects {
		if inside(dir, root) && len(root) > len(k.spec.Projects[at.project]) {
			at.project = project
		}
	}
	if at.project == "" && dir != "" {
		return sayable(lastOf(dir, nil)) + " on " + at.server
	}
	return at.say()
}

// title returns what can be said of a target's thread.
func (f *Fleet) title(t handoff.Target) string {
	for _, known := range f.cached(t.Server).threads {
		if known.ID == t.Thread && known.Title != "" {
			return sayable(known.Title)
		}
	}
	return "on " + t.Server
}

// Servers implements [handoff.Directory]. What each works on is asked of those that are up, for a short
// time.
func (f *Fleet) Servers(ctx context.Context, g handoff.Grant) []handoff.ServerInfo {
	connectors := f.allowed(g)
	infos := make([]handoff.ServerInfo, len(connectors))
	var asks sync.WaitGroup
	for i, k := range connectors {
		v := k.now.Load()
		infos[i] = handoff.ServerInfo{
			Name: k.spec.Name, Aliases: k.spec.Aliases, Kind: k.spec.Kind, Health: v.health,
			Projects: f.names.dirs[k.spec.Name], Simulated: k.spec.Simulated, Version: v.version, Note: v.note,
		}
		if v.health != handoff.HealthUp {
			infos[i].Problem = problem(v.fault)
			continue
		}
		asks.Go(func() { infos[i].Working = f.working(ctx, g, k) })
	}
	asks.Wait()
	return infos
}

// working returns the titles of the sessions of a server that run a turn.
func (f *Fleet) working(ctx context.Context, g handoff.Grant, k *connector) []string {
	last := f.cached(k.spec.Name)
	list := last.threads
	if time.Since(last.at) > listFreshFor {
		var fault *handoff.Error
		if list, fault = f.list(ctx, k, workTimeout); fault != nil {
			return nil
		}
	}
	var titles []string
	for _, t := range f.seen(g, k.spec.Name, list) {
		if t.Status == handoff.SessionRunning || t.Status == handoff.SessionWaiting {
			titles = append(titles, t.Title)
		}
	}
	return titles
}

// Sessions implements [handoff.Directory]: all servers at once, each with its own deadline.
func (f *Fleet) Sessions(ctx context.Context, g handoff.Grant, q handoff.SessionQuery) (handoff.SessionList, error) {
	asked := f.allowed(g)
	var within place
	if strings.TrimSpace(q.Server) != "" {
		var fault *handoff.Error
		if within, fault = f.book(g).resolve(q.Server); fault != nil {
			return handoff.SessionList{}, fault
		}
		asked = []*connector{f.byName[within.server]}
	}
	lists := make([][]named, len(asked))
	faults := make([]*handoff.Error, len(asked))
	var asks sync.WaitGroup
	for i, k := range asked {
		asks.Go(func() { lists[i], faults[i] = f.list(ctx, k, listTimeout) })
	}
	asks.Wait()
	var result handoff.SessionList
	now := time.Now()
	for i, k := range asked {
		if faults[i] != nil {
			result.Errors = append(result.Errors, handoff.ServerProblem{
				Server: k.spec.Name, Code: faults[i].Code, Message: faults[i].Spoken(),
			})
			continue
		}
		dir := k.spec.Projects[within.project]
		for _, t := range f.seen(g, k.spec.Name, lists[i]) {
			if inside(t.Dir, dir) && mentions(t, q.Text) {
				result.Items = append(result.Items, session(now, k.spec.Name, t))
			}
		}
	}
	return cut(result, q.Limit), nil
}

func session(now time.Time, server string, t named) handoff.SessionInfo {
	return handoff.SessionInfo{
		ID: t.ID, Label: t.Label, Title: t.Title, Server: server, Directory: t.Dir, Branch: t.Branch,
		Created: t.Created, Updated: t.Updated, Age: handoff.Ago(now, t.Updated), Status: t.Status,
	}
}

// cut sorts newest first and keeps limit sessions.
func cut(list handoff.SessionList, limit int) handoff.SessionList {
	if limit <= 0 {
		limit = handoff.DefaultSessions
	}
	limit = min(limit, handoff.MaxSessions)
	slices.SortStableFunc(list.Items, func(a, b handoff.SessionInfo) int { return b.Updated.Compare(a.Updated) })
	if left := len(list.Items) - limit; left > 0 {
		list.Items, list.More = list.Items[:limit], left
	}
	return list
}

// inside tells whether a thread's directory is dir or below it. Without dir everything is.
func inside(have, dir string) bool {
	dir = strings.TrimRight(dir, "/")
	return dir == "" || have == dir || strings.HasPrefix(have, dir+"/")
}

// mentions tells whether every word of a query stands in the title, label, directory or branch.
func mentions(t named, query string) bool {
	text := strings.ToLower(strings.Join([]string{t.Title, t.Label, t.Dir, t.Branch}, "\n"))
	for word := range strings.FieldsSeq(strings.ToLower(query)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// Read implements [handoff.Directory].
func (f *Fleet) Read(ctx context.Context, g handoff.Grant, t handoff.Target, limit int) (handoff.Transcript, error) {
	target, err := f.Resolve(ctx, g, t)
	if err != nil {
		return handoff.Transcript{}, err
	}
	if target.Thread == "" || target.Thread == handoff.NewThread {
		return handoff.Transcript{}, handoff.Fault(handoff.CodeMalformed, "which session is meant", "")
	}
	if limit <= 0 {
		limit = handoff.DefaultReadLines
	}
	ctx, cancel := context.WithTimeout(ctx, waitConnecting)
	defer cancel()
	link, fault := f.byName[target.Server].link(ctx, true)
	if fault != nil {
		return handoff.Transcript{}, fault
	}
	text, err := link.Catalog.Read(ctx, target.Thread, min(limit, handoff.MaxReadWhole))
	if err != nil {
		return handoff.Transcript{}, f.name(err, target)
	}
	if fault := f.byName[target.Server].checkWithin(target.Project, text.Thread.Dir, sayable(text.Thread.Title)); fault != nil {
		return handoff.Transcript{}, fault
	}
	return handoff.Transcript{
		Server: target.Server, ID: text.Thread.ID, Title: text.Thread.Title, Status: text.Thread.Status,
		Lines: text.Lines, More: text.More,
	}, nil
}

var (
	_ handoff.Fleet     = (*Fleet)(nil)
	_ handoff.Forker    = (*Fleet)(nil)
	_ handoff.Ephemeral = (*Fleet)(nil)
	_ handoff.Directory = (*Fleet)(nil)
)
