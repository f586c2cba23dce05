package acp

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/jsonrpc"
)

// A listing is a session in the agent's list.
type listing struct {
	ID, Cwd, Title string
	Updated        time.Time
}

// pages lists sessions, newest first, until enough returns true, in at most some pages.
func (c *connection) pages(ctx context.Context, most int, enough func(listing) bool) error {
	had := map[string]bool{}
	for cursor, page := "", 0; page < most; page++ {
		params := map[string]string{}
		if cursor != "" {
			params["cursor"] = cursor
		}
		var got listed
		if err := c.peer.Call(ctx, doList, params, &got); err != nil {
			return err
		}
		for _, s := range got.Sessions {
			if s.ID != "" && len(s.ID) <= maxID && enough(listing{s.ID, s.Cwd, unmarked(s.Title), s.Updated.Time}) {
				return nil
			}
		}
		if cursor = got.Next; cursor == "" || had[cursor] {
			return nil
		}
		had[cursor] = true
	}
	return nil
}

// find returns the listing of a session; false: the session is not listed, or the agent cannot list sessions. Without
// its listing, a session would be opened in a directory that may not be its own: so only findTimeout bounds the search.
func (c *connection) find(ctx context.Context, id string) (found listing, ok bool, err error) {
	if !c.can.Agent.Sessions.List {
		return listing{}, false, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, findTimeout, errTimeout)
	defer cancel()
	err = c.pages(ctx, math.MaxInt, func(l listing) bool {
		if l.ID == id {
			found, ok = l, true
		}
		return ok
	})
	return found, ok, err
}

// findAtRest is like find, but waits until the session does not change any more: an earlier process may still write
// into it, and two writers of a session lose each other's text.
func (c *connection) findAtRest(ctx context.Context, id string) (listing, error) {
	found, ok, err := c.find(ctx, id)
	for err == nil && ok && time.Since(found.Updated).Abs() < 2*c.cfg.Rest {
		before := found.Updated
		if !c.pause(ctx, c.cfg.Rest) {
			return found, &servers.NotSentError{Cause: errors.New("its work from before goes on")}
		}
		if found, ok, err = c.find(ctx, id); found.Updated.Equal(before) {
			break
		}
	}
	return found, err
}

// pause waits for d. It returns false if the connection or ctx ends before.
func (c *connection) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-c.peer.Done():
	}
	return false
}

// List returns the newest sessions first. If the agent cannot list sessions, it returns those of this connection.
func (c *connection) List(ctx context.Context, limit int) ([]servers.Thread, error) {
	limit = max(limit, 1)
	var all []servers.Thread
	if !c.can.Agent.Sessions.List {
		if err := c.peer.Lost(); err != nil {
			return nil, c.fault(&servers.NotSentError{Cause: err}, "", handoff.CodeUnreachable)
		}
		for _, s := range c.all() {
			if t := s.thread(); t.Title != "" {
				all = append(all, t)
			}
		}
		slices.SortFunc(all, func(a, b servers.Thread) int {
			return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(a.ID, b.ID))
		})
		return all[:min(limit, len(all))], nil
	}
	err := c.pages(ctx, maxListPages, func(l listing) bool {
		t := servers.Thread{ID: l.ID, Title: l.Title, Dir: l.Cwd, Updated: l.Updated, Status: handoff.SessionUnknown}
		if s := c.sessionByID(l.ID); s != nil {
			t.Status = s.thread().Status
		}
		all = append(all, t)
		return len(all) >= limit
	})
	slices.SortStableFunc(all, func(a, b servers.Thread) int { return b.Updated.Compare(a.Updated) })
	return all, c.fault(err, "", handoff.CodeUnreachable)
}

// Read returns the newest lines of a session. A session that is not open here is read by a separate connection to an
// agent process of its own: so its replay cannot mix with messages on this connection, and it does not stay open.
func (c *connection) Read(ctx context.Context, id string, lines int) (servers.Text, error) {
	var found listing
	var err error
	open := c.sessionByID(id)
	if open == nil || !open.isCurrent(listing{}) {
		found, _, err = c.find(ctx, id)
	}
	switch {
	case err != nil:
	case open != nil && open.isCurrent(found):
		return open.text(lines), nil
	case !c.can.Agent.Load:
		err = handoff.Fault(handoff.CodeUnsupported, c.cfg.Name, "its agent cannot show earlier sessions")
	}
	if err != nil {
		return servers.Text{}, c.fault(err, "", handoff.CodeUnreachable)
	}
	select {
	case c.reads <- struct{}{}:
		defer func() { <-c.reads }()
	case <-ctx.Done():
		return servers.Text{}, c.fault(
			&servers.NotSentError{Cause: context.Cause(ctx)}, "", handoff.CodeUnreachable)
	}
	cfg := c.cfg
	cfg.Counters, cfg.apart = newCounters(cfg.Name), true // these counts are dropped
	reader, err := connect(ctx, cfg)
	if err != nil {
		return servers.Text{}, err
	}
	defer func() { go reader.Close() }() // its agent may take long to end
	s := reader.acquire(id)
	p, _, err := s.openParams(&cfg, found)
	if err == nil {
		var o openResult
		err = reader.load(ctx, s, p, &o)
	}
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok && found.ID == "" && !isHeld(e) && e.Code != codeAuth {
		err = gone(e.Error())
	}
	if err != nil {
		return servers.Text{}, c.fault(err, found.Title, handoff.CodeUnreachable)
	}
	text := s.text(lines)
	text.Thread.Status = handoff.SessionUnknown
	return text, nil
}
