package sessions

import (
	"context"
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
	// embeddedWithin bounds one command. Only a busy machine can make one slow, so refusing earlier would
	// lose work that is merely late.
	embeddedWithin = 20 * time.Second
	// ageEvery is how late a key may expire, or how early one whose life was set in between.
	ageEvery = time.Second
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
	born    time.Time            // Set once
	aged    atomic.Int64         // how long after born the keys last grew older; anybody may advance it
	changes atomic.Uint64        // commands that may have changed something; anybody may add
	saved   uint64               // the changes that the file has. Owned by who holds the store's turn
	failing bool                 // the last save failed. Owned by who holds the store's turn
}

// openEmbedded starts the embedded Redis with what its snapshot holds.
func (s *Store) openEmbedded(ctx context.Context, path string) (err error) {
	e := &embedded{server: miniredis.NewMiniRedis(), log: s.log, counts: s.counts, born: time.Now()}
	if path != "" {
		if e.dir, err = openStateDir(path); err != nil {
			return err
		}
	}
	o := options(&redis.Options{Addr: "127.0.0.1:0", Dialer: dialer(e.server.Dial)}) // a literal is never looked up
	o.PoolSize, o.MaxIdleConns = embeddedPool, poolSize
	o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = embeddedWithin, embeddedWithin, embeddedWithin
	e.client = redis.NewClient(o)
	s.where, s.client, s.keeper, s.within = "the embedded Redis", e.client, e, embeddedWithin
	if err = e.client.Ping(ctx).Err(); err == nil { // the server begins with its first connection
		err = e.load()
	}
	if err != nil {
		_ = e.client.Close() // nothing was written yet
		e.release()
		return err
	}
	e.client.AddHook(watch{e})
	return nil
}

// load restores the snapshot. None is an empty store; one that cannot be read is an error.
func (e *embedded) load() error {
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
		err = e.restore(keys)
	}
	if err != nil {
		return fmt.Errorf("the snapshot %s cannot be used: %w; put a copy of it back, or move it away to begin "+
			"with nothing remembered", file, err)
	}
	return nil
}

// tick writes the snapshot if something changed. A disk that is full now may have room later: it is told
// once, counted, and tried again.
func (e *embedded) tick(context.Context) error {
	if e.changes.Load() == e.saved {
		return nil
	}
	err := e.save()
	switch {
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
func (e *embedded) end(context.Context) error {
	if e.changes.Load() == e.saved {
		return nil
	}
	return e.save()
}

// save writes the snapshot. It waits for nothing but the disk, so nothing cuts it short.
func (e *embedded) save() error {
	if e.dir == nil {
		return nil
	}
	changes := e.changes.Load() // before the dump: what comes while it runs is saved again
	keys, err := e.dump()
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

// age lets every key grow older, at most once in ageEvery. The server could do so itself ([ClockTTL]), but
// does it at each command of each script and walks over all keys then.
//
// [ClockTTL]: https://pkg.go.dev/github.com/alicebob/miniredis/v2#Miniredis.ClockTTL
func (e *embedded) age() {
	now, last := int64(time.Since(e.born)), e.aged.Load()
	if now-last >= int64(ageEvery) && e.aged.CompareAndSwap(last, now) {
		e.server.FastForward(time.Duration(now - last))
	}
}

// watch counts the commands that may change something, after they were applied, and lets keys grow older.
type watch struct{ e *embedded }

// DialHook implements [redis.Hook].
func (watch) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements [redis.Hook].
func (w watch) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		w.e.age()
		err := next(ctx, cmd)
		if name := cmd.Name(); name != "hello" && !w.e.server.IsReadOnlyCommand(name) { // hello: a new connection
			w.e.changes.Add(1)
		}
		return err
	}
}

// ProcessPipelineHook implements [redis.Hook]. It refuses: the connections are unbuffered, so that a server
// which answers the first command and a client which still writes the last would wait for each other.
func (watch) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(context.Context, []redis.Cmder) error { return errPipeline }
}

var errPipeline = errors.New("the embedded Redis takes no pipelines")
