package sqlite

import (
	"context"
	"database/sql"
	"math"
	"strings"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions"
)

// History returns a page of a caller's history; see [ledger.History].
func (s *handoffs) History(ctx context.Context, c handoff.Caller, q ledger.HistoryQuery) (ledger.HistoryPage, error) {
	name, err := sessions.CallerName(c)
	if err != nil {
		return ledger.HistoryPage{}, err
	}
	from, ok, err := sessions.ParseMark(q.Before)
	if err != nil {
		return ledger.HistoryPage{}, err
	}
	if !ok {
		from.At = math.MaxInt64
	}
	text := "SELECT " + entryColumns + " FROM entries WHERE caller = ? AND past > 0 AND unkept = 0 AND (past, key) " +
		"< (?, ?)"
	args := []any{name, from.At, from.Key}
	if match := matching(sessions.SearchWords(q.Search)); match != "" {
		text += " AND id IN (SELECT rowid FROM history_words WHERE history_words MATCH ?)"
		args = append(args, match)
	}
	limit := sessions.PageSize(q)
	rows, err := scanEntries(s.read.QueryContext(ctx, text+" ORDER BY past DESC, key DESC LIMIT ?",
		append(args, limit+1)...))
	var page ledger.HistoryPage
	if err == nil && len(rows) > limit {
		last := rows[limit-1]
		rows, page.Next = rows[:limit], sessions.Mark{At: last.past, Key: last.Key}.String()
	}
	page.Entries, err = s.entries(rows, err)
	return page, err
}

// matching returns the FTS5 query for words of which each begins a word of the text; "" for no words.
func matching(words []string) string {
	var b strings.Builder
	for _, word := range words {
		b.WriteString(`"` + word + `"* `) // words have no quotation marks
	}
	return b.String()
}

// Body returns the whole texts of a handoff; see [ledger.History].
func (s *handoffs) Body(ctx context.Context, c handoff.Caller, key string) (ledger.Body, bool, error) {
	name, err := sessions.CallerName(c)
	if err != nil {
		return ledger.Body{}, false, err
	}
	var body ledger.Body
	found, err := s.found(s.read.QueryRowContext(ctx, "SELECT coalesce(b.prompt, ''), coalesce(b.text, ''), "+
		"coalesce(b.did, ''), coalesce(r.request, '') FROM entries e "+
		"LEFT JOIN bodies b ON b.id = e.id LEFT JOIN requests r ON r.id = e.id WHERE e.caller = ? AND e.key = ?",
		name, key).Scan(&body.Prompt, &body.Text, &body.Did, &body.Request))
	return body, found && body != ledger.Body{}, err
}

// Find returns the entry of a key; see [ledger.History].
func (s *handoffs) Find(ctx context.Context, c handoff.Caller, key string) (ledger.Entry, bool, error) {
	name, err := sessions.CallerName(c)
	if err != nil {
		return ledger.Entry{}, false, err
	}
	row, err := scanEntry(s.read.QueryRowContext(ctx, "SELECT "+entryColumns+" FROM entries WHERE caller = ? "+
		"AND key = ?", name, key))
	found, err := s.found(err)
	return row.Entry, found, err
}

// Owned returns for which callers threads were made; see [ledger.Owners].
func (s *handoffs) Owned(ctx context.Context) ([]ledger.Owned, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT server, thread, principal, user FROM owned ORDER BY id")
	all, err := collect(rows, err, func(row *sql.Rows, o *ledger.Owned) error {
		return row.Scan(&o.Server, &o.Thread, &o.Caller.Principal, &o.Caller.User)
	})
	return all, s.fault(err)
}
