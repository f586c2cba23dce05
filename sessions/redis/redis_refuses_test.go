package redis_test

import (
	"testing"

	"switchboard/handoff"
	"switchboard/sessions/redis"
	"switchboard/sessions/sessionstest"
)

// A key of a wrong type or a broken list does not hide other callers.
func TestWrongTypesHideNothing(t *testing.T) {
	t.Parallel()
	server := sessionstest.StartRedis(t)
	s := open(t, redis.Config{URL: server.URL})
	must(t, put(t, s, "one", "two"))
	server.Do("HSET switchboard:{m}:beats gone {}")
	server.Do("SADD switchboard:homes:gone another %zz")
	server.Do("SET switchboard:{another}:docs 1")
	sessionstest.WantOpen(t, s, "one", "two")
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
			must(t, put(t, s, "before"))
			for _, command := range states.begin {
				server.Do(command)
			}
			for _, c := range []handoff.Caller{owner, {Principal: "new"}} { // who is in the index, and who is not
				err := putOf(t, s, c, "key")
				unreachable(t, err, server.Addr)
				if why := handoff.StoreDown(err).Subject; why != states.why {
					t.Errorf("the reason is %q: %v", why, err)
				}
			}
			for _, command := range states.end {
				server.Do(command)
			}
			must(t, put(t, s, "key"))
			sessionstest.WantOpen(t, s, "before", "key")
			must(t, ended())
		})
	}
}
