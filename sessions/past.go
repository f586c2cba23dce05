package sessions

import (
	"context"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// A Memory is a store of callers.
type Memory interface {
	Callers
	Pages
}

// An Archive is the [ledger.History] over a store of callers.
type Archive struct {
	store Memory            // Set once
	bad   func(name string) // Set once; counts and logs a row that cannot be read
}

// NewArchive returns the history over a store. bad is told of each row that is left out, since it cannot be read.
func NewArchive(store Memory, bad func(name string)) Archive { return Archive{store, bad} }

// History implements [ledger.History].
func (h Archive) History(ctx context.Context, c handoff.Caller, q ledger.HistoryQuery) (ledger.HistoryPage, error) {
	if _, err := CallerName(c); err != nil {
		return ledger.HistoryPage{}, err
	}
	words := ledger.SearchWords(q.Search)
	rows, next, err := h.store.Page(ctx, c, PageQuery{Before: q.Before, Words: words, Limit: PageSize(q),
		Found: func(row string) bool {
			e, err := ledger.DecodeEntry(row)
			return err != nil || ledger.Found(ledger.EntryWords(e), words) // an unreadable one is counted below
		}})
	page := ledger.HistoryPage{Next: next}
	for _, row := range rows {
		e, err := ledger.DecodeEntry(row.Row)
		if err != nil {
			h.bad(c.String() + " " + row.Key)
			continue
		}
		page.Entries = append(page.Entries, e)
	}
	return page, err
}

// Bodies implements [ledger.History].
func (h Archive) Bodies(ctx context.Context, c handoff.Caller, keys ...string) (map[string]ledger.Body, error) {
	texts, err := h.store.Texts(ctx, c, keys...)
	bodies := map[string]ledger.Body{}
	for key, parts := range texts {
		bodies[key] = ledger.BodyOf(parts)
	}
	return bodies, err
}

// Find implements [ledger.History].
func (h Archive) Find(ctx context.Context, c handoff.Caller, key string) (ledger.Entry, bool, error) {
	state, err := h.store.State(ctx, c)
	if err != nil {
		return ledger.Entry{}, false, err
	}
	text, ok := state.Documents[ledger.HandoffDoc+key]
	if !ok {
		var row ledger.Past
		if row, ok, err = h.store.Past(ctx, c, key); !ok || err != nil {
			return ledger.Entry{}, false, err
		}
		text = row.Row
	}
	e, err := ledger.DecodeEntry(text)
	return e, err == nil, err
}
