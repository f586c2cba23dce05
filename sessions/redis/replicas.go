package redis

import (
	"context"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"switchboard/handoff"
)

const (
	// replicaWithin is how long a write waits for a replica to have it. It is less than the time of a commit, and more
	// than a busy machine takes.
	replicaWithin = 300 * time.Millisecond
	// replicaGone is the silence after which a replica counts as gone. A replica reports each second what it has; a
	// Redis itself gives up one that hangs after a minute (repl-timeout), in which nothing new could be begun.
	replicaGone = 3 * time.Second
)

// A replica is what a master says of a replica that is connected to it.
type replica struct {
	at     string        // host:port
	silent time.Duration // since it last reported what it has
}

// gone reports whether writes are not made to wait for the replica.
func (r replica) gone() bool { return r.silent > replicaGone }

// replicasOf returns the replicas of a master's INFO that are connected and have received its data.
func replicasOf(info string) (all []replica) {
	for line := range strings.Lines(info) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), ":")
		if n, is := strings.CutPrefix(name, "slave"); !is || strings.Trim(n, "0123456789") != "" {
			continue
		}
		fields := map[string]string{}
		for field := range strings.SplitSeq(text, ",") {
			key, value, _ := strings.Cut(field, "=")
			fields[key] = value
		}
		if lag, err := strconv.Atoi(fields["lag"]); err == nil && fields["state"] == "online" {
			all = append(all, replica{net.JoinHostPort(fields["ip"], fields["port"]), time.Duration(lag) * time.Second})
		}
	}
	return all
}

// followers are the masters that have replicas; a single Redis is one master.
type followers struct {
	mu          sync.Mutex
	hasReplicas map[string]bool // Guarded by mu: by the address of the master, whether it last had replicas
	silent      map[string]bool // Guarded by mu: by its address, the replicas that were logged as gone
}

// followed updates which masters have replicas. A master that does not answer keeps its state.
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
		return // the masters are not known
	}
	e.followers.mu.Lock()
	defer e.followers.mu.Unlock()
	e.followers.hasReplicas = now
}

// hasReplicas reports whether replicas follow a master that are not gone; with an error, as it was last known.
func (e *engine) hasReplicas(ctx context.Context, master *goredis.Client) (bool, error) {
	info, err := master.Info(ctx, "replication").Result()
	if err != nil {
		e.followers.mu.Lock()
		defer e.followers.mu.Unlock()
		return e.followers.hasReplicas[master.Options().Addr], err
	}
	all := replicasOf(info)
	e.logSilent(all)
	return slices.ContainsFunc(all, func(r replica) bool { return !r.gone() }), nil
}

// logSilent logs once which replicas are gone, and once that they are back.
func (e *engine) logSilent(all []replica) {
	f := &e.followers
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range all {
		switch {
		case r.gone() && !f.silent[r.at]:
			if f.silent == nil {
				f.silent = map[string]bool{}
			}
			f.silent[r.at] = true
			e.log.Warn("a replica of the Redis is silent and counts as gone: until it is back, a failover may lose writes",
				zap.String("replica", r.at), zap.Duration("silent", r.silent))
		case !r.gone() && f.silent[r.at]:
			delete(f.silent, r.at)
			e.log.Info("the replica of the Redis counts again", zap.String("replica", r.at))
		}
	}
}

// needsReplica reports whether a write to a master counts only after a replica has it. A master that is not known yet,
// as after a failover, is asked.
func (e *engine) needsReplica(ctx context.Context, master *goredis.Client) bool {
	if !e.shared {
		return false
	}
	at := master.Options().Addr
	e.followers.mu.Lock()
	has, known := e.followers.hasReplicas[at]
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
	if e.followers.hasReplicas == nil {
		e.followers.hasReplicas = map[string]bool{}
	}
	e.followers.hasReplicas[at] = has
	return has
}

// promised runs a script whose effect is told to somebody, so that it must survive the loss of the Redis that ran it.
// Where several instances use a Redis with replicas, at least one replica has the effect when this returns without an
// error. After an error the script may have run.
func (e *engine) promised(ctx context.Context, s *goredis.Script, keys []string, args ...any) *goredis.Cmd {
	if !e.shared {
		return s.Run(ctx, e.client, keys, args...)
	}
	run := func(how func(context.Context, goredis.Scripter, []string, ...any) *goredis.Cmd) *goredis.Cmd {
		ran := goredis.NewCmd(ctx)
		err := e.replicated(ctx, keys[0], func(p goredis.Pipeliner) { ran = how(ctx, p, keys, args...) })
		ran.SetErr(err)
		return ran
	}
	ran := run(s.EvalSha)
	if goredis.HasErrorPrefix(ran.Err(), "NOSCRIPT") {
		ran = run(s.Eval)
	}
	return ran
}

// first runs commands on a key whose effect must be there if that of a later [engine.promised] call is. A replica of a
// single Redis receives writes in order, so it need not be waited for; in a Cluster the keys may have different
// masters, so it is.
func (e *engine) first(ctx context.Context, key string, do func(goredis.Pipeliner)) error {
	if _, cluster := e.client.(*goredis.ClusterClient); cluster {
		return e.replicated(ctx, key, do)
	}
	_, err := e.client.Pipelined(ctx, func(p goredis.Pipeliner) error { do(p); return nil })
	return err
}

// replicated runs commands on a key at its master, and waits for a replica if the master needs one. Commands and WAIT
// use one connection, since WAIT covers only the writes of its own connection.
func (e *engine) replicated(ctx context.Context, key string, do func(goredis.Pipeliner)) error {
	for tries := 0; ; tries++ {
		at := e.sentinels.last()
		master, err := e.master(ctx, key)
		if err != nil {
			return err
		}
		if !e.needsReplica(ctx, master) {
			_, err := e.client.Pipelined(ctx, func(p goredis.Pipeliner) error { do(p); return nil })
			return err
		}
		var replicas *goredis.Cmd
		_, err = master.Pipelined(ctx, func(p goredis.Pipeliner) error {
			do(p)
			replicas = p.Do(ctx, "WAIT", 1, replicaWithin.Milliseconds())
			return nil
		})
		switch {
		case goredis.HasErrorPrefix(err, "MOVED") && tries < maxRedirects:
			// This has the client look up the masters again.
			_ = e.masters(ctx, func(context.Context, *goredis.Client) error { return nil })
			continue
		case err == nil && replicas.Val() == int64(0):
			if has, err := e.hasReplicas(ctx, master); err == nil && !has && e.sentinels.still(ctx, at) {
				return nil // the replicas are gone
			}
			e.counts.unconfirmed.Add(1)
			return handoff.StoreFault(e.where, handoff.WhyStoreCopy, "no replica had it within "+replicaWithin.String())
		}
		return err
	}
}
