package sessionstest

import (
	"bytes"
	"slices"
	"sync"
	"testing"

	"switchboard/handoff"
	"switchboard/sessions"
)

func wantRecords(t *testing.T, s sessions.Records, kind string, want ...string) {
	t.Helper()
	all, err := s.Records(t.Context(), kind)
	Must(t, err)
	var got []string
	for _, r := range all {
		if r.Kind != kind {
			t.Errorf("of %s there is %+v", kind, r)
		}
		got = append(got, r.Name+" "+string(r.Body))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("of %s there are %q, want %q", kind, got, want)
	}
}

func testRecordLife(t *testing.T, s Store) {
	wantRecords(t, s, "keys")
	for _, r := range []sessions.Record{
		{Kind: "keys", Name: "b ü", Body: []byte("one \x00")}, {Kind: "keys", Name: "a"},
		{Kind: "other", Name: "a", Body: []byte("x")},
	} {
		Must(t, s.PutRecord(t.Context(), r))
	}
	wantRecords(t, s, "keys", "a ", "b ü one \x00")
	Must(t, s.PutRecord(t.Context(), sessions.Record{Kind: "keys", Name: "a", Body: []byte("two")}))
	wantRecords(t, s, "keys", "a two", "b ü one \x00")
	for i, want := range []bool{true, false} {
		if ok, err := s.DropRecord(t.Context(), "keys", "a"); err != nil || ok != want {
			t.Fatalf("dropped for the %d. time: %v, %v", i+1, ok, err)
		}
	}
	wantRecords(t, s, "keys", "b ü one \x00")
	wantRecords(t, s, "other", "a x")
	for _, body := range []string{"y", "x"} { // the first was replaced meanwhile
		ok, err := s.DropRecordAs(t.Context(), sessions.Record{Kind: "other", Name: "a", Body: []byte(body)})
		if err != nil || ok != (body == "x") {
			t.Fatalf("dropped as %s: %v, %v", body, ok, err)
		}
	}
	wantRecords(t, s, "other")
	large := sessions.Record{Kind: "keys", Name: "c", Body: bytes.Repeat([]byte("x"), sessions.MaxRecord+1)}
	if err := s.PutRecord(t.Context(), large); handoff.CodeOf(err) != handoff.CodeTooLarge {
		t.Errorf("a large one: %v", err)
	}
	if _, err := s.KeepRecord(t.Context(), sessions.Record{Kind: "keys"}); err == nil {
		t.Error("one without a name is kept")
	}
}

func testRecordKept(t *testing.T, s Store) { TestRecordKeptOnce(t, s, s) }

// TestRecordKeptOnce: of several calls that keep a record at the same time, at several stores, all return the first
// one.
func TestRecordKeptOnce(t *testing.T, stores ...sessions.Records) {
	var mu sync.Mutex
	seen := map[string]bool{}
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			r, err := stores[n%len(stores)].KeepRecord(t.Context(),
				sessions.Record{Kind: "once", Name: "only", Body: []byte{byte('a' + n)}})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			seen[string(r.Body)] = true
		})
	}
	all.Wait()
	if len(seen) != 1 {
		t.Fatalf("they have %v", seen)
	}
	for body := range seen {
		for _, s := range stores {
			wantRecords(t, s, "once", "only "+body)
		}
	}
}
