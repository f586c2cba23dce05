package redis

import (
	"context"
	"encoding/json"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions"
)

var (
	saidScript     = fenced("said")
	saidReadScript = script("said_read")
)

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
func (s conversations) Said(ctx context.Context, c handoff.Caller, q sessions.SaidQuery) (sessions.SaidPage, error) {
	var page sessions.SaidPage
	name, err := sessions.CallerName(c)
	if err != nil {
		return page, err
	}
	from, _, err := sessions.ParseMark(q.Before)
	if err != nil {
		return page, err
	}
	search := ledger.SearchWords(q.Search)
	for looked := 0; looked < historyScan; looked += historyPage {
		rows, err := saidReadScript.Run(ctx, s.client, s.saidKeys(name), from.Key, from.At, historyPage).Slice()
		if err != nil {
			return page, s.fault(err)
		}
		for _, row := range rows {
			var l sessions.Said
			text, ok := row.(string)
			if !ok || json.Unmarshal([]byte(text), &l) != nil { // one bad line must not hide the others
				s.badEntry(s.saidKeys(name)[1])
				continue
			}
			if len(page.Lines) == q.Size() {
				page.Next = from.String()
				return page, nil
			}
			from = sessions.Mark{At: l.At.UnixMilli(), Key: l.ID}
			if ledger.Found(sessions.SaidWords(l), search) && time.Since(l.At) < s.historyFor {
				page.Lines = append(page.Lines, l)
			}
		}
		if len(rows) < historyPage {
			return page, nil
		}
	}
	page.Next = from.String()
	return page, nil
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
	_, err = s.write(ctx, name, drop, false)
	return err
}

// saidKeys returns the keys of a caller's lines: their ids sorted by when they were said, and the lines by id.
func (s conversations) saidKeys(name string) []string {
	return []string{s.key(name, "said"), s.key(name, "said:lines")}
}
