package realtime

import (
	"testing"
	"time"
)

func TestPlayback(t *testing.T) {
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	var p estimate
	if p.on(start) {
		t.Error("it plays before a sound")
	}
	p.add(at(0), 48*100, pcmRate)
	p.add(at(10), 8*100, g711Rate) // it comes faster than it sounds
	if !p.on(at(199)) || p.on(at(200)) {
		t.Errorf("until %v", p.until.Sub(start))
	}
	p.add(at(500), 8*100, g711Rate)
	if !p.on(at(599)) || p.on(at(600)) {
		t.Errorf("until %v", p.until.Sub(start))
	}
	p.clear()
	if p.on(at(510)) {
		t.Error("it plays on after an interruption")
	}
}
