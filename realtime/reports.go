package realtime

import (
	"slices"

	"switchboard/handoff"
)

const (
	// eventQueue bounds the events that the router has not taken yet. When it is full, hints are dropped first, then
	// the words of the caller (but not the reports that they spoke, so that it is known that words are missing).
	// Requests and confirmations are never dropped: the call ends instead.
	eventQueue = 256
	// eventBytes bounds the text in these events, in bytes, with the same policy. One event may always wait.
	eventBytes = 4 << 20
	// keptSpokes is how many of the newest reports that the caller spoke are kept however full the queue is.
	keptSpokes = 16
)

// reports are the queued events for the router, oldest first.
type reports []handoff.VoiceEvent

// report queues an event for the router.
func (k *core) report(e handoff.VoiceEvent) {
	if full := k.pending.add(e, &k.counts); full {
		k.end(handoff.Fault(handoff.CodeOverloaded, "the call", "events"))
	}
	if said, is := e.(handoff.Said); is && said.ID == partingID && k.parting.why != nil {
		k.end(k.parting.why)
	}
}

// add queues an event and reports whether that exceeds the bounds. A hint replaces an older one of the same function
// call. Dropped events are counted in n.
func (q *reports) add(e handoff.VoiceEvent, n *counts) (full bool) {
	if h, ok := e.(handoff.Hint); ok {
		older := slices.IndexFunc(*q, func(p handoff.VoiceEvent) bool {
			old, ok := p.(handoff.Hint)
			return ok && old.CallID == h.CallID
		})
		switch {
		case older >= 0:
			(*q)[older] = h
			return false
		case q.crowded(e):
			n.hints++
			return false
		}
	}
	if q.crowded(e) {
		q.thin(e, n)
	}
	full = q.crowded(e)
	*q = append(*q, e)
	return full
}

// crowded reports whether there is no room for one more event.
func (q *reports) crowded(e handoff.VoiceEvent) bool {
	bytes := weight(e)
	for _, p := range *q {
		bytes += weight(p)
	}
	return len(*q) >= eventQueue || len(*q) > 0 && bytes > eventBytes
}

// weight returns the bytes of text in an event.
func weight(e handoff.VoiceEvent) int {
	switch e := e.(type) {
	case handoff.Hint:
		return len(e.Partial)
	case handoff.Heard:
		return len(e.Text)
	case handoff.FunctionCall:
		return len(e.CallID) + len(e.Arguments)
	case handoff.Said:
		return len(e.Text)
	case handoff.Voiced:
		return len(e.Text)
	}
	return 0
}

// thin makes room for an event. It drops hints and outdated Quiet events first, then the words of the caller, then
// their oldest Spoke events. The newest Spoke events stay: a "yes" must never look like the caller's last word if it
// was not.
func (q *reports) thin(e handoff.VoiceEvent, n *counts) {
	newest := len(*q) // index of the newest Quiet: the older ones are outdated
	for i, p := range slices.Backward(*q) {
		if _, ok := p.(handoff.Quiet); ok {
			newest = i
			break
		}
	}
	i := -1
	*q = slices.DeleteFunc(*q, func(p handoff.VoiceEvent) bool {
		i++
		switch p.(type) {
		case handoff.Hint:
			n.hints++
			return true
		case handoff.Quiet:
			return i < newest
		}
		return false
	})
	if !q.crowded(e) {
		return
	}
	*q = slices.DeleteFunc(*q, func(p handoff.VoiceEvent) bool {
		_, words := p.(handoff.Heard)
		if words {
			n.unheard++
		}
		return words
	})
	if !q.crowded(e) {
		return
	}
	spoke := 0
	for _, p := range *q {
		if _, ok := p.(handoff.Spoke); ok {
			spoke++
		}
	}
	*q = slices.DeleteFunc(*q, func(p handoff.VoiceEvent) bool {
		if _, ok := p.(handoff.Spoke); ok {
			spoke--
			return spoke >= keptSpokes
		}
		return false
	})
}
