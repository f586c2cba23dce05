package acp

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/jsonrpc"
)

// A listing is a session as its agent lists it.
type listing struct {
	ID, Cwd, Title string
	Updated        time.Time
}

// pages lists sessions, newest first, until enough does not want more.
func (c *connection) pages(ctx context.Context, enough func(listing) bool) error {
	for cursor, page := "", 0; page < maxListPages; page++ {
		params := map[string]string{}
		if cursor != "" {
			params["cursor"] = cursor
		}
		var got listed
		if err := c.peer.Call(ctx, doList, params, &got); err != nil {
			return err
		}
		for _, s := range got.Sessions {
			if s.ID != "" && len(s.ID) <= maxID && enough(listing{s.ID, s.Cwd, unmarked(s.Title), s.Updated}) {
				return nil
			}
		}
		if cursor = got.Next; cursor == "" {
			return nil
		}
	}
	return nil
}

// find looks a session up; false: it is not listed, or the agent lists none.
func (c *connection) find(ctx context.Context, id string) (found listing, ok bool, err error) {
	if !c.can.Agent.Sessions.List {
		return listing{}, false, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, findTimeout, errTimeout)
	defer cancel()
	err = c.pages(ctx, func(l listing) bool {
		if l.ID == id {
			found, ok = l, true
		}
		return ok
	})
	return found, ok, err
}

// rested looks a session up that was not changed for a while: what a process of before has left running may still
// write, and two that write into one session lose each other's words.
func (c *connection) rested(ctx context.Context, id string) (listing, error) {
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

// pause waits, and reports false when the connection or ctx ended.
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

// List returns the newest sessions first. Of an agent that lists none these are the sessions of this connection.
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
	err := c.pages(ctx, func(l listing) bool {
		t := servers.Thread{ID: l.ID, Title: l.Title, Dir: l.Cwd, Updated: l.Updated, Status: handoff.SessionUnknown}
		if s := c.known(l.ID); s != nil {
			t.Status = s.thread().Status
		}
		all = append(all, t)
		return len(all) >= limit
	})
	slices.SortStableFunc(all, func(a, b servers.Thread) int { return b.Updated.Compare(a.Updated) })
	return all, c.fault(err, "", handoff.CodeUnreachable)
}

// Read returns the newest lines of a session. One that is not open here is read by an agent process of its own, which
// ends with that: what it replays cannot get among what is heard here, and nothing stays open.
func (c *connection) Read(ctx context.Context, id string, lines int) (servers.Text, error) {
	var found listing
	var err error
	open := c.known(id)
	if open == nil || !open.isCurrent(listing{}) {
		found, _, err = c.find(ctx, id)
	}
	switch {
	case err != nil:
	case open != nil && open.isCurrent(found):
		return open.text(lines), nil
	case !c.can.Agent.Load:
		err = handoff.Fault(handoff.CodeUnsupported, c.cfg.Name, "its agent tells nothing of sessions of before")
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
	cfg.Counters, cfg.apart = newCounters(cfg.Name), true // which nobody reads
	reader, err := connect(ctx, cfg)
	if err != nil {
		return servers.Text{}, err
	}
	defer reader.Close()
	s := reader.hold(id)
	p, _, err := s.place(&cfg, found)
	if err == nil {
		var o opened
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
