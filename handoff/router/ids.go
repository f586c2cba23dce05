package router

import (
	"cmp"
	"crypto/rand"
	"strconv"
	"strings"
	"sync/atomic"
)

// IDs names what the routers of a process make, so that no other life of the process gives the same name. It is safe
// for concurrent use.
type IDs struct {
	life string        // Set once
	last atomic.Uint64 // the number of the last id
}

// NewIDs returns the ids of a life of the process, which begin with its name, [a-z0-9]; "": a random one. No two lives
// have the same.
func NewIDs(life string) *IDs {
	return &IDs{life: cmp.Or(life, strings.ToLower(rand.Text()[:8]))}
}

// Next returns an id that was never given, [a-z0-9-], at most 20 bytes.
func (n *IDs) Next() string { return n.life + "-" + strconv.FormatUint(n.last.Add(1), 10) }
