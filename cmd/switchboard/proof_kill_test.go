package main

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"switchboard/handoff"
)

// A killedJob is work that was handed over shortly before Switchboard was killed.
type killedJob struct {
	number int
	prompt string
	calls  int    // how many calls there were until then
	fate   string // what became of it, for the figures
}

// TestProofKilled: Switchboard is killed 0 to 500 ms after the voice model asked for work, and started
// again. It never begins the work a second time; whatever was begun is found again and told, or said to be
// unknown.
func TestProofKilled(t *testing.T) {
	rounds := scale(6, 50)
	f := newFarm(t)
	s := newSite(t, f.voice.URL, startRedis(t), f.at)
	var jobs []*killedJob
	var open []*killedJob // of the last life
	for round := range rounds + 1 {
		c := s.start()
		c.up("bigpc", "laptop")
		phones := []*phone{c.call(), c.call()}
		f.told(t, c, open)
		if round == rounds {
			c.signal(syscall.SIGTERM)
			break
		}
		open = nil
		for i, p := range phones {
			n := 2*round + i
			job := &killedJob{number: n, prompt: fmt.Sprintf("job %d takes %d", n, n*113%1200)}
			open = append(open, job)
			p.say(work([]string{"bigpc", "laptop"}[i], job.prompt))
		}
		jobs = append(jobs, open...)
		for end := time.Now().Add(patience); len(f.voice.all()) < len(jobs); time.Sleep(200 * time.Microsecond) {
			if time.Now().After(end) {
				t.Fatal("the voice model did not ask")
			}
		}
		at := float64(round) / float64(max(rounds-1, 1))
		time.Sleep(time.Duration(at * at * float64(500*time.Millisecond))) // most of them early
		c.signal(syscall.SIGKILL)
		for _, job := range open {
			job.calls = f.voice.calls()
		}
	}
	f.check(t)
	fates := map[string]int{}
	for _, job := range jobs {
		fates[job.fate]++
	}
	t.Logf("%d kills, %d jobs: %v", rounds, len(jobs), fates)
}

// told waits until everything that was begun in a former life was told, or said to be unknown.
func (f *farm) told(t *testing.T, c *child, jobs []*killedJob) {
	t.Helper()
	until(t, "the work of the former life to be told", func() bool {
		turns, given, works := f.turns(), f.voice.given(), c.handoffs()
		for _, job := range jobs {
			i := slices.IndexFunc(works, func(w handoff.Record) bool { return w.Prompt == job.prompt })
			var calls []int
			for _, g := range given {
				if containing([]string{g.text}, fmt.Sprintf("job %d is done", job.number)) > 0 {
					calls = append(calls, g.call)
				}
			}
			if slices.Sort(calls); len(slices.Compact(slices.Clone(calls))) != len(calls) {
				t.Errorf("%s was told twice in a call", job.prompt)
			}
			switch {
			case len(calls) > 0 && calls[0] > job.calls:
				job.fate = "adopted and told"
			case len(calls) > 0:
				job.fate = "told before"
			case i >= 0 && works[i].State != handoff.StatusDelivered:
				return false
			case i >= 0:
				job.fate = string(works[i].Outcome)
			case turns[job.prompt] > 0:
				return false // begun and forgotten
			default:
				job.fate = "never begun"
			}
		}
		return true
	})
}
