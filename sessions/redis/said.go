package redis

import (
	"context"
	"encoding/json"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions"
)

var saidScript = fenced("said")

// conversations stores what was said and heard.
type conversations struct{ *engine }

// AddSaid implements [sessions.Conversations].
func (s conversations) AddSaid(ctx context.Context, c handoff.Caller, lines []sessions.Said) error {
	name, err := sessions.CallerName(c)
	if err != nil || len(lines) == 0 {
		return err
	}
	args := []any{sessions.MaxSaidLines, time.Now().Add(-s.historyFor).UnixMilli(), max(s.historyFor.Milliseconds(), 1)}
	for _, l := range lines {
		l = l.Bounded()
		args = append(args, l.ID, l.At.UnixMilli(), handoff.Encode(l))
	}
	return s.runFenced(ctx, name, saidScript, s.saidKeys(name), args...)
}

// Said implements [sessions.Conversations]. A page of a search may be short or empty although there are more.
func (s conversations) Said(
	ctx context.Context, c handoff.Caller, q sessions.SaidQuery,
) (page sessions.SaidPage, err error) {
	name, err := sessions.CallerName(c)
	if err != nil {
		return page, err
	}
	keys, search := s.saidKeys(name), ledger.SearchWords(q.Search)
	read := func(ctx context.Context, ids []string) ([]any, error) {
		return s.client.HMGet(ctx, keys[1], ids...).Result()
	}
	page.Next, err = s.page(ctx, keys[0], q.Before, q.Size(), read, func(_ sessions.Mark, text string) bool {
		var l sessions.Said
		if json.Unmarshal([]byte(text), &l) != nil { // one bad line must not hide the others
			s.badEntry(keys[1])
			return false
		}
		found := ledger.Found(sessions.SaidWords(l), search) && time.Since(l.At) < s.historyFor
		if found {
			page.Lines = append(page.Lines, l)
		}
		return found
	})
	return page, err
}

// DropSaid implements [sessions.Conversations].
func (s conversations) DropSaid(ctx context.Context, c handoff.Caller) error {
	name, err := sessions.CallerName(c)
	if err != nil {
		return err
	}
	var drop change
	for _, key := range s.saidKeys(name) {
		drop.do("DEL", key)
	}
	_, err = s.write(ctx, name, drop)
	return err
}

// saidKeys returns the keys of a caller's lines: their ids sorted by when they were said, and the lines by id.
func (s conversations) saidKeys(name string) []string {
	return []string{s.key(name, "said"), s.key(name, "said:lines")}
}
