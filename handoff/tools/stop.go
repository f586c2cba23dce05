package tools

import (
	"cmp"
	"context"
	"slices"

	"switchboard/handoff"
	"switchboard/handoff/wording"
)

// Do stops the work that the caller means, or asks which one they mean. It needs a Resolver and Work.
func (a StopArguments) Do(ctx context.Context, b Backend, _ Front, g handoff.Grant) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	if a.Drop != "" {
		return dropPaused(ctx, b, g, a.Drop)
	}
	if a.Watched != "" {
		return stopWatching(ctx, b, g, handoff.Target{Server: a.Server, Thread: a.Watched})
	}
	if a.Theirs != "" {
		return stopWatched(ctx, b, g, a.Theirs)
	}
	running, unread := b.Work.Handoffs(g)
	running = slices.DeleteFunc(running, func(rec handoff.Record) bool { return rec.Outcome != "" })
	slices.Reverse(running) // oldest first
	where := ""
	if a.Server != "" && !a.All() {
		t, err := b.Resolver.Resolve(ctx, g, handoff.Target{Server: a.Server})
		if err != nil {
			return nil, err
		}
		where = t.Server
		running = slices.DeleteFunc(running, func(rec handoff.Record) bool {
			return rec.Server != t.Server || t.Project != "" && rec.Project != t.Project
		})
	}
	if !a.All() {
		running = withoutQueued(running)
	}
	if len(running) > 1 && a.Server == "" {
		return unclearStop(b.Language, running), nil
	}
	var stopped, shared, watched []handoff.Record
	for _, rec := range slices.Backward(running) { // waiting work first, so that it does not begin when the other stops
		switch handoff.CodeOf(b.Work.Stop(ctx, g, rec.ID, handoff.StopOurs)) {
		case handoff.CodeJoined:
			shared = append(shared, rec)
		case handoff.CodeNoConsent:
			watched = append(watched, rec)
		default: // after another error it has probably just ended
			stopped = append(stopped, rec)
		}
	}
	if unread != nil && len(stopped) == 0 { // they may mean work from before a restart, which is not known yet
		return nil, unread
	}
	for _, some := range [][]handoff.Record{stopped, shared, watched} {
		slices.Reverse(some)
	}
	out := stopAnswer(b.Language, stopped, shared, where)
	if len(watched) > 0 {
		askSure(b.Language, &out, watched, len(stopped)+len(shared) > 0)
	}
	if unread != nil {
		out.Say = b.Language.UnreadWork(out.Say, true)
	}
	return out, nil
}

// dropPaused drops paused work.
func dropPaused(ctx context.Context, b Backend, g handoff.Grant, id string) (Result, error) {
	all, unread := b.Work.Handoffs(g)
	i := slices.IndexFunc(all, func(rec handoff.Record) bool { return rec.ID == id && rec.Paused })
	if i < 0 && unread != nil {
		return nil, unread
	}
	if i < 0 {
		return nil, handoff.Fault(handoff.CodeNotFound, "paused work of that name", "")
	}
	if err := b.Work.Stop(ctx, g, id, handoff.StopOurs); err != nil {
		return nil, err
	}
	return Answer{wording.Answer{
		Status: "done", Server: all[i].Server, Say: b.Language.Dropped(all[i].Server),
	}}, nil
}

// stopWatched stops a turn that somebody else began: the caller was asked, and said so once more.
func stopWatched(ctx context.Context, b Backend, g handoff.Grant, id string) (Result, error) {
	all, unread := b.Work.Handoffs(g)
	i := slices.IndexFunc(all, func(rec handoff.Record) bool { return rec.ID == id && rec.Why == handoff.WhyWatched })
	if i < 0 && unread != nil {
		return nil, unread
	}
	if i < 0 {
		return nil, handoff.Fault(handoff.CodeNotFound, "watched work of that name", "")
	}
	if err := b.Work.Stop(ctx, g, id, handoff.StopTheirs); err != nil {
		return nil, err
	}
	return stopAnswer(b.Language, all[i:i+1], nil, all[i].Server), nil
}

// stopWatching has a session watched no longer. What runs there goes on.
func stopWatching(ctx context.Context, b Backend, g handoff.Grant, where handoff.Target) (Result, error) {
	t, err := b.Resolver.Resolve(ctx, g, where)
	if err != nil {
		return nil, err
	}
	all, unread := b.Work.Handoffs(g)
	i := slices.IndexFunc(all, func(rec handoff.Record) bool {
		return rec.Why == handoff.WhyWatched && rec.Outcome == "" && rec.Server == t.Server && rec.ThreadID == t.Thread
	})
	if i < 0 {
		return nil, cmp.Or(unread, error(handoff.Fault(handoff.CodeNotFound, "watched work of that session", "")))
	}
	if err := b.Work.Stop(ctx, g, all[i].ID, handoff.StopWatching); err != nil {
		return nil, err
	}
	return Answer{wording.Answer{Status: StatusStopping, Server: t.Server, Say: "",
		Note: "It is told by itself that it is watched no longer. What runs there goes on."}}, nil
}

// askSure adds to an answer that watched work was not stopped, and how it is. others: the answer is about other work,
// too.
func askSure(l wording.Language, out *Answer, watched []handoff.Record, others bool) {
	say := l.SureToStop(serversOf(watched))
	if others {
		say = out.Say + " " + say
	}
	out.Status, out.Say = StatusUnclear, say
	if len(watched) > 1 { // one by one
		out.Choices = nil
		for _, rec := range watched {
			out.Choices = append(out.Choices, rec.ID+": "+rec.Server+", "+l.TitleOf(rec))
		}
	}
	out.Note = "Somebody else began it. Ask the caller. Only if they then say once more that it shall stop, call stop_work " +
		"with theirs: " + watched[0].ID + "."
}

// withoutQueued leaves out work that waits for other work of the list: it is paused when the other is stopped.
func withoutQueued(running []handoff.Record) []handoff.Record {
	return slices.DeleteFunc(slices.Clone(running), func(rec handoff.Record) bool {
		return slices.ContainsFunc(running, rec.Behind)
	})
}

// unclearStop returns the question which of several works shall be stopped.
func unclearStop(l wording.Language, running []handoff.Record) Answer {
	var choices []string
	for _, rec := range running {
		choices = append(choices, rec.Server+", "+l.TitleOf(rec))
	}
	return Answer{wording.Answer{
		Status: StatusUnclear, Choices: choices[:min(len(choices), 10)], Say: l.WhichStops(running),
		Note: "Nothing was stopped. Ask the caller once, then call stop_work with that machine, or with \"all\".",
	}}
}

// stopAnswer says what stops, what belongs to somebody else, and where nothing runs.
func stopAnswer(l wording.Language, stopped, shared []handoff.Record, where string) Answer {
	a := wording.Answer{Say: l.Stopping(serversOf(stopped), serversOf(shared))}
	switch {
	case len(stopped) > 0:
		a.Status, a.Note = StatusStopping, "It is told by itself when it has stopped."
	case len(shared) > 0:
		a.Status, a.Server = "refused", where
	default:
		a.Status, a.Server, a.Say = "done", where, l.NothingRuns(where)
	}
	return Answer{a}
}

func serversOf(records []handoff.Record) []string {
	var servers []string
	for _, rec := range records {
		if !slices.Contains(servers, rec.Server) {
			servers = append(servers, rec.Server)
		}
	}
	return servers
}
