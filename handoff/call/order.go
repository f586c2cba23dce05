package call

import (
	"slices"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/tools"
	"switchboard/handoff/wording"
)

const (
	// stopWait is how long a stop_work waits for the transcript of what the caller said while somebody spoke: a plain
	// "stop" is meant for the voice, and stops no work. Without a transcript the work is stopped.
	stopWait = 1500 * time.Millisecond
	// maxWaiting bounds the function calls that wait. One more is refused, and a stop is carried out at once.
	maxWaiting = 16
)

// A waiting is a function call that waits. A stop waits for the transcript of the sentence that asked for it, any other
// call for the stops before it.
type waiting struct {
	do    func()
	of    *sentence // of a stop; nil: another call
	until time.Time // of a stop that waits
}

// inOrder performs a function call, but what changes something only after the stops that came before it: else these
// would find the work that it gives ("stop that, run the linter instead"), or its words would go into the turn that is
// to be stopped. A stop waits for the caller's words if they said them while somebody spoke.
func (s *serving) inOrder(req handoff.FunctionCall, tool tools.Tool, args tools.Arguments) {
	w := waiting{do: func() { s.perform(req, tool, args) }}
	if tool.Name == tools.StopWork {
		w.of = s.hearing.asked(req.Began)
		w.do = func() {
			if w.of.hushed {
				s.answerPlainly(s.cfg.Attending.NextID(), req, wording.HushAnswer().Encode(), handoff.FloorNone)
				return
			}
			s.perform(req, tool, args)
		}
	}
	full := len(s.waiting) == maxWaiting
	switch {
	case tool.ReadOnly, full && w.of != nil:
		w.do()
		return
	case full:
		s.refuse(s.cfg.Attending.NextID(), req, handoff.Fault(handoff.CodeOverloaded, "", ""))
		return
	case w.of != nil && w.of.interrupting && !w.of.told:
		w.until = time.Now().Add(stopWait)
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
		case w.of != nil && !w.of.told && time.Now().Before(w.until) && !s.over:
			untold = true
			i++
		case w.of == nil && (untold || s.stopping > 0):
			return
		default:
			s.waiting = slices.Delete(s.waiting, i, i+1)
			w.do()
		}
	}
}

// stopped notes that a stop has been carried out.
func (s *serving) stopped() {
	s.stopping--
	s.proceed()
}
