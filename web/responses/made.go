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
	documents *documents // Set once

	mu sync.Mutex
	by map[handoff.Caller][]string // Guarded by mu: server and thread, the oldest first; of whom it was read
}

// madeName is how a session stands in the document.
func madeName(server, thread string) string { return server + "/" + thread }

// Made tells which sessions of a caller programs made with this API. When the store does not answer, none.
func (m *made) Made(ctx context.Context, c handoff.Caller) func(server, thread string) bool {
	ctx, cancel := context.WithTimeout(ctx, storeWithin)
	defer cancel()
	known, _ := m.madeBy(ctx, c)
	set := make(map[string]bool, len(known))
	for _, name := range known {
		set[name] = true
	}
	return func(server, thread string) bool { return set[madeName(server, thread)] }
}

// madeBy reads what a caller's programs made, once. What it returns is only read.
func (m *made) madeBy(ctx context.Context, c handoff.Caller) ([]string, bool) {
	m.mu.Lock()
	known, ok := m.by[c]
	m.mu.Unlock()
	if ok {
		return known, true
	}
	d, _, err := m.documents.Document(ctx, c, madeDocument)
	if err != nil || len(d.Body) > 0 && json.Unmarshal(d.Body, &known) != nil {
		return nil, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if now, ok := m.by[c]; ok {
		return now, true
	}
	m.by[c] = known
	return known, true
}

// makesSession keeps that a program made a session.
func (m *made) makesSession(c handoff.Caller, server, thread string) {
	ctx, cancel := context.WithTimeout(context.Background(), storeWithin)
	defer cancel()
	name := madeName(server, thread)
	if _, ok := m.madeBy(ctx, c); !ok {
		return
	}
	m.mu.Lock()
	known := m.by[c]
	if slices.Contains(known, name) {
		m.mu.Unlock()
		return
	}
	known = append(slices.Clone(known[max(0, len(known)+1-maxMade):]), name)
	m.by[c] = known
	m.mu.Unlock()
	m.documents.store(c, madeDocument, []byte(encode(known)), keptFor)
}
