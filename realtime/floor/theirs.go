package floor

import "slices"

// A response may hold requests of ours and calls of the client. The client answers its own calls and then asks for a
// response. Our requests are answered by then, or a moment later, and what has to be said for them is said with the
// client's response. So the caller hears one answer to both.

// mixed notes such a response.
func (f *Floor) mixed(e Mixed) {
	c := f.responses.of(e.Response)
	c.shared = true
	for _, call := range e.Calls {
		if f.clientCalls[call] == nil {
			f.clientCalls[call] = c
			c.clientCalls++
		}
	}
	f.awaitClient(c)
}

// output notes an output of the client.
func (f *Floor) output(call string) {
	c := f.clientCalls[call]
	if c == nil {
		return
	}
	delete(f.clientCalls, call)
	c.clientCalls--
	f.awaitClient(c)
	f.responses.forget(c)
}

// awaitClient starts the timer for what the client is expected to send next: outputs, or the ask.
func (f *Floor) awaitClient(c *responseState) {
	if c.clientCalls > 0 {
		f.arm(timerTheirs)
		return
	}
	f.arm(timerTheirAsk)
}

// stopAwaitingClient ends the wait for the client's outputs (outputs) or its ask, unless an ask of it is queued.
func (f *Floor) stopAwaitingClient(outputs bool) {
	asks := slices.ContainsFunc(f.clientAsks, func(a *ask) bool { return !a.apart })
	if outputs {
		clear(f.clientCalls)
	}
	for _, c := range f.responses {
		if outputs {
			c.clientCalls = 0
		}
		c.shared = c.shared && (asks || c.clientCalls > 0)
		f.responses.forget(c)
	}
	speech := f.pending // its responses may be forgotten already
	for _, a := range f.openAsks() {
		speech = slices.Concat(speech, a.speech)
	}
	for _, w := range speech {
		if w.from != nil {
			w.from.shared = w.from.shared && (asks || w.from.clientCalls > 0)
		}
	}
}

// putBack puts back an ask that is to be sent again. Speech that rode on an ask of the client will ride on it again.
func (f *Floor) putBack(a *ask) {
	if a.client {
		f.clientAsks = slices.Insert(f.clientAsks, 0, a)
		for _, w := range a.speech {
			if w.from != nil {
				w.from.shared = true
			}
		}
	}
	f.pending = append(slices.Clone(a.speech), f.pending...)
	a.speech = nil
}

// waitsForOurs reports whether the client's next ask has to wait for requests of ours in the same response.
func (f *Floor) waitsForOurs() bool {
	if f.siblingsWait {
		for _, c := range f.responses {
			if c.shared && c.clientCalls == 0 && c.open > 0 && !c.siblingsWaited {
				return true
			}
		}
	}
	return false
}

// ridesOnClient reports whether speech for the requests of a response can ride on the client's ask.
func (c *responseState) ridesOnClient() bool { return c != nil && c.shared && c.clientCalls == 0 }
