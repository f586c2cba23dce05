package realtime

import (
	"slices"

	"switchboard/handoff"
)

// report queues an event for the router. A hint takes the place of an older one of the same call.
func (c *Call) report(e handoff.Event) {
	if h, ok := e.(handoff.Hint); ok {
		older := slices.IndexFunc(c.pending, func(p handoff.Event) bool {
			old, ok := p.(handoff.Hint)
			return ok && old.CallID == h.CallID
		})
		switch {
		case older >= 0:
			c.pending[older] = h
			return
		case c.crowded(e):
			c.counts.hints++
			return
		}
	}
	if c.crowded(e) {
		c.thin(e)
	}
	full := c.crowded(e)
	c.pending = append(c.pending, e)
	if full {
		c.end(handoff.Fault(handoff.CodeOverloaded, "the call", "events"))
	}
}

// crowded tells that there is no room for one more event.
func (c *Call) crowded(e handoff.Event) bool {
	bytes := weight(e)
	for _, p := range c.pending {
		bytes += weight(p)
	}
	return len(c.pending) >= eventQueue || len(c.pending) > 0 && bytes > eventBytes
}

// weight returns the bytes of words in an event.
func weight(e handoff.Event) int {
	switch e := e.(type) {
	case handoff.Hint:
		return len(e.Partial)
	case handoff.Heard:
		return len(e.Text)
	case handoff.FunctionCall:
		return len(e.CallID) + len(e.Arguments)
	case handoff.Said:
		return len(e.Text)
	}
	return 0
}

// thin makes room: hints and what has changed again since go first, then what the caller said. That they said
// something stays: of a yes nobody may think that it was their last word.
func (c *Call) thin(e handoff.Event) {
	newest := len(c.pending) // the newest Quiet counts
	for i, p := range slices.Backward(c.pending) {
		if _, ok := p.(handoff.Quiet); ok {
			newest = i
			break
		}
	}
	c.drop(func(i int, p handoff.Event) bool {
		switch p.(type) {
		case handoff.Hint:
			c.counts.hints++
			return true
		case handoff.Quiet:
			return i < newest
		}
		return false
	})
	if !c.crowded(e) {
		return
	}
	c.drop(func(_ int, p handoff.Event) bool {
		_, words := p.(handoff.Heard)
		if words {
			c.counts.unheard++
		}
		return words
	})
	if !c.crowded(e) {
		return
	}
	spoke := 0
	for _, p := range c.pending {
		if _, ok := p.(handoff.Spoke); ok {
			spoke++
		}
	}
	c.drop(func(_ int, p handoff.Event) bool {
		if _, ok := p.(handoff.Spoke); ok {
			spoke--
			return spoke >= keptSpokes
		}
		return false
	})
}

// drop takes events out of the queue.
func (c *Call) drop(which func(int, handoff.Event) bool) {
	kept := c.pending[:0]
	for i, p := range c.pending {
		if !which(i, p) {
			kept = append(kept, p)
		}
	}
	clear(c.pending[len(kept):])
	c.pending = kept
}
