package redis

import (
	"context"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// ownedPage is how many owners one command reads.
const ownedPage = 5000

// own stores for which caller a thread was made, before the thread is used. The first owner stays.
func (s callers) own(ctx context.Context, o ledger.Owned, at time.Time) error {
	if o == (ledger.Owned{}) {
		return nil
	}
	return s.fault(s.first(ctx, s.ownedKey(), func(p goredis.Pipeliner) {
		p.ZAddNX(ctx, s.ownedKey(), goredis.Z{Score: float64(at.UnixMilli()), Member: handoff.Encode(o)})
		p.ZRemRangeByRank(ctx, s.ownedKey(), 0, -1-ledger.MaxOwned)
	}))
}

// Owned returns for which callers threads were made; see [ledger.Owners].
func (s callers) Owned(ctx context.Context) ([]ledger.Owned, error) {
	var all []ledger.Owned
	for at := int64(0); ; at += ownedPage {
		limited, cancel := context.WithTimeout(ctx, s.within)
		members, err := s.client.ZRange(limited, s.ownedKey(), at, at+ownedPage-1).Result()
		cancel()
		if err != nil || len(members) == 0 {
			return all, s.fault(err)
		}
		all = append(all, parse[ledger.Owned](s.engine, s.ownedKey(), members...)...)
	}
}

// OwnedSince returns the owners of threads made since a time, oldest first. The time is by the clocks of the instances
// that made the threads.
func (s callers) OwnedSince(ctx context.Context, since time.Time) ([]ledger.Owned, error) {
	members, err := s.client.ZRangeArgs(ctx, goredis.ZRangeArgs{
		Key: s.ownedKey(), ByScore: true, Start: strconv.FormatInt(since.UnixMilli(), 10), Stop: "+inf",
	}).Result()
	return parse[ledger.Owned](s.engine, s.ownedKey(), members...), s.fault(err)
}

// ownedKey holds the owners of threads, sorted by when the thread was made.
func (s callers) ownedKey() string { return s.prefix + ":owned" }
