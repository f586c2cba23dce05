package realtime

import (
	"slices"
	"time"

	"switchboard/realtime/events"
)

// yieldAfter is for how long a caller speaks into the voice, as voice detection tells it, until that stops. A murmur is
// over by then: it takes 200 to 450 ms, is noticed in 100 to 350, and its end half a second after it.
const yieldAfter = 900 * time.Millisecond

// A yielding is what a caller says into sound until it is known whether it interrupts, in a call whose client lowers
// the sound meanwhile and whose model was told to go on (interrupt_response: false). A leg that plays the sound itself
// decides by itself, see package rtc.
type yielding struct {
	lowers bool // the client does, and does what we say; set by it as it begins or comes back

	into    map[string]bool // the responses that sounded or were being made; nil: nobody speaks into any
	item    string          // what is said
	stopped bool            // it is over, and its words are waited for
	unasked bool            // the model made one of these as it was over, and so may not answer
	answer  string          // the response that began since; "": none
}

// spokenInto notes that the caller began to speak, and lets the sound go on for now. What cannot be heard yet is
// stopped at once: it would begin over the caller. False: the model and the client stop by themselves.
func (h *hearing) spokenInto(now time.Time) bool {
	y := &h.yielding
	y.into = nil
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
		sounds = sounds || v.sounds && !v.from.After(now) && (h.attached == nil || !h.attached.tells || !v.from.IsZero())
	}
	if len(into) == 0 {
		return true
	}
	*y = yielding{lowers: true, into: into, item: h.speech}
	if sounds {
		h.alarms[alarmYield].at = now.Add(yieldAfter)
		return true
	}
	h.interrupt(now)
	return true
}

// spoken notes that the caller has stopped.
func (h *hearing) spoken() {
	y := &h.yielding
	h.alarms[alarmYield].at = time.Time{}
	y.stopped, y.unasked = true, y.into[h.saying.floor.Active()]
}

// understood takes what the call made of words of the caller. A backchannel interrupts nothing.
func (h *hearing) understood(item string, backchannel bool) {
	y := &h.yielding
	switch {
	case y.into == nil || item != y.item:
		return
	case backchannel:
		h.goesOn()
		return
	}
	answer, asks := y.answer, y.unasked && y.answer == ""
	if h.attached != nil && answer != "" { // its sound is stopped, too
		asks = true
		for _, r := range h.saying.requests {
			asks = asks && r.response != answer
		}
	}
	h.interrupt(time.Now())
	if asks {
		h.saying.clientAsks(events.Encode(events.Object{"type": events.TypeCreate}))
	}
}

// goesOn lets the sound go on.
func (h *hearing) goesOn() {
	h.yielding = yielding{lowers: h.yielding.lowers}
	h.alarms[alarmYield].at = time.Time{}
}

// interrupt stops what the caller speaks into: the model, if it makes that still, and whoever plays it. A provider
// cannot stop some of its sound alone.
func (h *hearing) interrupt(now time.Time) {
	into, active := h.yielding.into, h.saying.floor.Active()
	h.goesOn()
	if into == nil {
		return
	}
	if into[active] || h.attached != nil && active != "" {
		h.mute(active)
		h.legs.toModel(events.Cancel(h.ids.Next(), active))
	}
	if h.attached != nil {
		h.stopThere(now)
		return
	}
	h.cut(func(id string, _ *playing) bool { return into[id] })
	var all []string
	for id := range into {
		all = append(all, id)
	}
	slices.Sort(all)
	h.legs.toLeg(events.Encode(events.Object{"type": events.TypeCut, "event_id": h.ids.Next(), "response_ids": all}))
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
			h.legs.toModel(events.Truncate(h.ids.Next(), v.items[0], now.Sub(v.from)))
		}
	}
	if !h.attached.tells {
		h.stops(now, "", true)
	}
}
