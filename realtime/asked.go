package realtime

import (
	"slices"
	"time"

	"switchboard/handoff"
)

const (
	// askedWithin is how long a request that changes something waits for the transcript of what asked for it: a cough
	// asks for nothing. After that, the speech counts as words.
	askedWithin = 2 * time.Second
	// echoWithin is how long after the end of the voice the caller's microphone may still begin to pick it up.
	echoWithin = 1500 * time.Millisecond
	// maxCauses bounds the asks and the responses whose cause is remembered, the newest. One of each runs at a time.
	maxCauses = 8
	// maxHeldRequests bounds the requests that wait for a transcript. One more is reported at once.
	maxHeldRequests = 64
)

// A cause says for what the caller said an ask was sent, or a response runs; nil: for nothing.
type cause struct {
	name string // of the ask or the response
	by   *sentence
}

// asking knows for each response whether the caller's words asked for it. Words of agents never do: once the model gets
// some that it is to tell, only new words of the caller ask for anything. It is pure.
//
// due is what no response has answered yet. It is what the next response is for that the client or voice detection asks
// for. Our own asks go on with chain, what the newest such response was for.
type asking struct {
	due, chain *sentence
	spoken     sentences
	asks       []cause // oldest first
	responses  []cause // oldest first
	begun      int     // how many responses have begun
	deaf       bool    // the transcript that was waited for last never came, so none is waited for
}

// said notes that the caller has ended a sentence of theirs.
func (a *asking) said(s *sentence) {
	if s.begun = a.begun; s.state == wordsUnknown && a.deaf {
		s.state = wordsSaid
	}
	a.owe(s)
}

// wrote notes that the caller wrote something.
func (a *asking) wrote(at time.Time) { a.owe(&sentence{ended: at, state: wordsSaid}) }

// owe notes a sentence that no response has answered yet.
func (a *asking) owe(s *sentence) {
	if s.before = a.due; s.before == nil {
		s.before = a.chain
	}
	a.due = s
}

// heard notes what the transcript of a sentence says.
func (a *asking) heard(s *sentence, state certainty) {
	a.deaf, s.told, s.state = false, true, state
	for s.before != nil && s.before.state == wordsNone {
		s.before = s.before.before
	}
}

// agentSpoke notes that the model got words of an agent that it is to tell.
func (a *asking) agentSpoke() { a.chain = nil }

// take returns what the next response is for that the client or voice detection asks for.
func (a *asking) take() *sentence {
	if a.due != nil {
		a.due, a.chain = nil, a.due
	}
	return a.chain
}

// sent notes what an ask is for.
func (a *asking) sent(ask string, by *sentence) {
	a.asks = newestCauses(append(a.asks, cause{ask, by}))
}

// began notes that a response begins: to an ask, or for "" without one.
func (a *asking) began(response, ask string) {
	by := (*sentence)(nil)
	if ask == "" {
		by = a.take()
	} else {
		by = find(a.asks, ask)
	}
	a.begun++
	a.responses = newestCauses(append(a.responses, cause{response, by}))
}

// order returns how many responses began before a response; -1: it is not remembered, as it is old.
func (a *asking) order(response string) int {
	i := slices.IndexFunc(a.responses, func(c cause) bool { return c.name == response })
	if i < 0 {
		return -1
	}
	return a.begun - len(a.responses) + i
}

func newestCauses(all []cause) []cause { return all[max(0, len(all)-maxCauses):] }

// find returns what the newest ask or response with a name is for; nil: nothing that is known.
func find(all []cause, name string) *sentence {
	for _, c := range slices.Backward(all) {
		if c.name == name {
			return c.by
		}
	}
	return nil
}

// A heldRequest waits for the transcript of what asked for it, or behind a request that does.
type heldRequest struct {
	handoff.FunctionCall
	by    *sentence
	until time.Time // how long it waits for the transcript
}

// hand reports a request to the router, with when the caller's words ended that asked for it. One that changes
// something is held while that is not known, and while another is held: a "stop" must not overtake what it is to stop.
func (s *saying) hand(call handoff.FunctionCall, readOnly bool, by *sentence) {
	if by != nil {
		call.Began = by.began
	}
	if readOnly || len(s.held) >= maxHeldRequests {
		call.Asked, _ = by.words()
		s.report(call)
		return
	}
	now := time.Now()
	s.held = append(s.held, heldRequest{call, by, now.Add(askedWithin)})
	s.release(now, false)
}

// release reports the held requests, in order, up to the first of which it is not known yet whether the caller's words
// asked for it. For one that has waited for too long, or if the call is over, any speech counts as words.
func (s *saying) release(now time.Time, over bool) {
	s.alarms[alarmHeld].at = time.Time{}
	for len(s.held) > 0 {
		r := s.held[0]
		ended, waits := r.by.words()
		if late := !now.Before(r.until); waits && (over || late) {
			ended, s.asking.deaf = r.by.ended, s.asking.deaf || late
		} else if waits {
			s.alarms[alarmHeld].at = r.until
			return
		}
		s.held = s.held[1:]
		r.Asked = ended
		s.report(r.FunctionCall)
	}
}

// heard notes what the transcript of a sentence says, and reports the requests that waited for it.
func (s *saying) heard(of *sentence, state certainty) {
	s.asking.heard(of, state)
	s.release(time.Now(), false)
}

// noteCause notes what an ask is for. If it tells words of agents, nobody asked for anything with it.
func (s *saying) noteCause(ask string, by *sentence, utterances []string) {
	if slices.ContainsFunc(utterances, func(id string) bool { return !s.utterances[id].Plain }) {
		s.asking.agentSpoke()
		by = nil
	}
	s.asking.sent(ask, by)
}

// sentenceOver notes, once, that the caller ended a sentence that is now an item, or will be one.
func (h *hearing) sentenceOver(item string) {
	s := h.saying.asking.spoken.ending(item)
	if !s.ended.IsZero() {
		return
	}
	s.ended = time.Now()
	if s.state == wordsUnknown && !h.saying.filter.Transcribes() {
		s.state = wordsSaid
	}
	if !h.sounding && !s.began.IsZero() {
		s.quiet = max(0, s.began.Sub(h.soundingChanged))
	}
	h.saying.asking.said(s)
}

// understand notes whether there are words of the caller in what was transcribed of a sentence. There are none in an
// echo of the voice.
func (h *hearing) understand(s *sentence, text string) {
	state := wordsSaid
	if text == "" || s.quiet < echoWithin && h.isEcho(text, s.begun) {
		state = wordsNone
	}
	h.saying.heard(s, state)
}

// isEcho reports whether a text repeats what the voice said in one of the first responses, so many.
func (h *hearing) isEcho(text string, first int) bool {
	return h.echo != nil && slices.ContainsFunc(h.responseWords, func(w saidWords) bool {
		return h.saying.asking.order(w.response) < first && h.echo(text, w.text)
	})
}
