package sessionstest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"switchboard/sessions"
)

// login returns a login that ends in an hour.
func login(principal, id, token string) sessions.Login {
	now := time.Now().UTC().Truncate(time.Millisecond)
	return sessions.Login{
		ID: id, Sum: sha256.Sum256([]byte(token)), Principal: principal, Key: sha256.Sum256([]byte("key")),
		Host:   "localhost:8080",
		Device: "Firefox\x00 on \"Linux\" ü", Made: now, Used: now, Ends: now.Add(time.Hour),
	}
}

func put(t *testing.T, s sessions.Logins, all ...sessions.Login) {
	t.Helper()
	for _, l := range all {
		Must(t, s.PutLogin(t.Context(), l))
	}
}

// logged fails the test unless a principal has these logins, in this order, and each is found by the sum of its token.
func logged(t *testing.T, s sessions.Logins, principal string, want ...sessions.Login) {
	t.Helper()
	got, err := s.Logins(t.Context(), principal)
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("%q has %+v, %v, want %+v", principal, got, err, want)
	}
	for _, l := range want {
		if found, ok, err := s.Login(t.Context(), l.Sum); err != nil || !ok || found != l {
			t.Fatalf("found %+v, %v, %v, want %+v", found, ok, err, l)
		}
	}
}

// none fails the test if there is a login for the sum of a token.
func none(t *testing.T, s sessions.Logins, sum [sha256.Size]byte) {
	t.Helper()
	if l, ok, err := s.Login(t.Context(), sum); ok || err != nil || l != (sessions.Login{}) {
		t.Fatalf("found %+v, %v, %v", l, ok, err)
	}
}

func testLoginLife(t *testing.T, s Store) {
	logged(t, s, "owner")
	one, two := login("owner", "one", "token-1"), login("owner", "two", "token-2")
	two.Used = two.Used.Add(time.Minute)
	put(t, s, one, two)
	logged(t, s, "owner", two, one) // the most recently used first
	one.Used = two.Used.Add(time.Minute)
	put(t, s, one)
	logged(t, s, "owner", one, two)
	renewed := one
	renewed.Sum = sha256.Sum256([]byte("token-3"))
	put(t, s, renewed)
	none(t, s, one.Sum)
	logged(t, s, "owner", renewed, two)
	for i, want := range []bool{true, false} {
		if ok, err := s.DropLogin(t.Context(), "owner", "one"); err != nil || ok != want {
			t.Fatalf("dropped for the %d. time: %v, %v", i+1, ok, err)
		}
	}
	none(t, s, renewed.Sum)
	for _, l := range []sessions.Login{renewed, two} { // the use of one that ended meanwhile brings it not back
		Must(t, s.UseLogin(t.Context(), l, two.Used.Add(time.Hour)))
	}
	none(t, s, renewed.Sum)
	two.Used = two.Used.Add(time.Hour)
	logged(t, s, "owner", two)
}

func testLoginsApart(t *testing.T, s Store) {
	var all []sessions.Login
	for _, c := range hostile() {
		all = append(all, login(c.Principal+"|"+c.User, "id", c.Principal+"|"+c.User))
	}
	put(t, s, all...)
	if ok, err := s.DropLogin(t.Context(), "nobody", "id"); ok || err != nil {
		t.Fatalf("dropped another's: %v, %v", ok, err)
	}
	for _, l := range all {
		logged(t, s, l.Principal, l)
	}
}

func testLoginEnds(t *testing.T, s Store) {
	ended, lives := login("owner", "ended", "token-1"), login("owner", "lives", "token-2")
	ended.Ends = time.Now().Add(-time.Second).UTC().Truncate(time.Millisecond)
	put(t, s, ended, lives)
	none(t, s, ended.Sum)
	logged(t, s, "owner", lives)
	none(t, s, sha256.Sum256([]byte("another")))
}

func testSpend(t *testing.T, s Store) {
	for i, step := range []struct {
		name, day, call string
		soFar           int64
		want            int64
	}{
		{"owner", "2026-11-22", "c1", 0, 0},
		{"owner", "2026-11-22", "c1", 60_000_000_001, 60_000_000_001},
		{"owner", "2026-11-22", "c1", 60_000_000_001, 60_000_000_001}, // again, since the answer was lost
		{"owner", "2026-11-22", "c1", 9_000_000_000_000_001, 9_000_000_000_000_001},
		{"owner", "2026-11-22", "c1", 60_000_000_001, 9_000_000_000_000_001},
		{"owner", "2026-11-22", "c2", 59 * 60_000_000_000, 9_003_540_000_000_001},
		{"owner", "2026-11-23", "c1", 1_000_000_000, 1_000_000_000},
		{"key:0123456789ab", "2026-11-22", "c1", 1_000_000_000, 1_000_000_000},
		{"dollars of owner", "2026-11-22", "c1", 60, 60},
		{"owner/", "2026-11-22", "", 0, 0},
		{"owner", "2026-11-22", "", 0, 9_003_540_000_000_001},
	} {
		if got, err := s.Spend(t.Context(), step.name, step.day, step.call, step.soFar); err != nil || got != step.want {
			t.Fatalf("step %d: %v, %v, want %v", i, got, err, step.want)
		}
	}
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			if _, err := s.Spend(t.Context(), "at once", "2026-11-22", fmt.Sprint("c", n), 10); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if sum, err := s.Spend(t.Context(), "at once", "2026-11-22", "", 0); sum != 80 || err != nil {
		t.Errorf("eight calls spent %d, %v", sum, err)
	}
}

// Secrets stores client secrets.
type Secrets interface {
	PutSecret(ctx context.Context, s sessions.Secret) (bool, error)
	Secret(ctx context.Context, sum [sha256.Size]byte) (sessions.Secret, bool, error)
}

// secret returns a secret that ends in an hour.
func secret(principal, text string) sessions.Secret {
	return sessions.Secret{
		Sum: sha256.Sum256([]byte(text)), Principal: principal, Key: sha256.Sum256([]byte("key")),
		User:    "ümlaut \x00 \"user\"",
		Session: []byte(`{"type": "realtime", "n": 1e400, "s":"\u0000ü"}`),
		Ends:    time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond),
	}
}

func keep(t *testing.T, s Secrets, all ...sessions.Secret) {
	t.Helper()
	for _, one := range all {
		if ok, err := s.PutSecret(t.Context(), one); err != nil || !ok {
			t.Fatalf("not kept: %v, %v", ok, err)
		}
	}
}

func testSecretFound(t *testing.T, s Store) {
	plain := secret("plain", "ek_plain")
	plain.User, plain.Session = "", nil
	all := []sessions.Secret{plain}
	for _, c := range hostile() {
		all = append(all, secret(c.Principal+"|"+c.User, c.Principal+"|"+c.User))
	}
	keep(t, s, all...)
	for _, want := range all {
		if got, ok, err := s.Secret(t.Context(), want.Sum); err != nil || !ok || !reflect.DeepEqual(got, want) {
			t.Fatalf("found %+v, %v, %v, want %+v", got, ok, err, want)
		}
	}
	if got, ok, err := s.Secret(t.Context(), sha256.Sum256([]byte("another"))); ok || err != nil ||
		!reflect.DeepEqual(got, sessions.Secret{}) {
		t.Fatalf("found %+v, %v, %v", got, ok, err)
	}
}

func testSecretEnds(t *testing.T, s Store) {
	ended := secret("owner", "ek_ended")
	ended.Ends = time.Now().Add(-time.Second)
	keep(t, s, ended)
	if got, ok, err := s.Secret(t.Context(), ended.Sum); ok || err != nil {
		t.Fatalf("found %+v, %v, %v", got, ok, err)
	}
}

func testSecretsBounded(t *testing.T, s Store) {
	ended := secret("owner", "ek_ended")
	ended.Ends = time.Now().Add(-time.Second)
	keep(t, s, ended) // it does not count
	for n := range sessions.MaxSecrets {
		keep(t, s, secret("owner", fmt.Sprint("ek_", n)))
	}
	more := secret("owner", "ek_more")
	if ok, err := s.PutSecret(t.Context(), more); ok || err != nil {
		t.Fatalf("one more is kept: %v, %v", ok, err)
	}
	if _, ok, err := s.Secret(t.Context(), more.Sum); ok || err != nil {
		t.Fatalf("one more is there: %v, %v", ok, err)
	}
	keep(t, s, secret("other", "ek_others"))
}
