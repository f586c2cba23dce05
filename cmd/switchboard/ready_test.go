package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
)

// TestReadiness: the store is written to find out, at most once a second; the end of the process comes first.
func TestReadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, away := 0, error(nil)
		r := &readiness{write: func(ctx context.Context) error {
			asked++
			if away == nil {
				return nil
			}
			<-ctx.Done() // it hangs
			return away
		}}
		want := func(code handoff.Code, times int) {
			t.Helper()
			err := r.check(t.Context())
			if (err == nil) != (code == "") || err != nil && (handoff.AsError(err).Code != code || handoff.AsError(err).Meaning().HTTP != http.StatusServiceUnavailable) || asked != times {
				t.Errorf("%v after %d writes, want %q after %d", err, asked, code, times)
			}
		}
		want("", 1)
		want("", 1)
		away = errors.New("disk full")
		time.Sleep(readyFresh)
		want(handoff.CodeStoreDown, 2)
		want(handoff.CodeStoreDown, 2)
		away = nil
		time.Sleep(readyFresh)
		want("", 3)
		r.stopping.Store(true)
		want(handoff.CodeShutdown, 3)
	})
}

// TestReadyWithoutStore: the service says that it is not ready when its Redis is gone, and that it is when it
// is back; it is healthy all the while.
func TestReadyWithoutStore(t *testing.T) {
	store := newRedis(t)
	s := newSite(t, "ws://127.0.0.1:1/v1/realtime", store.url(), map[string]string{"away": "ws://127.0.0.1:1"})
	c := s.start()
	ask := func(path string) (int, handoff.Code) {
		resp, err := http.Get(c.base + path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		var body struct{ Error struct{ Code handoff.Code } }
		_ = json.NewDecoder(resp.Body).Decode(&body)
		return resp.StatusCode, body.Error.Code
	}
	if status, _ := ask("/readyz"); status != http.StatusOK {
		t.Fatalf("not ready: %d", status)
	}
	store.kill()
	until(t, "it to say why it is not ready", func() bool {
		status, code := ask("/readyz")
		return status == http.StatusServiceUnavailable && code == handoff.CodeStoreDown
	})
	if status, _ := ask("/healthz"); status != http.StatusOK {
		t.Errorf("not healthy: %d", status)
	}
}
