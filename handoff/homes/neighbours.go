package homes

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// Times of failure detection. Each instance writes its beat and reads the table of all beats. Instances compare
// durations only, never clocks. An instance stops acting so much earlier than others take its homes that one clock may
// run a fifth faster than another.
const (
	beatEvery = time.Second
	readEvery = 500 * time.Millisecond
	actFor    = 3 * time.Second // how long an instance may act after it sent its last acknowledged beat
	deadAfter = 4 * time.Second // how long a beat may stay the same, of time in which the table was read
	// readGap is the longest time between two readings that counts as silence of others. In a longer one the store was
	// away, or this process was suspended, so nothing is known of the others.
	readGap = 3 * readEvery
	// forgetAfter is how long an instance is remembered that is not in the table any more.
	forgetAfter = time.Hour
)

// Neighbours is what an instance knows of the others and of itself. It is pure: events come as calls, with their times.
// The zero value knows no instance. It is not safe for concurrent use.
type Neighbours struct {
	acknowledged time.Time             // when the newest acknowledged beat of this instance was sent
	lapsed       bool                  // others may have taken homes of this instance: it must verify them
	leaving      string                // id of this instance, once it drains; "": it does not
	read         time.Time             // when the newest table came
	byID         map[string]*neighbour // this instance included
}

type neighbour struct {
	ledger.Beat
	listed  bool          // in the newest table
	silence time.Duration // how long its beat was seen to stay the same
}

// Acknowledged notes that the store has a beat of this instance, which was sent at a time.
func (n *Neighbours) Acknowledged(sent time.Time) {
	n.lapsed = n.lapsed || !n.acknowledged.IsZero() && handoff.Passed(n.acknowledged, sent) >= actFor
	n.acknowledged = sent
}

// Verified notes that all homes were compared with the store, by a request that was sent at a time; see [Verify].
func (n *Neighbours) Verified(sent time.Time) { n.lapsed = n.lapsed && sent.Before(n.acknowledged) }

// MayAct reports whether the homes of this instance certainly are still its own. It is asked right before an agent is
// given work, more words or a decision. Once others could have taken the homes, it is false until the homes are
// verified.
func (n *Neighbours) MayAct(now time.Time) bool {
	return !n.acknowledged.IsZero() && !n.lapsed && handoff.Passed(n.acknowledged, now) < actFor
}

// Read notes a table of beats, with the times of its request and of its answer. An instance whose beat is the same as
// in the table before was silent at least from that answer to this request. Time in which this machine was suspended
// does not count: nothing was read.
func (n *Neighbours) Read(table []ledger.Beat, asked, answered time.Time) {
	passed := asked.Sub(n.read)
	if n.read.IsZero() || passed > readGap {
		passed = 0
	}
	n.read = answered
	for _, one := range n.byID {
		one.silence += passed
		one.listed = false
	}
	for _, b := range table {
		one := n.get(b.ID)
		if one.N != b.N {
			one.silence = 0
		}
		one.Beat, one.listed = b, true
	}
	maps.DeleteFunc(n.byID, func(_ string, one *neighbour) bool { return !one.listed && one.silence >= forgetAfter })
}

// get returns a neighbour, and adds it if it is new, with no silence yet.
func (n *Neighbours) get(id string) *neighbour {
	if n.byID == nil {
		n.byID = map[string]*neighbour{}
	}
	if n.byID[id] == nil {
		n.byID[id] = &neighbour{Beat: ledger.Beat{ID: id}}
	}
	return n.byID[id]
}

// Dead reports whether an instance is certainly gone, so that its homes may be taken. For one that was never seen, the
// silence begins with the first call.
func (n *Neighbours) Dead(id string) bool { return n.get(id).silence >= deadAfter }

// Gone returns the dead instances of the newest table.
func (n *Neighbours) Gone() (gone []ledger.Beat) {
	for _, one := range n.byID {
		if one.listed && one.silence >= deadAfter {
			gone = append(gone, one.Beat)
		}
	}
	return gone
}

// There returns the instances of the newest table that are not dead, sorted by id.
func (n *Neighbours) There() (there []ledger.Beat) {
	for _, one := range n.byID {
		if one.listed && one.silence < deadAfter {
			there = append(there, one.Beat)
		}
	}
	slices.SortFunc(there, func(x, y ledger.Beat) int { return cmp.Compare(x.ID, y.ID) })
	return there
}

// Leaves notes that this instance, with this id, takes no homes any more.
func (n *Neighbours) Leaves(id string) { n.leaving = id }

// Taker returns the instance that is to take the home of a caller; "": no instance takes any. All instances that see
// the same table return the same one (rendezvous hashing).
func (n *Neighbours) Taker(c handoff.Caller) (taker string) {
	var highest uint64
	for id, one := range n.byID {
		if !one.listed || one.Draining || id == n.leaving || one.silence >= deadAfter {
			continue
		}
		sum := fnv.New64a()
		_, _ = sum.Write([]byte(id + "\x00" + c.String()))
		weight := mix(sum.Sum64())
		if taker == "" || cmp.Or(cmp.Compare(weight, highest), cmp.Compare(id, taker)) > 0 {
			taker, highest = id, weight
		}
	}
	return taker
}

// mix spreads the last bits of a hash over all of it: short texts differ only in those.
func mix(x uint64) uint64 {
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// A Measure is what an instance does with one of its homes after comparing it with the store.
type Measure int

// The measures.
const (
	Keep   Measure = iota
	Assert         // the store has lost the newest claim: write it again
	Evict          // another instance has the home: end it
)

// Verify compares the claim of this instance with the one in the store.
func Verify(mine, stored ledger.Claim) Measure {
	switch {
	case stored.Epoch > mine.Epoch, stored.Epoch == mine.Epoch && stored.ID != mine.ID:
		return Evict
	case stored.Epoch < mine.Epoch:
		return Assert
	}
	return Keep
}
