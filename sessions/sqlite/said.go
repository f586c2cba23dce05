package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"strings"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions"
)

// conversations stores what was said and heard.
type conversations struct{ *file }

// AddSaid implements [sessions.Conversations].
func (s conversations) AddSaid(ctx context.Context, c handoff.Caller, lines []sessions.Said) error {
	name, err := sessions.CallerName(c)
	if err != nil || len(lines) == 0 {
		return err
	}
	return s.changeFenced(ctx, func(ctx context.Context, tx transaction) error {
		for _, l := range lines {
			l = l.Bounded()
			var id int64
			err := tx.QueryRowContext(ctx, "INSERT INTO said (caller, line, at, who, text) VALUES (?, ?, ?, ?, ?) ON CONFLICT "+
				"DO NOTHING RETURNING id",
				name, l.ID, l.At.UnixMilli(), l.Who, l.Text).Scan(&id)
			if errors.Is(err, sql.ErrNoRows) {
				continue
			}
			if err == nil {
				_, err = tx.ExecContext(ctx, "INSERT INTO said_words (rowid, words) VALUES (?, ?)", id,
					strings.Join(sessions.SaidWords(l), " "))
			}
			if err != nil {
				return err
			}
		}
		return forgetSaid(ctx, tx, "SELECT id FROM said WHERE caller = ? ORDER BY at DESC, line DESC LIMIT -1 OFFSET ?",
			name, sessions.MaxSaidLines)
	})
}

// forgetSaid deletes the lines whose ids a query selects, from both tables.
func forgetSaid(ctx context.Context, tx transaction, query string, args ...any) error {
	for _, table := range []string{"said_words WHERE rowid", "said WHERE id"} {
		if _, err := tx.ExecContext(ctx, "DELETE FROM "+table+" IN ("+query+")", args...); err != nil {
			return err
		}
	}
	return nil
}

// Said implements [sessions.Conversations].
func (s conversations) Said(ctx context.Context, c handoff.Caller, q sessions.SaidQuery) (sessions.SaidPage, error) {
	var page sessions.SaidPage
	name, err := sessions.CallerName(c)
	if err != nil {
		return page, err
	}
	from, ok, err := sessions.ParseMark(q.Before)
	if err != nil {
		return page, err
	}
	if !ok {
		from.At = math.MaxInt64
	}
	text, args := "SELECT line, at, who, text FROM said WHERE caller = ? AND (at, line) < (?, ?)",
		[]any{name, from.At, from.Key}
	if match := matching(ledger.SearchWords(q.Search)); match != "" {
		text, args = text+" AND id IN (SELECT rowid FROM said_words WHERE said_words MATCH ?)", append(args, match)
	}
	rows, err := s.read.QueryContext(ctx, text+" ORDER BY at DESC, line DESC LIMIT ?", append(args, q.Size()+1)...)
	page.Lines, err = collect(rows, err, func(row *sql.Rows, l *sessions.Said) error {
		return row.Scan(&l.ID, millis{&l.At}, &l.Who, &l.Text)
	})
	if len(page.Lines) > q.Size() {
		page.Lines = page.Lines[:q.Size()]
		last := page.Lines[q.Size()-1]
		page.Next = sessions.Mark{At: last.At.UnixMilli(), Key: last.ID}.String()
	}
	return page, s.fault(err)
}

// DropSaid implements [sessions.Conversations].
func (s conversations) DropSaid(ctx context.Context, c handoff.Caller) error {
	name, err := sessions.CallerName(c)
	if err != nil {
		return err
	}
	return s.changeFenced(ctx, func(ctx context.Context, tx transaction) error {
		return forgetSaid(ctx, tx, "SELECT id FROM said WHERE caller = ?", name)
	})
}
