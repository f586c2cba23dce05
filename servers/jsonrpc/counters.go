package jsonrpc

import (
	"slices"
	"sync"

	"switchboard/handoff"
)

// A Counter is a metric that is the sum over all connections to a server.
type Counter[C any] struct {
	Name, Help string
	Of         func(C) uint64
	Now        bool // only open connections count: the sum may fall
}

// Counters sum up counters of all connections to a server, also of those that have ended. They are safe for concurrent
// use.
type Counters[C comparable] struct {
	server string       // Set once: its name in the fleet
	table  []Counter[C] // Set once

	mu    sync.Mutex
	live  []C      // Guarded by mu
	ended []uint64 // Guarded by mu: sums of the connections that have ended, one for each row of the table
}

// NewCounters returns counters without connections.
func NewCounters[C comparable](server string, table []Counter[C]) *Counters[C] {
	return &Counters[C]{server: server, table: table, ended: make([]uint64, len(table))}
}

// Begin adds a connection. The function that it returns must be called at the end of the connection.
func (c *Counters[C]) Begin(conn C) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live = append(c.live, conn)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.live = slices.DeleteFunc(c.live, func(other C) bool { return other == conn })
		for i, row := range c.table {
			if !row.Now {
				c.ended[i] += row.Of(conn)
			}
		}
	}
}

// Metrics yields the sums over all connections so far.
func (c *Counters[C]) Metrics(yield func(handoff.Metric) bool) {
	c.mu.Lock()
	sums := slices.Clone(c.ended)
	for _, conn := range c.live {
		for i, row := range c.table {
			sums[i] += row.Of(conn)
		}
	}
	c.mu.Unlock()
	for i, row := range c.table {
		if !yield(handoff.NewMetric(row.Name, row.Help, sums[i], "server", c.server)) {
			return
		}
	}
}
