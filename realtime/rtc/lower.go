package rtc

import (
	"slices"
	"time"
)

// lowFrames is for how long a client that lowers the sound hears it on while somebody speaks into it. A backchannel is
// over by then: "mm-hmm" takes 200 to 400 ms, and voice detection, which needs half a second of silence to end it, as
// long to begin it.
const lowFrames = int(700 * time.Millisecond / frameTime)

// wordFrames is for how long the words of what was said into the sound are waited for, once that is over. Then it may
// have been a "stop".
const wordFrames = int(2500 * time.Millisecond / frameTime)

// maxSaid bounds what was said into the sound and waits for its words. The oldest is forgotten first.
const maxSaid = 8

// A lowered is what the caller says into sound, until it is known whether it interrupts. The client plays the sound
// more quietly meanwhile, so that whoever wants to interrupt notices that they are heard.
type lowered struct {
	items   []string        // that they say, and of which no words have come, oldest first
	frames  int             // that were due since they began, or have ended
	loud    int             // of them, the newest during which they could be heard; -1: nobody listened to that
	stopped bool            // they have ended; words are waited for, and the sound goes on
	into    map[string]bool // the responses that sounded or were being made
}

// A caller whose sound is this loud still speaks: -40 dBFS, as root mean square of 16 bit samples.
const loudRMS = 330

// restFrames of quiet are more than stands between two words: who rests so long when lowFrames are over has perhaps
// only murmured. Voice detection is waited for as long again then.
const restFrames = int(200 * time.Millisecond / frameTime)

// listen takes sound of the caller as the model gets it.
func (p *player) listen(sound []byte) {
	if p.low == nil || len(sound) < 2 {
		return
	}
	sum, n := 0.0, 0
	add := func(v int16) {
		sum += float64(v) * float64(v)
		n++
	}
	if p.formats.in.factor == 0 {
		for _, b := range sound {
			add(fromMulaw(b))
		}
	} else {
		for i := 0; i+1 < len(sound); i += 2 {
			add(int16(uint16(sound[i]) | uint16(sound[i+1])<<8))
		}
	}
	p.low.loud = max(p.low.loud, 0)
	if sum >= loudRMS*loudRMS*float64(n) {
		p.low.loud = p.low.frames
	}
}

// spokenInto notes that the caller began to speak. It interrupts at once, unless the client lowers the sound: then
// what goes on for lowFrames does, and what was no backchannel.
func (p *player) spokenInto(item string) effects {
	switch {
	case p.patient:
		return effects{}
	case !p.lowers || len(p.queue) == 0 || !p.queue[0].started:
		return p.cut(all)
	}
	var before []string
	if p.low != nil { // its words have not come, and may be a "stop"
		before = p.low.items[max(0, len(p.low.items)-maxSaid+1):]
	}
	p.low = &lowered{items: append(before, item), loud: -1, into: map[string]bool{}}
	for response := range p.live {
		p.low.into[response] = true
	}
	for _, s := range p.queue {
		p.low.into[s.response] = true
	}
	return effects{}
}

// spoken notes that the caller has stopped.
func (p *player) spoken() {
	if p.low != nil && !p.low.stopped {
		p.low.stopped, p.low.frames = true, 0
	}
}

// named notes the item of what was said. Some servers do not name it as it begins.
func (p *player) named(item string) {
	if p.low != nil && !slices.Contains(p.low.items, item) {
		if i := slices.Index(p.low.items, ""); i >= 0 {
			p.low.items[i] = item
		}
	}
}

// yield counts a frame, and cuts what the caller has spoken into for long enough, or nobody knows the words of.
func (p *player) yield() effects {
	if p.low == nil {
		return effects{}
	}
	if p.low.frames++; p.low.stopped {
		if p.low.frames <= wordFrames {
			return effects{}
		}
		return p.interrupt()
	}
	rests := p.low.loud >= 0 && p.low.frames-p.low.loud > restFrames
	if p.low.frames <= lowFrames || rests && p.low.frames <= 2*lowFrames {
		return effects{}
	}
	return p.interrupt()
}

// understand takes what the call made of the words of an item. A backchannel interrupts nothing, and lets nothing go on
// but itself.
func (p *player) understand(item string, backchannel bool) effects {
	if p.low == nil || !slices.Contains(p.low.items, item) {
		return effects{}
	}
	if !backchannel {
		return p.interrupt()
	}
	p.low.items = slices.DeleteFunc(p.low.items, func(o string) bool { return o == item })
	if len(p.low.items) == 0 {
		p.low = nil
	}
	return effects{}
}

// interrupt cuts what the caller spoke into, and leaves what the model says to their words.
func (p *player) interrupt() effects {
	into := p.low.into
	return p.cut(func(response string) bool { return into[response] })
}
