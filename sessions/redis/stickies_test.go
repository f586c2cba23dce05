package redis

import (
	"fmt"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/sessions/sessionstest"
)

var must = sessionstest.Must

// opened opens a store on a Redis of its own.
func opened(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.Context(), Config{URL: sessionstest.StartRedis(t).URL})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Invalid entries are left out and counted; the others are still there.
func TestBadEntriesAreLeftOut(t *testing.T) {
	s := opened(t)
	c := handoff.Caller{Principal: "owner", User: "alice"}
	key := s.key("owner/alice", docsKey)
	good := fmt.Sprintf(`{"thread":"t1","since":"2026-05-04T12:00:00Z","set":%q}`, time.Now().Format(time.RFC3339))
	bad := map[string]string{
		"cut": `{"thread":"t1"`, "list": `[]`, "none": `{}`, "": good, "%zz": good, "a/": good, "a/%zz": good, "/b": good,
		"number": `{"thread":7}`,
	}
	for field, value := range bad {
		must(t, s.client.HSet(t.Context(), key, "sticky:"+field, value).Err())
	}
	must(t, s.client.HSet(t.Context(), key, "sticky:big+pc/api", good).Err())
	got, err := s.List(t.Context(), c)
	must(t, err)
	want := handoff.Target{Server: "big pc", Project: "api", Thread: "t1"}
	if len(got) != 1 || got[0].Target != want || s.counts.badEntries.Load() != uint64(len(bad)) {
		t.Fatalf("got %+v, %d bad entries", got, s.counts.badEntries.Load())
	}
}

// A key of a wrong type causes an error, whose code is not unreachable.
func TestKeyOfAnotherType(t *testing.T) {
	s := opened(t)
	c := handoff.Caller{Principal: "owner"}
	must(t, s.client.Set(t.Context(), "switchboard:{owner}:docs", "text", 0).Err())
	if _, err := s.List(t.Context(), c); handoff.CodeOf(err) != handoff.CodeInternal {
		t.Fatalf("list: %v", err)
	}
}
