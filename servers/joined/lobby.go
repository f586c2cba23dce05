package joined

import (
	"context"
	"maps"
	"net/netip"
	"slices"
)

// Bounds of the handshakes of strangers that are going on.
const (
	maxGuests  = 32
	maxFromOne = 8 // from one address that is known
)

// A guest is a handshake of a machine that has not proved a known key.
type guest struct {
	from  netip.Addr         // the zero address: not known
	leave context.CancelFunc // ends the handshake
	visit uint64             // Set by the handshake: see [line]
}

// A lobby has the guests, oldest first. If there are too many, one that came with many goes before one that came alone,
// so whoever keeps many silent connections open keeps nobody else out.
type lobby []*guest

// enter adds a guest, and returns the one that has to go; nil: there is room.
func (l *lobby) enter(g *guest) (out *guest) {
	counts := map[netip.Addr]int{}
	for _, there := range *l {
		counts[there.from]++
	}
	switch most := slices.Max(append(slices.Collect(maps.Values(counts)), 0)); {
	case g.from.IsValid() && counts[g.from] >= maxFromOne:
		out = l.oldest(func(there *guest) bool { return there.from == g.from })
	case len(*l) >= maxGuests:
		out = l.oldest(func(there *guest) bool { return counts[there.from] == most })
	}
	l.leave(out)
	*l = append(*l, g)
	return out
}

func (l *lobby) oldest(is func(*guest) bool) *guest { return (*l)[slices.IndexFunc(*l, is)] }

// leave removes a guest, and reports whether it was there.
func (l *lobby) leave(g *guest) bool {
	i := slices.Index(*l, g)
	if i >= 0 {
		*l = slices.Delete(*l, i, i+1)
	}
	return i >= 0
}
