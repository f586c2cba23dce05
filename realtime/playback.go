package realtime

import (
	"cmp"
	"slices"
	"time"

	"switchboard/realtime/events"
	"switchboard/realtime/floor"
)

// aWord is how much sound of what was cut tells anybody anything.
const aWord = 500 * time.Millisecond

// spokenRate is how many bytes of words a voice speaks in a second, rather too few: English has about 15.
const spokenRate = 13

// strayLag is how much later than it was over the end of sound is noticed that belongs to no known response.
const strayLag = 500 * time.Millisecond

// maxVoiced bounds the items of a response that are known to sound; those beyond it end with the response.
const maxVoiced = 256

// A playback follows what the caller hears of the model's voice, response by response. A [performer] tells; of
// other clients it is estimated: sound comes faster than it is heard, one response after the other, and
// nobody pauses. It is pure.
type playback struct {
	told   bool                // Set once: a performer tells
	until  time.Time           // estimate: when the caller has heard all that came; it comes faster than it sounds
	voices map[string]*playing // responses by id, until they are done and their sound is over
}

// A playing is one response that sounds, or may.
type playing struct {
	aside       bool          // out of band: barge-in does not cancel it
	items       []string      // that it sounds for
	sounds      bool          // some was sent
	from, until time.Time     // estimates, once it sounds
	sent        time.Duration // of its sound, so far
	got         time.Duration // of it, that was heard; once over
	made        bool          // no more sound will come
	done        bool          // the floor knows that it is
	over        bool          // nothing more of it will be heard
	heard       floor.Heard   // once over
	at          time.Time     // when it was over
}

func newPlayback(told bool) playback { return playback{told: told, voices: map[string]*playing{}} }

// begin notes a response. One before it in the same conversation gets no more sound, whatever the model
// says of its end.
func (p *playback) begin(response string, aside bool) {
	for id, v := range p.voices {
		v.made = v.made || (!aside && !v.aside && id != response)
	}
	if p.voices[response] == nil {
		p.voices[response] = &playing{aside: aside}
	}
}

// add counts sound that was sent to the client now. heard is false when the client has cut this response already and
// plays nothing more of it. first reports whether one of the conversation begins to sound.
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

// plays notes that a response sounds which somebody else plays, from now on if started. first reports whether it did
// not sound before; known is false of one out of band, and of one that is over.
func (p *playback) plays(now time.Time, response string, started bool) (first, known bool) {
	v := p.voices[response]
	switch {
	case v == nil && !started:
		return false, false
	case v == nil: // it was done before it sounded
		v = &playing{made: true, done: true}
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

// itemOf notes an item of a response that somebody else plays.
func (p *playback) itemOf(response, item string) {
	v := p.voices[response]
	if v != nil && len(v.items) < maxVoiced && !slices.Contains(v.items, item) {
		v.items = append(v.items, item)
	}
}

// stops ends a response that somebody else plays, or all of them (""). What began at a time that nobody told is heard
// as far as a word.
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

// complete notes that the model made all of a response.
func (p *playback) complete(response string) {
	if v := p.voices[response]; v != nil {
		v.made = true
	}
}

// abandon gives up a response of which nothing more comes, and returns what was over with that.
func (p *playback) abandon(now time.Time, response string) []floor.Played {
	p.complete(response)
	if !p.told {
		return p.drain(now)
	}
	return p.collect(func(id string, v *playing) {
		if id == response && v.sounds {
			v.end(floor.HeardPart, now)
		}
	})
}

// done notes that nobody asks about a response any more, once its sound is over.
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

// end notes what was heard of a response at last.
func (v *playing) end(f floor.Heard, at time.Time) {
	v.over, v.heard, v.at = true, f, at
	if !v.from.IsZero() && v.got == 0 {
		v.got = max(0, at.Sub(v.from))
	}
}

// share returns how much of the sound of a response that is over was heard, of as much as there was, from 0 to 1. Of
// one that somebody else plays only the time is known: then it is estimated from the length of its words, which are
// spoken at spokenRate.
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
	return min(1, v.got.Seconds()/whole.Seconds())
}

// drain returns what was heard to its end by now, in order, as far as it is estimated.
func (p *playback) drain(now time.Time) []floor.Played {
	if p.told {
		return nil
	}
	return p.collect(func(_ string, v *playing) {
		if v.sounds && v.made && !v.until.After(now) {
			v.end(floor.HeardWhole, v.until)
		}
	})
}

// collect lets judge end responses and returns those that had sound, in the order of their ends.
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
		return cmp.Or(p.voices[a.Response].until.Compare(p.voices[b.Response].until), cmp.Compare(a.Response, b.Response))
	})
	return all
}

// cut ends, of what still sounds or is being made, what which picks: the client stopped playing it. A
// performer tells by itself.
func (p *playback) cut(now time.Time, which func(id string, v *playing) bool) []floor.Played {
	if p.told {
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

// lose ends all that still sounds: nobody is there any more. What was not heard to its end is not heard.
func (p *playback) lose(now time.Time) []floor.Played {
	ended := p.drain(now)
	p.until = time.Time{}
	return append(ended, p.collect(func(_ string, v *playing) {
		if v.sounds {
			v.end(floor.HeardNothing, now)
		}
	})...)
}

// hear takes what a performer reports of a response.
func (p *playback) hear(now time.Time, response string, ms int64, cut bool) []floor.Played {
	if cut { // what comes next is heard at once
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
		v.got = time.Duration(ms) * time.Millisecond
	})
}

// on reports whether the model is heard, or about to be.
func (p *playback) on(now time.Time) bool {
	if !p.told {
		return p.until.After(now)
	}
	for _, v := range p.voices {
		if v.sounds && !v.over {
			return true
		}
	}
	return false
}

// next returns when to look again, or zero. While a response of the conversation runs, the end of all sound is not
// waited for: it changes nothing before the response is made, and with sound that is sent as fast as it is heard a
// timer would ring for every piece of it. So would it for sound of no response that is known, whose end is looked for
// strayLag later.
func (p *playback) next(now time.Time) time.Time {
	if p.told || !p.until.After(now) {
		return time.Time{}
	}
	runs, sounds, next := false, false, p.until
	for _, v := range p.voices {
		switch {
		case !v.sounds || v.over:
			continue
		case v.made && v.until.Before(next):
			next = v.until
		case !v.made && !v.aside:
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

// sounds reports whether some sound of a response was sent.
func (p *playback) sounds(response string) bool {
	v := p.voices[response]
	return v != nil && v.sounds
}

// at returns when the sound of a response was over; now where it had none or it is not known any more.
func (p *playback) at(now time.Time, response string) time.Time {
	if v := p.voices[response]; v != nil && v.over && v.sounds {
		return v.at
	}
	return now
}
