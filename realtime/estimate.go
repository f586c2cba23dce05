package realtime

import "time"

// An estimate is until when the caller hears the model: its audio comes faster than it sounds.
type estimate struct{ until time.Time }

// add counts audio that arrived now.
func (p *estimate) add(now time.Time, bytes, rate int) {
	if p.until.Before(now) {
		p.until = now
	}
	p.until = p.until.Add(time.Duration(bytes) * time.Millisecond / time.Duration(rate))
}

// clear ends it: the caller interrupted.
func (p *estimate) clear() { p.until = time.Time{} }

// on reports whether something is still to be heard.
func (p *estimate) on(now time.Time) bool { return p.until.After(now) }
