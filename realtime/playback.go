package realtime

import (
	"cmp"
	"slices"
	"time"

	"switchboard/realtime/events"
	"switchboard/realtime/floor"
)

// aWord is how long a response must sound before a cut for its beginning to count as heard.
const aWord = 500 * time.Millisecond

// spokenRate is how many bytes of text a voice speaks in a second. It is a low estimate: English has about 15.
const spokenRate = 13

// strayLag is how long after its end the sound of an unknown response counts as over.
const strayLag = 500 * time.Millisecond

// maxVoiced bounds the known items of a response that sounds; items beyond it end with the response.
const maxVoiced = 256

// A playback tracks what the caller hears of the model's voice, response by response. A [performer] reports it. For
// other clients it is estimated: sound arrives faster than it plays, responses play one after the other, and without
// pauses. It is pure.
type playback struct {
	reported bool                // Set once: a performer reports what was heard
	until    time.Time           // estimate: when the caller will have heard all that was sent
	voices   map[string]*playing // by response, until it is done and its sound is over
}

// A playing is one response that sounds, or may sound.
type playing struct {
	aside       bool          // out of band: the caller's speech does not cancel it
	items       []string      // its items that sound
	sounds      bool          // some of its sound was sent
	from, until time.Time     // estimates of its beginning and end, once it sounds
	sent        time.Duration // length of its sound so far
	heardFor    time.Duration // how much of that was heard; set when over
	complete    bool          // no more sound will come
	done        bool          // the floor knows that it is complete
	over        bool          // nothing more of it will be heard
	heard       floor.Heard   // set when over
	overAt      time.Time     // when it was over
}

func newPlayback(told bool) playback { return playback{reported: told, voices: map[string]*playing{}} }

// begin notes a response. An earlier response of the same conversation gets no more sound, even if the model has not
// reported its end.
func (p *playback) begin(response string, aside bool) {
	for id, v := range p.voices {
		v.complete = v.complete || (!aside && !v.aside && id != response)
	}
	if p.voices[response] == nil {
		p.voices[response] = &playing{aside: aside}
	}
}

// add counts sound that was sent to the client now. heard is false if the client has cut this response and plays no
// more of it. first reports whether a response of the conversation begins to sound.
func (p *playback) add(now time.Time, response, item []byte, bytes, rate int) (heard, first bool) {
	v := p.voices[string(response)]
	if v != nil && v.over {
		return false, false
	}
	from := now
	if p.until.After(now) {
		from = p.until
	}
	sound := time.Duration(bytes) * time.Millisecond / time.Duration(rate)
	p.until = from.Add(sound)
	if v == nil || bytes == 0 {
		return true, false
	}
	if first = !v.sounds; first {
		v.sounds, v.from = true, from
	}
	v.until = p.until
	v.sent += sound
	if n := len(v.items); len(item) <= events.MaxID && n < maxVoiced && (n == 0 || v.items[n-1] != string(item)) {
		v.items = append(v.items, string(item))
	}
	return true, first && !v.aside
}

// plays notes that the provider plays a response. started: it begins now. first reports whether the response did not
// sound before; known is false for a response that is out of band or over.
func (p *playback) plays(now time.Time, response string, started bool) (first, known bool) {
	v := p.voices[response]
	switch {
	case v == nil && !started:
		return false, false
	case v == nil: // it was done, and forgotten, before it sounded
		v = &playing{complete: true, done: true}
		p.voices[response] = v
	case v.aside || v.over:
		return false, false
	}
	first, v.sounds = !v.sounds, true
	if started {
		v.from = now
	}
	return first, true
}

// itemOf notes an item of a response that the provider plays.
func (p *playback) itemOf(response, item string) {
	v := p.voices[response]
	if v != nil && len(v.items) < maxVoiced && !slices.Contains(v.items, item) {
		v.items = append(v.items, item)
	}
}

// stops ends a response that the provider plays, or all of them (""). If it was cut and nobody reported when it began,
// a part of it counts as heard.
func (p *playback) stops(now time.Time, response string, cut bool) []floor.Played {
	return p.collect(func(id string, v *playing) {
		switch {
		case response != "" && id != response || !v.sounds:
		case !cut:
			v.end(floor.HeardWhole, now)
		case !v.from.IsZero() && now.Sub(v.from) < aWord:
			v.end(floor.HeardNothing, now)
		default:
			v.end(floor.HeardPart, now)
		}
	})
}

// complete notes that the model has made all of a response.
func (p *playback) complete(response string) {
	if v := p.voices[response]; v != nil {
		v.complete = true
	}
}

// abandon gives up a response whose end the model never reported, and returns the responses that are over with that.
func (p *playback) abandon(now time.Time, response string) []floor.Played {
	p.complete(response)
	if !p.reported {
		return p.drain(now)
	}
	return p.collect(func(id string, v *playing) {
		if id == response && v.sounds {
			v.end(floor.HeardPart, now)
		}
	})
}

// done notes that the floor knows the end of a response: once its sound is over, it can be forgotten.
func (p *playback) done(response string) {
	if v := p.voices[response]; v != nil {
		v.done = true
		p.forget(response)
	}
}

// forget drops a response that is done and over.
func (p *playback) forget(response string) {
	if v := p.voices[response]; v != nil && v.done && (v.over || !v.sounds) {
		delete(p.voices, response)
	}
}

// end notes that nothing more of a response will be heard, and how much was.
func (v *playing) end(f floor.Heard, at time.Time) {
	v.over, v.heard, v.overAt = true, f, at
	if !v.from.IsZero() && v.heardFor == 0 {
		v.heardFor = max(0, at.Sub(v.from))
	}
}

// share returns how much of the sound of a response that is over was heard, from 0 to 1. words is the length of its
// transcript in bytes: it gives the length of the sound (at spokenRate) if the provider plays it, as then only the time
// is known.
func (p *playback) share(response string, words int) float64 {
	v := p.voices[response]
	if v == nil || !v.over {
		return 0
	}
	whole := v.sent
	if whole == 0 {
		whole = time.Duration(words) * time.Second / spokenRate
	}
	switch {
	case v.heard == floor.HeardWhole:
		return 1
	case whole == 0 || v.heard == floor.HeardNothing:
		return 0
	}
	return min(1, v.heardFor.Seconds()/whole.Seconds())
}

// drain ends and returns the responses that by the estimate were heard to their end by now, in order.
func (p *playback) drain(now time.Time) []floor.Played {
	if p.reported {
		return nil
	}
	return p.collect(func(_ string, v *playing) {
		if v.sounds && v.complete && !v.until.After(now) {
			v.end(floor.HeardWhole, v.until)
		}
	})
}

// collect calls judge, which may end a response, for each that is not over. It returns those that were ended and had
// sound, in the order of their ends.
func (p *playback) collect(judge func(string, *playing)) []floor.Played {
	var all []floor.Played
	for id, v := range p.voices {
		if v.over {
			continue
		}
		if judge(id, v); v.over && v.sounds {
			all = append(all, floor.Played{Response: id, Heard: v.heard})
		}
	}
	slices.SortFunc(all, func(a, b floor.Played) int {
		ends := p.voices[a.Response].until.Compare(p.voices[b.Response].until)
		return cmp.Or(ends, cmp.Compare(a.Response, b.Response))
	})
	return all
}

// cut ends the responses that which picks, of those that sound or are being made: the client has stopped playing them.
// It does nothing for a performer, which reports its cuts itself.
func (p *playback) cut(now time.Time, which func(id string, v *playing) bool) []floor.Played {
	if p.reported {
		return nil
	}
	all := p.collect(func(id string, v *playing) {
		switch {
		case !which(id, v) || (v.aside && !v.sounds):
		case v.sounds && now.Sub(v.from) >= aWord:
			v.end(floor.HeardPart, now)
		default:
			v.end(floor.HeardNothing, now)
		}
	})
	p.until = time.Time{}
	for _, v := range p.voices {
		if v.sounds && !v.over && v.until.After(p.until) {
			p.until = v.until
		}
	}
	return all
}

// endAll ends all sound, as the client is gone. What was not heard to its end counts as not heard.
func (p *playback) endAll(now time.Time) []floor.Played {
	ended := p.drain(now)
	p.until = time.Time{}
	return append(ended, p.collect(func(_ string, v *playing) {
		if v.sounds {
			v.end(floor.HeardNothing, now)
		}
	})...)
}

// report handles a performer's report that ms milliseconds of a response were heard, and that the rest was cut or there
// is none.
func (p *playback) report(now time.Time, response string, ms int64, cut bool) []floor.Played {
	if cut { // what comes next plays at once
		p.until = time.Time{}
	}
	return p.collect(func(id string, v *playing) {
		switch {
		case id != response:
			return
		case ms <= 0, cut && ms < aWord.Milliseconds():
			v.end(floor.HeardNothing, now)
		case cut:
			v.end(floor.HeardPart, now)
		default:
			v.end(floor.HeardWhole, now)
		}
		v.heardFor = time.Duration(ms) * time.Millisecond
	})
}

// soundsAt reports whether the model can be heard now, or will be at once.
func (p *playback) soundsAt(now time.Time) bool {
	if !p.reported {
		return p.until.After(now)
	}
	for _, v := range p.voices {
		if v.sounds && !v.over {
			return true
		}
	}
	return false
}

// next returns when the next estimated end is, or zero. The end of the sound of a response that the model is still
// making does not count: nothing follows from it before the response is complete, and if sound is sent as fast as it
// plays, a timer would ring for every piece. For the same reason the sound of an unknown response ends strayLag later.
func (p *playback) next(now time.Time) time.Time {
	if p.reported || !p.until.After(now) {
		return time.Time{}
	}
	runs, sounds, next := false, false, p.until
	for _, v := range p.voices {
		switch {
		case !v.sounds || v.over:
			continue
		case v.complete && v.until.Before(next):
			next = v.until
		case !v.complete && !v.aside:
			runs = true
		}
		sounds = true
	}
	switch {
	case !sounds:
		return next.Add(strayLag)
	case runs && next.Equal(p.until):
		return time.Time{}
	}
	return next
}

// sounds reports whether any sound of a response was sent.
func (p *playback) sounds(response string) bool {
	v := p.voices[response]
	return v != nil && v.sounds
}

// beganAt returns when the sound of a response began, or now if that is not known.
func (p *playback) beganAt(now time.Time, response string) time.Time {
	if v := p.voices[response]; v != nil && !v.from.IsZero() && v.from.Before(now) {
		return v.from
	}
	return now
}

// endOf returns when the sound of a response was over, or now if it had no sound or is not known any more.
func (p *playback) endOf(now time.Time, response string) time.Time {
	if v := p.voices[response]; v != nil && v.over && v.sounds {
		return v.overAt
	}
	return now
}
