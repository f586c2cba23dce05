package jsonrpc

import (
	"slices"
	"sync"

	"switchboard/handoff"
)

// A Counter is what the connections to a server count, all of them together.
type Counter[C any] struct {
	Name, Help string
	Of         func(C) uint64
	Now        bool // of those that live alone: it may fall
}

// Counters sum up what the connections to a server count, those that live and those that ended. They are safe for
// concurrent use.
type Counters[C comparable] struct {
	server string       // Set once: its name in the fleet
	table  []Counter[C] // Set once

	mu    sync.Mutex
	live  []C      // Guarded by mu
	ended []uint64 // Guarded by mu: of connections that ended, a number for each row of the table
}

// NewCounters returns the counters of a server of which there was no connection.
func NewCounters[C comparable](server string, table []Counter[C]) *Counters[C] {
	return &Counters[C]{server: server, table: table, ended: make([]uint64, len(table))}
}

// Begin counts a connection in, until the function that it returns is called.
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

// Metrics yields what all connections so far counted.
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
