package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"switchboard/handoff"
	"switchboard/handoff/wording"
)

// Do stops what the caller means, or asks which work that is. It needs a Resolver and Work.
func (a StopArguments) Do(ctx context.Context, b Backend, _ Front, g handoff.Grant) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	if a.Drop != "" {
		return dropPaused(ctx, b, g, a.Drop)
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
		return unclearStop(running), nil
	}
	var stopped, shared []handoff.Record
	for _, rec := range slices.Backward(running) { // what waits first: it must not begin because the other has stopped
		if err := b.Work.Stop(ctx, g, rec.ID); err != nil && handoff.AsError(err).Code == handoff.CodeJoined {
			shared = append(shared, rec)
		} else { // it may have ended this moment, which is as good
			stopped = append(stopped, rec)
		}
	}
	if unread != nil && len(stopped) == 0 { // what they mean may run since before a restart
		return nil, unread
	}
	slices.Reverse(shared)
	slices.Reverse(stopped)
	out := stopAnswer(stopped, shared, where)
	if unread != nil {
		out.Say = wording.UnreadWork(out.Say, true)
	}
	return out, nil
}

// dropPaused closes work that was not begun: it will not be.
func dropPaused(ctx context.Context, b Backend, g handoff.Grant, id string) (Result, error) {
	all, unread := b.Work.Handoffs(g)
	i := slices.IndexFunc(all, func(rec handoff.Record) bool { return rec.ID == id && rec.Paused })
	if i < 0 && unread != nil {
		return nil, unread
	}
	if i < 0 {
		return nil, handoff.Fault(handoff.CodeNotFound, "paused work of that name", "")
	}
	if err := b.Work.Stop(ctx, g, id); err != nil {
		return nil, err
	}
	return Answer{wording.Answer{
		Status: "done", Server: all[i].Server, Say: fmt.Sprintf("Dropped; on %s it is not begun.", all[i].Server),
	}}, nil
}

// withoutQueued leaves out what waits for work of the caller in the same session: when that is stopped, it is paused.
// Work that somebody else began is not stopped.
func withoutQueued(running []handoff.Record) []handoff.Record {
	return slices.DeleteFunc(slices.Clone(running), func(rec handoff.Record) bool {
		return rec.Waits != "" && slices.ContainsFunc(running, func(first handoff.Record) bool {
			return first.Waits == "" && first.Why != handoff.WhyMerged && first.Server == rec.Server &&
				first.ThreadID == rec.ThreadID
		})
	})
}

// unclearStop asks which of several works shall be stopped.
func unclearStop(running []handoff.Record) Answer {
	var choices, names []string
	for _, rec := range running {
		choices = append(choices, rec.Server+", "+wording.SayTitle(rec.Title))
		names = append(names, wording.SayTitle(rec.Title)+" on "+rec.Server)
	}
	return Answer{wording.Answer{
		Status: StatusUnclear, Choices: choices[:min(len(choices), 10)],
		Say:  fmt.Sprintf("There is %s. Which shall I stop?", wording.List(names)),
		Note: "Nothing was stopped. Ask the caller once, then call stop_work with that machine, or with \"all\".",
	}}
}

// stopAnswer tells what stops, what belongs to somebody else, and where nothing runs.
func stopAnswer(stopped, shared []handoff.Record, where string) Answer {
	left := ""
	if len(shared) > 0 {
		left = fmt.Sprintf("What you asked for on %s went into work that somebody else began; I leave that alone.",
			onServers(shared))
	}
	switch {
	case len(stopped) == 0 && left != "":
		return Answer{wording.Answer{Status: "refused", Server: where, Say: left}}
	case len(stopped) == 0 && where != "":
		return Answer{wording.Answer{Status: "done", Server: where, Say: fmt.Sprintf("Nothing is running on %s.", where)}}
	case len(stopped) == 0:
		return Answer{wording.Answer{Status: "done", Say: "Nothing is running."}}
	}
	say := strings.TrimSpace(fmt.Sprintf("Stopping the work on %s. %s", onServers(stopped), left))
	return Answer{wording.Answer{Status: "stopping", Say: say, Note: "It is told by itself when it has stopped."}}
}

func onServers(records []handoff.Record) string {
	var servers []string
	for _, rec := range records {
		if !slices.Contains(servers, rec.Server) {
			servers = append(servers, rec.Server)
		}
	}
	return wording.List(servers)
}
