package redis

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"switchboard/handoff/ledger"
)

// OwnedSince returns the owners of threads made since a time, by the clock of who made them, oldest first.
func (s handoffs) OwnedSince(ctx context.Context, since time.Time) ([]ledger.Owned, error) {
	members, err := s.client.ZRangeArgs(ctx, goredis.ZRangeArgs{
		Key: s.ownedKey(), ByScore: true, Start: strconv.FormatInt(since.UnixMilli(), 10), Stop: "+inf",
	}).Result()
	if err != nil {
		return nil, s.fault(err)
	}
	all := make([]ledger.Owned, 0, len(members))
	for _, member := range members {
		var one ledger.Owned
		if err := json.Unmarshal([]byte(member), &one); err != nil {
			s.badEntry(s.ownedKey())
			continue
		}
		all = append(all, one)
	}
	return all, nil
}
