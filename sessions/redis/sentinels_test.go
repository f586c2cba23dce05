package redis_test

import (
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"switchboard/sessions/redis"
	"switchboard/sessions/sessionstest"
)

// sentinel starts a Sentinel that knows a Redis as main, and returns it.
func sentinel(t *testing.T, of *sessionstest.Redis, quorum int, more ...string) string {
	t.Helper()
	host, at, err := net.SplitHostPort(of.Addr)
	must(t, err)
	port, conf := sessionstest.FreePort(t), filepath.Join(t.TempDir(), "sentinel.conf")
	lines := append([]string{"bind 127.0.0.1", fmt.Sprintf("port %d", port),
		fmt.Sprintf("sentinel monitor main %s %s %d", host, at, quorum), "sentinel down-after-milliseconds main 500"}, more...)
	must(t, os.WriteFile(conf, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	cmd := exec.Command("redis-server", conf, "--sentinel")
	cmd.Dir = filepath.Dir(conf)
	must(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// seen returns what a Sentinel says of main, "" if it knows nothing.
func seen(t *testing.T, at, what string) string {
	c := goredis.NewSentinelClient(&goredis.Options{Addr: at, DisableIdentity: true})
	defer func() { _ = c.Close() }()
	return c.Master(t.Context(), "main").Val()[what]
}

// until waits for what has no other sign.
func until(so func() bool) {
	for !so() {
		time.Sleep(20 * time.Millisecond)
	}
}

// TestSentinel: the store uses the Redis that the Sentinels name.
func TestSentinel(t *testing.T) {
	t.Parallel()
	url := "redis://" + sentinel(t, sessionstest.StartRedis(t), 1) + "/0?master_name="
	s := open(t, redis.Config{URL: url + "main"})
	must(t, put(t, s, "key"))
	sessionstest.WantOpen(t, s, "key")
	if _, err := redis.Open(t.Context(), redis.Config{URL: url + "other"}); err == nil ||
		!strings.Contains(err.Error(), "Redis other of the Sentinels at 127.0.0.1") {
		t.Errorf("one that no Sentinel knows: %v", err)
	}
}

// TestFormerMaster: a Redis that was replaced takes nothing that counts, neither while it goes on after it was frozen,
// nor started again as a master after a kill, though one of four Sentinels never hears of its successor, and
// another one hangs.
func TestFormerMaster(t *testing.T) {
	t.Parallel()
	const stores = 6 // so that some ask the Sentinel which never hears of it first
	former, next := sessionstest.StartRedis(t), sessionstest.StartRedis(t)
	for _, one := range []*sessionstest.Redis{former, next} {
		one.Do("CONFIG SET repl-diskless-sync-delay 0")
		one.Do("ACL SETUSER deaf on >deaf +ping +info +auth +client|setname")
	}
	follow(t, next, former)
	until(func() bool { return strings.Contains(former.Ask("INFO replication"), "state=online") })
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts; nobody answers
	must(t, err)
	defer func() { _ = silent.Close() }()
	deaf := sentinel(t, former, 2, "sentinel auth-user main deaf", "sentinel auth-pass main deaf")
	others := []string{sentinel(t, former, 2), sentinel(t, former, 2)}
	for _, one := range others {
		until(func() bool { return seen(t, one, "num-slaves") == "1" && seen(t, one, "num-other-sentinels") == "1" })
	}
	url := "redis://" + deaf + "/0?master_name=main&addr=" + others[0] + "&addr=" + others[1] +
		"&addr=" + silent.Addr().String()
	var all []*redis.Store
	for i := range stores {
		s := open(t, redis.Config{URL: url, Prefix: fmt.Sprint("store", i), Shared: true})
		_, err := s.Homes().Take(t.Context(), owner, "")
		must(t, err)
		must(t, put(t, s, "first"))
		all = append(all, s)
	}
	goOn := former.Stop()
	for _, one := range others {
		until(func() bool { return strings.HasSuffix(next.Addr, ":"+seen(t, one, "port")) })
	}
	goOn()
	counts := [stores][]string{}
	write := func(i int, key string) error {
		err := put(t, all[i], key)
		if err == nil {
			counts[i] = append(counts[i], key)
		}
		return err
	}
	for i := range all {
		counts[i] = []string{"first"}
		if err := write(i, "second"); err != nil {
			unreachable(t, err, deaf)
		}
	}
	former.Kill()
	former.Start()
	for i, s := range all {
		until(func() bool { return write(i, "third") == nil })
		if n := former.Number("DBSIZE"); n > 0 && strings.Contains(former.Ask("INFO replication"), "role:master") {
			t.Errorf("the former Redis, started again, has %d keys", n)
		}
		must(t, s.Close())
		is, err := open(t, redis.Config{URL: next.URL, Prefix: fmt.Sprint("store", i), Shared: true}).State(t.Context(), owner)
		must(t, err)
		if !maps.Equal(is.Documents, sessionstest.Put(counts[i]...).Put) {
			t.Errorf("of %q, the Redis that counts has %q", counts[i], slices.Sorted(maps.Keys(is.Documents)))
		}
	}
}
