package redis

import (
	"context"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"switchboard/handoff"
)

// replicaWithin is how long a write that was promised waits for a replica to have it.
const replicaWithin = 100 * time.Millisecond

// followed looks whether replicas follow the Redis. One that says nothing of them is as it was.
func (e *engine) followed(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, e.within)
	defer cancel()
	role, err := e.client.Do(ctx, "ROLE").Slice() // "master", an offset, the replicas
	if err != nil || len(role) < 3 {
		return
	}
	if replicas, ok := role[2].([]any); ok {
		e.replicas.Store(len(replicas) > 0)
	}
}

// promised runs a script whose effect somebody is told of, so that it must outlive the Redis that ran it: where several
// instances use a Redis that has replicas, one of these has it when this returns without an error. With an error the
// script may have run.
func (e *engine) promised(ctx context.Context, s *goredis.Script, keys []string, args ...any) *goredis.Cmd {
	if !e.shared || !e.replicas.Load() {
		return s.Run(ctx, e.client, keys, args...)
	}
	ran, have := e.runAndWait(ctx, s.EvalSha, keys, args)
	if goredis.HasErrorPrefix(ran.Err(), "NOSCRIPT") {
		ran, have = e.runAndWait(ctx, s.Eval, keys, args)
	}
	switch {
	case ran.Err() != nil:
	case have.Err() != nil:
		ran.SetErr(have.Err())
	case have.Val() == int64(0):
		ran.SetErr(handoff.Fault(handoff.CodeUnreachable, e.where, "no replica had it within "+replicaWithin.String()))
	}
	return ran
}

// runAndWait runs a script and waits for a replica, on one connection: that one alone is waited for.
func (e *engine) runAndWait(
	ctx context.Context, run func(context.Context, goredis.Scripter, []string, ...any) *goredis.Cmd, keys []string, args []any,
) (ran, have *goredis.Cmd) {
	_, _ = e.client.Pipelined(ctx, func(p goredis.Pipeliner) error { // each command has its own error
		ran, have = run(ctx, p, keys, args...), p.Do(ctx, "WAIT", 1, replicaWithin.Milliseconds())
		return nil
	})
	return ran, have
}
