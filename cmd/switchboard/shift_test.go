package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
)

// A shift is a number of jobs that callers ask for, each a new session, several at once.
type shift struct {
	t        *testing.T
	c        *child
	f        *farm
	phones   []*phone
	machines []string
	takes    func(job int) int // milliseconds

	first, next int            // job numbers
	open        map[int]int    // phone -> its open job
	records     map[int]record // job -> how it ended
}

// A record is how a job ended.
type record = handoff.Record

// newShift opens calls for jobs from number first on.
func newShift(t *testing.T, c *child, f *farm, calls, first int, machines ...string) *shift {
	t.Helper()
	s := &shift{t: t, c: c, f: f, machines: machines, first: first, next: first, open: map[int]int{}, records: map[int]record{}}
	for range calls {
		s.phones = append(s.phones, c.call())
	}
	return s
}

func (s *shift) prompt(job int) string { return fmt.Sprintf("job %d takes %d", job, s.takes(job)) }

// ask lets a phone ask for the next job.
func (s *shift) ask(phone int) {
	s.open[phone] = s.next
	s.phones[phone].say(work(s.machines[s.next%len(s.machines)], s.prompt(s.next)))
	s.next++
}

// run has jobs done, each phone asking for its next when its last has an outcome.
func (s *shift) run(jobs int, within time.Duration) {
	s.t.Helper()
	end := time.Now().Add(within)
	for last := s.first + jobs; len(s.records) < jobs; time.Sleep(20 * time.Millisecond) {
		for i := range s.phones {
			if _, busy := s.open[i]; !busy && s.next < last {
				s.ask(i)
			}
		}
		s.look()
		if time.Now().After(end) {
			s.t.Fatalf("%d of %d jobs ended; open: %v", len(s.records), jobs, s.open)
		}
	}
}

// look takes note of what has ended.
func (s *shift) look() {
	s.t.Helper()
	works := s.c.handoffs()
	for phone, job := range s.open {
		i := slices.IndexFunc(works, func(r record) bool { return r.Prompt == s.prompt(job) })
		if i >= 0 && works[i].Outcome != "" {
			s.records[job] = works[i]
			delete(s.open, phone)
		}
	}
}

// figures counts the outcomes.
func (s *shift) figures() map[handoff.Outcome]int {
	count := map[handoff.Outcome]int{}
	for _, r := range s.records {
		count[r.Outcome]++
	}
	return count
}

// told waits until every job that an agent finished was told, and holds that each was told once: given to
// the voice model once and spoken once.
func (s *shift) told() {
	s.t.Helper()
	turns := s.f.turns()
	var wrong string
	for end := time.Now().Add(4 * patience); ; time.Sleep(50 * time.Millisecond) {
		given, spoken := s.f.voice.given(), s.spoken()
		wrong = s.unanswered()
		for job, r := range s.records {
			if turns[r.Prompt] == 0 {
				continue
			}
			words := fmt.Sprintf("job %d is done", job)
			if g, p := containing(given, words), containing(spoken, words); g != 1 || p != 1 {
				wrong = fmt.Sprintf("job %d (%s) was given %d times and spoken %d times", job, r.Outcome, g, p)
			}
		}
		if wrong == "" {
			return
		}
		if time.Now().After(end) {
			s.t.Errorf("%s\ngiven: %q\nspoken: %q", wrong, given, spoken)
			return
		}
	}
}

// unanswered tells of a request that did not get exactly one answer.
func (s *shift) unanswered() string {
	requests := s.f.voice.all()
	for _, r := range requests {
		if len(r.outputs) != 1 {
			return fmt.Sprintf("%s was answered %d times", r.arguments, len(r.outputs))
		}
	}
	if len(requests) != len(s.records) {
		return fmt.Sprintf("%d requests of %d jobs", len(requests), len(s.records))
	}
	return ""
}

// spoken is what all voices said.
func (s *shift) spoken() []string {
	var all []string
	for _, p := range s.phones {
		all = append(all, p.spoken()...)
	}
	return all
}

func containing(texts []string, words string) int {
	n := 0
	for _, text := range texts {
		if strings.Contains(text, words) {
			n++
		}
	}
	return n
}

// given is all that the voice models were given: answers and messages.
func (v *voiceTap) given() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	given := slices.Clone(v.messages)
	for _, r := range v.requests {
		given = append(given, r.outputs...)
	}
	return given
}
