package redis_test

import (
	"testing"

	"switchboard/handoff/threads"
	"switchboard/sessions/redis"
	"switchboard/sessions/sessionstest"
)

func TestThreads(t *testing.T) {
	server := sessionstest.StartRedis(t)
	sessionstest.TestThreads(t, func(t *testing.T) threads.Store {
		return open(t, redis.Config{URL: server.URL, Prefix: prefix(t)}).Threads()
	})
}
