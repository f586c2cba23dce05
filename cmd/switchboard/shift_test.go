package main

import (
	"encoding/json"
	"fmt"
	"maps"
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

	first, next int               // job numbers
	open        map[int]int       // phone -> its open job
	rests       map[int]time.Time // phone -> until when it does not ask, because nobody was there
	records     map[int]record    // job -> how it ended
}

// A record is how a job ended.
type record = handoff.Record

// newShift opens calls for jobs from number first on.
func newShift(t *testing.T, c *child, f *farm, calls, first int, machines ...string) *shift {
	t.Helper()
	s := &shift{
		t:        t,
		c:        c,
		f:        f,
		machines: machines,
		first:    first,
		next:     first,
		open:     map[int]int{},
		rests:    map[int]time.Time{},
		records:  map[int]record{},
	}
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
	for last := s.first + jobs; len(s.records) < jobs; time.Sleep(100 * time.Millisecond) {
		for i := range s.phones {
			if _, busy := s.open[i]; !busy && s.next < last && time.Now().After(s.rests[i]) {
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
	for _, p := range s.phones {
		if !p.inCall() {
			s.t.Fatal("a call was closed")
		}
	}
	works := s.c.handoffs()
	for phone, job := range s.open {
		i := slices.IndexFunc(works, func(r record) bool { return r.Prompt == s.prompt(job) })
		if i >= 0 && works[i].Outcome != "" {
			s.records[job] = works[i]
			delete(s.open, phone)
			if works[i].Outcome == handoff.OutcomeFailed {
				s.rests[phone] = time.Now().Add(time.Second)
			}
		}
	}
}

// figures counts the outcomes, with what went wrong.
func (s *shift) figures() map[string]int {
	count := map[string]int{}
	for _, r := range s.records {
		what := string(r.Outcome)
		if r.Error != nil {
			what += " " + string(r.Error.Code)
		}
		count[what]++
	}
	return count
}

// told waits until every job that an agent finished was told, and holds that each was told once: given to the voice
// model once, and spoken once. Of several that end at once only some are named aloud; the model has the others.
func (s *shift) told() {
	s.t.Helper()
	turns := s.f.turns()
	var wrong string
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		given, spoken := texts(s.f.voice.given()), s.spoken()
		wrong = s.unanswered()
		for job, r := range s.records {
			if turns[r.Prompt] == 0 {
				continue
			}
			words := fmt.Sprintf("job %d is done", job)
			g, p, due := containing(given, words), containing(spoken, words), containing(toSay(given), words)
			if g != 1 || p != due {
				wrong = fmt.Sprintf("job %d (%s) was given %d times, to be said %d times, and spoken %d times", job, r.Outcome,
					g, due, p)
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

// unanswered tells of a request of the shift that did not get exactly one answer.
func (s *shift) unanswered() string {
	var requests []toolRequest
	for _, r := range s.f.voice.all() {
		if slices.ContainsFunc(
			slices.Collect(maps.Values(s.records)),
			func(rec record) bool { return strings.Contains(r.arguments, rec.Prompt+`"`) },
		) {
			requests = append(requests, r)
		}
	}
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
	for i, p := range s.phones {
		if slices.Index(s.phones, p) == i { // it may be there several times, to ask for several jobs at once
			all = append(all, p.spoken()...)
		}
	}
	return all
}

// toSay returns what of the texts the voice is to say.
func toSay(given []string) (said []string) {
	for _, text := range given {
		var m struct {
			Say string `json:"say"`
		}
		if json.Unmarshal([]byte(text), &m) == nil { // else nothing of it is said
			said = append(said, m.Say)
		}
	}
	return said
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

// inCall drops the events that nobody waits for, and reports whether the call goes on.
func (p *phone) inCall() bool {
	for {
		select {
		case _, open := <-p.events:
			if !open {
				return false
			}
		default:
			return true
		}
	}
}

// given is all that the voice models were given: answers and messages.
func (v *voiceTap) given() []given {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := slices.Clone(v.messages)
	for _, r := range v.requests {
		for _, text := range r.outputs {
			all = append(all, given{r.call, text})
		}
	}
	return all
}

// texts are the texts that were given to be said: not the silent notes, which may show a last message
// before it is known to be the last, as after a lost connection.
func texts(all []given) []string {
	var list []string
	for _, g := range all {
		if !strings.Contains(g.text, "Say nothing") {
			list = append(list, g.text)
		}
	}
	return list
}
