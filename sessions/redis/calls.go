package redis

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
)

const (
	// attachedFor is longer than a call at a voice model's server can last.
	attachedFor = 24 * time.Hour
	// callsFor is how long the counts of open calls of a name are kept after the last update.
	callsFor = 10 * time.Minute
)

// Calls keeps what several instances know of each other's calls: how many are open, and which instance is in which call
// of the voice model's server. For each caller it also keeps the state that another instance needs to go on in their
// calls. It is safe for concurrent use.
type Calls struct {
	*engine
	dead func(id string) bool // Set once; reports whether an instance is certainly gone
}

// Calls returns the [Calls] of a store. dead reports whether an instance is certainly gone.
func (s *Store) Calls(dead func(id string) bool) Calls { return Calls{s.engine, dead} }

// CountCalls stores how many calls of a name are open at this instance; a count with a number that is not above the
// newest one is ignored. If the calls of all living instances would be more than most (0 for no bound), it stores
// nothing and returns false. The counts are in a hash, by instance: the number of the count, a space, and how many
// calls there are.
func (a Calls) CountCalls(
	ctx context.Context, name string, number uint64, calls, most int,
) (fits bool, err error) {
	key := a.key(url.QueryEscape(name), "calls")
	err = a.decided(ctx, fence{}, func(c *change) error {
		all, err := a.client.HGetAll(ctx, key).Result()
		c.saw(len(all), "HLEN", key)
		open, newest := calls, uint64(0)
		for id, text := range all {
			c.saw(text, "HGET", key, id)
			var its uint64
			var has int
			_, _ = fmt.Sscan(text, &its, &has) // 0 where it cannot be read
			switch {
			case id == a.id:
				newest = its
			case a.dead(id):
				c.do("HDEL", key, id)
			default:
				open += has
			}
		}
		if fits = most == 0 || open <= most; fits && number > newest {
			c.do("HSET", key, a.id, fmt.Sprint(number, " ", calls))
			c.do("PEXPIRE", key, callsFor.Milliseconds())
		}
		return err
	})
	return fits, err
}

// Keep notes that this instance is in a call of a caller, and stores the state that the next instance needs; with a
// nil body there is to be none. It returns false if another instance that is not dead is in the call.
func (a Calls) Keep(ctx context.Context, c handoff.Caller, call string, body []byte) (mine bool, err error) {
	err = a.alter(ctx, a.callKey(call), attachedFor, func(in string) (string, bool) {
		mine = in == "" || in == a.id || a.dead(in)
		return a.id, mine
	})
	if err != nil || !mine || body == nil {
		return mine && err == nil, err
	}
	name, err := sessions.CallerName(c)
	if err == nil {
		var keep change
		keep.do("HSET", a.attachedKey(name), call, body)
		keep.do("PEXPIRE", a.attachedKey(name), attachedFor.Milliseconds())
		_, err = a.write(ctx, name, keep)
	}
	if err != nil {
		err = errors.Join(err, a.leaveCall(ctx, call))
	}
	return err == nil, err
}

// Drop notes that this instance has left a call. If the call is over, its stored state is dropped too.
func (a Calls) Drop(ctx context.Context, c handoff.Caller, call string, over bool) error {
	ctx, cancel := context.WithTimeout(ctx, a.within)
	defer cancel()
	name, err := sessions.CallerName(c)
	if over && err == nil {
		var drop change
		drop.do("HDEL", a.attachedKey(name), call)
		_, err = a.write(ctx, name, drop)
	}
	return errors.Join(err, a.leaveCall(ctx, call))
}

func (a Calls) leaveCall(ctx context.Context, call string) error {
	return a.alter(ctx, a.callKey(call), 0, func(was string) (string, bool) { return "", was == a.id })
}

// Left returns the stored state of a caller's calls, by call.
func (a Calls) Left(ctx context.Context, c handoff.Caller) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, a.within)
	defer cancel()
	name, err := sessions.CallerName(c)
	if err != nil {
		return nil, err
	}
	left, err := a.client.HGetAll(ctx, a.attachedKey(name)).Result()
	return left, a.fault(err)
}

// attachedKey is the hash with the stored state of a caller's calls.
func (e *engine) attachedKey(name string) string { return e.key(name, "attached") }

// callKey holds the instance that is in a call.
func (e *engine) callKey(call string) string { return e.key("a:"+call, "in") }
