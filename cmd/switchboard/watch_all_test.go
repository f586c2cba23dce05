package main

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"switchboard/handoff"
)

// A deskWorld is machines at which others begin work, and the owner's work.
type deskWorld struct {
	servers  []handoff.ServerInfo
	sessions []handoff.SessionInfo
	records  []handoff.Record
	held     string          // a session that work of somebody here uses
	down     error           // of the store
	home     string          // the instance that has the owner
	visit    context.Context // of the newest request in the owner's home here
	watched  []string
}

func (d *deskWorld) Known() []handoff.ServerInfo { return d.servers }

func (d *deskWorld) Sessions(_ context.Context, _ handoff.Grant, q handoff.SessionQuery) (list handoff.SessionList, _ error) {
	for _, s := range d.sessions {
		if s.Server == q.Server {
			list.Items = append(list.Items, s)
		}
	}
	return list, nil
}

func (d *deskWorld) Where(ctx context.Context, c handoff.Caller) (handoff.Instance, error) {
	if c.Principal == ownerName {
		d.visit = ctx
	}
	return handoff.Instance{ID: d.home}, d.down
}

func (d *deskWorld) Handoffs(handoff.Grant) ([]handoff.Record, error) {
	if d.visit == nil || d.visit.Err() != nil || d.home != "here" {
		return nil, handoff.Fault(handoff.CodeStoreDown, "", "the owner has no home here")
	}
	return d.records, nil
}

func (d *deskWorld) Start(_ context.Context, g handoff.Grant, req handoff.Request) (handoff.ID, error) {
	if g.Caller.Principal != ownerName || req.Mode != handoff.ModeWatch || len(req.Input) > 0 || req.Target.Thread == "" {
		return "", handoff.Fault(handoff.CodeInternal, "", "it is no watch of the owner's")
	}
	if d.down == nil {
		d.watched = append(d.watched, req.Target.Server+" "+req.Target.Thread)
		d.records = append(d.records, handoff.Record{Server: req.Target.Server, ThreadID: req.Target.Thread,
			Client: req.Origin.Client, Why: handoff.WhyWatched})
	}
	return "h", d.down
}

// TestWatchAll: on machines with watch: all, and on no other, the sessions are watched in which a turn runs that nobody
// here gave: each once, at most 16 at a time, and none that the owner has stopped watching.
func TestWatchAll(t *testing.T) {
	now := time.Now()
	up := handoff.ServerInfo{Name: "bigpc", Health: handoff.HealthUp, WatchAll: true}
	runs := handoff.SessionInfo{Server: "bigpc", ID: "t", Status: handoff.SessionRunning}
	waits, idle := runs, runs
	waits.Status, idle.Status = handoff.SessionWaiting, handoff.SessionIdle
	stopped := handoff.Record{Server: "bigpc", ThreadID: "t", Why: handoff.WhyWatched, Outcome: handoff.OutcomeCancelled,
		CreatedAt: now.Add(-time.Hour)}
	longAgo, given, over := stopped, stopped, stopped
	longAgo.CreatedAt = now.Add(-13 * time.Hour)
	given.Why, given.Outcome = handoff.WhyNamed, ""
	over.Outcome = handoff.OutcomeResult
	named, away := up, up
	named.WatchAll, away.Health = false, handoff.HealthDown
	var many []handoff.SessionInfo
	for i := range 20 {
		many = append(many, handoff.SessionInfo{Server: "bigpc", ID: fmt.Sprint("t", i), Status: handoff.SessionRunning})
	}
	for what, c := range map[string]struct {
		server   handoff.ServerInfo
		sessions []handoff.SessionInfo
		records  []handoff.Record
		held     string
		want     int
	}{
		"it runs":                    {up, []handoff.SessionInfo{runs}, nil, "", 1},
		"it asks":                    {up, []handoff.SessionInfo{waits}, nil, "", 1},
		"it is idle":                 {up, []handoff.SessionInfo{idle}, nil, "", 0},
		"only named ones":            {named, []handoff.SessionInfo{runs}, nil, "", 0},
		"the machine is away":        {away, []handoff.SessionInfo{runs}, nil, "", 0},
		"somebody here gave it":      {up, []handoff.SessionInfo{runs}, nil, "bigpc t", 0},
		"the owner works there":      {up, []handoff.SessionInfo{runs}, []handoff.Record{given}, "", 0},
		"the watch was stopped":      {up, []handoff.SessionInfo{runs}, []handoff.Record{stopped}, "", 0},
		"it was stopped long ago":    {up, []handoff.SessionInfo{runs}, []handoff.Record{longAgo}, "", 1},
		"earlier work there is over": {up, []handoff.SessionInfo{runs}, []handoff.Record{over}, "", 1},
		"many run":                   {up, many, nil, "", watchAllMost},
	} {
		d := &deskWorld{servers: []handoff.ServerInfo{c.server}, sessions: c.sessions, records: c.records, held: c.held,
			down: handoff.Fault(handoff.CodeStoreDown, "", "")}
		log, logged := observer.New(zap.InfoLevel)
		w := &watchAll{self: "here", fleet: d, runs: d, tried: map[string]time.Time{}, log: zap.New(log),
			held: func(server, thread string) bool { return server+" "+thread == d.held }}
		for range 2 {
			w.look(t.Context(), now)
		}
		d.down, d.home = nil, "there"
		if w.look(t.Context(), now); len(d.watched) > 0 {
			t.Errorf("%s: begun while another instance has the owner", what)
		}
		if c.want > 0 && logged.Len() != 1 {
			t.Errorf("%s: %d failures are logged", what, logged.Len())
		}
		d.home = "here"
		w.look(t.Context(), now) // now the store is back
		begun := slices.Clone(d.watched)
		if d.visit != nil && d.visit.Err() == nil {
			t.Errorf("%s: the visit goes on after the look", what)
		}
		if len(c.records) == 0 && len(c.sessions) == 1 {
			d.records = nil // it has failed: it is not asked for again and again
		}
		w.look(t.Context(), now.Add(time.Minute))
		if !slices.Equal(begun, d.watched) || len(begun) != c.want {
			t.Errorf("%s: %q, later %q", what, begun, d.watched)
		}
	}
}
