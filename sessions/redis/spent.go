package redis

import (
	"context"
	"net/url"

	"switchboard/sessions"
)

var spendScript = script("spend")

// spent stores the sums of what callers spent.
type spent struct{ *engine }

// Spend implements [sessions.Logins].
func (s spent) Spend(ctx context.Context, name, day, call string, soFar int64) (int64, error) {
	key := s.key(url.QueryEscape(name), "spent:"+url.QueryEscape(day))
	sum, err := spendScript.Run(ctx, s.client, []string{key, key + ":calls"}, call, soFar,
		sessions.SpentFor.Milliseconds()).Int64()
	return sum, s.fault(err)
}
