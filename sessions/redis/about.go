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

// Inspect returns the About of a Redis. It writes nothing. Its errors are those of [Open].
func Inspect(ctx context.Context, cfg Config) (About, error) {
	s := newStore(cfg)
	if err := s.connect(ctx, cfg.URL); err != nil {
		return About{}, err
	}
	defer func() { _ = s.hangUp() }() // nothing was written
	var mu sync.Mutex
	var all []About
	err := s.masters(ctx, func(ctx context.Context, master *goredis.Client) error {
		a, err := s.inspect(ctx, master)
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

// Instances returns the instances that share a Redis and are alive: it reads their beats twice and returns those that
// beat in between. It writes nothing. Its errors are those of [Open].
func Instances(ctx context.Context, cfg Config) ([]ledger.Beat, error) {
	s := newStore(cfg)
	if err := s.connect(ctx, cfg.URL); err != nil {
		return nil, err
	}
	defer func() { _ = s.hangUp() }() // nothing was written
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
