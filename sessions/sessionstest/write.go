package sessionstest

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions"
)

// Owner is the caller of most tests.
var Owner = handoff.Caller{Principal: "owner"}

var owner = Owner

// since is a time with nanoseconds, to be kept by JSON and in every time zone.
var since = time.Date(2026, 5, 4, 12, 30, 15, 123456789, time.UTC)

// hostile returns callers whose names would collide if principal and user were just concatenated.
func hostile() []handoff.Caller {
	return []handoff.Caller{
		owner,
		{Principal: "owner", User: "alice"}, {Principal: "owner/alice"},
		{Principal: "owner%2Falice"}, {Principal: "owner", User: "alice/"},
		{Principal: "owner/alice", User: "bob"}, {Principal: "owner", User: "alice/bob"},
		{Principal: "owner}:docs"}, {Principal: "{owner}"}, {Principal: "owner:docs"},
		{Principal: "owner", User: "}:docs"}, {Principal: "owner "}, {Principal: "owner+"}, {Principal: "OWNER"},
		{Principal: "*"}, {Principal: "owner\x00"}, {Principal: "owner\r\nDEL owner"}, {Principal: "../owner"},
	}
}

// Entry returns a handoff of [Owner] that is about to be sent.
func Entry(key string) ledger.Entry {
	return ledger.Entry{
		Key: key, Caller: Owner, Owner: "a", Args: "args", Status: handoff.StatusDispatching, Attempt: 1,
		Accepted: ledger.Millis(since),
		Facts: ledger.Facts{ClientID: key, Target: handoff.Target{Server: "bigpc", Project: "api", Thread: "t1"},
			Prompt: "fix the failing login test of the shop", Title: "auth refactor", Why: handoff.WhyContinued},
	}
}

// Put returns a batch that puts a document for each handoff, which somebody is told of.
func Put(keys ...string) ledger.Batch {
	b := ledger.Batch{Promise: true, Put: map[string]string{}}
	for _, key := range keys {
		b.Put[ledger.HandoffDoc+key] = handoff.Encode(Entry(key))
	}
	return b
}

// Over returns a batch in which handoffs become history.
func Over(at time.Time, all ...ledger.Entry) (b ledger.Batch) {
	for _, e := range all {
		e.Status, e.Outcome = handoff.StatusDelivered, handoff.OutcomeResult
		b.Drop = append(b.Drop, ledger.HandoffDoc+e.Key)
		b.Changed = append(b.Changed, ledger.Changed{Key: e.Key, Past: new(e.History().Row(at))})
	}
	return b
}

// Write commits a batch to the state that is there.
func Write(ctx context.Context, s sessions.Callers, c handoff.Caller, b ledger.Batch) error {
	now, err := s.State(ctx, c)
	if err != nil {
		return err
	}
	b.Was, b.Now = now.Version, rand.Text()
	done, err := s.Commit(ctx, c, b)
	if err == nil && done != ledger.Written {
		err = fmt.Errorf("the batch of %v came to %d", c, done)
	}
	return err
}

// write is [Write], which must succeed.
func write(t testing.TB, s sessions.Callers, c handoff.Caller, b ledger.Batch) {
	t.Helper()
	Must(t, Write(t.Context(), s, c, b))
}

// WantOpen fails the test unless exactly these handoffs of [Put] are open, all of them of [Owner].
func WantOpen(t testing.TB, s sessions.Callers, keys ...string) {
	t.Helper()
	now, err := s.State(t.Context(), Owner)
	Must(t, err)
	all, err := s.Waiting(t.Context(), ledger.HandoffDoc)
	Must(t, err)
	want := Put(keys...).Put
	var callers []handoff.Caller
	if len(keys) > 0 {
		callers = []handoff.Caller{Owner}
	}
	if !maps.Equal(now.Documents, want) || (now.Version == "") != (len(keys) == 0) || !slices.Equal(all, callers) {
		t.Fatalf("open are %+v, of %v, want %q", now, all, keys)
	}
}
