package redis_test

import (
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

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

// TestThreadsAge: unused threads are forgotten. Time passes by reducing the remaining life of each key.
func TestThreadsAge(t *testing.T) {
	server := sessionstest.StartRedis(t)
	const life = 90 * 24 * time.Hour
	url, err := goredis.ParseURL(server.URL)
	must(t, err)
	client := goredis.NewClient(url)
	t.Cleanup(func() { _ = client.Close() })
	now := time.Now().Truncate(time.Millisecond).UTC()
	store := open(t, redis.Config{URL: server.URL, Prefix: prefix(t), ThreadsFor: life}).Threads()
	pass := func(d time.Duration) {
		now = now.Add(d)
		keys, err := client.Keys(t.Context(), "*{threads}*").Result()
		must(t, err)
		for _, key := range keys {
			left, err := client.PTTL(t.Context(), key).Result()
			if err == nil && left > 0 {
				err = client.PExpire(t.Context(), key, left-d).Err() // its time is over
			}
			must(t, err)
		}
	}
	sessionstest.TestThreadsAge(t, store, life, pass, func() time.Time { return now })
	if keys, err := client.Keys(t.Context(), "*{threads}*").Result(); err != nil || len(keys) > 1 {
		t.Errorf("left %q, %v", keys, err)
	}
}
