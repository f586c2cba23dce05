package sessionstest

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// slots is how many a Redis Cluster has.
const slots = 16384

// A Cluster is a real Redis Cluster of nodes on loopback that keep nothing on disk but who they are.
type Cluster struct {
	URL   string   // Set once; names the first and the last master
	Nodes []*Redis // Set once; the masters, then a replica of each that has one
}

// StartCluster starts a Cluster of some masters, the first of which have a replica, and returns when each node takes
// part. What stands still for less than half a minute is not missed, since that may be the machine: who wants a
// failover says so to the replica.
func StartCluster(t testing.TB, masters, replicas int) *Cluster {
	t.Helper()
	c := &Cluster{}
	var met []string
	for i := range masters + replicas {
		port := FreePort(t) // the next one is its own too
		node := startRedis(t, port, "--cluster-enabled", "yes", "--cluster-port", fmt.Sprint(port+1),
			"--cluster-node-timeout", "30000", "--repl-diskless-sync-delay", "0")
		if i < masters {
			node.Do(fmt.Sprintf("CLUSTER ADDSLOTSRANGE %d %d", slots*i/masters, slots*(i+1)/masters-1))
		}
		node.Do(fmt.Sprintf("CLUSTER SET-CONFIG-EPOCH %d", i+1))
		for _, other := range met {
			node.Do("CLUSTER MEET " + other)
		}
		met = append(met, fmt.Sprintf("127.0.0.1 %d %d", port, port+1))
		c.Nodes = append(c.Nodes, node)
	}
	c.URL = "redis://" + c.Nodes[0].Addr + "?addr=" + c.Nodes[masters-1].Addr
	c.each(t, fmt.Sprintf("cluster_known_nodes:%d\r\n", len(c.Nodes)), "CLUSTER INFO")
	for i := range replicas {
		c.Nodes[masters+i].Do("CLUSTER REPLICATE " + c.Nodes[i].Ask("CLUSTER MYID"))
	}
	c.each(t, "cluster_state:ok\r\n", "CLUSTER INFO")
	for i := range replicas {
		_, port, _ := net.SplitHostPort(c.Nodes[masters+i].Addr)
		for !strings.Contains(c.Nodes[i].Ask("INFO replication"), "port="+port+",state=online") {
			time.Sleep(20 * time.Millisecond)
		}
	}
	return c
}

// each waits until each node says something to a command.
func (c *Cluster) each(t testing.TB, says, command string) {
	t.Helper()
	for _, node := range c.Nodes {
		end := time.Now().Add(startWithin)
		for !strings.Contains(node.Ask(command), says) {
			if time.Now().After(end) {
				t.Fatalf("the node of the Cluster on %s does not say %q: %s", node.Addr, says, node.Ask(command))
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}
