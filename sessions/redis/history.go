package redis

import (
	"context"
	"strconv"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions"
)

// historyScan bounds how many entries one call looks at in a search; the caller then asks for the next page.
const historyScan = 10 * ledgerPage

var historyScript = script("history")

// History returns a page of a caller's history; see [ledger.History]. A page of a search may be short or empty
// although there are more pages.
func (s handoffs) History(ctx context.Context, c handoff.Caller, q ledger.HistoryQuery) (ledger.HistoryPage, error) {
	name, err := sessions.CallerName(c)
	if err != nil {
		return ledger.HistoryPage{}, err
	}
	from, _, err := sessions.ParseMark(q.Before)
	if err != nil {
		return ledger.HistoryPage{}, err
	}
	limit, search := sessions.PageSize(q), sessions.SearchWords(q.Search)
	var page ledger.HistoryPage
	for looked := 0; looked < historyScan; {
		rows, more, err := s.historyRows(ctx, name, from)
		if err != nil {
			return ledger.HistoryPage{}, err
		}
		for _, row := range rows {
			if len(page.Entries) == limit {
				page.Next = from.String()
				return page, nil
			}
			from = row.mark
			e, ok := parseEntry(row.fields)
			switch {
			case !ok && len(row.fields) > 0: // one bad entry must not hide the others
				s.badEntry(s.key(name, historyKey))
			case ok && sessions.Found(sessions.EntryWords(e), search):
				page.Entries = append(page.Entries, e)
			}
		}
		if !more {
			return page, nil
		}
		looked += len(rows)
	}
	page.Next = from.String()
	return page, nil
}

// A historyRow is an entry as the script read it. An expired entry has no fields.
type historyRow struct {
	mark   sessions.Mark
	fields []any
}

func (s handoffs) historyRows(
	ctx context.Context, name string, from sessions.Mark,
) (rows []historyRow, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	reply, err := historyScript.Run(ctx, s.client, []string{s.key(name, historyKey)}, s.key(name, entryKey), from.Key,
		from.At, ledgerPage).Slice()
	if err != nil {
		return nil, false, s.fault(err)
	}
	var again int64
	var all []any
	if !replied(reply, &again, &all) {
		return nil, false, unexpected("history")
	}
	for _, one := range all {
		var row historyRow
		var score string
		list, _ := one.([]any)
		if !replied(list, &row.mark.Key, &score, &row.fields) {
			return nil, false, unexpected("history")
		}
		if row.mark.At, err = strconv.ParseInt(score, 10, 64); err != nil {
			return nil, false, unexpected("history")
		}
		rows = append(rows, row)
	}
	return rows, again == 1, nil
}

// Body returns the whole texts of a handoff; see [ledger.History].
func (s handoffs) Body(ctx context.Context, c handoff.Caller, key string) (ledger.Body, bool, error) {
	name, err := sessions.CallerName(c)
	if err != nil {
		return ledger.Body{}, false, err
	}
	words, err := s.client.HGetAll(ctx, s.key(name, bodyKey)+key).Result()
	if err != nil {
		return ledger.Body{}, false, s.fault(err)
	}
	return ledger.Body{Prompt: words["prompt"], Text: words["text"], Did: words["did"], Request: words["request"]},
		len(words) > 0, nil
}

// Find returns the entry of a key; see [ledger.History].
func (s handoffs) Find(ctx context.Context, c handoff.Caller, key string) (ledger.Entry, bool, error) {
	name, err := sessions.CallerName(c)
	if err != nil {
		return ledger.Entry{}, false, err
	}
	fields, err := s.client.HGetAll(ctx, s.key(name, entryKey)+key).Result()
	if err != nil || len(fields) == 0 {
		return ledger.Entry{}, false, s.fault(err)
	}
	flat := make([]any, 0, 2*len(fields))
	for field, value := range fields {
		flat = append(flat, field, value)
	}
	entry, ok := parseEntry(flat)
	if !ok {
		s.badEntry(s.key(name, entryKey) + key)
		return ledger.Entry{}, false, unreadable()
	}
	return entry, true, nil
}
