package mcp

import (
	"context"
	"crypto/sha256"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"switchboard/handoff"
)

// recoverWithin is how long a call waits for the work of an earlier process to be read.
const recoverWithin = 5 * time.Second

// maxRecent bounds the remembered requests. Above it the older half is dropped; repetitions of those are recognised by
// their words, as for work of an earlier process.
const maxRecent = 4096

// recentWork has the requests that recent work began with. It is safe for concurrent use.
type recentWork struct {
	mu  sync.Mutex                // also held by [Front.begin], so that two equal requests are one
	all map[handoff.RunID]request // Guarded by mu
}

// A request is the request that work began with.
type request struct {
	sum [sha256.Size]byte // of caller, tool and arguments
	at  time.Time
}

// begin gives work, or returns the work that the same caller gave with the same request before, if its outcome is not
// known to the client yet; again reports that. Clients whose connection broke repeat a request without a mark that it
// is a repetition.
func (f *Front) begin(ctx context.Context, c *call, req handoff.Request) (id handoff.RunID, again bool, err error) {
	if err := f.cfg.Work.Recovered(ctx, recoverWithin); err != nil {
		return "", false, err
	}
	sum := sha256.Sum256(
		[]byte(handoff.Encode([]any{c.grant.Caller, c.tool, strings.TrimSpace(string(c.req.Params.Arguments))})),
	)
	where := ""
	if t, err := f.cfg.Backend.Resolver.Resolve(ctx, c.grant, handoff.Target{Server: req.Target.Server}); err == nil {
		where = t.Server
	}
	c.complete(&req)
	f.recent.mu.Lock() // not for long: Start returns at once
	defer f.recent.mu.Unlock()
	records, err := f.cfg.Backend.Work.Handoffs(c.grant)
	if err != nil {
		return "", false, err
	}
	for _, rec := range records {
		if rec.State == handoff.StatusDelivered || rec.Paused || req.Instead != "" {
			continue
		}
		id := handoff.RunID(rec.ID)
		if first, ok := f.recent.all[id]; ok && first.sum == sum || !ok && repeats(rec, req, where) {
			return id, true, nil
		}
	}
	id, err = f.cfg.Backend.Runs.Start(ctx, c.grant, req)
	if err == nil {
		f.recent.addLocked(id, request{sum, time.Now()})
	}
	return id, false, err
}

// repeats reports whether work that is not in [recentWork] was begun with the words of a request.
func repeats(rec handoff.Record, req handoff.Request, where string) bool {
	thread := req.Target.Thread
	return rec.Client != "" && rec.Server == where && rec.Prompt == handoff.InputText(req.Input) &&
		(thread == "" || thread == handoff.NewThread || strings.HasPrefix(rec.ThreadID, thread) ||
			strings.EqualFold(rec.Title, thread))
}

// addLocked adds the request that work began with.
func (w *recentWork) addLocked(id handoff.RunID, r request) {
	if w.all == nil {
		w.all = map[handoff.RunID]request{}
	}
	w.all[id] = r
	if len(w.all) > maxRecent {
		oldest := slices.SortedFunc(
			maps.Keys(w.all), func(a, b handoff.RunID) int { return w.all[a].at.Compare(w.all[b].at) },
		)
		for _, id := range oldest[:maxRecent/2] {
			delete(w.all, id)
		}
	}
}
