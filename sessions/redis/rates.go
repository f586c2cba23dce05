package redis

import (
	"context"
	"net/url"
	"time"
)

var rateScript = script("rate")

// rates counts how often work is given over all instances.
type rates struct{ *engine }

// SettleRate adds what one instance gave by a name, each piece of which takes its time to count no more, and returns
// when all that was given will have; 0 is now.
func (s rates) SettleRate(ctx context.Context, name string, given int, each time.Duration) (time.Duration, error) {
	key := s.key(url.QueryEscape(name), "rate")
	full, err := rateScript.Run(ctx, s.client, []string{key}, given, each.Microseconds()).Int64()
	return time.Duration(full) * time.Microsecond, s.fault(err)
}
