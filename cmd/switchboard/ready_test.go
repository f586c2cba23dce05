package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions"
)

// TestReadiness: the check writes to the store at most once a second, and fails first of all while the process ends.
func TestReadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, away := 0, error(nil)
		var unread error
		r := &readiness{recovered: func() error { return unread }, write: func(ctx context.Context) error {
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
		unread = handoff.Fault(handoff.CodeStoreDown, "", "")
		want(handoff.CodeStoreDown, 0)
		unread = nil
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

// TestNotReadyUnasked: nobody hears that the store can be written before it has answered for the first time.
func TestNotReadyUnasked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &readiness{recovered: func() error { return nil }, write: func(ctx context.Context) error {
			<-ctx.Done() // it hangs
			return ctx.Err()
		}}
		var first sync.WaitGroup
		defer first.Wait()
		first.Go(func() { _ = r.check(t.Context()) })
		synctest.Wait()
		if err := r.check(t.Context()); handoff.CodeOf(err) != handoff.CodeStoreDown {
			t.Errorf("%v, want that the store is down", err)
		}
	})
}

// Logins have a method of that name, so that they cannot be embedded under it.
type loginStore interface{ sessions.Logins }

// unkept is a store that takes something small, and keeps nothing.
type unkept struct{ loginStore }

func (unkept) Kept() error { return errors.New("disk full") }

// TestReadyKept: a store that reports that it cannot persist anything is not written to.
func TestReadyKept(t *testing.T) {
	r := newReadiness(unkept{}, func() error { return nil })
	if err := r.check(t.Context()); handoff.CodeOf(err) != handoff.CodeStoreDown {
		t.Errorf("%v, want that it cannot be written", err)
	}
}

// TestServedOnceItIsKnown: the first request after a restart finds the work of the earlier process, however much that
// is.
func TestServedOnceItIsKnown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	former, err := openStore(t.Context(), plan{StateDir: dir}, zap.NewNop())
	must(t, err)
	const left = 20
	docs := map[string]string{}
	for i := range left {
		id := fmt.Sprint("former-", i)
		e := ledger.Entry{
			Key: ledger.Key("runs of owner", id), Caller: handoff.Caller{Principal: ownerName}, Owner: id, Args: id,
			Status: handoff.StatusCompleted, Accepted: time.Now(), Ended: time.Now(), Facts: ledger.Facts{
				ClientID: id, Target: handoff.Target{Server: "laptop", Thread: "t"},
				Outcome: handoff.OutcomeResult, Spoken: "Done.",
			},
		}
		docs[ledger.HandoffDoc+e.Key] = handoff.Encode(e)
	}
	_, err = former.Commit(t.Context(), handoff.Caller{Principal: ownerName}, ledger.Batch{Now: "1", Put: docs})
	must(t, err)
	must(t, former.Close())
	r := start(t, func(p *plan) { p.StateDir = dir })
	if status, body := r.ask(http.MethodGet, fmt.Sprint("/fleet/handoffs/former-", left-1), ""); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
	if works := r.handoffs(); len(works) != left {
		t.Errorf("%d of %d", len(works), left)
	}
}
