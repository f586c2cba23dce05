package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/sessions/sessionstest"
)

// A sentinelled Redis is a primary and a replica, and three Sentinels that know them as main.
type sentinelled struct {
	t     *testing.T
	url   string
	ports [2]int
	kill  [2]func()
	first int // the index of the primary
}

func newSentinelled(t *testing.T) *sentinelled {
	t.Helper()
	r := &sentinelled{t: t, ports: [2]int{sessionstest.FreePort(t), sessionstest.FreePort(t)}}
	r.begin(0)
	r.begin(1, "--replicaof", "127.0.0.1", fmt.Sprint(r.ports[0]))
	r.followed()
	var at []string
	for range 3 {
		port, dir := sessionstest.FreePort(t), t.TempDir()
		conf := filepath.Join(dir, "sentinel.conf")
		write(t, conf, fmt.Sprintf("bind 127.0.0.1\nport %d\nsentinel monitor main 127.0.0.1 %d 2\n"+
			"sentinel down-after-milliseconds main 1000\nsentinel failover-timeout main 10000\n", port, r.ports[0]))
		lines, _ := spawn(t, nil, dir, program(t, "redis-server", "redis-server"), conf, "--sentinel")
		listens(t, lines, "+monitor master main")
		at = append(at, fmt.Sprintf("127.0.0.1:%d", port))
	}
	r.url = "redis://" + at[0] + "/0?master_name=main&addr=" + at[1] + "&addr=" + at[2]
	for _, one := range at {
		until(t, "the Sentinels to know one another", func() bool {
			said := r.ask(one, "SENTINEL MASTER main")
			return strings.Contains(said, "num-slaves\r\n$1\r\n1") && strings.Contains(said, "num-other-sentinels\r\n$1\r\n2")
		})
	}
	return r
}

// begin starts one of the two.
func (r *sentinelled) begin(i int, args ...string) {
	r.t.Helper()
	lines, kill := spawn(r.t, nil, r.t.TempDir(), append([]string{program(r.t, "redis-server", "redis-server"), "--port",
		fmt.Sprint(r.ports[i]), "--bind", "127.0.0.1", "--save", "", "--repl-diskless-sync-delay", "0"}, args...)...)
	listens(r.t, lines, "Ready to accept connections")
	r.kill[i] = kill
}

// ask says a command to a Redis, and returns the beginning of what it answers, "" for nothing.
func (r *sentinelled) ask(at, command string) string {
	conn, err := net.Dial("tcp", at)
	if err != nil {
		return ""
	}
	defer conn.Close()
	must(r.t, conn.SetDeadline(time.Now().Add(time.Second)))
	if _, err := conn.Write([]byte(command + "\r\nQUIT\r\n")); err != nil {
		return ""
	}
	var said strings.Builder
	buffer := make([]byte, 64<<10)
	for {
		n, err := conn.Read(buffer)
		if said.Write(buffer[:n]); err != nil {
			return said.String()
		}
	}
}

// followed waits until the primary has its replica.
func (r *sentinelled) followed() {
	r.t.Helper()
	until(r.t, "the replica", func() bool {
		return strings.Contains(r.ask(fmt.Sprintf("127.0.0.1:%d", r.ports[r.first]), "INFO replication"), "state=online")
	})
}

// fail kills the primary, waits until the replica has become it, and brings the former one back, which does not know
// that it was replaced: the Sentinels make it a replica after some seconds.
func (r *sentinelled) fail() (took time.Duration) {
	r.t.Helper()
	began := time.Now()
	r.kill[r.first]()
	former := r.first
	r.first = 1 - former
	until(r.t, "the failover", func() bool {
		return strings.Contains(r.ask(fmt.Sprintf("127.0.0.1:%d", r.ports[r.first]), "ROLE"), "master")
	})
	took = time.Since(began)
	r.begin(former)
	r.followed()
	return took
}

// newClustered starts a Cluster of three masters, each with a replica that takes its place when it is missed for a
// second.
func newClustered(t *testing.T) (url string, fail func() time.Duration) {
	t.Helper()
	const masters = 3
	c := sessionstest.StartCluster(t, masters, masters)
	const hurry = "CONFIG SET cluster-node-timeout 1000"
	for _, node := range c.Nodes {
		node.Do(hurry)
	}
	var firsts [masters]int // of each pair, which node is the master: 0 or 1
	victim := 0
	return c.URL, func() time.Duration {
		t.Helper()
		victim++
		pair := victim % masters
		former, next := c.Nodes[pair+masters*firsts[pair]], c.Nodes[pair+masters*(1-firsts[pair])]
		firsts[pair] = 1 - firsts[pair]
		began := time.Now()
		former.Kill()
		until(t, "the failover", func() bool { return strings.Contains(next.Ask("INFO replication"), "role:master") })
		took := time.Since(began)
		former.Start() // it finds who has its slots, and follows them
		former.Do(hurry)
		until(t, "the replica", func() bool { return strings.Contains(next.Ask("INFO replication"), "state=online") })
		return took
	}
}

// TestProofFailover: the Redis of three instances is killed while callers ask for work, and its Sentinels make the
// replica the one that counts; or a master of their Cluster is, and its replica takes its place. What was taken is
// there, and nothing is begun twice: of what somebody is told, the replica has it before they are.
func TestProofFailover(t *testing.T) {
	t.Parallel()
	if !soak() {
		t.Skip("a failover takes as long as a Redis is missed: SWITCHBOARD_SOAK=1")
	}
	t.Run("sentinels", func(t *testing.T) {
		r := newSentinelled(t)
		proveFailover(t, r.url, r.fail)
	})
	t.Run("cluster", func(t *testing.T) {
		url, fail := newClustered(t)
		proveFailover(t, url, fail)
	})
}

func proveFailover(t *testing.T, url string, fail func() time.Duration) {
	w := newTeam(t, url)
	random := rand.New(rand.NewPCG(26, 3))
	fates := map[string]int{}
	var away []time.Duration
	rounds, users := soakRounds(t, 30), 40
	for round := range rounds {
		jobs := w.open(round, users/2, random)
		var asking sync.WaitGroup
		late := make([]*teamJob, users/2)
		for i := range late {
			n := 1000*round + users + i
			late[i] = &teamJob{user: fmt.Sprint("user-", n), landed: i % len(w.there), prompt: fmt.Sprintf("job %d takes 2000", n)}
			wait := time.Duration(random.IntN(3000)) * time.Millisecond
			asking.Go(func() {
				time.Sleep(wait)
				w.begin(late[i], "bigpc")
			})
		}
		time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
		took := fail()
		away = append(away, took)
		asking.Wait()
		w.settle(append(jobs, late...), fates, t.Errorf)
		t.Logf("round %d: another master counts after %v; outcomes so far %v", round, took.Round(time.Millisecond), fates)
	}
	double := 0
	for prompt, n := range w.f.turns() {
		if double += max(n-1, 0); n > 1 {
			t.Errorf("%q was begun %d times", prompt, n)
		}
	}
	slices.Sort(away)
	t.Logf("%d failovers, p50 %v, at most %v; %v; %d begun twice", rounds, away[rounds/2].Round(time.Millisecond),
		away[rounds-1].Round(time.Millisecond), fates, double)
}
