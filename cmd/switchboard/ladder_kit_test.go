package main

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff/call"
	"switchboard/handoff/call/calltest"
	"switchboard/handoff/router"
	"switchboard/handoff/tools"
)

// climb plays a ladder in a world and returns what was said to whom, and how all work ended.
func climb(t *testing.T, words, script []string) []string {
	w := newLadderWorld(t, words)
	r := router.NewRouter(router.Config{Fleet: w, Stickies: w, Notifier: w, Auditor: w, Life: "h", Patience: w.Patience, Jitter: func(d time.Duration) time.Duration { return d }})
	calls := call.New(call.Config{
		Runs: r, Attending: r, Questions: r, Shown: r.Shown, Life: "h", Tools: tools.Backend{Directory: w, Resolver: w, Work: r},
	})
	p := &calltest.Player{World: w.World, Router: r, Serve: calls.Serve, Record: w.record}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = r.Run(ctx) })
	for _, line := range script {
		if verb, rest := p.Next(line); verb == "join" {
			w.add(rest)
		} else {
			p.Perform(verb, rest)
		}
	}
	p.End()
	synctest.Wait()
	ends := p.Summary()
	stop()
	running.Wait()
	p.Work.Wait()
	w.stop()
	return append(w.said(), "end   "+cmp.Or(ends, ":"))
}

// inOrder sorts lines of a ladder. What happens in one millisecond has no order.
func inOrder(lines []string) []string {
	slices.SortStableFunc(lines, func(a, b string) int {
		return cmp.Or(cmp.Compare(millisecond(a), millisecond(b)), cmp.Compare(a, b))
	})
	return lines
}

// millisecond is when a line of a ladder was; the last ones have none.
func millisecond(line string) int {
	ms, err := strconv.Atoi(strings.Fields(line)[0])
	if err != nil {
		return 1 << 40
	}
	return ms
}
