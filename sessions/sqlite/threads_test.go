package sqlite_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff/threads"
	"switchboard/sessions/sessionstest"
	"switchboard/sessions/sqlite"
)

func TestThreads(t *testing.T) {
	sessionstest.TestThreads(t, func(t *testing.T) threads.Store {
		return open(t, sqlite.Config{Dir: t.TempDir()}).Threads()
	})
}

// TestThreadsOutliveTheProcess: acknowledged steps are there when the file is opened again.
func TestThreadsOutliveTheProcess(t *testing.T) {
	dir := t.TempDir()
	s := open(t, sqlite.Config{Dir: dir})
	now := time.Now().Truncate(time.Millisecond).UTC()
	item := threads.Item{From: "model", JSON: json.RawMessage(`{"b": 1, "a": 2}`)}
	for _, step := range []threads.Step{
		threads.Create{Owner: "helper", Thread: "t", At: now},
		threads.Claim{Owner: "helper", Thread: "t", Turn: "a", Items: []threads.Item{item}, At: now},
	} {
		_, err := s.Threads().Advance(t.Context(), step)
		must(t, err)
	}
	must(t, s.Close())
	r, err := open(t, sqlite.Config{Dir: dir}).Threads().Read(t.Context(), "helper", "t")
	if err != nil || len(r.Items) != 1 || string(r.Items[0].JSON) != string(item.JSON) ||
		r.Thread.Active != "a" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestThreadsAge: unused threads are forgotten, in fake time.
func TestThreadsAge(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		const life = time.Hour // the store ticks each second
		s := open(t, sqlite.Config{Dir: dir, ThreadsFor: life})
		ctx, cancel := context.WithCancel(t.Context())
		var work sync.WaitGroup
		work.Go(func() { _ = s.Run(ctx) })
		sessionstest.TestThreadsAge(t, s.Threads(), life, time.Sleep, time.Now)
		cancel()
		work.Wait()
	})
}
