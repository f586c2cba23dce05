package responses

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"switchboard/handoff"
	"switchboard/sessions"
)

// maxMade is how many sessions that programs made are remembered for a caller, the newest: as many as stored responses.
const maxMade = sessions.MaxDocuments

// madeDocument is the id of a caller's document with the names of these sessions.
const madeDocument = "made_sessions"

// madeSessions has the sessions that programs made with this API, in this or an earlier process.
type madeSessions struct {
	documents *documents // Set once

	mu sync.Mutex
	by map[handoff.Caller][]string // Guarded by mu: names as of madeName, oldest first; of callers that were read
}

// madeName returns the name of a session in the document.
func madeName(server, thread string) string { return server + "/" + thread }

// Made returns a function that reports whether a program made a session of a caller with this API. If the store does
// not answer, it reports false for all.
func (m *madeSessions) Made(ctx context.Context, c handoff.Caller) func(server, thread string) bool {
	ctx, cancel := context.WithTimeout(ctx, storeWithin)
	defer cancel()
	known, _ := m.madeBy(ctx, c)
	set := make(map[string]bool, len(known))
	for _, name := range known {
		set[name] = true
	}
	return func(server, thread string) bool { return set[madeName(server, thread)] }
}

// madeBy returns the names of the sessions that a caller's programs made. It reads the document once. The result must
// not be changed.
func (m *madeSessions) madeBy(ctx context.Context, c handoff.Caller) ([]string, bool) {
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

// makesSession records that a program made a session.
func (m *madeSessions) makesSession(c handoff.Caller, server, thread string) {
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
	_ = m.documents.store(c, madeDocument, []byte(encode(known)), keptFor) // it was logged
}
