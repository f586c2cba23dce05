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

// callsFor is how long counts of open calls are kept that no instance tells of.
const callsFor = 10 * time.Minute

// rates counts over all instances how often work is given, and how many calls are open.
type rates struct{ *engine }

// SettleRate adds the work that one instance has given by a name, and returns after how long none of it counts any
// more. Each piece counts for a time; 0 is now.
func (s rates) SettleRate(ctx context.Context, name string, given int, each time.Duration) (time.Duration, error) {
	key := s.key(url.QueryEscape(name), "rate")
	full, err := rateScript.Run(ctx, s.client, []string{key}, given, each.Microseconds()).Int64()
	return time.Duration(full) * time.Microsecond, s.fault(err)
}

// CountCalls notes how many calls of a name this instance has, where the number of the count is greater than that of
// the newest one. It is false, and nothing is noted, where they are more than most together with those of others; most
// 0 is any number. Others are the instances that have any, or had when they ended.
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

// ForgetCalls gives back what instances have of a name that are gone.
func (s rates) ForgetCalls(ctx context.Context, name string, gone []string) error {
	return s.fault(s.client.HDel(ctx, s.callsKey(name), gone...).Err())
}

// callsKey names the newest count of each instance by its id: the number of the count, a space, how many are open.
func (s rates) callsKey(name string) string { return s.key(url.QueryEscape(name), "calls") }
