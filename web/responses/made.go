package responses

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"switchboard/handoff"
	"switchboard/sessions"
)

// maxMade is of how many sessions of a caller it is known that a program made them, the newest: as many as responses
// are kept.
const maxMade = sessions.MaxDocuments

// madeDocument is the document of a caller that has them.
const madeDocument = "made_sessions"

// made knows which sessions programs have made with this API, also in former lives of the process.
type made struct {
	mu sync.Mutex
	by map[handoff.Caller][]string // Guarded by mu: server and thread, the oldest first; of whom it was read
}

// madeName is how a session stands in the document.
func madeName(server, thread string) string { return server + "/" + thread }

// Made tells which sessions of a caller programs made with this API. When the store does not answer, none.
func (a *API) Made(ctx context.Context, c handoff.Caller) func(server, thread string) bool {
	ctx, cancel := context.WithTimeout(ctx, storeWithin)
	defer cancel()
	known, _ := a.madeBy(ctx, c)
	set := make(map[string]bool, len(known))
	for _, name := range known {
		set[name] = true
	}
	return func(server, thread string) bool { return set[madeName(server, thread)] }
}

// madeBy reads what a caller's programs made, once. What it returns is only read.
func (a *API) madeBy(ctx context.Context, c handoff.Caller) ([]string, bool) {
	a.made.mu.Lock()
	known, ok := a.made.by[c]
	a.made.mu.Unlock()
	if ok {
		return known, true
	}
	d, _, err := a.cfg.Store.Document(ctx, c, madeDocument)
	if err != nil || len(d.Body) > 0 && json.Unmarshal(d.Body, &known) != nil {
		return nil, false
	}
	a.made.mu.Lock()
	defer a.made.mu.Unlock()
	if now, ok := a.made.by[c]; ok {
		return now, true
	}
	a.made.by[c] = known
	return known, true
}

// makesSession keeps that a program made a session.
func (a *API) makesSession(c handoff.Caller, server, thread string) {
	ctx, cancel := context.WithTimeout(context.Background(), storeWithin)
	defer cancel()
	name := madeName(server, thread)
	if _, ok := a.madeBy(ctx, c); !ok {
		return
	}
	a.made.mu.Lock()
	known := a.made.by[c]
	if slices.Contains(known, name) {
		a.made.mu.Unlock()
		return
	}
	known = append(slices.Clone(known[max(0, len(known)+1-maxMade):]), name)
	a.made.by[c] = known
	a.made.mu.Unlock()
	a.store(c, madeDocument, []byte(encode(known)), keptFor)
}
