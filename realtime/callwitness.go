package realtime

import (
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
)

const (
	// signBefore and signAfter bound when a client must have shown that it is there for what it was given last
	// to count as heard: the network may have lost it long before anybody tells. One that comes back later has
	// missed the sound, or hears it so late that nobody knows when.
	signBefore = time.Second
	signAfter  = 3 * time.Second
	// signEvery is how often a sign is looked for while one is missing.
	signEvery = 250 * time.Millisecond
	// maxUnsure bounds what waits for a sign. When full the oldest counts as not heard: the router says it
	// again, or keeps it for the next call.
	maxUnsure = 64
)

// attest reports what was given to the client, once it shows that it is there.
func (c *Call) attest(s handoff.Said) {
	if c.witness == nil || s.At.IsZero() || c.there(s) {
		c.report(s)
		return
	}
	if len(c.unsure) == 0 {
		c.witness.Probe()
		c.alarms[alarmSign].at = time.Now().Add(signEvery)
	}
	if len(c.unsure) >= maxUnsure {
		c.doubt(1)
	}
	c.unsure = append(c.unsure, s)
}

// there reports whether the client was there when something was given.
func (c *Call) there(s handoff.Said) bool { return !c.witness.Seen().Before(s.At.Add(-signBefore)) }

// signs looks whether the client has shown itself since, and gives up what it cannot have heard.
func (c *Call) signs(now time.Time) {
	for len(c.unsure) > 0 {
		s := c.unsure[0]
		switch late := now.Sub(s.At) > signAfter; {
		case late:
			c.doubt(1)
		case c.there(s):
			c.unsure = c.unsure[1:]
			c.report(s)
		default:
			c.alarms[alarmSign].at = now.Add(signEvery)
			return
		}
	}
	c.alarms[alarmSign].at = time.Time{}
}

// doubt gives up the oldest n that wait for a sign.
func (c *Call) doubt(n int) {
	c.unsure = c.unsure[n:]
	c.counts.unsure += n
	c.log.Warn("client gave no sign that it heard", zap.Int("utterances", n))
}
