package realtime

import (
	"maps"
	"slices"
	"time"

	"switchboard/realtime/events"
)

const (
	// yieldAfter is for how long a caller speaks into the voice, as voice detection tells it, until that stops. A
	// murmur is over by then: it takes 200 to 450 ms, is noticed in 100 to 350, and its end half a second after it.
	yieldAfter = 900 * time.Millisecond
	// wordsWithin is how long the words of what was said into the voice are waited for, once that is over. Then it may
	// have been a "stop".
	wordsWithin = 2500 * time.Millisecond
	// maxInterjections bounds those whose words are waited for. The oldest is forgotten first: the newer ones are
	// spoken into the same voice.
	maxInterjections = 8
)

// A yielding is what a caller says into sound, in a call whose client lowers that meanwhile and whose model was told to
// go on (interrupt_response: false).
type yielding struct {
	lowers bool            // the client does, and does what we say; set by it as it begins or comes back
	said   []*interjection // oldest first
}

// An interjection is one thing that a caller says into sound, until it is known whether it interrupts. Each has its own
// words, and those of an earlier one may come while a later one is being spoken.
type interjection struct {
	item    string
	into    map[string]bool // the responses that sounded or were being made, and were not stopped since
	until   time.Time       // when it counts as an interruption if nothing else is known; zero: it did
	stopped bool            // it is over, and its words are waited for
	cut     bool            // it has interrupted
	unasked bool            // the model made one of these as it was over, or one just stopped, and so may not answer
	answer  string          // the response that began since; "": none
}

// spokenInto notes that the caller began to speak, and lets the sound go on for now. What cannot be heard yet is
// stopped at once: it would begin over the caller. False: the model and the client stop by themselves.
func (h *hearing) spokenInto(now time.Time) bool {
	y := &h.yielding
	h.spoken(now) // the end of what came before was not told
	if !y.lowers || !h.settings.patient {
		return false
	}
	sounds := false
	into := map[string]bool{}
	if active := h.saying.floor.Active(); active != "" {
		into[active] = true
	}
	for id, v := range h.playback.voices {
		if v.aside || v.over {
			continue
		}
		into[id] = true
		began := h.legs.performs || !v.from.After(now) // what a leg has it plays, or is about to
		if h.attached != nil && h.attached.tells {
			began = !v.from.IsZero()
		}
		sounds = sounds || v.sounds && began
	}
	if len(into) == 0 {
		return true
	}
	if len(y.said) == maxInterjections {
		y.said = slices.Delete(y.said, 0, 1)
	}
	x := &interjection{item: h.speech, into: into, until: now.Add(yieldAfter)}
	y.said = append(y.said, x)
	if !sounds {
		h.interrupt(now, x)
	}
	h.awaitYield()
	return true
}

// spoken notes that the caller has stopped.
func (h *hearing) spoken(now time.Time) {
	if n := len(h.yielding.said); n > 0 && !h.yielding.said[n-1].stopped {
		x := h.yielding.said[n-1]
		active := h.saying.floor.Active()
		x.stopped, x.until, x.unasked = true, now.Add(wordsWithin), x.into[active] || h.muted[active]
		h.awaitYield()
	}
}

// named notes the item of what was said. Some servers do not name it as it begins.
func (h *hearing) named(item string) {
	has := func(name string) func(*interjection) bool {
		return func(x *interjection) bool { return x.item == name }
	}
	if i := slices.IndexFunc(h.yielding.said, has("")); i >= 0 && !slices.ContainsFunc(h.yielding.said, has(item)) {
		h.yielding.said[i].item = item
	}
}

// understood takes what the call made of words of the caller. A backchannel interrupts nothing, and no other
// interjection than its own.
func (h *hearing) understood(item string, backchannel bool) {
	y := &h.yielding
	i := slices.IndexFunc(y.said, func(x *interjection) bool { return x.item == item })
	if i < 0 {
		return
	}
	x := y.said[i]
	y.said = slices.Delete(y.said, i, i+1)
	h.awaitYield()
	if !backchannel {
		h.meantIt(time.Now(), x)
	}
}

// yield takes what has gone on for long enough, and what nobody knows the words of.
func (h *hearing) yield(now time.Time) {
	for _, x := range slices.Clone(h.yielding.said) {
		switch {
		case x.until.IsZero() || x.until.After(now):
		case x.stopped:
			h.yielding.said = slices.DeleteFunc(h.yielding.said, func(o *interjection) bool { return o == x })
			h.meantIt(now, x)
		default:
			h.interrupt(now, x)
		}
	}
	h.awaitYield()
}

// awaitYield sets when yield is to look next.
func (h *hearing) awaitYield() {
	next := &h.alarms[alarmYield].at
	*next = time.Time{}
	for _, x := range h.yielding.said {
		if !x.until.IsZero() && (next.IsZero() || x.until.Before(*next)) {
			*next = x.until
		}
	}
}

// meantIt takes an interjection that is over and no backchannel. It interrupts, unless it has, and the model is asked
// to answer what it does not answer by itself.
func (h *hearing) meantIt(now time.Time, x *interjection) {
	asks := x.unasked && x.answer == ""
	if !x.cut && h.interrupt(now, x) && h.attached != nil && x.answer != "" { // its sound is stopped, too
		asks = true
		for _, r := range h.saying.requests {
			asks = asks && r.response != x.answer
		}
	}
	if asks {
		h.saying.clientAsks(events.Encode(events.Object{"type": events.TypeCreate}))
	}
}

// goesOn lets the sound go on.
func (h *hearing) goesOn() {
	h.yielding.said = nil
	h.awaitYield()
}

// interrupt stops what the caller speaks into: the model, if it makes that still, and whoever plays it. A provider
// cannot stop some of its sound alone. It reports whether there was anything to stop: the rest has ended meanwhile.
func (h *hearing) interrupt(now time.Time, x *interjection) bool {
	x.cut, x.until = true, time.Time{}
	active := h.saying.floor.Active()
	if h.attached != nil && active == "" {
		active = h.attached.making
	}
	var all []string
	for id := range x.into {
		if v := h.playback.voices[id]; id == active || v != nil && !v.over {
			all = append(all, id)
		}
	}
	if len(all) == 0 {
		return false
	}
	for _, other := range h.yielding.said {
		maps.DeleteFunc(other.into, func(id string, _ bool) bool { return slices.Contains(all, id) })
	}
	if slices.Contains(all, active) || h.attached != nil && active != "" {
		h.mute(active)
		h.legs.toModel(events.Cancel(h.ids.Next(), active))
	}
	if h.attached != nil {
		h.stopThere(now)
		return true
	}
	h.cut(func(id string, _ *playing) bool { return slices.Contains(all, id) })
	slices.Sort(all)
	h.legs.toLeg(events.Encode(events.Object{"type": events.TypeCut, "event_id": h.ids.Next(), "response_ids": all}))
	return true
}

// stopThere stops what the provider plays, and tells the model how much of it was heard, where that is known.
func (h *hearing) stopThere(now time.Time) {
	sounded := false
	for _, v := range h.playback.voices {
		sounded = sounded || v.sounds && !v.over
	}
	if !sounded {
		return
	}
	h.legs.toModel(events.Encode(events.Object{"type": events.TypeOutputClear, "event_id": h.ids.Next()}))
	for _, v := range h.playback.voices {
		if v.sounds && !v.over && !v.from.IsZero() && len(v.items) == 1 {
			h.legs.toModel(events.Truncate(h.ids.Next(), v.items[0], 0, int(now.Sub(v.from).Milliseconds())))
		}
	}
	if !h.attached.tells {
		h.stops(now, "", true)
	}
}
