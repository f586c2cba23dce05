package sessionstest

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/sessions"
)

// code returns a code of the owner that ends in a minute.
func code(text string) sessions.Code {
	return sessions.Code{Sum: sha256.Sum256([]byte(text)), Principal: "owner", Key: sha256.Sum256([]byte("key")), Login: sha256.Sum256([]byte("login")),
		Ends: time.Now().Add(time.Minute).Truncate(time.Microsecond).UTC()}
}

// spent spends a code, and reports whether it was valid.
func spent(t *testing.T, s sessions.Codes, text string) bool {
	t.Helper()
	_, ok, err := s.SpendCode(t.Context(), sha256.Sum256([]byte(text)))
	Must(t, err)
	return ok
}

func testCodeOnce(t *testing.T, s Store) {
	made := code("once")
	Must(t, s.PutCode(t.Context(), made))
	got, ok, err := s.SpendCode(t.Context(), made.Sum)
	if err != nil || !ok || got != made {
		t.Fatalf("it is %+v, %v, %v; want %+v", got, ok, err, made)
	}
	if spent(t, s, "once") {
		t.Error("it counts twice")
	}
	over := code("over")
	over.Ends = time.Now().Add(-time.Millisecond)
	Must(t, s.PutCode(t.Context(), over))
	if spent(t, s, "over") {
		t.Error("one that has ended counts")
	}
}

func testCodesBounded(t *testing.T, s Store) {
	other := code("of another key")
	other.Key = sha256.Sum256([]byte("other"))
	Must(t, s.PutCode(t.Context(), other))
	for n := range sessions.MaxCodes + 1 {
		c := code(fmt.Sprint("many ", n))
		c.Ends = c.Ends.Add(time.Duration(n) * time.Second)
		Must(t, s.PutCode(t.Context(), c))
	}
	for text, want := range map[string]bool{"many 0": false, "many 1": true, "of another key": true} {
		if spent(t, s, text) != want {
			t.Errorf("%s: it counts is %v", text, !want)
		}
	}
}

func testWrongCodesVoidNone(t *testing.T, s Store) {
	Must(t, s.PutCode(t.Context(), code("waiting")))
	for n := range 100 {
		if spent(t, s, fmt.Sprint("wrong ", n)) {
			t.Fatal("a wrong one counts")
		}
	}
	if !spent(t, s, "waiting") {
		t.Error("wrong codes void one that waits")
	}
}

func testCodeOneWins(t *testing.T, s Store) { TestCodesAtOnce(t, s, s) }

// TestCodesAtOnce: of several calls that spend one code at the same time, at several stores, exactly one gets it.
func TestCodesAtOnce(t *testing.T, stores ...sessions.Codes) {
	for n := range 20 {
		text := fmt.Sprint("at once ", n)
		Must(t, stores[n%len(stores)].PutCode(t.Context(), code(text)))
		var won atomic.Int32
		var all sync.WaitGroup
		for _, s := range stores {
			for range 2 {
				all.Go(func() {
					if _, ok, err := s.SpendCode(t.Context(), sha256.Sum256([]byte(text))); err != nil {
						t.Error(err)
					} else if ok {
						won.Add(1)
					}
				})
			}
		}
		all.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d got code %d", won.Load(), n)
		}
	}
}
