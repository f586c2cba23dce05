package redis

import (
	"context"
	"net/url"
	"time"
)

var rateScript = script("rate")

// rates counts, over all instances, how often work is given.
type rates struct{ *engine }

// SettleRate adds pieces of work that this instance has started under a name. Each piece counts for the duration each.
// It returns how long until no piece of any instance counts any more; 0 for now.
func (s rates) SettleRate(ctx context.Context, name string, pieces int, each time.Duration) (time.Duration, error) {
	key := s.key(url.QueryEscape(name), "rate")
	until, err := rateScript.Run(ctx, s.client, []string{key}, pieces, each.Microseconds()).Int64()
	return time.Duration(until) * time.Microsecond, s.fault(err)
}
