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

// The clock of who is there. Each instance beats each second and reads the table of beats; nobody compares clocks, only
// how long something takes. An instance ceases to act so much sooner than others take what it has that clocks may run a
// fifth faster or slower than each other.
const (
	beatEvery = time.Second
	readEvery = 500 * time.Millisecond
	actFor    = 3 * time.Second // after the last beat that was acknowledged, counted from its sending
	deadAfter = 4 * time.Second // without a beat, of time in which the table was read
	// readGap is the longest time between two readings that counts: in a longer one the store was away, or this
	// process stood still, and nothing is known of the others.
	readGap = 3 * readEvery
	// forgetAfter is how long one is known that is in the table no more.
	forgetAfter = time.Hour
)

// Neighbours is what an instance knows of the others, and of itself. It does nothing by itself: it is told what
// happened and when. The zero value knows nobody. It is not safe for concurrent use.
type Neighbours struct {
	acted  time.Time             // when the newest beat was sent that the store has acknowledged
	lapsed bool                  // others may have taken what this instance has: it has to look first
	left   string                // this instance, once it takes nobody any more; "": it does
	read   time.Time             // when the newest answer came with the table
	of     map[string]*neighbour // by id
}

type neighbour struct {
	ledger.Beat
	there bool          // it stood in the table when that was last read
	quiet time.Duration // how long it was seen not to beat
}

// Acknowledged takes that the store has this instance's beat, which was sent then.
func (n *Neighbours) Acknowledged(sent time.Time) {
	n.lapsed = n.lapsed || !n.acted.IsZero() && sent.Sub(n.acted) >= actFor
	n.acted = sent
}

// Verified takes that all homes were compared with the store, which was asked then; see [Verify].
func (n *Neighbours) Verified(sent time.Time) { n.lapsed = n.lapsed && sent.Before(n.acted) }

// MayAct reports whether this instance may go on with what it has: whoever starts work, gives it more words or decides
// for its caller looks here immediately before. It may not once others could have taken its homes, until it has
// verified that they did not.
func (n *Neighbours) MayAct(now time.Time) bool {
	return !n.acted.IsZero() && !n.lapsed && now.Sub(n.acted) < actFor
}

// Read takes the table of beats, which was asked for and answered then. Between an answer and the next question nobody
// has beaten whose beat is the same in both.
func (n *Neighbours) Read(table []ledger.Beat, asked, answered time.Time) {
	passed := asked.Sub(n.read)
	if n.read.IsZero() || passed > readGap {
		passed = 0
	}
	n.read = answered
	for _, one := range n.of {
		one.quiet += passed
		one.there = false
	}
	for _, b := range table {
		one := n.know(b.ID)
		if one.N != b.N {
			one.quiet = 0
		}
		one.Beat, one.there = b, true
	}
	maps.DeleteFunc(n.of, func(_ string, one *neighbour) bool { return !one.there && one.quiet >= forgetAfter })
}

// know returns a neighbour; of one who was never seen the time begins now.
func (n *Neighbours) know(id string) *neighbour {
	if n.of == nil {
		n.of = map[string]*neighbour{}
	}
	if n.of[id] == nil {
		n.of[id] = &neighbour{Beat: ledger.Beat{ID: id}}
	}
	return n.of[id]
}

// Dead reports whether an instance that has a home is certainly gone, so that the home may be taken. One that was never
// seen is waited for as long as one that ceased to beat.
func (n *Neighbours) Dead(id string) bool { return n.know(id).quiet >= deadAfter }

// Gone returns those who stood in the table when that was last read and are certainly gone.
func (n *Neighbours) Gone() (gone []ledger.Beat) {
	for _, one := range n.of {
		if one.there && one.quiet >= deadAfter {
			gone = append(gone, one.Beat)
		}
	}
	return gone
}

// There returns those who stood in the table when that was last read and are not known to be gone, by id.
func (n *Neighbours) There() (there []ledger.Beat) {
	for _, one := range n.of {
		if one.there && one.quiet < deadAfter {
			there = append(there, one.Beat)
		}
	}
	slices.SortFunc(there, func(x, y ledger.Beat) int { return cmp.Compare(x.ID, y.ID) })
	return there
}

// Leaves takes that an instance, which is this one, takes no homes any more.
func (n *Neighbours) Leaves(id string) { n.left = id }

// Taker returns which instance is to take the home of a caller whose own is gone: each instance that sees the same
// others names the same. It is "" where none takes any.
func (n *Neighbours) Taker(c handoff.Caller) (taker string) {
	var highest uint64
	for id, one := range n.of {
		if !one.there || one.Draining || id == n.left || one.quiet >= deadAfter {
			continue
		}
		sum := fnv.New64a()
		_, _ = sum.Write([]byte(id + "\x00" + c.String()))
		weight := mixed(sum.Sum64())
		if taker == "" || cmp.Or(cmp.Compare(weight, highest), cmp.Compare(id, taker)) > 0 {
			taker, highest = id, weight
		}
	}
	return taker
}

// mixed spreads the last bits of a sum, in which short texts differ, over all of it.
func mixed(x uint64) uint64 {
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// A Measure is what an instance does about a home that it has.
type Measure int

// The measures.
const (
	Keep   Measure = iota
	Assert         // the store has lost it, or is as it was a while ago: it is told again
	Evict          // somebody else has it: everything in it ends
)

// Verify compares what an instance has with what the store says.
func Verify(mine, stored ledger.Claim) Measure {
	switch {
	case stored.Epoch > mine.Epoch, stored.Epoch == mine.Epoch && stored.ID != mine.ID:
		return Evict
	case stored.Epoch < mine.Epoch:
		return Assert
	}
	return Keep
}
