package redis

import (
	"cmp"
	"context"
	"net/url"
	"strconv"

	"switchboard/sessions"
)

// spent stores the sums of what callers spent, each with a hash of how much each call has spent of it.
type spent struct{ *engine }

// Spend implements [sessions.Logins].
func (s spent) Spend(ctx context.Context, name, day, call string, soFar int64) (sum int64, err error) {
	key, life := s.key(url.QueryEscape(name), "spent:"+url.QueryEscape(day)), sessions.SpentFor.Milliseconds()
	calls := key + ":calls"
	err = s.decided(ctx, fence{}, func(c *change) error {
		all, err := s.read(ctx, c, key)
		ofCall, errCall := s.readField(ctx, c, calls, call)
		if err = cmp.Or(err, errCall); err != nil {
			return err
		}
		sum, _ = strconv.ParseInt(all, 10, 64) // 0 where there is none
		was, _ := strconv.ParseInt(ofCall, 10, 64)
		if soFar > was {
			sum += soFar - was
			c.do("HSET", calls, call, soFar)
			c.do("PEXPIRE", calls, life)
		}
		c.do("SET", key, sum, "PX", life)
		return nil
	})
	return sum, err
}
