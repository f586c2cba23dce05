package sessionstest

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// slots is the number of slots of a Redis Cluster.
const slots = 16384

// A Cluster is a real Redis Cluster of nodes on loopback. They keep no data on disk.
type Cluster struct {
	URL   string   // Set once; names the first and the last master
	Nodes []*Redis // Set once; the masters, then a replica of each that has one
}

// StartCluster starts a Cluster in which the first masters have a replica each, and returns when every node is
// connected. A node that stands still for less than half a minute causes no failover, since the cause may be a busy
// machine; a test that wants a failover orders it at the replica.
func StartCluster(t testing.TB, masters, replicas int) *Cluster {
	t.Helper()
	c := &Cluster{}
	var met []string
	for i := range masters + replicas {
		port := FreePort(t) // the next port is free too, for the cluster bus
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
	c.await(t, fmt.Sprintf("cluster_known_nodes:%d\r\n", len(c.Nodes)), "CLUSTER INFO")
	for i := range replicas {
		c.Nodes[masters+i].Do("CLUSTER REPLICATE " + c.Nodes[i].Ask("CLUSTER MYID"))
	}
	c.await(t, "cluster_state:ok\r\n", "CLUSTER INFO")
	for i := range replicas {
		_, port, _ := net.SplitHostPort(c.Nodes[masters+i].Addr)
		for !strings.Contains(c.Nodes[i].Ask("INFO replication"), "port="+port+",state=online") {
			time.Sleep(20 * time.Millisecond)
		}
	}
	return c
}

// await waits until the reply of every node to a command contains a text.
func (c *Cluster) await(t testing.TB, text, command string) {
	t.Helper()
	for _, node := range c.Nodes {
		end := time.Now().Add(startWithin)
		for !strings.Contains(node.Ask(command), text) {
			if time.Now().After(end) {
				t.Fatalf("the node of the Cluster on %s does not say %q: %s", node.Addr, text, node.Ask(command))
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}
