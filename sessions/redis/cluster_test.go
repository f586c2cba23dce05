package redis_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/threads"
	"switchboard/sessions/redis"
	"switchboard/sessions/sessionstest"
)

// TestCluster: a store in a Cluster passes the suite of all stores, and two instances share their data.
func TestCluster(t *testing.T) {
	c := sessionstest.StartCluster(t, 3, 0)
	sessionstest.TestStore(t, func(t *testing.T) sessionstest.Store {
		return openHomed(t, redis.Config{URL: c.URL, Prefix: prefix(t)})
	})
	t.Run("URLs", func(t *testing.T) { testClusterURLs(t, c) })
	t.Run("fence", func(t *testing.T) { testFenceOfHomes(t, c.URL) })
	t.Run("two", func(t *testing.T) { testTwo(t, c.URL) })
	t.Run("threads", func(t *testing.T) {
		sessionstest.TestThreads(t, func(t *testing.T) threads.Store {
			return open(t, redis.Config{URL: c.URL, Prefix: prefix(t), Shared: true}).Threads()
		})
	})
	t.Run("about", func(t *testing.T) {
		sessionstest.Run(t, open(t, redis.Config{URL: c.URL, Shared: true}))
		testClusterAbout(t, c)
	})
}

// testClusterURLs: a Cluster needs instances with peers, has one database, and is named as a Cluster in errors.
func testClusterURLs(t *testing.T, c *sessionstest.Cluster) {
	node := c.Nodes[0].Addr
	for url, cfg := range map[string]struct {
		shared bool
		want   string
	}{
		c.URL:                    {false, "with peers"},
		"redis://" + node:        {true, "name others too"},
		"redis://" + node + "/0": {false, "name others too"},
		"redis://u:s3cret@" + node + "/0?addr=" + node: {true, "WRONGPASS"},
		"redis://u:s3cret@" + node + "/3?addr=" + node: {true, "not one of a Redis"},
		"redis://u:s3cret@" + node + "?addr=s3cret":    {true, "not one of a Redis"},
		"redis://" + node + "?addr=" + node + "&x=y":   {true, "not one of a Redis"},
	} {
		s, err := redis.Open(t.Context(), redis.Config{URL: url, Shared: cfg.shared})
		if err == nil {
			must(t, s.Close())
		}
		switch text := fmt.Sprint(err); {
		case err == nil, !strings.Contains(text, cfg.want), strings.Contains(text, "s3cret"):
			t.Errorf("%s, shared %v: %v", url, cfg.shared, err)
		}
	}
}

// testClusterAbout: of nodes that differ, the worst values are reported.
func testClusterAbout(t *testing.T, c *sessionstest.Cluster) {
	for _, node := range c.Nodes {
		node.Do("CONFIG SET appendonly yes")
	}
	about := func(want redis.About) {
		t.Helper()
		seen, err := redis.Look(t.Context(), redis.Config{URL: c.URL, Shared: true})
		if seen.About.Ahead = 0; err != nil || seen.About != want || seen.Holder != redis.Together {
			t.Errorf("it is %+v, %v, want %+v", seen, err, want)
		}
	}
	about(redis.About{Journal: true})
	c.Nodes[1].Do("CONFIG SET maxmemory 100mb")
	c.Nodes[1].Do("CONFIG SET maxmemory-policy allkeys-lru")
	c.Nodes[2].Do("CONFIG SET appendonly no")
	about(redis.About{Evicts: true})
	if _, err := redis.Look(t.Context(), redis.Config{URL: c.URL}); err == nil ||
		!strings.Contains(err.Error(), "for instances with peers") {
		t.Errorf("a look without peers: %v", err)
	}
	for _, node := range c.Nodes {
		if _, err := redis.Look(t.Context(), redis.Config{URL: node.URL}); err == nil ||
			!strings.Contains(err.Error(), "name others too") {
			t.Errorf("a look at one node: %v", err)
		}
	}
}

// atNode returns the first number whose key is at a node.
func atNode(t *testing.T, s *redis.Store, node, key string) int {
	t.Helper()
	for i := 0; ; i++ {
		at, err := s.NodeOf(t.Context(), fmt.Sprintf(key, i))
		must(t, err)
		if at == node {
			return i
		}
	}
}

// callerAt returns a caller whose keys are at a node.
func callerAt(t *testing.T, s *redis.Store, node string) handoff.Caller {
	t.Helper()
	return handoff.Caller{Principal: fmt.Sprint("caller-", atNode(t, s, node, "{caller-%d}"))}
}

// eventually repeats a call that fails while a Redis, or a replica, catches up.
func eventually(t *testing.T, at string, do func() error) {
	t.Helper()
	for err := do(); err != nil; err = do() {
		unreachable(t, err, at)
		time.Sleep(20 * time.Millisecond)
	}
}

// refused repeats a call until it fails with some words, since a busy machine may cause other errors first.
func refused(t *testing.T, at, words string, do func() error) {
	t.Helper()
	for err := do(); ; err = do() {
		if unreachable(t, err, at); strings.Contains(err.Error(), words) {
			return
		}
	}
}

// TestClusterPromises: an effect that somebody is told of is on a replica of the master of its slot. So are its
// preconditions, the index and the start gate of a thread, on a replica of their master. They are still there after
// the replica has replaced its master.
func TestClusterPromises(t *testing.T) {
	t.Parallel()
	c := sessionstest.StartCluster(t, 3, 1)
	master, other, replica := c.Nodes[0], c.Nodes[1], c.Nodes[3]
	cfg := redis.Config{URL: c.URL, Shared: true}
	openIndexedAt := func(node string) *redis.Store {
		for {
			s := open(t, cfg)
			at, err := s.NodeOf(t.Context(), "switchboard:homes:"+s.Homes().ID())
			must(t, err)
			if at == node {
				return s
			}
		}
	}
	s, indexed := openIndexedAt(other.Addr), openIndexedAt(master.Addr)
	followed, alone := callerAt(t, s, master.Addr), callerAt(t, s, other.Addr)
	take := func(s *redis.Store, c handoff.Caller, dead string) error {
		_, err := s.Homes().Take(t.Context(), c, dead)
		return err
	}
	for _, c := range []handoff.Caller{followed, alone} {
		eventually(t, master.Addr, func() error { return take(s, c, "") })
		eventually(t, master.Addr, func() error { return putOf(t, s, c, "key") })
	}

	goOn := replica.Stop()
	refused(t, master.Addr, "no replica", func() error { return putOf(t, s, followed, "key") })
	refused(t, master.Addr, "no replica", func() error { return take(indexed, alone, s.Homes().ID()) })
	thread := handoff.Target{Server: "bigpc", Thread: fmt.Sprint(atNode(t, s, master.Addr, "{t:bigpc/%d}"))}
	refused(t, master.Addr, "no replica", func() error {
		_, err := s.TakeGate(t.Context(), thread, "a")
		return err
	})
	for err := putOf(t, s, alone, "key"); err != nil; err = putOf(t, s, alone, "key") {
		if unreachable(t, err, master.Addr); strings.Contains(err.Error(), "no replica") {
			t.Fatalf("of a master without replicas: %v", err)
		}
	}
	goOn()
	eventually(t, master.Addr, func() error { return putOf(t, s, followed, "key") })
	before, err := s.State(t.Context(), followed)
	must(t, err)

	master.Kill()
	replica.Do("CLUSTER FAILOVER TAKEOVER")
	eventually(t, master.Addr, func() error {
		now, err := s.State(t.Context(), followed)
		if err == nil && now.Version != before.Version {
			t.Errorf("there is version %q, and %q was acknowledged", now.Version, before.Version)
		}
		return err
	})
}

// TestClusterMoves: data of a slot is found while the slot moves, and afterwards.
func TestClusterMoves(t *testing.T) {
	t.Parallel()
	c := sessionstest.StartCluster(t, 2, 1)
	from, to := c.Nodes[0], c.Nodes[1]
	s := open(t, redis.Config{URL: c.URL, Shared: true})
	caller := callerAt(t, s, from.Addr)
	slot := from.Number("CLUSTER KEYSLOT {" + caller.Principal + "}")
	to.Do(fmt.Sprint("CLUSTER SETSLOT ", slot, " IMPORTING ", from.Ask("CLUSTER MYID")))
	from.Do(fmt.Sprint("CLUSTER SETSLOT ", slot, " MIGRATING ", to.Ask("CLUSTER MYID")))
	if now, err := s.State(t.Context(), caller); err != nil || now.Version != "" {
		t.Errorf("while it moves: %+v, %v", now, err)
	}
	if _, err := s.Homes().Take(t.Context(), caller, ""); err != nil { // a promised write waits until the slot has moved
		unreachable(t, err, from.Addr)
	}
	for _, node := range []*sessionstest.Redis{to, from} {
		node.Do(fmt.Sprint("CLUSTER SETSLOT ", slot, " NODE ", to.Ask("CLUSTER MYID")))
	}
	moved := func() error {
		_, err := s.Homes().Take(t.Context(), caller, "")
		return err
	}
	if err := moved(); err != nil && strings.Contains(err.Error(), "MOVED") {
		t.Errorf("after it has moved: %v", err)
	}
	eventually(t, from.Addr, moved)
	eventually(t, from.Addr, func() error { return putOf(t, s, caller, "key") })
	if at, err := s.NodeOf(t.Context(), "{"+caller.Principal+"}"); err != nil || at != to.Addr {
		t.Errorf("the caller is at %s, %v", at, err)
	}
}

// TestClusterWithoutANode: a Cluster that lacks a node counts as a Redis that does not answer, until it is back.
func TestClusterWithoutANode(t *testing.T) {
	t.Parallel()
	c := sessionstest.StartCluster(t, 2, 0)
	c.Nodes[0].Do("CONFIG SET cluster-node-timeout 1000")
	s := open(t, redis.Config{URL: c.URL, Shared: true, Lease: time.Second})
	ended := sessionstest.Run(t, s)
	there := callerAt(t, s, c.Nodes[0].Addr)
	c.Nodes[1].Kill()
	for !strings.Contains(c.Nodes[0].Ask("CLUSTER INFO"), "cluster_state:fail") {
		time.Sleep(20 * time.Millisecond)
	}
	refused(t, c.Nodes[0].Addr, "CLUSTERDOWN", func() error {
		_, err := s.State(t.Context(), there)
		return err
	})
	c.Nodes[1].Start()
	eventually(t, c.Nodes[0].Addr, func() error {
		_, err := s.Homes().Take(t.Context(), there, "")
		return err
	})
	eventually(t, c.Nodes[0].Addr, func() error { return putOf(t, s, there, "key") })
	must(t, ended())
}

// TestClusterAsksOnce: a command whose answer was lost is not sent again, since it may count twice.
func TestClusterAsksOnce(t *testing.T) {
	t.Parallel()
	node := sessionstest.StartCluster(t, 1, 0).Nodes[0]
	c := startCutter(t, node.Addr)
	_, port, _ := strings.Cut(c.addr, ":")
	node.Do("CONFIG SET cluster-announce-port " + port)
	s := open(t, redis.Config{URL: "redis://" + c.addr + "?addr=" + c.addr, Shared: true})
	for i, what := range []int32{cutNothing, cutReply, cutRequest, cutNothing} {
		c.next.Store(what)
		sum, err := s.Spend(t.Context(), "name", "2026-11-22", fmt.Sprint("call ", i), 1)
		switch {
		case what != cutNothing:
			unreachable(t, err, c.addr)
		case err != nil || sum != int64(1+2*min(i, 1)):
			t.Errorf("number %d: the sum is %d, %v", i, sum, err)
		}
	}
	if c.cuts.Load() != 2 {
		t.Errorf("%d cuts", c.cuts.Load())
	}
}
