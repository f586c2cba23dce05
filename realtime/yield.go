package realtime

import (
	"maps"
	"slices"
	"time"

	"switchboard/realtime/events"
)

const (
	// yieldAfter is how long a caller has to speak into the voice, as voice detection reports it, until the voice
	// stops. A murmur is over by then: it takes 200 to 450 ms, its beginning is noticed after 100 to 350 ms, and its
	// end half a second late.
	yieldAfter = 900 * time.Millisecond
	// wordsWithin is how long the call waits for the transcript of what was said into the voice. Without one, it counts
	// as an interruption: it may have been a "stop".
	wordsWithin = 2500 * time.Millisecond
	// maxInterjections bounds the interjections that are pending. The oldest is forgotten first: the newer ones are
	// spoken into the same voice.
	maxInterjections = 8
)

// A yielding is what a caller says into the voice, in a call whose client lowers the voice meanwhile and whose model
// does not stop by itself (interrupt_response: false).
type yielding struct {
	lowers        bool            // the client lowers the voice; set when it begins or comes back
	interjections []*interjection // oldest first
}

// An interjection is one thing that a caller says into the voice, until it is known whether it interrupts. Each has its
// own transcript, and that of an earlier one may come while a later one is being spoken.
type interjection struct {
	item    string
	into    map[string]bool // the responses that sounded or were being made, without those stopped since
	until   time.Time       // when it counts as an interruption if nothing else is known; zero: it has interrupted
	stopped bool            // the caller has stopped, and the transcript is awaited
	cut     bool            // it has interrupted
	unasked bool            // at its end a response in into, or one just cut, was being made: it may get no answer
	answer  string          // the response that began after it ended; "": none
}

// spokenInto notes that the caller began to speak, and lets the voice go on for now. A response that does not sound yet
// is stopped at once, as it would begin over the caller. False: the call has no such client, and the voice stops at
// once.
func (h *hearing) spokenInto(now time.Time) bool {
	y := &h.yielding
	h.speechEnded(now) // in case the end of the earlier speech was not reported
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
		began := h.legs.performs || !v.from.After(now) // a performer plays all that it was sent, now or soon
		if h.attached != nil && h.attached.reportsSound {
			began = !v.from.IsZero()
		}
		sounds = sounds || v.sounds && began
	}
	if len(into) == 0 {
		return true
	}
	if len(y.interjections) == maxInterjections {
		y.interjections = slices.Delete(y.interjections, 0, 1)
	}
	x := &interjection{item: h.speakingItem, into: into, until: now.Add(yieldAfter)}
	y.interjections = append(y.interjections, x)
	if !sounds {
		h.interrupt(now, x)
	}
	h.setYieldAlarm()
	return true
}

// speechEnded notes that the caller has stopped speaking.
func (h *hearing) speechEnded(now time.Time) {
	if n := len(h.yielding.interjections); n > 0 && !h.yielding.interjections[n-1].stopped {
		x := h.yielding.interjections[n-1]
		active := h.saying.floor.Active()
		x.stopped, x.until, x.unasked = true, now.Add(wordsWithin), x.into[active] || h.muted[active]
		h.setYieldAlarm()
	}
}

// nameInterjection gives the first interjection without an item this one. Some servers do not name the item as it
// begins.
func (h *hearing) nameInterjection(item string) {
	has := func(name string) func(*interjection) bool {
		return func(x *interjection) bool { return x.item == name }
	}
	all := h.yielding.interjections
	if i := slices.IndexFunc(all, has("")); i >= 0 && !slices.ContainsFunc(all, has(item)) {
		all[i].item = item
	}
}

// understood handles the transcript of an item of the caller, or its absence. A backchannel does not interrupt, and
// only ends the interjection with this item.
func (h *hearing) understood(item string, backchannel bool) {
	y := &h.yielding
	i := slices.IndexFunc(y.interjections, func(x *interjection) bool { return x.item == item })
	if i < 0 {
		return
	}
	x := y.interjections[i]
	y.interjections = slices.Delete(y.interjections, i, i+1)
	h.setYieldAlarm()
	if !backchannel {
		h.confirmInterruption(time.Now(), x)
	}
}

// checkInterjections lets those interrupt that have gone on for long enough, or have got no transcript in time.
func (h *hearing) checkInterjections(now time.Time) {
	for _, x := range slices.Clone(h.yielding.interjections) {
		switch {
		case x.until.IsZero() || x.until.After(now):
		case x.stopped:
			h.yielding.interjections = slices.DeleteFunc(h.yielding.interjections,
				func(o *interjection) bool { return o == x })
			h.confirmInterruption(now, x)
		default:
			h.interrupt(now, x)
		}
	}
	h.setYieldAlarm()
}

// setYieldAlarm sets the alarm for the next interjection that is due.
func (h *hearing) setYieldAlarm() {
	next := &h.alarms[alarmYield].at
	*next = time.Time{}
	for _, x := range h.yielding.interjections {
		if !x.until.IsZero() && (next.IsZero() || x.until.Before(*next)) {
			*next = x.until
		}
	}
}

// confirmInterruption handles an interjection that is over and no backchannel. It interrupts, unless it has already,
// and the model is asked for an answer if it gives none by itself.
func (h *hearing) confirmInterruption(now time.Time, x *interjection) {
	asks := x.unasked && x.answer == ""
	if !x.cut && h.interrupt(now, x) && h.attached != nil && x.answer != "" { // cuts its answer, too
		asks = true
		for _, r := range h.saying.requests {
			asks = asks && r.response != x.answer
		}
	}
	if asks {
		h.saying.clientAsks(events.Encode(events.Object{"type": events.TypeCreate}))
	}
}

// clearInterjections forgets all interjections, so that none interrupts.
func (h *hearing) clearInterjections() {
	h.yielding.interjections = nil
	h.setYieldAlarm()
}

// interrupt stops the responses that the caller speaks into: it cancels one that the model is still making, and stops
// the player. A provider can only stop all of its sound. It reports whether there was anything left to stop.
func (h *hearing) interrupt(now time.Time, x *interjection) bool {
	x.cut, x.until = true, time.Time{}
	active := h.saying.floor.Active()
	if h.attached != nil && active == "" {
		active = h.attached.running
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
	for _, other := range h.yielding.interjections {
		maps.DeleteFunc(other.into, func(id string, _ bool) bool { return slices.Contains(all, id) })
	}
	if slices.Contains(all, active) || h.attached != nil && active != "" {
		h.mute(active)
		h.legs.toModel(events.Cancel(h.ids.Next(), active))
	}
	if h.attached != nil {
		h.stopProvider(now)
		return true
	}
	h.cut(func(id string, _ *playing) bool { return slices.Contains(all, id) })
	slices.Sort(all)
	h.legs.toLeg(events.Encode(events.Object{"type": events.TypeCut, "event_id": h.ids.Next(), "response_ids": all}))
	return true
}

// stopProvider stops the sound that the provider plays, and tells the model how much of it was heard, if that is known.
func (h *hearing) stopProvider(now time.Time) {
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
	if !h.attached.reportsSound {
		h.stops(now, "", true)
	}
}
