package redis

import (
	"context"
	"errors"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
)

var attachScript = script("attach")

// attachedFor is longer than a call at a voice model's server can last.
const attachedFor = 24 * time.Hour

// Attached keeps, for several instances, which of them is in which call of the voice model's server. For each caller
// it also keeps the state that another instance needs to go on in their calls. It is safe for concurrent use.
type Attached struct {
	*engine
	dead func(id string) bool // Set once; reports whether an instance is certainly gone
}

// Attached returns the [Attached] of a store. dead reports whether an instance is certainly gone.
func (s *Store) Attached(dead func(id string) bool) Attached { return Attached{s.engine, dead} }

// Keep notes that this instance is in a call of a caller, and stores the state that the next instance needs; with a
// nil body there is to be none. It returns false if another instance is in the call.
func (a Attached) Keep(ctx context.Context, c handoff.Caller, call string, body []byte) (bool, error) {
	in, err := a.enterCall(ctx, call, "")
	if err == nil && in != a.id && a.dead(in) {
		in, err = a.enterCall(ctx, call, in)
	}
	if err != nil || in != a.id || body == nil {
		return err == nil && in == a.id, err
	}
	name, err := sessions.CallerName(c)
	if err == nil {
		var keep change
		keep.do("HSET", a.attachedKey(name), call, body)
		keep.do("PEXPIRE", a.attachedKey(name), attachedFor.Milliseconds())
		_, err = a.write(ctx, name, keep, false)
	}
	if err != nil {
		err = errors.Join(err, a.leaveCall(ctx, call))
	}
	return err == nil, err
}

// enterCall notes that this instance is in a call unless another one is that is not dead. It returns the instance that
// is in the call then.
func (a Attached) enterCall(ctx context.Context, call, dead string) (id string, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.within)
	defer cancel()
	id, err = attachScript.Run(ctx, a.client, []string{a.callKey(call)}, a.id, dead, attachedFor.Milliseconds()).Text()
	return id, a.fault(err)
}

// Drop notes that this instance has left a call. If the call is over, its stored state is dropped too.
func (a Attached) Drop(ctx context.Context, c handoff.Caller, call string, over bool) error {
	ctx, cancel := context.WithTimeout(ctx, a.within)
	defer cancel()
	name, err := sessions.CallerName(c)
	if over && err == nil {
		var drop change
		drop.do("HDEL", a.attachedKey(name), call)
		_, err = a.write(ctx, name, drop, false)
	}
	return errors.Join(err, a.leaveCall(ctx, call))
}

func (a Attached) leaveCall(ctx context.Context, call string) error {
	return a.fault(releaseScript.Run(ctx, a.client, []string{a.callKey(call)}, a.id).Err())
}

// Left returns the stored state of a caller's calls, by call.
func (a Attached) Left(ctx context.Context, c handoff.Caller) (map[string]string, error) {
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
