package main

import (
	"cmp"
	"context"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/wording"
)

// goneAfter is how long a machine is away before those are told whose work waits for it.
const goneAfter = time.Hour

// An absentees tells callers that a machine has been gone for long while work of theirs waits for it: once, and once
// more when it is back. It is owned by whoever calls look.
type absentees struct {
	after   time.Duration                                              // Set once
	known   func() []handoff.ServerInfo                                // Set once
	waiting func(server string, lost time.Time) map[handoff.Caller]int // Set once
	notify  func(handoff.Notice)                                       // Set once
	gone    map[string]*absence                                        // by the server's name
}

// An absence is a machine that is away.
type absence struct {
	since time.Time
	told  map[handoff.Caller]bool
}

func newAbsentees(
	after time.Duration, known func() []handoff.ServerInfo, waiting func(string, time.Time) map[handoff.Caller]int,
	notify func(handoff.Notice),
) *absentees {
	return &absentees{cmp.Or(after, goneAfter), known, waiting, notify, map[string]*absence{}}
}

// run looks again and again until ctx ends, so that a machine counts as away at the latest a sixtieth of the time after
// it went.
func (a *absentees) run(ctx context.Context) error {
	tick := time.NewTicker(a.after / 60)
	defer tick.Stop()
	for {
		a.look(time.Now())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// look takes note of which machines are away at a time, and tells what is to be told then.
func (a *absentees) look(now time.Time) {
	left := map[string]*absence{}
	for _, s := range a.known() {
		was := a.gone[s.Name]
		switch {
		case s.Health == handoff.HealthUp && was != nil:
			for c := range was.told {
				a.notify(handoff.Notice{Caller: c, Kind: handoff.NoticeMachine, Server: s.Name, Text: wording.BackNotice(s.Name)})
			}
			continue
		case s.Health == handoff.HealthUp:
			continue
		case was == nil:
			was = &absence{since: now, told: map[handoff.Caller]bool{}}
		}
		left[s.Name] = was
		gone := now.Sub(was.since)
		if gone < a.after {
			continue
		}
		for c, n := range a.waiting(s.Name, was.since.Add(-a.after/60)) { // it went before it was seen
			if !was.told[c] {
				was.told[c] = true
				a.notify(handoff.Notice{Caller: c, Kind: handoff.NoticeMachine, Server: s.Name,
					Text: wording.GoneNotice(s, gone, n)})
			}
		}
	}
	a.gone = left // what was removed is not away
}
