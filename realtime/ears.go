package realtime

import (
	"slices"
	"time"

	"switchboard/realtime/events"
	"switchboard/realtime/floor"
)

// aWord is how much sound of what was cut tells anybody anything.
const aWord = 500 * time.Millisecond

// maxVoiced bounds the items of a response that are known to sound; those beyond it end with the response.
const maxVoiced = 256

// ears follow what the caller hears of the model's voice, response by response. A [performer] tells; of
// other clients it is estimated: sound comes faster than it is heard, one response after the other, and
// nobody pauses. They are pure.
type ears struct {
	told   bool                // Set once: a performer tells
	sound  playback            // estimate of all of it together
	voices map[string]*voicing // responses by id, until they are done and their sound is over
}

// A voicing is the sound of one response.
type voicing struct {
	aside       bool       // out of band: barge-in does not cancel it
	items       []string   // that it sounds for
	sounds      bool       // some was sent
	from, until time.Time  // estimates, once it sounds
	made        bool       // no more sound will come
	done        bool       // the floor knows that it is
	over        bool       // nothing more of it will be heard
	fate        floor.Fate // once over
	at          time.Time  // when it was over
}

func newEars(told bool) ears { return ears{told: told, voices: map[string]*voicing{}} }

// begin notes a response. One before it in the same conversation gets no more sound, whatever the model
// says of its end.
func (e *ears) begin(response string, aside bool) {
	for id, v := range e.voices {
		v.made = v.made || (!aside && !v.aside && id != response)
	}
	if e.voices[response] == nil {
		e.voices[response] = &voicing{aside: aside}
	}
}

// add counts sound that was sent to the client now. heard is false when the client has cut this response
// already and plays nothing more of it, first tells that one of the
// conversation begins to sound.
func (e *ears) add(now time.Time, response, item []byte, bytes, rate int) (heard, first bool) {
	v := e.voices[string(response)]
	if v != nil && v.over {
		return false, false
	}
	from := now
	if e.sound.on(now) {
		from = e.sound.until
	}
	e.sound.add(now, bytes, rate)
	if v == nil || bytes == 0 {
		return true, false
	}
	if first = !v.sounds; first {
		v.sounds, v.from = true, from
	}
	v.until = e.sound.until
	if n := len(v.items); len(item) <= events.MaxID && n < maxVoiced && (n == 0 || v.items[n-1] != string(item)) {
		v.items = append(v.items, string(item))
	}
	return true, first && !v.aside
}

// complete notes that the model made all of a response.
func (e *ears) complete(response string) {
	if v := e.voices[response]; v != nil {
		v.made = true
	}
}

// abandon gives up a response of which nothing more comes, and returns what was over with that.
func (e *ears) abandon(now time.Time, response string) []floor.Played {
	e.complete(response)
	if !e.told {
		return e.drain(now)
	}
	return e.collect(func(id string, v *voicing) {
		if id == response && v.sounds {
			v.end(floor.HeardPart, now)
		}
	})
}

// done notes that nobody asks about a response any more, once its sound is over.
func (e *ears) done(response string) {
	if v := e.voices[response]; v != nil {
		v.done = true
		e.forget(response)
	}
}

// forget drops a response that is done and over.
func (e *ears) forget(response string) {
	if v := e.voices[response]; v != nil && v.done && (v.over || !v.sounds) {
		delete(e.voices, response)
	}
}

// end gives a voicing its fate.
func (v *voicing) end(f floor.Fate, at time.Time) { v.over, v.fate, v.at = true, f, at }

// drain returns what was heard to its end by now, in order, as far as it is estimated.
func (e *ears) drain(now time.Time) []floor.Played {
	if e.told {
		return nil
	}
	return e.collect(func(_ string, v *voicing) {
		if v.sounds && v.made && !v.until.After(now) {
			v.end(floor.HeardWhole, v.until)
		}
	})
}

// collect lets judge end voicings and returns those that had sound, in the order of their ends.
func (e *ears) collect(judge func(string, *voicing)) []floor.Played {
	var all []floor.Played
	for id, v := range e.voices {
		if v.over {
			continue
		}
		if judge(id, v); v.over && v.sounds {
			all = append(all, floor.Played{Response: id, Fate: v.fate})
		}
	}
	slices.SortFunc(all, func(a, b floor.Played) int {
		return e.voices[a.Response].until.Compare(e.voices[b.Response].until)
	})
	return all
}

// cut ends, of what still sounds or is being made, what which picks: the client stopped playing it. A
// performer tells by itself.
func (e *ears) cut(now time.Time, which func(id string, v *voicing) bool) []floor.Played {
	if e.told {
		return nil
	}
	all := e.collect(func(id string, v *voicing) {
		switch {
		case !which(id, v) || (v.aside && !v.sounds):
		case v.sounds && now.Sub(v.from) >= aWord:
			v.end(floor.HeardPart, now)
		default:
			v.end(floor.HeardNothing, now)
		}
	})
	e.sound.clear()
	for _, v := range e.voices {
		if v.sounds && !v.over && v.until.After(e.sound.until) {
			e.sound.until = v.until
		}
	}
	return all
}

// hear takes what a performer tells of a response.
func (e *ears) hear(now time.Time, response string, ms int64, cut bool) []floor.Played {
	return e.collect(func(id string, v *voicing) {
		switch {
		case id != response:
		case ms <= 0, cut && ms < aWord.Milliseconds():
			v.end(floor.HeardNothing, now)
		case cut:
			v.end(floor.HeardPart, now)
		default:
			v.end(floor.HeardWhole, now)
		}
	})
}

// on tells whether the model is heard, or about to be.
func (e *ears) on(now time.Time) bool {
	if !e.told {
		return e.sound.on(now)
	}
	for _, v := range e.voices {
		if v.sounds && !v.over {
			return true
		}
	}
	return false
}

// next returns when to look again, or zero.
func (e *ears) next(now time.Time) time.Time {
	if e.told || !e.sound.on(now) {
		return time.Time{}
	}
	next := e.sound.until
	for _, v := range e.voices {
		if v.sounds && v.made && !v.over && v.until.Before(next) {
			next = v.until
		}
	}
	return next
}

// at returns when the sound of a response was over; now where it had none or it is not known any more.
func (e *ears) at(now time.Time, response string) time.Time {
	if v := e.voices[response]; v != nil && v.over && v.sounds {
		return v.at
	}
	return now
}
