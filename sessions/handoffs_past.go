package sessions

import (
	"context"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// History implements [ledger.History].
func (h *Handoffs) History(ctx context.Context, c handoff.Caller, q ledger.HistoryQuery) (ledger.HistoryPage, error) {
	if _, err := CallerName(c); err != nil {
		return ledger.HistoryPage{}, err
	}
	words := SearchWords(q.Search)
	rows, next, err := h.store.Page(ctx, c, PageQuery{Before: q.Before, Words: words, Limit: PageSize(q),
		Found: func(row string) bool {
			e, err := decodeEntry(row)
			return err != nil || Found(EntryWords(e), words) // an unreadable one is counted below
		}})
	page := ledger.HistoryPage{Next: next}
	for _, row := range rows {
		e, err := decodeEntry(row.Row)
		if err != nil {
			h.bad(c.String() + " " + row.Key)
			continue
		}
		page.Entries = append(page.Entries, e)
	}
	return page, err
}

// Body implements [ledger.History].
func (h *Handoffs) Body(ctx context.Context, c handoff.Caller, key string) (ledger.Body, bool, error) {
	if _, err := CallerName(c); err != nil {
		return ledger.Body{}, false, err
	}
	parts, err := h.store.Texts(ctx, c, key)
	return ledger.Body{Prompt: parts[partPrompt], Text: parts[partText], Did: parts[partDid], Request: parts[partRequest]},
		len(parts) > 0, err
}

// Find implements [ledger.History].
func (h *Handoffs) Find(ctx context.Context, c handoff.Caller, key string) (ledger.Entry, bool, error) {
	state, err := h.state(ctx, c)
	if err != nil {
		return ledger.Entry{}, false, err
	}
	text, ok := state.Documents[handoffDoc+key]
	if !ok {
		var row Past
		if row, ok, err = h.store.Past(ctx, c, key); !ok || err != nil {
			return ledger.Entry{}, false, err
		}
		text = row.Row
	}
	e, err := decodeEntry(text)
	return e, err == nil, err
}
