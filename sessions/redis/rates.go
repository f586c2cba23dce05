package redis

import (
	"context"
	"net/url"
	"time"
)

var (
	rateScript  = script("rate")
	callsScript = script("calls")
)

// callsFor is how long the counts of open calls of a name are kept after the last update.
const callsFor = 10 * time.Minute

// rates counts, over all instances, how often work is given and how many calls are open.
type rates struct{ *engine }

// SettleRate adds pieces of work that this instance has started under a name. Each piece counts for the duration each.
// It returns how long until no piece of any instance counts any more; 0 for now.
func (s rates) SettleRate(ctx context.Context, name string, pieces int, each time.Duration) (time.Duration, error) {
	key := s.key(url.QueryEscape(name), "rate")
	until, err := rateScript.Run(ctx, s.client, []string{key}, pieces, each.Microseconds()).Int64()
	return time.Duration(until) * time.Microsecond, s.fault(err)
}

// CountCalls stores how many calls of a name are open at this instance; a count with a number that is not above the
// newest one is ignored. If the calls of all instances would be more than most (0 for no bound), it stores nothing and
// returns false. others are the other instances with a stored count; they may have ended.
func (s rates) CountCalls(
	ctx context.Context, name string, number uint64, calls, most int,
) (fits bool, others []string, err error) {
	reply, err := callsScript.Run(ctx, s.client, []string{s.callsKey(name)},
		s.id, number, calls, most, callsFor.Milliseconds()).StringSlice()
	if err != nil {
		return false, nil, s.fault(err)
	}
	if len(reply) == 0 {
		return false, nil, unexpected("open calls")
	}
	return reply[0] == "1", reply[1:], nil
}

// ForgetCalls drops the counts of instances that have ended.
func (s rates) ForgetCalls(ctx context.Context, name string, gone []string) error {
	return s.fault(s.client.HDel(ctx, s.callsKey(name), gone...).Err())
}

// callsKey holds the newest count of each instance by its id: the number of the count, a space, how many calls are
// open.
func (s rates) callsKey(name string) string { return s.key(url.QueryEscape(name), "calls") }
