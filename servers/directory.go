package servers

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"switchboard/handoff"
)

// findThread resolves a thread name in a place. A full id is looked up in the last list; any other name needs a new
// list, because a newer thread may match too.
func (f *Fleet) findThread(
	ctx context.Context, g handoff.Grant, k *connector, at place, said string,
) (string, *handoff.Error) {
	if t, ok := byID(said, f.visible(ctx, g, k, f.lists.cached(at.server).threads)); ok {
		return t.ID, k.checkWithin(at.project, t.Dir, sayable(spokenTitle(t)))
	}
	list, fault := f.lists.list(ctx, k, nameTimeout)
	if fault != nil {
		return "", fault
	}
	newest := nameSearch{list: f.visible(ctx, g, k, list), now: time.Now()}
	if found := newest.match(said, sureSearches); len(found) == 0 { // an older thread may match better
		if list, fault = f.lists.widen(ctx, k, list, nameTimeout); fault != nil {
			return "", fault
		}
		newest.list = f.visible(ctx, g, k, list)
	}
	return k.findWithin(at.project, said, newest)
}

// findWithin finds a thread of a project; "" is the whole server. If the name clearly means a thread of another place,
// it returns an error with that place.
func (k *connector) findWithin(project, said string, all nameSearch) (string, *handoff.Error) {
	dir := k.spec.Projects[project]
	within := nameSearch{now: all.now}
	within.list = slices.DeleteFunc(slices.Clone(all.list), func(t namedThread) bool { return !inside(t.Dir, dir) })
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

// checkWithin returns an error for a thread whose directory lies outside of a project. title is the thread's title.
func (k *connector) checkWithin(project, dir, title string) *handoff.Error {
	if project == "" || inside(dir, k.spec.Projects[project]) {
		return nil
	}
	fault := handoff.Fault(handoff.CodeSessionElsewhere, title, "it is in "+dir+", not in "+project)
	fault.Choices = []string{k.whereIs(dir)}
	return fault
}

// whereIs returns words for the place of a directory: its innermost project, or else its last element.
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

// Servers implements [handoff.Directory]. It asks the servers that are up for their working sessions, for at most
// workTimeout.
func (f *Fleet) Servers(ctx context.Context, g handoff.Grant) []handoff.ServerInfo {
	now := f.now.Load()
	connectors := now.allowed(g)
	infos := make([]handoff.ServerInfo, len(connectors))
	var asks sync.WaitGroup
	for i, k := range connectors {
		infos[i] = k.info()
		infos[i].Projects = now.names.dirs[k.spec.Name]
		if infos[i].Health == handoff.HealthUp {
			infos[i].AskedThere = f.askedThere(g, k)
			asks.Go(func() { infos[i].Working = f.working(ctx, g, k) })
		}
	}
	asks.Wait()
	return infos
}

// Bounds of questions that others answer.
const (
	maxAskedThere = 5   // of a server
	maxAskedRunes = 300 // of a question
)

// askedThere returns the questions of a server's agents that others answer, as far as the grant may see them.
func (f *Fleet) askedThere(g handoff.Grant, k *connector) (all []handoff.AskedThere) {
	link := k.now.Load().link
	if link == nil {
		return nil
	}
	if b, ok := link.Catalog.(Overhearer); ok {
		from := f.lists.sources(k.spec.Name)
		for _, q := range b.ForeignQuestions() {
			if len(all) < maxAskedThere && !f.hides(g.Caller, k, q.Thread, from) {
				all = append(all, handoff.AskedThere{
					Thread: q.Thread, Title: q.Title, Text: handoff.ClipRunes(q.Text, maxAskedRunes),
				})
			}
		}
	}
	return all
}

// info returns what is known of a server without asking it.
func (k *connector) info() handoff.ServerInfo {
	v := k.now.Load()
	info := handoff.ServerInfo{
		Name: k.spec.Name, Aliases: k.spec.Aliases, Kind: k.spec.Kind, Health: v.health, Simulated: k.spec.Simulated,
		Version: v.version, Note: v.note, Watchable: !k.spec.private() && k.spec.Watch != unwatched,
	}
	info.WatchAll = info.Watchable && k.spec.Watch == watchedAll
	fault := v.fault
	if v.health == handoff.HealthUp {
		_, info.Worktrees = v.link.Conn.(Gitter)
		fault = k.unfit()
	}
	if fault != nil {
		explained := k.spec.Explain(fault, v.lost)
		info.Reason, info.Problem, info.Next = explained.Reason, explained.Why, explained.NextStep()
	}
	return info
}

// Known returns what is known of all servers without asking them.
func (f *Fleet) Known() []handoff.ServerInfo {
	var all []handoff.ServerInfo
	for _, k := range f.now.Load().connectors {
		all = append(all, k.info())
	}
	return all
}

// working returns the titles of the sessions of a server that run a turn.
func (f *Fleet) working(ctx context.Context, g handoff.Grant, k *connector) []string {
	last := f.lists.cached(k.spec.Name)
	list := last.threads
	if time.Since(last.at) > listFreshFor {
		var fault *handoff.Error
		if list, fault = f.lists.list(ctx, k, workTimeout); fault != nil {
			return nil
		}
	}
	var titles []string
	for _, t := range f.visible(ctx, g, k, list) {
		if runs(t) {
			titles = append(titles, t.Title)
		}
	}
	return titles
}

// Sessions implements [handoff.Directory]. It asks all servers at once, each with its own deadline.
func (f *Fleet) Sessions(ctx context.Context, g handoff.Grant, q handoff.SessionQuery) (handoff.SessionList, error) {
	if err := g.May(handoff.ActSessions); err != nil {
		return handoff.SessionList{}, err
	}
	registered := f.now.Load()
	connectors := registered.allowed(g)
	var within place
	if strings.TrimSpace(q.Server) != "" {
		var fault *handoff.Error
		if within, fault = registered.book(g).resolve(q.Server); fault != nil {
			return handoff.SessionList{}, fault
		}
		connectors = []*connector{registered.byName[within.server]}
	}
	lists := make([][]namedThread, len(connectors))
	faults := make([]*handoff.Error, len(connectors))
	var asks sync.WaitGroup
	for i, k := range connectors {
		asks.Go(func() {
			lists[i], faults[i] = f.lists.listed(ctx, k)
			byAPI := func(t namedThread) bool { return t.API }
			if q.Text != "" || q.Skip+cmp.Or(q.Limit, handoff.DefaultSessions) >= listWindow || within.project != "" ||
				slices.ContainsFunc(f.visible(ctx, g, k, lists[i]), byAPI) {
				timeout := searchTimeout
				if faults[i] != nil {
					timeout = silentTimeout
				}
				list, fault := f.lists.widen(ctx, k, lists[i], timeout) // older threads may match too
				lists[i], faults[i] = list, cmp.Or(faults[i], fault)
			}
		})
	}
	asks.Wait()
	var result handoff.SessionList
	var all []namedThread
	now, visible := time.Now(), map[string][]namedThread{} // by server
	for i, k := range connectors {
		if faults[i] != nil {
			result.Errors = append(result.Errors, handoff.ServerProblem{
				Server: k.spec.Name, Code: faults[i].Code, Message: faults[i].Spoken(),
			})
		}
		dir := k.spec.Projects[within.project]
		list := f.visible(ctx, g, k, lists[i])
		visible[k.spec.Name] = list
		all = append(all, slices.DeleteFunc(slices.Clone(list), func(t namedThread) bool { return !inside(t.Dir, dir) })...)
	}
	for _, t := range sought(all, q.Text, now) {
		result.Items = append(result.Items, handoff.SessionInfo{
			ID: t.ID, Label: t.Label, Title: t.Title, Server: t.server, Directory: t.Dir,
			Branch: t.Branch, Created: t.Created, Updated: t.Updated, Age: handoff.Ago(now, t.Updated),
			Status: t.Status, API: t.API, Worktree: handoff.WorktreeAt(t.Dir),
		})
	}
	result = cut(result, q.Skip, q.Limit)
	for server, list := range visible {
		nameApart(result.Items, server, list, now)
	}
	return result, nil
}

// sought returns the threads that contain every word of a query. If there is none, the words may have been misheard:
// then it returns at most [maxChoices] threads whose titles sound like them.
func sought(all []namedThread, text string, now time.Time) []namedThread {
	found := slices.DeleteFunc(slices.Clone(all), func(t namedThread) bool { return !mentions(t, text) })
	if len(found) > 0 || strings.TrimSpace(text) == "" {
		return found
	}
	found, _ = nameSearch{list: all, now: now}.search(text)
	return found[:min(len(found), maxChoices)]
}

// cut sorts sessions newest first, those of programs last, and returns limit of them after the first skip.
func cut(list handoff.SessionList, skip, limit int) handoff.SessionList {
	if limit <= 0 {
		limit = handoff.DefaultSessions
	}
	limit = min(limit, handoff.MaxSessions)
	slices.SortStableFunc(list.Items, func(a, b handoff.SessionInfo) int {
		if a.API != b.API {
			return map[bool]int{true: 1, false: -1}[a.API]
		}
		return b.Updated.Compare(a.Updated)
	})
	list.Items = list.Items[min(max(skip, 0), len(list.Items)):]
	if left := len(list.Items) - limit; left > 0 {
		list.Items, list.More = list.Items[:limit], left
	}
	return list
}

// inside reports whether a thread's directory is dir or below it. It is true if dir is "".
func inside(have, dir string) bool {
	dir = strings.TrimRight(dir, "/")
	if w := handoff.WorktreeAt(have); w != nil && inside(w.Home(), dir) {
		return true
	}
	return dir == "" || have == dir || strings.HasPrefix(have, dir+"/")
}

// mentions reports whether title, label, directory and branch together contain every word of a query.
func mentions(t namedThread, query string) bool {
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
	if err := g.May(handoff.ActTranscript); err != nil {
		return handoff.Transcript{}, err
	}
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
	k, fault := f.now.Load().connector(target.Server)
	if fault != nil {
		return handoff.Transcript{}, fault
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	link, fault := k.link(ctx, true)
	if fault != nil {
		return handoff.Transcript{}, fault
	}
	text, err := link.Catalog.Read(ctx, target.Thread, min(limit, handoff.MaxReadWhole))
	if err != nil {
		return handoff.Transcript{}, f.lists.name(err, target)
	}
	from := map[string]string{strings.ToLower(target.Thread): text.Thread.From}
	if f.hides(g.Caller, k, target.Thread, from) {
		return handoff.Transcript{}, handoff.Fault(handoff.CodeUnknownSession, sayable(t.Thread), "") // no list had it
	}
	if fault := k.checkWithin(target.Project, text.Thread.Dir, sayable(text.Thread.Title)); fault != nil {
		return handoff.Transcript{}, fault
	}
	lines := slices.Clone(text.Lines)
	for i := range lines {
		lines[i].Text = handoff.Plain(lines[i].Text)
	}
	return handoff.Transcript{
		Server: target.Server, ID: text.Thread.ID, Title: text.Thread.Title, Status: text.Thread.Status,
		Lines: lines, More: text.More,
	}, nil
}

var (
	_ handoff.Fleet     = (*Fleet)(nil)
	_ handoff.Forker    = (*Fleet)(nil)
	_ handoff.Ephemeral = (*Fleet)(nil)
	_ handoff.Directory = (*Fleet)(nil)
	_ handoff.Planter   = (*Fleet)(nil)
)
