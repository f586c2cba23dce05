package sessionstest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
)

// app returns an app that ends in an hour.
func app(principal, id string) sessions.App {
	now := time.Now().UTC().Truncate(time.Millisecond)
	return sessions.App{
		ID: id, Principal: principal, Key: sha256.Sum256([]byte("key")), Client: "https://app.example/client.json",
		Name: "Äpp\x00 \"one\"", Resource: "https://switchboard.example/mcp", Approve: handoff.ApproveAll,
		Shared: sha256.Sum256([]byte("shared")), Next: sha256.Sum256([]byte("next " + id)), Redirect: "https://app.example/back",
		Challenge: "challenge", Access: sha256.Sum256([]byte("access")), AccessEnds: now.Add(time.Minute),
		Made: now, Used: now, Ends: now.Add(time.Hour),
	}
}

// hasApps fails the test unless a principal has these apps, in this order, and each is found by its id.
func hasApps(t *testing.T, s Store, principal string, want ...sessions.App) {
	t.Helper()
	got, err := s.Apps(t.Context(), principal)
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("%q has %+v, %v, want %+v", principal, got, err, want)
	}
	for _, a := range want {
		if found, ok, err := s.App(t.Context(), a.ID); err != nil || !ok || found != a {
			t.Fatalf("found %+v, %v, %v, want %+v", found, ok, err, a)
		}
	}
}

// noApp fails the test if there is an app with an id.
func noApp(t *testing.T, s Store, id string) {
	t.Helper()
	if _, ok, err := s.App(t.Context(), id); ok || err != nil {
		t.Fatalf("found an app %q: %v, %v", id, ok, err)
	}
}

// is fails the test unless a call of a store returned want and no error.
func is(t *testing.T, want bool, got bool, err error) {
	t.Helper()
	if err != nil || got != want {
		t.Fatalf("%v, %v, want %v", got, err, want)
	}
}

func testAppLife(t *testing.T, s Store) {
	put := func(ok bool, err error) func(bool) { return func(want bool) { t.Helper(); is(t, want, ok, err) } }
	hasApps(t, s, "owner")
	one, two := app("owner", "one"), app("owner", "two")
	two.Used = two.Used.Add(time.Minute)
	put(s.PutApp(t.Context(), one))(true)
	put(s.PutApp(t.Context(), two))(true)
	put(s.PutApp(t.Context(), one))(false) // its id is taken
	hasApps(t, s, "owner", two, one)       // the most recently used first
	next := one
	next.Next, next.Used, next.Ends = sha256.Sum256([]byte("later")), two.Used.Add(time.Minute), one.Ends.Add(time.Hour)
	put(s.ChangeApp(t.Context(), next, two.Next))(false)
	put(s.ChangeApp(t.Context(), next, one.Next))(true)
	put(s.ChangeApp(t.Context(), next, one.Next))(false) // its credential was used before
	hasApps(t, s, "owner", next, two)
	put(s.DropApp(t.Context(), "other", "one"))(false)
	put(s.DropApp(t.Context(), "owner", "one"))(true)
	put(s.DropApp(t.Context(), "owner", "one"))(false)
	put(s.ChangeApp(t.Context(), next, next.Next))(false)
	noApp(t, s, "one")
	hasApps(t, s, "owner", two)
}

func testAppsApart(t *testing.T, s Store) {
	var all []sessions.App
	for i, c := range hostile() {
		all = append(all, app(c.Principal+"|"+c.User, fmt.Sprint("id", i)))
		ok, err := s.PutApp(t.Context(), all[i])
		is(t, true, ok, err)
	}
	for _, a := range all {
		hasApps(t, s, a.Principal, a)
	}
}

func testAppEnds(t *testing.T, s Store) {
	ended, lives := app("owner", "ended"), app("owner", "lives")
	ended.Ends = time.Now().Add(-time.Second).UTC().Truncate(time.Millisecond)
	for _, a := range []sessions.App{ended, lives} {
		_, err := s.PutApp(t.Context(), a)
		Must(t, err)
	}
	noApp(t, s, "ended")
	ok, err := s.ChangeApp(t.Context(), lives, ended.Next)
	is(t, false, ok, err)
	hasApps(t, s, "owner", lives)
}

// testAppOnce: of several calls at once that exchange one credential, one succeeds.
func testAppOnce(t *testing.T, s Store) {
	a := app("owner", "one")
	ok, err := s.PutApp(t.Context(), a)
	is(t, true, ok, err)
	var all sync.WaitGroup
	var won atomic.Int32
	for n := range 16 {
		all.Go(func() {
			next := a
			next.Next = sha256.Sum256(fmt.Append(nil, "of ", n))
			if ok, err := s.ChangeApp(context.WithoutCancel(t.Context()), next, a.Next); err != nil {
				t.Error(err)
			} else if ok {
				won.Add(1)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Fatalf("%d of them got the next tokens", won.Load())
	}
}

func testAppsBounded(t *testing.T, s Store) {
	for n := range sessions.MaxApps {
		ok, err := s.PutApp(t.Context(), app("owner", fmt.Sprint("id", n)))
		is(t, true, ok, err)
	}
	ok, err := s.PutApp(t.Context(), app("owner", "more"))
	is(t, false, ok, err)
	noApp(t, s, "more")
	ok, err = s.PutApp(t.Context(), app("other", "others"))
	is(t, true, ok, err)
	ok, err = s.DropApp(t.Context(), "owner", "id0")
	is(t, true, ok, err)
	ok, err = s.PutApp(t.Context(), app("owner", "more"))
	is(t, true, ok, err)
}
