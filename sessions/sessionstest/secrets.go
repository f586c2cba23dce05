package sessionstest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"reflect"
	"testing"
	"time"

	"switchboard/sessions"
)

// Secrets keeps client secrets.
type Secrets interface {
	PutSecret(ctx context.Context, s sessions.Secret) (bool, error)
	Secret(ctx context.Context, sum [sha256.Size]byte) (sessions.Secret, bool, error)
}

// testSecrets runs what the edge relies on. open returns an empty store that lives until the test ends.
func testSecrets(t *testing.T, open func(t *testing.T) Store) {
	for name, run := range map[string]func(*testing.T, Secrets){
		"is found by its sum": testSecretFound, "ended is none": testSecretEnds, "a principal has so many": testSecretsBounded,
	} {
		t.Run(name, func(t *testing.T) { run(t, open(t)) })
	}
}

// secret builds a secret that ends in an hour.
func secret(principal, text string) sessions.Secret {
	return sessions.Secret{
		Sum: sha256.Sum256([]byte(text)), Principal: principal, Key: sha256.Sum256([]byte("key")), User: "ümlaut \x00 \"user\"",
		Session: []byte(`{"type": "realtime", "n": 1e400, "s":"\u0000ü"}`), Ends: time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond),
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

func testSecretFound(t *testing.T, s Secrets) {
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
	if got, ok, err := s.Secret(t.Context(), sha256.Sum256([]byte("another"))); ok || err != nil || !reflect.DeepEqual(got, sessions.Secret{}) {
		t.Fatalf("found %+v, %v, %v", got, ok, err)
	}
}

func testSecretEnds(t *testing.T, s Secrets) {
	ended := secret("owner", "ek_ended")
	ended.Ends = time.Now().Add(-time.Second)
	keep(t, s, ended)
	if got, ok, err := s.Secret(t.Context(), ended.Sum); ok || err != nil {
		t.Fatalf("found %+v, %v, %v", got, ok, err)
	}
}

func testSecretsBounded(t *testing.T, s Secrets) {
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
