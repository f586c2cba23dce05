package redis_test

import (
	"fmt"
	"testing"

	"switchboard/handoff"
	"switchboard/sessions/redis"
	"switchboard/sessions/sessionstest"
)

// FuzzCommit: the store does what every store must.
func FuzzCommit(f *testing.F) {
	f.Add([]byte("\x00\x05\x05\x00\x00\x00\x00\x0a\x25\x00\x00\x00\x07\x01\x00\x00\x00\x00\x01\x01\x0a\x00\x00\x01"))
	s, err := redis.Open(f.Context(), redis.Config{URL: sessionstest.StartRedis(f).URL})
	must(f, err)
	f.Cleanup(func() { _ = s.Close() })
	n := 0
	f.Fuzz(func(t *testing.T, walk []byte) {
		n++
		sessionstest.Walk(t, s, handoff.Caller{Principal: fmt.Sprint("owner-", n)}, walk[:min(len(walk), 300)])
	})
}

// put writes documents of handoffs of the owner.
func put(t *testing.T, s *redis.Store, keys ...string) error {
	return putOf(t, s, owner, keys...)
}

func putOf(t *testing.T, s *redis.Store, c handoff.Caller, keys ...string) error {
	return sessionstest.Write(t.Context(), s, c, sessionstest.Put(keys...))
}
