package redis

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"switchboard/handoff/ledger"
)

// About is the part of the configuration and state of a Redis on which our promises depend. For a Cluster each field
// is the worst of its masters.
type About struct {
	Ahead    time.Duration // how far its clock is ahead of that of this machine; negative when behind
	Journal  bool          // it writes each change to a file within a second (appendonly)
	Failing  bool          // the newest write to that file, or the newest snapshot, failed
	Evicts   bool          // it evicts keys when its memory is full
	Replica  bool          // it is a replica, which refuses writes
	Replicas int           // how many replicas follow it
	Silent   string        // those of them that count as gone: "10.0.0.6:6379 for 7s, ..."
}

// A View is what a program beside the instances sees of a Redis.
type View struct {
	Holder    string        // of the lease: "host:process", [Together], or "" for none
	About     About         // its set-up, unless there is an Untold
	Untold    error         // why it does not tell its set-up: a managed Redis may refuse to
	Instances []ledger.Beat // those that share it and are alive; only where Config.Shared is set
}

// Look returns a View of a Redis. It writes nothing. Its errors are those of [Open].
func Look(ctx context.Context, cfg Config) (v View, err error) {
	s := newStore(cfg)
	if err := s.connect(ctx, cfg.URL); err != nil {
		return v, err
	}
	defer func() { _ = s.hangUp() }() // nothing was written
	if err := s.needsPeers(); err != nil {
		return v, err
	}
	values, err := s.client.MGet(ctx, s.leaseKey(), s.epochKey()).Result() // both keys, as the lease script uses them
	if err != nil {
		return v, fmt.Errorf("read the lease %s on %s: %w", s.leaseKey(), s.where, s.needsCluster(err))
	}
	value, _ := values[0].(string) // "" where there is none
	v.Holder, _, _ = strings.Cut(value, " ")
	v.About, v.Untold = s.about(ctx)
	if cfg.Shared {
		v.Instances, err = s.alive(ctx)
	}
	return v, err
}

// about returns the About of all masters together.
func (e *engine) about(ctx context.Context) (About, error) {
	var mu sync.Mutex
	var all []About
	err := e.masters(ctx, func(ctx context.Context, master *goredis.Client) error {
		a, err := e.inspect(ctx, master)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, a)
		return err
	})
	if err != nil || len(all) == 0 {
		return About{}, err
	}
	worst := all[0]
	for _, a := range all[1:] {
		if a.Ahead.Abs() > worst.Ahead.Abs() {
			worst.Ahead = a.Ahead
		}
		worst.Journal = worst.Journal && a.Journal
		worst.Failing, worst.Evicts = worst.Failing || a.Failing, worst.Evicts || a.Evicts
		worst.Replicas = min(worst.Replicas, a.Replicas)
		worst.Silent = strings.Trim(worst.Silent+", "+a.Silent, ", ")
	}
	return worst, nil
}

func (e *engine) inspect(ctx context.Context, master *goredis.Client) (About, error) {
	sent := time.Now()
	there, err := master.Time(ctx).Result()
	if err != nil {
		return About{}, fmt.Errorf("read the clock of the %s: %w", e.where, err)
	}
	between := sent.Add(time.Since(sent) / 2)
	info, err := master.Info(ctx).Result()
	if err != nil {
		return About{}, fmt.Errorf("ask the %s about itself: %w", e.where, err)
	}
	a := aboutOf(info)
	a.Ahead = there.Sub(between)
	return a, nil
}

// alive returns the instances that share the Redis and are alive: it reads their beats twice and returns those that
// beat in between.
func (s *Store) alive(ctx context.Context) ([]ledger.Beat, error) {
	before, err := s.Homes().Beats(ctx)
	if err != nil {
		return nil, err
	}
	select {
	case <-time.After(beatsApart):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	now, err := s.Homes().Beats(ctx)
	return slices.DeleteFunc(now, func(b ledger.Beat) bool {
		return slices.ContainsFunc(before, func(was ledger.Beat) bool { return was.ID == b.ID && was.N == b.N })
	}), err
}

// beatsApart is the time between the two reads, in which each living instance beats.
const beatsApart = 2 * time.Second

// aboutOf parses the answer to INFO.
func aboutOf(info string) (a About) {
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields[name] = value
	}
	bad := func(name string) bool { return fields[name] != "" && fields[name] != "ok" }
	a.Journal = fields["aof_enabled"] == "1"
	a.Failing = bad("aof_last_write_status") || bad("rdb_last_bgsave_status")
	policy := fields["maxmemory_policy"] // a managed Redis may leave it out
	a.Evicts = fields["maxmemory"] != "0" && policy != "" && policy != "noeviction"
	a.Replica = fields["role"] == "slave"
	_, _ = fmt.Sscan(fields["connected_slaves"], &a.Replicas) // 0 where it is missing
	for _, r := range replicasOf(info) {
		if r.gone() {
			a.Silent = strings.TrimPrefix(fmt.Sprintf("%s, %s for %s", a.Silent, r.at, r.silent), ", ")
		}
	}
	return a
}
