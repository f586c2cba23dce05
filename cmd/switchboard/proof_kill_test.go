package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchboard/handoff"
)

// killedWithin is how long after a turn has begun Switchboard is killed at the latest.
const killedWithin = 2 * time.Second

// A killedJob is work that was handed over shortly before Switchboard was killed.
type killedJob struct {
	number int
	prompt string
	calls  int    // how many calls there were until then
	fate   string // what became of it, for the figures
}

// TestProofKilled: Switchboard is killed at random instants, up to two seconds after a turn has begun, and
// started again. It never begins the work a second time, and it forgets nothing: what runs at an agent, and
// what a caller was told is being done, has an entry after the restart; it is found again and told, or said to
// be unknown.
func TestProofKilled(t *testing.T) { t.Parallel(); onBothStores(t, proofKilled) }

func proofKilled(t *testing.T, store string) {
	rounds := soakRounds(t, scale(3, 100)) // one of each kind, at the least
	f := newFarm(t)
	s := newSite(t, f.voice.URL, store, f.at)
	random := rand.New(rand.NewPCG(7, uint64(len(store))))
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
		asked := len(f.voice.all())
		for i, p := range phones {
			n := 2*round + i
			job := &killedJob{number: n, prompt: fmt.Sprintf("job %d takes %d", n, random.IntN(3000))}
			open = append(open, job)
			p.say(work([]string{"bigpc", "laptop"}[i], job.prompt))
		}
		jobs = append(jobs, open...)
		began := func() bool { return f.turns()[open[0].prompt]+f.turns()[open[1].prompt] > 0 }
		if round%4 == 0 { // also before the turn: from the moment at which the voice model asks
			began = func() bool { return len(f.voice.all()) > asked }
		}
		for end := time.Now().Add(patience); !began(); time.Sleep(200 * time.Microsecond) {
			if time.Now().After(end) {
				t.Fatal("nothing began")
			}
		}
		at := random.Float64() * float64(killedWithin)
		if round%2 == 0 { // half of them early, where most happens
			at /= 20
		}
		time.Sleep(time.Duration(at))
		c.signal(syscall.SIGKILL)
		for _, job := range open {
			job.calls = f.voice.calls()
		}
	}
	f.check(t)
	fates, double := map[string]int{}, 0
	for _, job := range jobs {
		fates[job.fate]++
		double += max(f.turns()[job.prompt]-1, 0)
	}
	if fates[forgotten] > 0 {
		t.Errorf("%d were forgotten", fates[forgotten])
	}
	t.Logf("%d kills, %d jobs: %v; %d forgotten, %d double", rounds, len(jobs), fates, fates[forgotten], double)
}

// forgotten is the fate of work that an agent began, or that its caller was told is being done, and that has no
// entry.
const forgotten = "forgotten"

// entryWithin is how long a new life may take until it shows what it found in the store.
const entryWithin = patience / 2

// told waits until everything that was begun in a former life was told, or said to be unknown.
func (f *farm) told(t *testing.T, c *child, jobs []*killedJob) {
	t.Helper()
	began := time.Now()
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
			answer := f.voice.answer(job.prompt)
			switch {
			case len(calls) > 0 && calls[0] > job.calls:
				job.fate = "adopted and told"
			case len(calls) > 0 || strings.Contains(answer, fmt.Sprintf("job %d is done", job.number)):
				job.fate = "told before"
			case i >= 0 && works[i].State != handoff.StatusDelivered:
				return false
			case i >= 0:
				job.fate = string(works[i].Outcome)
			case turns[job.prompt] > 0 || answer != "": // begun, or promised
				if job.fate = forgotten; time.Since(began) < entryWithin {
					return false
				}
				t.Errorf("%s was forgotten: %d turns, answered with %q", job.prompt, turns[job.prompt], answer)
			default:
				job.fate = "never begun"
			}
		}
		return true
	})
}
