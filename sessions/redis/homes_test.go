package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions"
	"switchboard/sessions/redis"
	"switchboard/sessions/sessionstest"
)

// homed is a shared store that takes the home of each caller before the first write for them.
type homed struct {
	*redis.Store
	mu   *sync.Mutex
	mine map[handoff.Caller]bool // Guarded by mu
}

func openHomed(t *testing.T, cfg redis.Config) homed {
	t.Helper()
	cfg.Shared = true
	s := open(t, cfg)
	must(t, s.Patient())
	return homed{s, &sync.Mutex{}, map[handoff.Caller]bool{}}
}

// at takes a home. An invalid caller is left to the store.
func (s homed) at(ctx context.Context, c handoff.Caller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.mine[c] {
		s.mine[c] = true
		_, _ = s.Homes().Take(ctx, c, "")
	}
}

func (s homed) Commit(ctx context.Context, c handoff.Caller, b ledger.Batch) (ledger.Committed, error) {
	s.at(ctx, c)
	return s.Store.Commit(ctx, c, b)
}

func (s homed) PutDocument(ctx context.Context, d sessions.Document) error {
	s.at(ctx, d.Owner)
	return s.Store.PutDocument(ctx, d)
}

func (s homed) DropDocument(ctx context.Context, c handoff.Caller, id string) (bool, error) {
	s.at(ctx, c)
	return s.Store.DropDocument(ctx, c, id)
}

func (s homed) AddSaid(ctx context.Context, c handoff.Caller, lines []sessions.Said) error {
	s.at(ctx, c)
	return s.Store.AddSaid(ctx, c, lines)
}

func (s homed) DropSaid(ctx context.Context, c handoff.Caller) error {
	s.at(ctx, c)
	return s.Store.DropSaid(ctx, c)
}

// TestShared: a store that several instances use passes the suite of all stores.
func TestShared(t *testing.T) {
	server := sessionstest.StartRedis(t)
	sessionstest.TestStore(t, func(t *testing.T) sessionstest.Store {
		return openHomed(t, redis.Config{URL: server.URL, Prefix: prefix(t)})
	})
}

// TestFenceOfHomes: an instance that has lost the home of a caller writes nothing for them.
func TestFenceOfHomes(t *testing.T) {
	testFenceOfHomes(t, sessionstest.StartRedis(t).URL)
}

func testFenceOfHomes(t *testing.T, url string) {
	sessionstest.TestFence(t, func(t *testing.T) sessionstest.Takeover {
		cfg := redis.Config{URL: url}
		former := openHomed(t, cfg)
		return sessionstest.Takeover{Former: former, Latter: func(t *testing.T) (sessionstest.Store, func()) {
			s := openHomed(t, cfg)
			if found, err := s.Homes().Take(t.Context(), owner, ""); err != nil || found.ID != former.Homes().ID() {
				t.Errorf("the home of who lives is taken: %+v, %v", found, err)
			}
			found, err := s.Homes().Take(t.Context(), owner, former.Homes().ID())
			if err != nil || found.ID != s.Homes().ID() {
				t.Fatalf("the home of who is dead is not taken: %+v, %v", found, err)
			}
			return s, func() { _ = s.Close() } // again with the test
		}}
	})
}

// TestHomes: a home is free, taken, and free again. If a handoff of the caller is open, the index of the former owner
// keeps the caller. An instance without the home writes nothing for the caller.
func TestHomes(t *testing.T) {
	server := sessionstest.StartRedis(t)
	cfg := redis.Config{URL: server.URL, Shared: true}
	a, b := open(t, cfg), open(t, cfg)
	other := handoff.Caller{Principal: "other/x", User: "a b"}
	claims := func(want ...ledger.Claim) {
		t.Helper()
		got, err := a.Homes().Claims(t.Context(), []handoff.Caller{owner, other})
		if err != nil || len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
			t.Fatalf("the claims are %+v, %v, want %+v", got, err, want)
		}
	}
	take := func(s *redis.Store, c handoff.Caller) ledger.Claim {
		t.Helper()
		found, err := s.Homes().Take(t.Context(), c, "")
		must(t, err)
		return found
	}
	if err := put(t, a, "key"); handoff.CodeOf(err) != handoff.CodeShutdown {
		t.Errorf("who has no home writes there: %v", err)
	}
	claims(ledger.Claim{}, ledger.Claim{})
	mine, theirs := take(a, owner), take(b, other)
	if mine.ID != a.Homes().ID() || theirs.ID != b.Homes().ID() || take(b, owner) != mine {
		t.Errorf("the homes are %+v and %+v", mine, theirs)
	}
	claims(mine, theirs)
	must(t, errors.Join(put(t, a, "key"), a.Leave(owner)(t.Context()), b.Leave(other)(t.Context())))
	claims(ledger.Claim{Epoch: mine.Epoch}, ledger.Claim{Epoch: theirs.Epoch})
	if again := take(a, other); again.ID != a.Homes().ID() || again.Epoch <= theirs.Epoch {
		t.Errorf("what was free is %+v after %+v", again, theirs)
	}
	if got, err := b.Homes().Callers(t.Context(), a.Homes().ID()); err != nil || len(got) != 2 {
		t.Errorf("it has %+v, %v", got, err)
	}

	server.Do("FLUSHALL")
	must(t, a.Homes().Assert(t.Context(), owner, mine))
	claims(mine, ledger.Claim{})
	newer := ledger.Claim{ID: b.Homes().ID(), Epoch: mine.Epoch + 1}
	must(t, errors.Join(b.Homes().Assert(t.Context(), owner, newer), a.Homes().Assert(t.Context(), owner, mine)))
	claims(newer, ledger.Claim{})

	server.Do("HSET switchboard:{odd}:home a b") // which cannot be read, and is not free for that
	all, err := a.Homes().Claims(t.Context(), []handoff.Caller{{Principal: "none"}, {Principal: "odd"}})
	if handoff.CodeOf(err) != handoff.CodeInternal {
		t.Errorf("a home that cannot be read is %+v, %v", all, err)
	}
}

// TestAttached: one instance at a time is in a call of the voice model's server. The next instance that has the caller
// finds the state it needs, even if the caller has no open handoff: the index of the former owner keeps them. An
// instance that has lost the caller changes nothing.
func TestAttached(t *testing.T) {
	cfg := redis.Config{URL: sessionstest.StartRedis(t).URL, Shared: true}
	a, b := open(t, cfg), open(t, cfg)
	var dead string
	of := func(s *redis.Store) redis.Calls { return s.Calls(func(id string) bool { return id == dead }) }
	keeps := func(s *redis.Store, want bool) {
		t.Helper()
		mine, err := of(s).Keep(t.Context(), owner, "rtc_1", []byte(`{}`))
		if must(t, err); mine != want {
			t.Errorf("in the call: %t, want %t", mine, want)
		}
	}
	left := func(want int) {
		t.Helper()
		if all, err := of(b).Left(t.Context(), owner); err != nil || len(all) != want {
			t.Errorf("left are %q, %v", all, err)
		}
	}
	_, err := a.Homes().Take(t.Context(), owner, "")
	must(t, err)
	keeps(a, true)
	keeps(a, true)
	keeps(b, false)
	left(1)
	must(t, a.Leave(owner)(t.Context()))
	if all, err := b.Homes().Callers(t.Context(), a.Homes().ID()); err != nil || len(all) != 1 {
		t.Errorf("who had the home is not known: %v, %v", all, err)
	}
	_, err = b.Homes().Take(t.Context(), owner, "")
	must(t, err)
	keeps(b, false) // a has not left the call yet
	if err := of(a).Drop(t.Context(), owner, "rtc_1", true); handoff.CodeOf(err) != handoff.CodeShutdown {
		t.Errorf("who has lost the caller ends their call: %v", err)
	}
	left(1)
	keeps(b, true)
	dead = b.Homes().ID()
	_, err = a.Homes().Take(t.Context(), owner, dead)
	must(t, err)
	keeps(a, true)
	must(t, of(a).Drop(t.Context(), owner, "rtc_1", false))
	left(1)
	keeps(a, true)
	must(t, of(a).Drop(t.Context(), owner, "rtc_1", true))
	left(0)
}

// TestBeats: the beats of instances are stored, and an instance that beats no more is forgotten with its callers.
func TestBeats(t *testing.T) {
	cfg := redis.Config{URL: sessionstest.StartRedis(t).URL, Shared: true}
	a, b := open(t, cfg), open(t, cfg)
	beat := ledger.Beat{ID: a.Homes().ID(), N: 7, Address: "10.0.0.5:8090", Fingerprint: "ab", Draining: true}
	must(t, a.Homes().Beat(t.Context(), beat))
	_, err := a.Homes().Take(t.Context(), owner, "")
	must(t, err)
	there := func() (found ledger.Beat) {
		t.Helper()
		all, err := b.Homes().Beats(t.Context())
		must(t, err)
		for _, one := range all {
			if one.ID == beat.ID {
				found = one
			}
		}
		return found
	}
	if got := there(); got != beat {
		t.Errorf("it says %+v", got)
	}
	had, err := b.Homes().Callers(t.Context(), beat.ID)
	must(t, err)
	older := beat
	older.N--
	must(t, errors.Join(b.Homes().Forget(t.Context(), older, had), b.Homes().Forget(t.Context(), older, nil)))
	if there() != beat {
		t.Error("it is forgotten although it has beaten since")
	}
	must(t, b.Homes().Forget(t.Context(), beat, nil))
	if there() != (ledger.Beat{}) {
		t.Error("it is not forgotten")
	}
}

// TestSharedOrNot: a shared and an exclusive store cannot use a prefix at the same time.
func TestSharedOrNot(t *testing.T) {
	t.Parallel()
	server := sessionstest.StartRedis(t)
	for _, shared := range []bool{true, false} {
		cfg := redis.Config{URL: server.URL, Prefix: "p", Shared: shared}
		s, err := redis.Open(t.Context(), cfg)
		must(t, err)
		ended := sessionstest.Run(t, s)
		cfg.Shared = !shared
		if _, err := redis.Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "is in use by another") {
			t.Errorf("beside one that shares (%v): %v", shared, err)
		}
		must(t, errors.Join(ended(), s.Close()))
	}
}

// TestLivesBefore: a later life finds the callers of earlier ones and puts them into its own index: of one that was
// killed, and of one that shared the store, which writes nothing for them any more.
func TestLivesBefore(t *testing.T) {
	server := sessionstest.StartRedis(t)
	cfg := redis.Config{URL: server.URL}
	sharing := openHomed(t, cfg)
	must(t, sharing.Homes().Beat(t.Context(), ledger.Beat{ID: sharing.Homes().ID(), N: 1, Address: "here"}))
	must(t, sessionstest.Write(t.Context(), sharing, owner, sessionstest.Put("key")))
	for _, killed := range []string{"DEL switchboard:holder",
		"SADD switchboard:homes:someone nobody"} {
		server.Do(killed)
		s := open(t, cfg)
		sessionstest.WantOpen(t, s, "key")
		must(t, s.Close())
	}
	if err := put(t, sharing.Store, "key"); handoff.CodeOf(err) != handoff.CodeShutdown {
		t.Errorf("who shared the store writes: %v", err)
	}
	last := open(t, cfg)
	sessionstest.WantOpen(t, last, "key")
	beats, err := last.Homes().Beats(t.Context())
	had, errHad := last.Homes().Callers(t.Context(), last.Homes().ID())
	if err = errors.Join(err, errHad); err != nil || len(beats) != 1 || len(had) != 1 || had[0] != owner {
		t.Errorf("of lives there are %+v, it has %+v, %v", beats, had, err)
	}
}

// TestInheritedByAFullRedis: if the callers of an earlier life cannot be put into the index of this life, they stay in
// that of the earlier one, so that another life finds them.
func TestInheritedByAFullRedis(t *testing.T) {
	server := sessionstest.StartRedis(t)
	cfg := redis.Config{URL: server.URL}
	former := open(t, cfg)
	must(t, put(t, former, "key"))
	server.Do("DEL switchboard:holder") // as if it had been killed
	full := open(t, cfg)
	server.Do("CONFIG SET maxmemory 1")
	if left, err := full.Waiting(t.Context(), ledger.HandoffDoc); err == nil {
		t.Errorf("a Redis that takes nothing gives %+v", left)
	}
	server.Do("CONFIG SET maxmemory 0")
	server.Do("DEL switchboard:holder")
	sessionstest.WantOpen(t, open(t, cfg), "key")
}

// TestIndexBeforeHome: if a caller cannot be put into the index, by which a dead instance's callers are found, their
// home is not taken and nothing is written for them.
func TestIndexBeforeHome(t *testing.T) {
	server := sessionstest.StartRedis(t)
	for _, shared := range []bool{true, false} {
		s := open(t, redis.Config{URL: server.URL, Shared: shared, Prefix: fmt.Sprint(shared)})
		server.Do("SET " + fmt.Sprint(shared) + ":homes:" + s.Homes().ID() + " full")
		if found, err := s.Homes().Take(t.Context(), owner, ""); err == nil {
			t.Errorf("taken: %+v", found)
		}
		if claims, err := s.Homes().Claims(t.Context(), []handoff.Caller{owner}); err != nil || claims[0] != (ledger.Claim{}) {
			t.Errorf("the home is %+v, %v", claims, err)
		}
		if err := put(t, s, "key"); err == nil {
			t.Error("a batch is written")
		}
		if now, err := s.State(t.Context(), owner); err != nil || now.Version != "" {
			t.Errorf("there is %+v, %v", now, err)
		}
	}
}
