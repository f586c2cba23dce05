package sessions

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
)

const (
	snapshotFile = "snapshot.json"
	dumpWithin   = 10 * time.Second // a snapshot of a large store; nobody waits for it
	// embeddedPool bounds the connections, which cost two goroutines each while they are used. It is so
	// large that nobody queues for one: the client's timers for that are shared by the whole process,
	// and taking one from one test bubble into another ends the process.
	embeddedPool = 4096
)

// embedded is a Redis inside the process with its snapshot file.
type embedded struct {
	server  *miniredis.Miniredis // Set once
	client  *redis.Client        // Set once
	dir     *stateDir            // Set once; nil keeps nothing
	log     *zap.Logger          // Set once
	counts  *counters            // Set once
	changes atomic.Uint64        // commands that may have changed something; anybody may add
	saved   uint64               // the changes that the file has. Owned by who holds the store's turn
	failing bool                 // the last save failed. Owned by who holds the store's turn
}

//go:embed dump.lua
var dumpSource string

var dumpScript = redis.NewScript(dumpSource)

// openEmbedded starts the embedded Redis with what its snapshot holds.
func (s *Store) openEmbedded(ctx context.Context, path string) (err error) {
	e := &embedded{server: miniredis.NewMiniRedis(), log: s.log, counts: s.counts}
	if path != "" {
		if e.dir, err = openStateDir(path); err != nil {
			return err
		}
	}
	e.server.ClockTTL(true)
	o := options(&redis.Options{Addr: "127.0.0.1:0", Dialer: dialer(e.server.Dial)}) // a literal is never looked up
	o.PoolSize, o.MaxIdleConns = embeddedPool, poolSize
	e.client = redis.NewClient(o)
	s.where, s.client, s.keeper = "the embedded Redis", e.client, e
	if err = e.load(ctx); err != nil {
		_ = e.client.Close() // nothing was written yet
		e.release()
		return err
	}
	e.client.AddHook(watch{e})
	return nil
}

// load restores the snapshot. None is an empty store; one that cannot be read is an error.
func (e *embedded) load(ctx context.Context) error {
	if e.dir == nil {
		return nil
	}
	data, err := e.dir.root.ReadFile(snapshotFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	file := filepath.Join(e.dir.path, snapshotFile)
	if err != nil {
		return fmt.Errorf("read the snapshot %s: %w", file, err)
	}
	keys, err := decodeSnapshot(data)
	if err == nil {
		err = restore(ctx, e.client, keys)
	}
	if err != nil {
		return fmt.Errorf("the snapshot %s cannot be used: %w; put a copy of it back, or move it away to begin "+
			"with nothing remembered", file, err)
	}
	return nil
}

// restore writes keys into an empty Redis. Those that have expired meanwhile are left out.
func restore(ctx context.Context, client *redis.Client, keys []savedKey) error {
	pipe := client.Pipeline()
	for _, k := range keys {
		if k.Expires != 0 && k.Expires <= time.Now().UnixMilli() {
			continue
		}
		command := map[string]string{"string": "SET", "hash": "HSET", "list": "RPUSH", "set": "SADD", "zset": "ZADD"}[k.Type]
		args := []any{command, string(k.Key)}
		for i, v := range k.Values {
			args = append(args, string(v))
			if k.Type == "zset" && i%2 == 1 { // ZADD wants the score first
				n := len(args)
				args[n-2], args[n-1] = args[n-1], args[n-2]
			}
		}
		pipe.Do(ctx, args...)
		if k.Expires != 0 {
			pipe.PExpireAt(ctx, string(k.Key), time.UnixMilli(k.Expires))
		}
	}
	if pipe.Len() == 0 {
		return nil
	}
	_, err := pipe.Exec(ctx)
	return err
}

// dump reads every key, all of one moment.
func dump(ctx context.Context, client *redis.Client) ([]savedKey, error) {
	now := time.Now()
	rows, err := dumpScript.EvalRO(ctx, client, nil).Slice()
	if err != nil {
		return nil, err
	}
	keys := make([]savedKey, 0, len(rows))
	for _, row := range rows {
		k, err := parseRow(row, now)
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// parseRow reads one row of dump.lua.
func parseRow(row any, now time.Time) (savedKey, error) {
	bad := fmt.Errorf("unexpected row %T of the dump", row)
	parts, ok := row.([]any)
	if !ok || len(parts) != 4 {
		return savedKey{}, bad
	}
	key, okKey := parts[0].(string)
	kind, okKind := parts[1].(string)
	ttl, okTTL := parts[2].(int64)
	values, okValues := parts[3].([]any)
	if !okKey || !okKind || !okTTL || !okValues {
		return savedKey{}, bad
	}
	k := savedKey{Key: text(key), Type: kind, Values: make([]text, len(values))}
	if ttl >= 0 {
		k.Expires = now.Add(time.Duration(ttl) * time.Millisecond).UnixMilli()
	}
	for i, v := range values {
		value, ok := v.(string)
		if !ok {
			return savedKey{}, bad
		}
		k.Values[i] = text(value)
	}
	return k, nil
}

// tick writes the snapshot if something changed. A disk that is full now may have room later: it is told
// once, counted, and tried again.
func (e *embedded) tick(ctx context.Context) error {
	if e.changes.Load() == e.saved {
		return nil
	}
	err := e.save(ctx)
	switch {
	case err != nil && ctx.Err() != nil: // the end writes another one
	case err != nil && !e.failing:
		e.failing = true
		e.log.Error("snapshot not written", zap.Error(err))
	case err == nil && e.failing:
		e.failing = false
		e.log.Info("snapshot written again")
	}
	return nil
}

// end writes the last snapshot.
func (e *embedded) end(ctx context.Context) error {
	if e.changes.Load() == e.saved {
		return nil
	}
	return e.save(ctx)
}

func (e *embedded) save(ctx context.Context) error {
	if e.dir == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, dumpWithin)
	defer cancel()
	changes := e.changes.Load() // before the dump: what comes while it runs is saved again
	keys, err := dump(ctx, e.client)
	if err == nil {
		var data []byte
		if data, err = encodeSnapshot(keys); err == nil {
			err = e.dir.replace(snapshotFile, data)
		}
	}
	if err != nil {
		e.counts.saveErrors.Add(1)
		return fmt.Errorf("write the snapshot %s: %w", filepath.Join(e.dir.path, snapshotFile), err)
	}
	e.counts.saves.Add(1)
	e.saved = changes
	return nil
}

func (e *embedded) release() {
	e.server.Close()
	if e.dir != nil {
		e.dir.close()
	}
}

// watch counts the commands that may change something, after they were applied.
type watch struct{ e *embedded }

// DialHook implements [redis.Hook].
func (watch) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements [redis.Hook].
func (w watch) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if name := cmd.Name(); name != "hello" && !w.e.server.IsReadOnlyCommand(name) { // hello: a new connection
			w.e.changes.Add(1)
		}
		return err
	}
}

// ProcessPipelineHook implements [redis.Hook].
func (w watch) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		w.e.changes.Add(1)
		return err
	}
}
