package realtime

import (
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/floor"
)

// soundOfModel passes sound on to the caller, and follows it.
func (c *Call) soundOfModel(event []byte) {
	now := time.Now()
	if c.stirred = now; c.away() {
		return
	}
	response := events.PeekField(event, "response_id")
	if len(c.muted) > 0 && c.muted[string(response)] {
		return
	}
	heard, first := c.playback.add(now, response, events.PeekField(event, "item_id"), events.SoundBytes(event, events.KeyDelta), c.rate)
	id := ""
	if heard && (first || !c.voiced) {
		id = string(response)
	}
	c.toClient(event) // from here on it is the leg's
	if !heard {
		return
	}
	if first {
		c.tell(floor.Sounded{Response: id})
	}
	c.overhear(now, nil)
	if !c.voiced {
		c.voice(id, false)
	}
}

// overhear tells the floor what became of responses that sounded, and whether the model can be heard now.
func (c *Call) overhear(now time.Time, ended []floor.Played) {
	for _, p := range ended {
		c.tell(p)
		c.playback.forget(p.Response)
	}
	c.alarms[alarmPlayback].at = c.playback.next(now)
	if on := c.playback.on(now); on != c.sounding {
		c.sounding = on
		c.tell(floor.Sounding{On: on})
	}
}

// performed takes what a leg tells of the sound that it played.
func (c *Call) performed(event []byte) {
	now, r := time.Now(), gjson.ParseBytes(event)
	c.overhear(now, c.playback.hear(now, r.Get("response_id").String(), r.Get("audio_ms").Int(), r.Get("cut").Bool()))
}

// hush ends what the client stopped playing: one item, the response that runs, or all.
func (c *Call) hush(kind string, event []byte) {
	item, response := gjson.GetBytes(event, "item_id").String(), gjson.GetBytes(event, "response_id").String()
	c.cut(func(id string, v *playing) bool {
		switch {
		case kind == events.TypeItemTruncate:
			return slices.Contains(v.items, item)
		case response != "":
			return id == response
		}
		return kind == events.TypeOutputClear || !v.aside
	})
}

func (c *Call) cut(which func(string, *playing) bool) {
	now := time.Now()
	ended := c.playback.drain(now) // what was heard to its end is not cut
	c.overhear(now, append(ended, c.playback.cut(now, which)...))
}

// callerSpeaks notes that the caller began to speak, which silences the model unless the client set its
// session otherwise.
func (c *Call) callerSpeaks(event []byte) {
	began := c.clock.began(time.Now(), gjson.GetBytes(event, "audio_start_ms"), c.settings.padding)
	if c.attached != nil {
		began = began.Add(-detectLag)
	}
	c.speeches.start(began, gjson.GetBytes(event, "item_id").String())
	c.report(handoff.Spoke{At: began})
	c.tell(floor.Speech{On: true}) // first: silence alone would let us speak
	if !c.settings.patient {
		c.cut(func(string, *playing) bool { return true })
	}
}

// committed notes that the client, which detects turns itself, ended one.
func (c *Call) committed() {
	if began := c.speeches.appended; c.settings.manual && !began.IsZero() {
		c.speeches.end()
		c.asked = time.Now()
		c.report(handoff.Spoke{At: began})
	}
}

// hint begins to follow a request that the model writes.
func (c *Call) hint(it events.Item, response string) {
	tool, ours := c.mask.Requested(it)
	if !ours || !tool.Early || c.requests[it.CallID] != nil {
		return
	}
	c.hints[it.ID] = &hint{response: response, call: it.CallID, tool: tool.Name}
	c.suggest(it.ID, it.Arguments)
}

// hintMore takes a piece of its arguments.
func (c *Call) hintMore(event []byte) {
	if len(c.hints) > 0 {
		c.suggest(gjson.GetBytes(event, "item_id").String(), gjson.GetBytes(event, "delta").String())
	}
}

func (c *Call) suggest(item, piece string) {
	if h := c.hints[item]; h != nil && piece != "" && h.add(piece) {
		c.report(handoff.Hint{CallID: h.call, Tool: h.tool, Partial: string(h.text)})
	}
}
