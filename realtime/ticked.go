package realtime

import (
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/realtime/ticks"
)

// maxTicked bounds the asks and responses that a tick log knows the works of; then it forgets them all.
const maxTicked = 256

// A ticked keeps the tick log of a call.
type ticked struct {
	log       *ticks.Log
	asks      map[string]string // the works that an ask tells, joined, by its tag
	responses map[string]string // likewise, by response
}

// keepTicks begins the tick log. It is called before the call begins.
func (k *core) keepTicks() {
	k.ticked = &ticked{
		log:       ticks.New(time.Now()),
		asks:      map[string]string{},
		responses: map[string]string{},
	}
	k.alarms[alarmTick].at = time.Now().Add(ticks.Every)
}

// tick adds how the call stands, and comes back.
func (c *Call) tick(now time.Time) {
	t := ticks.Tick{Caller: c.saying.floor.Speaking()}
	for id, v := range c.hearing.playback.voices {
		if v.sounds && !v.over && !v.from.After(now) && (c.legs.performs || v.until.After(now)) {
			t.Voice = true
			if works := c.ticked.responses[id]; works != "" {
				t.Tells = works
			}
		}
	}
	for _, r := range c.saying.requests {
		if !r.answered {
			t.Open++
		}
	}
	c.ticked.log.Add(now, t)
	c.alarms[alarmTick].at = now.Add(ticks.Every)
}

// noted notes what happened in the tick log, if there is one.
func (k *core) noted(what, id string) {
	if k.ticked != nil && id != "" {
		k.ticked.log.Note(time.Now(), what, strings.Join(strings.Fields(id), "_"))
	}
}

// asksFor notes what an ask tells, and began that a response answers it.
func (s *saying) asksFor(tag string, utterances []string) {
	if s.ticked == nil {
		return
	}
	var works []string
	if len(s.ticked.asks) >= maxTicked {
		clear(s.ticked.asks)
		clear(s.ticked.responses)
	}
	for _, id := range utterances {
		works = append(works, s.utterances[id].Tells...)
	}
	s.ticked.asks[tag] = strings.Join(works, ",")
}

// got notes what became of outcomes that an utterance told.
func (s *saying) got(said handoff.Said) {
	u := s.utterances[said.ID]
	if s.ticked == nil || u == nil || len(u.Tells) == 0 {
		return
	}
	what := "heard"
	switch {
	case said.Unsaid:
		what = "unsaid"
	case said.Cut:
		what = "cut"
	}
	s.noted(what, strings.Join(u.Tells, ","))
}
