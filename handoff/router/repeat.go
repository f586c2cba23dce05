package router

import (
	"context"
	"time"
)

// repeatEvery is how long what goes on may be missing from a store that came back empty.
const repeatEvery = 30 * time.Second

// repeat tells the ledger again and again what is not delivered, so that a store which came back empty
// learns it although nothing else happens.
func (r *Router) repeat(ctx context.Context) {
	ticker := time.NewTicker(repeatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		for _, l := range r.writers() {
			if err := l.repeat(ctx); err != nil && retried(err) {
				break // it is away: next time
			}
		}
	}
}

// writers returns what the ledger is told of each handoff of each caller.
func (r *Router) writers() []*ledgerWriter {
	var all []*ledgerWriter
	for _, b := range r.known() {
		all = append(all, b.allWriters()...)
	}
	return all
}
