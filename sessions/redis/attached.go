package redis

import (
	"context"
	"errors"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
)

var (
	attachScript = script("attach")
	detachScript = fenced("clear")
)

// attachedFor is longer than a call of a voice model's server can last.
const attachedFor = 24 * time.Hour

// Attached keeps, for several instances, which one is in which call of the voice model's server, and for each caller
// what the instance that has them next needs to go on there. It is safe for concurrent use.
type Attached struct {
	*engine
	dead func(id string) bool // Set once
}

// Attached returns what keeps that. dead reports whether an instance is certainly gone.
func (s *Store) Attached(dead func(id string) bool) Attached { return Attached{s.engine, dead} }

// Keep notes that this instance is in a call of a caller, and what the next one needs; nil: there is to be none. False:
// another instance is in it.
func (a Attached) Keep(ctx context.Context, c handoff.Caller, call string, body []byte) (bool, error) {
	there, err := a.in(ctx, call, "")
	if err == nil && there != a.id && a.dead(there) {
		there, err = a.in(ctx, call, there)
	}
	if err != nil || there != a.id || body == nil {
		return err == nil && there == a.id, err
	}
	name, err := sessions.CallerName(c)
	if err == nil {
		err = a.fault(a.runFenced(ctx, name, setScript, []string{a.attachedKey(name)}, call, body,
			attachedFor.Milliseconds()).Err())
	}
	if err != nil {
		err = errors.Join(err, a.leaveCall(ctx, call))
	}
	return err == nil, err
}

func (a Attached) in(ctx context.Context, call, dead string) (there string, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.within)
	defer cancel()
	there, err = attachScript.Run(ctx, a.client, []string{a.callKey(call)}, a.id, dead, attachedFor.Milliseconds()).Text()
	return there, a.fault(err)
}

// Drop notes that this instance is in a call no more. over: nor is another one to be.
func (a Attached) Drop(ctx context.Context, c handoff.Caller, call string, over bool) error {
	ctx, cancel := context.WithTimeout(ctx, a.within)
	defer cancel()
	name, err := sessions.CallerName(c)
	if over && err == nil {
		err = a.fault(a.runFenced(ctx, name, detachScript, []string{a.attachedKey(name)}, call).Err())
	}
	return errors.Join(err, a.leaveCall(ctx, call))
}

func (a Attached) leaveCall(ctx context.Context, call string) error {
	return a.fault(releaseScript.Run(ctx, a.client, []string{a.callKey(call)}, a.id).Err())
}

// Left returns what was kept of a caller's calls, by call.
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

// attachedKey names what is kept of a caller's calls.
func (e *engine) attachedKey(name string) string { return e.key(name, "attached") }

// callKey names which instance is in a call.
func (e *engine) callKey(call string) string { return e.key("a:"+call, "in") }
