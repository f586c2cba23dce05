package sessionstest

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions"
)

// A kept is what a store must have of a caller.
type kept struct{ ledger.Kept }

// holds fails the test unless a store has the same.
func (k *kept) holds(t *testing.T, s Store, c handoff.Caller) {
	t.Helper()
	if now, err := s.State(t.Context(), c); err != nil || now.Version != k.Version || !maps.Equal(now.Documents, k.Documents) {
		t.Fatalf("there is %+v, %v, want %+v", now, err, k)
	}
	var pages []ledger.Past
	texts, err := s.Texts(t.Context(), c, walkKeys...)
	Must(t, err)
	for _, key := range walkKeys {
		parts := texts[key]
		want, over := k.Past[key]
		got, found, err := s.Past(t.Context(), c, key)
		if err != nil || found != over || !samePast(got, want) && over || !maps.Equal(parts, k.Texts[key]) {
			t.Fatalf("%s has %+v and %q, %v, want %+v and %q", key, got, parts, err, want, k.Texts[key])
		}
		if over && !want.Unkept {
			pages = append(pages, want)
		}
	}
	slices.SortFunc(pages, func(a, b ledger.Past) int { return cmp.Or(cmp.Compare(b.At, a.At), cmp.Compare(b.Key, a.Key)) })
	var got []ledger.Past
	for q := (sessions.PageQuery{Limit: 2, Found: func(string) bool { return true }}); ; {
		rows, next, err := s.Page(t.Context(), c, q)
		Must(t, err)
		if got = append(got, rows...); next == "" {
			break
		}
		q.Before = next
	}
	if !slices.EqualFunc(got, pages, samePast) {
		t.Fatalf("the pages have %+v, want %+v", got, pages)
	}
}

func samePast(a, b ledger.Past) bool {
	return a.Key == b.Key && a.At == b.At && a.Row == b.Row && a.Unkept == b.Unkept
}

var walkKeys = []string{"key-0", "key-1", "key-2"}

// walkBytes is how many bytes encode one batch of a walk.
const walkBytes = 6

// walkBatch decodes the nth batch of a walk.
func (k *kept) walkBatch(n int, code []byte) ledger.Batch {
	b := ledger.Batch{Was: k.Version, Now: fmt.Sprint("v", n), Promise: code[0]%2 == 0, Put: map[string]string{}}
	if code[0]%8 == 7 {
		b.Was = fmt.Sprint("v", n-2) // usually not the newest one
	}
	for i := range 4 {
		switch name := fmt.Sprint("doc-", i); code[1] >> (2 * i) % 4 {
		case 1:
			b.Put[name] = fmt.Sprint("body ", n)
		case 2, 3:
			b.Drop = append(b.Drop, name)
		}
	}
	for i, key := range walkKeys {
		does := code[2+i]
		if does%4 == 0 {
			continue
		}
		c := ledger.Changed{Key: key, Free: does%4 == 1, Clear: does%4 == 2}
		switch does >> 2 % 4 {
		case 1:
			c.Texts = map[string]string{ledger.PartPrompt: fmt.Sprint("prompt ", n), ledger.PartText: fmt.Sprint("text ", n)}
		case 2:
			c.Texts = map[string]string{ledger.PartPrompt: "", ledger.PartText: fmt.Sprint("other text ", n)}
		}
		if kind := does >> 4 % 4; kind > 1 {
			c.Past = &ledger.Past{Key: key, At: since.UnixMilli() + int64(n) - int64(code[5]%8), Row: fmt.Sprint("row ", n),
				Unkept: kind == 3}
		}
		b.Changed = append(b.Changed, c)
	}
	return b
}

// Walk decodes bytes to batches for a caller of whom nothing is kept yet. After each one it fails the test unless the
// store has what it must.
func Walk(t *testing.T, s Store, c handoff.Caller, walk []byte) {
	t.Helper()
	k := kept{ledger.NewKept()}
	for n := 0; len(walk) >= walkBytes; n, walk = n+1, walk[walkBytes:] {
		b := k.walkBatch(n, walk)
		want := k.Commit(b)
		if got, err := s.Commit(t.Context(), c, b); err != nil || got != want {
			t.Fatalf("%+v came to %d, %v, want %d", b, got, err, want)
		}
		k.holds(t, s, c)
	}
}

func testWalk(t *testing.T, s Store) {
	random := rand.New(rand.NewPCG(3, 4))
	for round := range 10 {
		walk := make([]byte, 40*walkBytes)
		for i := range walk {
			walk[i] = byte(random.Uint32())
		}
		Walk(t, s, handoff.Caller{Principal: fmt.Sprint("owner-", round)}, walk)
	}
}
