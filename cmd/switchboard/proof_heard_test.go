package main

import (
	"fmt"
	"syscall"
	"testing"

	"switchboard/handoff"
)

// TestProofHeard: what somebody was answered to be heard is heard in the next life too, however soon Switchboard was
// killed: over the fleet API, and by whoever read a response that was made in the background.
func TestProofHeard(t *testing.T) { t.Parallel(); onAStore(t, proofHeard) }

func proofHeard(t *testing.T, store string) {
	f := newFarm(t)
	s := newSite(t, f.voice.URL, store, f.at)
	c := s.start()
	for n := range scale(1, 10) {
		c.up("bigpc")
		id := c.hand(fmt.Sprintf(`{"server":"bigpc","prompt":"job %d takes 0"}`, n))
		c.outcome(id)
		c.post("/fleet/handoffs/"+id+"/heard", "{}")
		c = s.after(c, syscall.SIGKILL)
		if rec := c.whole(id); rec.State != handoff.StatusDelivered {
			t.Errorf("after the kill what was heard is %s", rec.State)
		}
		made := c.made("/v1/responses", fmt.Sprintf(`{"model":"bigpc","input":"job %d takes 0","background":true}`, n+10))
		until(t, "the response to be read", func() bool {
			var got struct{ Status string }
			c.get(fmt.Sprint("/v1/responses/", made["id"]), &got)
			return got.Status == "completed"
		})
		c.signal(syscall.SIGKILL)

		c = s.start()
		until(t, "the work of before", func() bool { return len(c.handoffs()) == 2*(n+1) })
		for _, rec := range c.handoffs() {
			if rec.State != handoff.StatusDelivered {
				t.Errorf("after the kill %s is %s", rec.Prompt, rec.State)
			}
		}
	}
}
