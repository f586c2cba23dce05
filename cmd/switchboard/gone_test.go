package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/handoff"
	"switchboard/servers"
)

// TestAbsentees: a caller whose work waits for a machine is notified once that the machine is gone, after the set time,
// and once that it is back; no other caller is.
func TestAbsentees(t *testing.T) {
	t.Parallel()
	anna, bert := handoff.Caller{Principal: "anna"}, handoff.Caller{Principal: "bert"}
	up, work := true, map[handoff.Caller]int{}
	var told []string
	began := time.Date(2026, 11, 25, 21, 0, 0, 0, time.UTC)
	at := began
	a := newAbsenceWatch(0, func() []handoff.ServerInfo {
		s := handoff.ServerInfo{Name: "mini", Health: handoff.HealthUp}
		if !up {
			s.Health, s.Problem, s.Next = handoff.HealthDown, "it is asleep or offline since 21:40", "Wake it."
		}
		return []handoff.ServerInfo{s, {Name: "bigpc", Health: handoff.HealthUp}}
	}, func(server string, _ time.Time) map[handoff.Caller]int {
		if server != "mini" {
			t.Errorf("asked about %s", server)
		}
		return work
	}, func(n handoff.Notice) {
		told = append(told, fmt.Sprintf("%s %s %s: %s", at.Sub(began), n.Caller.Principal, n.Kind, n.Text))
	})
	pass := func(d time.Duration) {
		for end := at.Add(d); at.Before(end); {
			at = at.Add(time.Minute)
			a.look(at)
		}
	}
	pass(10 * time.Minute)
	up, work[anna] = false, 2
	pass(30 * time.Minute) // a nap
	up = true
	pass(time.Minute)
	up = false
	pass(90 * time.Minute)
	work[bert] = 1 // begun words that ended without a known outcome, say
	pass(90 * time.Minute)
	up = true
	pass(10 * time.Minute)
	up, work = false, map[handoff.Caller]int{}
	pass(3 * time.Hour) // for nobody
	up = true
	pass(time.Minute)
	slices.Sort(told[2:]) // both at the same minute
	want := []string{
		"1h42m0s anna machine: mini has been gone for about an hour, and 2 pieces of your work wait for it. The reason: it is asleep or offline since 21:40. Wake it.",
		"2h12m0s bert machine: mini has been gone for about two hours, and a piece of your work waits for it. The reason: it is asleep or offline since 21:40. Wake it.",
		"3h42m0s anna machine: mini is back.",
		"3h42m0s bert machine: mini is back.",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}

// TestGoneIsTold: the webhook gets one notice that a machine with waiting work is gone, and one that it is back. What
// an agent asks while nobody is in a call is told there too, and the log has neither the address nor the token.
func TestGoneIsTold(t *testing.T) {
	t.Parallel()
	f, hook := newFarm(t), newHookEnd(t)
	cut := newCutter(t, "bigpc", f.at["bigpc"])
	r := start(t, func(p *plan) {
		p.Model = modelSettings{URL: f.voice.URL, Name: "scripted"}
		p.Servers = []servers.Spec{{Name: "bigpc", Kind: "codex", Own: codexAt(cut.at)}}
		p.Notify = notifySettings{Webhook: newSecret(hook.URL), Token: func() (string, error) { return "t0ken", nil }}
		p.Gone = 1200 * time.Millisecond
	})
	r.up("bigpc")
	p := r.call()
	p.say(work("bigpc", "job 1 hangs"))
	until(t, "the work to run", func() bool { return r.newest().State == handoff.StatusStarted })
	cut.proxy.Stop()
	until(t, "the notice that it is gone", func() bool { return len(hook.notices()) == 1 })
	must(t, cut.proxy.Start())
	until(t, "the notice that it is back", func() bool { return len(hook.notices()) == 2 })
	p.hangUp()
	r.hand(`{"server":"bigpc","thread_id":"new","prompt":"job 2 asks"}`)
	until(t, "the notice of the question", func() bool { return len(hook.notices()) == 3 })
	r.stop()
	for i, want := range []string{"machine bigpc: bigpc has been gone for ", "machine bigpc: bigpc is back.", "question bigpc: bigpc asks for permission "} {
		if got := hook.notices()[i]; got[:min(len(got), len(want))] != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, hidden := range []string{"t0pic", "t0ken"} {
		if strings.Contains(r.logs.String(), hidden) {
			t.Errorf("%s is in the log", hidden)
		}
	}
	f.check(t)
}
