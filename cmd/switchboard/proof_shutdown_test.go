package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shutdownWithin is how long Switchboard may take to end when it is asked to. Docker waits so long.
const shutdownWithin = 10 * time.Second

// TestProofShutdown: asked to end in the middle of 20 calls, half of them with work that was
// answered "it runs" and half with work just handed over, Switchboard answers every request once, ends in
// time and leaves nothing running.
func TestProofShutdown(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, store string) {
		for round := range scale(1, 5) {
			t.Run(fmt.Sprint(round), func(t *testing.T) { proofShutdown(t, store) })
		}
	})
}

func proofShutdown(t *testing.T, store string) {
	const calls = 20
	f := newFarm(t)
	s := newSite(t, f.voice.URL, store, map[string]string{"bigpc": f.at["bigpc"], "laptop": f.at["laptop"], "stuck": "sleep, '1000'"})
	c := s.start()
	c.up("bigpc", "laptop")
	var phones []*phone
	for range calls {
		phones = append(phones, c.call())
	}
	begin := func(from, to int) {
		for i := from; i < to; i++ {
			phones[i].say(work([]string{"bigpc", "laptop"}[i%2], fmt.Sprintf("job %d hangs", i)))
		}
		until(t, fmt.Sprintf("%d turns", to), func() bool { return len(f.turns()) == to })
	}
	begin(0, calls/2)
	until(t, "the first half to be answered", func() bool { return f.voice.answered() == calls/2 })
	begin(calls/2, calls)
	early := f.voice.answered()

	asked := time.Now()
	code := c.signal(syscall.SIGTERM)
	took := time.Since(asked)
	if code != 0 || soak() && took > shutdownWithin { // how long it takes is the machine's, unless that is idle
		t.Errorf("exit code %d after %s", code, took)
	}
	if left := c.left(); len(left) > 0 {
		t.Errorf("left running: %q", left)
	}
	requests := f.voice.all()
	for _, r := range requests {
		if len(r.outputs) != 1 {
			t.Errorf("%s was answered %d times: %q", r.arguments, len(r.outputs), r.outputs)
		}
	}
	if len(requests) != calls {
		t.Errorf("%d requests", len(requests))
	}
	told := map[string]int{}
	for _, r := range requests {
		var output struct{ Status string }
		must(t, json.Unmarshal([]byte(strings.Join(r.outputs, "")), &output))
		told[output.Status]++
	}
	// Some may be answered while it is asked to end. "connecting" is a server that took longer; "unknown": it goes on
	// there.
	if before := told["started"] + told["connecting"]; before < early || before+told["unknown"] != calls {
		t.Errorf("%d were answered before; all answers: %v", early, told)
	}
	for name := range f.at {
		until(t, "the connection to be gone", func() bool { return f.world.Connections(name) == 0 })
	}
	f.check(t)
	t.Logf("%d calls, %d answered before the end and %d by it; ended in %s", calls, early, calls-early, took.Round(time.Millisecond))
}
