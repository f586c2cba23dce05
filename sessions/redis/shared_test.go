package redis_test

import (
	"testing"

	"switchboard/sessions/redis"
	"switchboard/sessions/sessionstest"
)

// TestTwoOverOneRedis: what two instances share is at both what it is at one.
func TestTwoOverOneRedis(t *testing.T) {
	t.Parallel()
	server := sessionstest.StartRedis(t)
	one := open(t, redis.Config{URL: server.URL, Shared: true})
	other := open(t, redis.Config{URL: server.URL, Shared: true})
	sessionstest.TestCodesAtOnce(t, one, other)
	sessionstest.TestRecordKeptOnce(t, one, other)
}
