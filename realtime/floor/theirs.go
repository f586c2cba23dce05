package floor

import "slices"

// A response may hold requests of ours and calls of the client. The client answers its own and then asks the model to
// go on; ours are answered by then, or a moment later, and what they need said is said with that. So the caller hears
// one answer, to both.

// mixed notes such a response.
func (f *Floor) mixed(e Mixed) {
	c := f.carriers.of(e.Response)
	c.shared = true
	for _, call := range e.Calls {
		if f.theirs[call] == nil {
			f.theirs[call] = c
			c.theirs++
		}
	}
	f.expect(c)
}

// output notes an output of the client.
func (f *Floor) output(call string) {
	c := f.theirs[call]
	if c == nil {
		return
	}
	delete(f.theirs, call)
	c.theirs--
	f.expect(c)
	f.carriers.forget(c)
}

// expect waits for what the client owes next, for so long.
func (f *Floor) expect(c *carrier) {
	if c.theirs > 0 {
		f.arm(timerTheirs)
		return
	}
	f.arm(timerTheirAsk)
}

// alone gives up waiting for the client: outputs, or its ask, unless it has asked and that waits.
func (f *Floor) alone(outputs bool) {
	asks := slices.ContainsFunc(f.held, func(a *ask) bool { return !a.apart })
	if outputs {
		clear(f.theirs)
	}
	for _, c := range f.carriers {
		if outputs {
			c.theirs = 0
		}
		c.shared = c.shared && (asks || c.theirs > 0)
		f.carriers.forget(c)
	}
	speech := f.pending // its carriers may be forgotten
	for _, a := range f.open() {
		speech = slices.Concat(speech, a.speech)
	}
	for _, w := range speech {
		if w.from != nil {
			w.from.shared = w.from.shared && (asks || w.from.theirs > 0)
		}
	}
}

// backOff puts back an ask that is to be sent again. What rode on the client's rides on it again.
func (f *Floor) backOff(a *ask) {
	if a.client {
		f.held = slices.Insert(f.held, 0, a)
		for _, w := range a.speech {
			if w.from != nil {
				w.from.shared = true
			}
		}
	}
	f.pending = append(slices.Clone(a.speech), f.pending...)
	a.speech = nil
}

// shares reports whether the client's next ask waits for requests of ours, which have their time.
func (f *Floor) shares() bool {
	if f.waiting {
		for _, c := range f.carriers {
			if c.shared && c.theirs == 0 && c.open > 0 && !c.waited {
				return true
			}
		}
	}
	return false
}

// joined reports whether what a response needs said can be said with the client's ask.
func (c *carrier) joined() bool { return c != nil && c.shared && c.theirs == 0 }
