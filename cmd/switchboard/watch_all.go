package main

import (
	"cmp"
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	decided "switchboard/handoff/work"
)

// Bounds of what is watched because a machine has watch: all.
const (
	watchAllEvery = 10 * time.Second // between two looks at the machines that have it
	watchAllMost  = 16               // sessions at a time
)

// A watchAll has the sessions watched, for the owner, in which others begin work on machines with watch: all. Each
// watch is the one that the owner could have asked for, and is stopped as that one: it is not begun again while it
// would have lasted. It is owned by the goroutine that calls look.
type watchAll struct {
	self   string                           // Set once: the id of this instance; "": there is one
	fleet  watchedFleet                     // Set once
	runs   watchedRuns                      // Set once
	held   func(server, thread string) bool // Set once: whether work of somebody here uses a session
	log    *zap.Logger                      // Set once
	tried  map[string]time.Time             // by server and thread: when a watch was asked for
	failed bool                             // the last look failed
}

// watchedFleet knows the machines and their sessions.
type watchedFleet interface {
	Known() []handoff.ServerInfo
	Sessions(ctx context.Context, g handoff.Grant, q handoff.SessionQuery) (handoff.SessionList, error)
}

// watchedRuns has the owner's work.
type watchedRuns interface {
	Where(ctx context.Context, c handoff.Caller) (handoff.Instance, error)
	Handoffs(g handoff.Grant) ([]handoff.Record, error)
	Start(ctx context.Context, g handoff.Grant, req handoff.Request) (handoff.ID, error)
}

// run calls look until ctx ends.
func (w *watchAll) run(ctx context.Context) error {
	tick := time.NewTicker(watchAllEvery)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			w.look(ctx, now)
		case <-ctx.Done():
			return nil
		}
	}
}

// look asks for the watches that are lacking. What cannot be asked for now is asked for at another look.
func (w *watchAll) look(ctx context.Context, now time.Time) {
	err := w.ask(ctx, now)
	if err != nil && !w.failed && ctx.Err() == nil {
		w.log.Info("sessions of others not watched yet", zap.Error(err))
	}
	w.failed = err != nil
}

// ask asks for the watches that are lacking, if the owner's home is here or can be taken. It returns the first error.
func (w *watchAll) ask(ctx context.Context, now time.Time) error {
	g := handoff.Grant{Caller: handoff.Caller{Principal: ownerName}}
	found := w.begun(ctx, g, now)
	if len(found) == 0 {
		return nil
	}
	ctx, leave := context.WithCancel(ctx) // the home stays here until leave is called
	defer leave()
	at, err := w.runs.Where(ctx, g.Caller)
	if err != nil || at.ID != w.self {
		return err
	}
	all, err := w.runs.Handoffs(g)
	if err != nil {
		return err
	}
	open := 0
	for _, rec := range all {
		if rec.Outcome == "" && rec.Client == handoff.WatchesAll {
			open++
		}
	}
	var failed error
	for _, s := range found {
		if open >= watchAllMost {
			break
		}
		if slices.ContainsFunc(all, func(rec handoff.Record) bool { return covers(rec, s, now) }) {
			continue
		}
		_, err := w.runs.Start(ctx, g, handoff.Request{
			Target: handoff.Target{Server: s.Server, Thread: s.ID}, Mode: handoff.ModeWatch,
			Origin: handoff.Origin{Client: handoff.WatchesAll},
		})
		if err == nil {
			w.tried[s.Server+" "+s.ID] = now
			open++
		}
		failed = cmp.Or(failed, err)
	}
	return failed
}

// begun returns the sessions of machines with watch: all in which a turn runs that nobody here gave, and for which no
// watch was asked lately.
func (w *watchAll) begun(ctx context.Context, g handoff.Grant, now time.Time) (found []handoff.SessionInfo) {
	for key, at := range w.tried {
		if now.Sub(at) >= decided.WatchFor {
			delete(w.tried, key)
		}
	}
	for _, s := range w.fleet.Known() {
		if !s.WatchAll || s.Health != handoff.HealthUp {
			continue
		}
		list, err := w.fleet.Sessions(ctx, g, handoff.SessionQuery{Server: s.Name, Limit: handoff.MaxSessions})
		if err != nil {
			continue
		}
		for _, t := range list.Items {
			_, tried := w.tried[t.Server+" "+t.ID]
			if runs := t.Status == handoff.SessionRunning || t.Status == handoff.SessionWaiting; runs && !tried &&
				!w.held(t.Server, t.ID) {
				found = append(found, t)
			}
		}
	}
	return found
}

// covers reports whether work of the owner is in a session, or was a watch of it that was stopped lately, also by an
// earlier life.
func covers(rec handoff.Record, s handoff.SessionInfo, now time.Time) bool {
	return rec.Server == s.Server && rec.ThreadID == s.ID && (rec.Outcome == "" || rec.Why == handoff.WhyWatched &&
		rec.Outcome == handoff.OutcomeCancelled && now.Sub(rec.CreatedAt) < decided.WatchFor)
}
