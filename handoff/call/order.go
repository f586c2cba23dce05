package call

import (
	"slices"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/consent"
	"switchboard/handoff/tools"
)

const (
	// stopWait is how long a stop_work waits for the transcript of what the caller said while somebody spoke: a plain
	// "stop" is meant for the voice, and stops no work. Without a transcript the work is stopped.
	stopWait = 1500 * time.Millisecond
	// maxWaiting bounds the function calls that wait. One more is refused, and a stop is carried out at once.
	maxWaiting = 16
)

// A waiting is a function call that waits: a stop for the words that asked for it, another call for the stops before
// it.
type waiting struct {
	do     func(hushed bool) // hushed: the words only asked for quiet
	stop   bool
	of     time.Time // of a stop: when the sentence began whose transcript it waits for; zero: none
	until  time.Time // of a stop: how long it waits
	hushed bool
}

// inOrder performs a function call, but what changes something only after the stops that came before it: else these
// would find the work that it gives ("stop that, run the linter instead"), or its words would go into the turn that is
// to be stopped. A stop waits for the caller's words if they said them while somebody spoke.
func (s *serving) inOrder(req handoff.FunctionCall, tool tools.Tool, args tools.Arguments) {
	w := waiting{
		do:     func(hushed bool) { s.perform(req, tool, args, hushed) },
		stop:   tool.Name == tools.StopWork,
		hushed: tool.Name == tools.StopWork && s.hearing.hushed,
	}
	full := len(s.waiting) == maxWaiting
	switch {
	case tool.ReadOnly, full && w.stop:
		w.do(w.hushed)
		return
	case full:
		s.refuse(s.cfg.Attending.NextID(), req, handoff.Fault(handoff.CodeOverloaded, "", ""))
		return
	case w.stop && s.hearing.interrupting && s.hearing.untranscribed:
		w.of, w.until = s.hearing.spoke, time.Now().Add(stopWait)
		time.AfterFunc(stopWait, func() { s.box.post((*serving).proceed) })
	}
	s.waiting = append(s.waiting, w)
	s.proceed()
}

// proceed performs the function calls that wait no longer, in order. A stop does not wait for other stops.
func (s *serving) proceed() {
	untold := false // a stop before waits for its words
	for i := 0; i < len(s.waiting); {
		w := s.waiting[i]
		switch {
		case w.stop && !w.of.IsZero() && time.Now().Before(w.until) && !s.over:
			untold = true
			i++
		case !w.stop && (untold || s.stopping > 0):
			return
		default:
			s.waiting = slices.Delete(s.waiting, i, i+1)
			w.do(w.hushed)
		}
	}
}

// settle gives words to the stops that wait for them, and not for those of a later sentence.
func (s *serving) settle(e handoff.Heard) {
	for i := range s.waiting {
		if w := &s.waiting[i]; !w.of.IsZero() && isOf(e, w.of) {
			w.of, w.hushed = time.Time{}, (e.Into || !e.Typed) && consent.Hush(e.Text)
		}
	}
	s.proceed()
}

// isOf reports whether words may be of the sentence that began at a time, or of a later one.
func isOf(e handoff.Heard, began time.Time) bool { return e.Began.IsZero() || !e.Began.Before(began) }

// stopped notes that a stop has been carried out.
func (s *serving) stopped() {
	s.stopping--
	s.proceed()
}
