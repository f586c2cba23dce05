package main

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff/call"
	"switchboard/handoff/call/calltest"
	"switchboard/handoff/homes"
	"switchboard/handoff/router"
	"switchboard/handoff/tools"
)

// A climber plays ladders on routers: a former one goes on, like a process that was held up.
type climber struct {
	calltest.Player
	world    *ladderWorld
	ctx      context.Context // of the process
	shutdown func()
}

// live begins a life of the router.
func (p *climber) live(name string) {
	w := p.world
	r := homes.New(router.Config{
		Fleet: w, Stickies: w, Ledger: w.ledger, Notifier: w, Auditor: w, IDs: router.NewIDs(name), Patience: w.Patience, Jitter: func(d time.Duration) time.Duration { return d },
	})
	calls := call.New(call.Config{
		Runs: r, Attending: r, Questions: r, Shown: r.Shown, Life: name, Tools: tools.Backend{Directory: w, Resolver: w, Work: r, Questions: r},
	})
	p.Router, p.Serve = r, calls.Serve
	ctx := p.ctx
	p.Work.Go(func() { _ = r.Run(ctx) })
}

// climb plays a ladder in a world and returns what was said to whom, and how all work ended.
func climb(t *testing.T, words, script []string) []string {
	w := newLadderWorld(t, words)
	p := &climber{Player: calltest.Player{World: w.World, Record: w.record}, world: w}
	p.ctx, p.shutdown = context.WithCancel(t.Context())
	p.live("h")
	for _, line := range script {
		switch verb, rest := p.Next(line); verb {
		case "join":
			w.add(rest)
		case "life":
			p.live(rest)
		case "left":
			w.ledger.Leave(strings.Fields(rest))
		case "shutdown":
			p.shutdown()
		default:
			p.Perform(verb, rest)
		}
	}
	p.End()
	synctest.Wait()
	ends := p.Summary()
	p.shutdown()
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
