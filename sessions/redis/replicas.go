package redis

import (
	"context"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"switchboard/handoff"
)

// replicaWithin is how long a write that was promised waits for a replica to have it.
const replicaWithin = 100 * time.Millisecond

// followers tell which masters have replicas that follow them; one Redis is one master.
type followers struct {
	mu sync.Mutex
	of map[string]bool // Guarded by mu: by the address of the master, as it was seen last
}

// followed looks which masters have replicas. One that says nothing of them is as it was.
func (e *engine) followed(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, e.within)
	defer cancel()
	var mu sync.Mutex
	now := map[string]bool{}
	err := e.masters(ctx, func(ctx context.Context, master *goredis.Client) error {
		has, err := e.hasReplicas(ctx, master)
		mu.Lock()
		defer mu.Unlock()
		now[master.Options().Addr] = has
		return err
	})
	if err != nil && len(now) == 0 {
		return // it is not known who the masters are
	}
	e.followers.mu.Lock()
	defer e.followers.mu.Unlock()
	e.followers.of = now
}

// hasReplicas asks a master whether replicas follow it.
func (e *engine) hasReplicas(ctx context.Context, master *goredis.Client) (bool, error) {
	role, err := master.Do(ctx, "ROLE").Slice() // "master", an offset, the replicas
	if err == nil && len(role) > 2 {
		if replicas, ok := role[2].([]any); ok {
			return len(replicas) > 0, nil
		}
	}
	e.followers.mu.Lock()
	defer e.followers.mu.Unlock()
	return e.followers.of[master.Options().Addr], err
}

// mustBeHad reports whether a replica must have what a master was told before it counts. A master that took the place
// of another a moment ago is asked.
func (e *engine) mustBeHad(ctx context.Context, master *goredis.Client) bool {
	if !e.shared {
		return false
	}
	at := master.Options().Addr
	e.followers.mu.Lock()
	has, known := e.followers.of[at]
	e.followers.mu.Unlock()
	if known {
		return has
	}
	has, err := e.hasReplicas(ctx, master)
	if err != nil && waitable(err) {
		return has
	}
	e.followers.mu.Lock()
	defer e.followers.mu.Unlock()
	if e.followers.of == nil {
		e.followers.of = map[string]bool{}
	}
	e.followers.of[at] = has
	return has
}

// promised runs a script whose effect somebody is told of, so that it must outlive the Redis that ran it: where several
// instances use a Redis that has replicas, one of these has it when this returns without an error. With an error the
// script may have run.
func (e *engine) promised(ctx context.Context, s *goredis.Script, keys []string, args ...any) *goredis.Cmd {
	if !e.shared {
		return s.Run(ctx, e.client, keys, args...)
	}
	run := func(how func(context.Context, goredis.Scripter, []string, ...any) *goredis.Cmd) *goredis.Cmd {
		ran := goredis.NewCmd(ctx)
		err := e.had(ctx, keys[0], func(p goredis.Pipeliner) { ran = how(ctx, p, keys, args...) })
		ran.SetErr(err)
		return ran
	}
	ran := run(s.EvalSha)
	if goredis.HasErrorPrefix(ran.Err(), "NOSCRIPT") {
		ran = run(s.Eval)
	}
	return ran
}

// first runs commands on a key before what is promised of another one. A replica that has what one Redis was told has
// what it was told before; the masters of a Cluster have replicas of their own, so there it is waited for.
func (e *engine) first(ctx context.Context, key string, do func(goredis.Pipeliner)) error {
	if _, apart := e.client.(*goredis.ClusterClient); apart {
		return e.had(ctx, key, do)
	}
	_, err := e.client.Pipelined(ctx, func(p goredis.Pipeliner) error { do(p); return nil })
	return err
}

// firstScript runs a script as first does commands.
func (e *engine) firstScript(ctx context.Context, s *goredis.Script, keys []string, args ...any) *goredis.Cmd {
	if _, apart := e.client.(*goredis.ClusterClient); apart {
		return e.promised(ctx, s, keys, args...)
	}
	return s.Run(ctx, e.client, keys, args...)
}

// had runs commands on a key at its master, and waits for a replica where there must be one, on one connection: what
// came by that one alone is waited for.
func (e *engine) had(ctx context.Context, key string, do func(goredis.Pipeliner)) error {
	for tries := 0; ; tries++ {
		master, err := e.master(ctx, key)
		if err != nil {
			return err
		}
		if !e.mustBeHad(ctx, master) {
			_, err := e.client.Pipelined(ctx, func(p goredis.Pipeliner) error { do(p); return nil })
			return err
		}
		var have *goredis.Cmd
		_, err = master.Pipelined(ctx, func(p goredis.Pipeliner) error {
			do(p)
			have = p.Do(ctx, "WAIT", 1, replicaWithin.Milliseconds())
			return nil
		})
		switch {
		case goredis.HasErrorPrefix(err, "MOVED") && tries < maxRedirects:
			_ = e.masters(ctx, func(context.Context, *goredis.Client) error { return nil }) // reads anew who they are
			continue
		case err == nil && have.Val() == int64(0):
			return handoff.Fault(handoff.CodeUnreachable, e.where, "no replica had it within "+replicaWithin.String())
		}
		return err
	}
}
