package main

import (
	"cmp"
	"context"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/wording"
)

// goneAfter is how long a machine is away before the callers whose work waits for it are notified.
const goneAfter = time.Hour

// An absenceWatch notifies callers once when a machine has been away for long while their work waits for it, and once
// more when the machine is back. It is owned by the goroutine that calls look.
type absenceWatch struct {
	after   time.Duration                                              // Set once: how long is too long
	known   func() []handoff.ServerInfo                                // Set once
	waiting func(server string, lost time.Time) map[handoff.Caller]int // Set once: how much work waits for a lost server
	notify  func(handoff.Notice)                                       // Set once
	away    map[string]*absence                                        // by the server's name
}

// An absence is the time in which a machine is away.
type absence struct {
	since    time.Time
	notified map[handoff.Caller]bool
}

func newAbsenceWatch(
	after time.Duration, known func() []handoff.ServerInfo, waiting func(string, time.Time) map[handoff.Caller]int,
	notify func(handoff.Notice),
) *absenceWatch {
	return &absenceWatch{after: cmp.Or(after, goneAfter), known: known, waiting: waiting, notify: notify,
		away: map[string]*absence{}}
}

// run calls look until ctx ends, sixty times in a.after. So look may see an absence by a sixtieth too late.
func (a *absenceWatch) run(ctx context.Context) error {
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

// look records which machines are away now, and notifies the callers for whom that is news.
func (a *absenceWatch) look(now time.Time) {
	away := map[string]*absence{} // becomes a.away, so that removed servers are forgotten
	for _, s := range a.known() {
		was := a.away[s.Name]
		switch {
		case s.Health == handoff.HealthUp && was != nil:
			for c := range was.notified {
				a.notify(handoff.Notice{Caller: c, Kind: handoff.NoticeMachine, Server: s.Name, Text: wording.BackNotice(s.Name)})
			}
			continue
		case s.Health == handoff.HealthUp:
			continue
		case was == nil:
			was = &absence{since: now, notified: map[handoff.Caller]bool{}}
		}
		away[s.Name] = was
		gone := now.Sub(was.since)
		if gone < a.after {
			continue
		}
		for c, n := range a.waiting(s.Name, was.since.Add(-a.after/60)) { // look may have seen it late
			if !was.notified[c] {
				was.notified[c] = true
				a.notify(handoff.Notice{Caller: c, Kind: handoff.NoticeMachine, Server: s.Name,
					Text: wording.GoneNotice(s, gone, n)})
			}
		}
	}
	a.away = away
}
