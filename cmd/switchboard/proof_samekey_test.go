package main

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchboard/handoff"
)

// TestProofSameKey: work that is repeated under its Idempotency-Key returns the first record, after a restart and after
// a kill, heard or not. Work that never began runs once. Other words under the same key are refused.
func TestProofSameKey(t *testing.T) { t.Parallel(); onAStore(t, proofSameKey) }

func proofSameKey(t *testing.T, store string) {
	f, s, c := farmed(t, store)
	body := func(n int) string { return fmt.Sprintf(`{"server":"bigpc","prompt":"job %d takes 0"}`, n) }
	const heard, unheard = 1, 2
	ids := map[int]string{}
	for _, n := range []int{heard, unheard} {
		ids[n] = c.keyed(fmt.Sprint("key ", n), body(n)).ID
		c.outcome(ids[n])
	}
	c.post("/fleet/handoffs/"+ids[heard]+"/heard", "{}")
	hangs := c.hand(`{"server":"bigpc","thread_id":"new","prompt":"job 3 hangs"}`)
	steer := "/fleet/handoffs/" + hangs + "/steer"
	until(t, "the work to run", func() bool { return f.turns()["job 3 hangs"] == 1 })
	status, first := c.again(steer, "steered", `{"prompt":"job 5 hangs"}`)
	if status != http.StatusAccepted {
		t.Fatalf("%d %+v", status, first)
	}
	const behind = `{"server":"bigpc","mode":"next","prompt":"job 4 takes 0"}`
	waits := c.keyed("key 4", behind).ID
	for life, end := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL} {
		c = s.after(c, end)
		for n, id := range ids {
			rec := c.keyed(fmt.Sprint("key ", n), body(n))
			want := map[bool]handoff.Status{true: handoff.StatusDelivered, false: handoff.StatusCompleted}[n == heard]
			if len(c.whole(id).Items) == 0 {
				t.Errorf("life %d, what %d did is gone", life, n)
			}
			if rec.ID != id || rec.Outcome != handoff.OutcomeResult || rec.State != want || !strings.Contains(rec.Text, fmt.Sprintf("job %d is done", n)) || rec.Error != nil {
				t.Errorf("life %d, %d sent again is %+v, %+v", life, n, rec, rec.Error)
			}
			if status, _ := c.again("/fleet/handoffs", fmt.Sprint("key ", n), body(9)); status != http.StatusConflict {
				t.Errorf("life %d, other words under the key of %d: %d", life, n, status)
			}
		}
		if status, rec := c.again(steer, "steered", `{"prompt":"job 5 hangs"}`); status != http.StatusAccepted || rec.ID != first.ID {
			t.Errorf("life %d, steered again: %d %+v", life, status, rec)
		}
		if life == 0 { // it waited, and was never begun: now it is
			c.post("/fleet/handoffs/"+hangs+"/stop", "{}")
			c.outcome(hangs)
			waits = c.keyed("key 4", behind).ID
			if rec := c.outcome(waits); rec.Outcome != handoff.OutcomeResult {
				t.Errorf("what was never begun, sent again: %+v, %+v", rec, rec.Error)
			}
		}
		until(t, "the outcome of what was begun then, sent again", func() bool { // it may still be being written
			rec := c.keyed("key 4", behind)
			return rec.ID == waits && rec.Outcome == handoff.OutcomeResult
		})
	}
	for _, n := range []int{heard, unheard, 4} {
		if ran := f.turns()[fmt.Sprintf("job %d takes 0", n)]; ran != 1 {
			t.Errorf("job %d ran %d times", n, ran)
		}
	}
	f.check(t)
}

// TestProofKeyOfAFullStore: work that was refused because the store was full runs once when it is repeated under its
// key, in the same process and after a restart.
func TestProofKeyOfAFullStore(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]func(*testing.T, *site) outage{"redis": redisGone, "sqlite": fileLocked} {
		t.Run(name, func(t *testing.T) { t.Parallel(); proofKeyOfAFullStore(t, store) })
	}
}

func proofKeyOfAFullStore(t *testing.T, store func(*testing.T, *site) outage) {
	f := newFarm(t)
	s := newSite(t, f.voice.URL, "", f.at)
	full := store(t, s)
	s.redis = full.url
	c := s.start()
	c.up("bigpc")
	body := func(n int) string { return fmt.Sprintf(`{"server":"bigpc","prompt":"job %d takes 0"}`, n) }
	c.outcome(c.keyed("key 0", body(0)).ID) // the session is there
	full.begin()
	for n := 1; n <= 2; n++ {
		if status, rec := c.again("/fleet/handoffs", fmt.Sprint("key ", n), body(n)); status != http.StatusServiceUnavailable {
			t.Errorf("job %d with a store that takes nothing: %d %+v", n, status, rec)
		}
	}
	full.end()
	again := func(n int) {
		t.Helper()
		for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) { // a store that is back may need a moment
			status, rec := c.again("/fleet/handoffs", fmt.Sprint("key ", n), body(n))
			if status == http.StatusAccepted {
				if rec := c.outcome(rec.ID); rec.Outcome != handoff.OutcomeResult {
					t.Errorf("job %d sent again: %+v, %+v", n, rec, rec.Error)
				}
				return
			}
			if time.Now().After(end) {
				t.Fatalf("job %d sent again: %d %+v", n, status, rec)
			}
		}
	}
	again(1)
	c = s.after(c, syscall.SIGKILL)
	again(1)
	again(2)
	for n := range 3 {
		if ran := f.turns()[fmt.Sprintf("job %d takes 0", n)]; ran != 1 {
			t.Errorf("job %d ran %d times", n, ran)
		}
	}
}

// keyed is again for work that must be taken.
func (c *child) keyed(key, body string) handoff.Record {
	c.t.Helper()
	status, rec := c.again("/fleet/handoffs", key, body)
	if status != http.StatusAccepted {
		c.t.Fatalf("%s under %s: %d %+v", body, key, status, rec.Error)
	}
	return rec
}
