package redis_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"switchboard/handoff"
	"switchboard/sessions/redis"
	"switchboard/sessions/sessionstest"
)

// follow makes a Redis the replica of another.
func follow(t *testing.T, replica, of *sessionstest.Redis) {
	t.Helper()
	host, port, err := net.SplitHostPort(of.Addr)
	must(t, err)
	replica.Do("REPLICAOF " + host + " " + port)
}

// TestPromisedIsReplicated: an effect that somebody is told of is on a replica if there is one; otherwise the call
// fails and may be repeated. Other writes do not wait for a replica.
func TestPromisedIsReplicated(t *testing.T) {
	t.Parallel()
	server, replica := sessionstest.StartRedis(t), sessionstest.StartRedis(t)
	s := open(t, redis.Config{URL: server.URL, Shared: true, Lease: time.Second})
	ended := sessionstest.Run(t, s)
	_, err := s.Homes().Take(t.Context(), owner, "")
	must(t, err)
	must(t, put(t, s, "key")) // there is no replica
	server.Do("CONFIG SET repl-diskless-sync-delay 0")
	follow(t, replica, server)
	for !s.Followed() {
		time.Sleep(20 * time.Millisecond)
	}
	for put(t, s, "key") != nil { // the replica has to catch up first
		time.Sleep(20 * time.Millisecond)
	}

	goOn := replica.Stop() // for a second at most, see replicaGone
	other := handoff.Caller{Principal: "other"}
	_, errTake := s.Homes().Take(t.Context(), other, "")
	for what, err := range map[string]error{"a home": errTake, "a promise": put(t, s, "sent")} {
		unreachable(t, err, server.Addr)
		if !strings.Contains(err.Error(), "no replica") {
			t.Errorf("%s: %v", what, err)
		}
	}
	more := sessionstest.Put("more")
	more.Promise = false
	must(t, sessionstest.Write(t.Context(), s, owner, more))
	goOn()
	for {
		if err = put(t, s, "sent"); err == nil {
			break
		}
		unreachable(t, err, server.Addr) // until the replica has caught up
	}
	must(t, ended())
}

// TestSilentReplicaCountsAsGone: a replica that hangs is told as the reason, and after some seconds without it what
// is written counts all the same, long before the Redis gives it up; that is logged and told to the doctor. When it is
// back, it is waited for again.
func TestSilentReplicaCountsAsGone(t *testing.T) {
	t.Parallel()
	server, replica := sessionstest.StartRedis(t), sessionstest.StartRedis(t)
	server.Do("CONFIG SET repl-diskless-sync-delay 0")
	server.Do("CONFIG SET repl-timeout 3600") // it never gives up
	core, logs := observer.New(zap.InfoLevel)
	cfg := redis.Config{URL: server.URL, Shared: true, Lease: time.Second, Log: zap.New(core)}
	s := open(t, cfg)
	ended := sessionstest.Run(t, s)
	follow(t, replica, server)
	for !s.Followed() {
		time.Sleep(20 * time.Millisecond)
	}
	goOn := replica.Stop()
	for {
		_, err := s.Homes().Take(t.Context(), owner, "")
		if err == nil && !s.Followed() {
			break
		}
		if err != nil && handoff.StoreDown(err).Subject != handoff.WhyStoreCopy {
			t.Errorf("the reason of %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	seen, err := redis.Look(t.Context(), cfg)
	if err != nil || !strings.Contains(seen.About.Silent, replica.Addr+" for ") {
		t.Errorf("the doctor is told %+v, %v", seen, err)
	}
	goOn()
	for !s.Followed() {
		time.Sleep(20 * time.Millisecond)
	}
	must(t, ended())
	for _, words := range []string{"counts as gone", "counts again"} {
		var about []any
		for _, line := range logs.All() {
			if strings.Contains(line.Message, words) {
				about = append(about, line.ContextMap()["replica"])
			}
		}
		if len(about) != 1 || about[0] != replica.Addr {
			t.Errorf("the log says %q of %v", words, about)
		}
	}
}
