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

// recoverWithin is how long a call waits until it is known what a former life of the process left.
const recoverWithin = 5 * time.Second

// maxRecent bounds the requests that are remembered; beyond it the oldest half is forgotten, and their words alone tell
// whether a request is the same.
const maxRecent = 4096

// sameWords knows which request a piece of work began with.
type sameWords struct {
	mu     sync.Mutex
	recent map[handoff.RunID]request // Guarded by mu
}

// A request is what was asked, by whom, and when.
type request struct {
	sum [sha256.Size]byte
	at  time.Time
}

// begin has work done, or finds it: the same request of the same caller is the same work until somebody was told the
// outcome; again says that it was found. A client whose connection broke repeats a request with nothing that marks it
// as a repetition.
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
	f.same.mu.Lock() // Start returns at once: two that come together are one
	defer f.same.mu.Unlock()
	records, err := f.cfg.Backend.Work.Handoffs(c.grant)
	if err != nil {
		return "", false, err
	}
	for _, rec := range records {
		if rec.State == handoff.StatusDelivered || rec.Paused || req.Instead != "" {
			continue
		}
		id := handoff.RunID(rec.ID)
		if its, ok := f.same.recent[id]; ok && its.sum == sum || !ok && repeats(rec, req, where) {
			return id, true, nil
		}
	}
	id, err = f.cfg.Backend.Runs.Start(ctx, c.grant, req)
	if err == nil {
		f.same.remember(id, request{sum, time.Now()})
	}
	return id, false, err
}

// repeats reports whether work of a former life of the process was begun with the words of a request.
func repeats(rec handoff.Record, req handoff.Request, where string) bool {
	thread := req.Target.Thread
	return rec.Client != "" && rec.Server == where && rec.Prompt == handoff.InputText(req.Input) &&
		(thread == "" || thread == handoff.NewThread || strings.HasPrefix(rec.ThreadID, thread) ||
			strings.EqualFold(rec.Title, thread))
}

// remember notes what work began with.
func (s *sameWords) remember(id handoff.RunID, r request) {
	if s.recent == nil {
		s.recent = map[handoff.RunID]request{}
	}
	s.recent[id] = r
	if len(s.recent) > maxRecent {
		oldest := slices.SortedFunc(
			maps.Keys(s.recent),
			func(a, b handoff.RunID) int { return s.recent[a].at.Compare(s.recent[b].at) },
		)
		for _, id := range oldest[:maxRecent/2] {
			delete(s.recent, id)
		}
	}
}
