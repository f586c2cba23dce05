package redis_test

import (
	"slices"
	"testing"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions/redis"
	"switchboard/sessions/sessionstest"
)

// A key of a wrong type or a broken list does not hide other entries from recovery.
func TestWrongTypesHideNothing(t *testing.T) {
	t.Parallel()
	server := sessionstest.StartRedis(t)
	s := open(t, redis.Config{URL: server.URL})
	var last ledger.Entry
	for _, key := range []string{"one", "two"} {
		var err error
		if last, err = s.Advance(t.Context(), sessionstest.LedgerStep(key, "a", handoff.StatusDispatching)); err != nil {
			t.Fatal(err)
		}
	}
	server.Do("HSET switchboard:{owner}:docs handoff:one 1")
	server.Do("HSET switchboard:{m}:beats gone {}")
	server.Do("SADD switchboard:homes:gone another")
	server.Do("SET switchboard:{another}:docs 1")
	for what, open := range map[string]func() ([]ledger.Entry, error){
		"of all":        func() ([]ledger.Entry, error) { return s.OpenAll(t.Context()) },
		"of the caller": func() ([]ledger.Entry, error) { return s.Open(t.Context(), last.Caller) },
	} {
		if got, err := open(); err != nil || !slices.Equal(got, []ledger.Entry{last}) {
			t.Errorf("open %s are %+v, %v", what, got, err)
		}
	}
	if s.BadEntries() == 0 {
		t.Error("nothing was counted")
	}
}

// A Redis that refuses writes (it is full, has become a replica, or lost its replicas) counts as unreachable: the
// writes succeed when that has passed. Only refusals that cannot pass are final.
func TestRedisTakesNothingForNow(t *testing.T) {
	t.Parallel()
	for how, states := range map[string]struct {
		begin, end []string
		why        string
	}{
		"full": {[]string{"CONFIG SET maxmemory 1"}, []string{"CONFIG SET maxmemory 0"}, handoff.WhyStoreFull},
		"a replica": {[]string{"REPLICAOF 127.0.0.1 1"}, []string{"REPLICAOF NO ONE"},
			handoff.WhyStoreClosed},
		"a replica behind": {[]string{"CONFIG SET replica-serve-stale-data no", "REPLICAOF 127.0.0.1 1"},
			[]string{"REPLICAOF NO ONE"}, handoff.WhyStoreClosed},
		"without its replicas": {[]string{"CONFIG SET min-replicas-to-write 1"},
			[]string{"CONFIG SET min-replicas-to-write 0"}, handoff.WhyStoreClosed},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			server := sessionstest.StartRedis(t)
			s := open(t, redis.Config{URL: server.URL})
			ended := sessionstest.Run(t, s)
			for _, command := range states.begin {
				server.Do(command)
			}
			step := sessionstest.LedgerStep("key", "a", handoff.StatusDispatching)
			_, err := s.Advance(t.Context(), step)
			unreachable(t, err, server.Addr)
			if why := handoff.StoreDown(err).Subject; why != states.why {
				t.Errorf("the reason is %q: %v", why, err)
			}
			unreachable(t, s.Set(t.Context(), owner, sticky), server.Addr)
			for _, command := range states.end {
				server.Do(command)
			}
			_, err = s.Advance(t.Context(), step)
			must(t, err)
			must(t, s.Set(t.Context(), owner, sticky))
			server.Do("HSET switchboard:{owner}:docs handoff:wrong 1")
			_, err = s.Open(t.Context(), owner) // reads it
			must(t, err)
			if _, err := s.Advance(t.Context(), sessionstest.LedgerStep("wrong", "a",
				handoff.StatusDispatching)); handoff.CodeOf(err) != handoff.CodeInternal {
				t.Fatalf("a key that is no entry gave %v", err)
			}
			must(t, ended())
		})
	}
}
