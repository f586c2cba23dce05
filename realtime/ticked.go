package realtime

import (
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/realtime/ticks"
)

// maxTicked bounds the asks whose work a tick log remembers. When there are more, it forgets all of them.
const maxTicked = 256

// A tickLog is the tick log of a call, and what is needed to write it.
type tickLog struct {
	log       *ticks.Log
	asks      map[string]string // ids of the work whose outcome an ask tells, joined by commas, by the ask's tag
	responses map[string]string // the same, by response
}

// keepTicks begins the tick log. It is called before the call begins.
func (k *core) keepTicks() {
	k.tickLog = &tickLog{
		log:       ticks.New(time.Now()),
		asks:      map[string]string{},
		responses: map[string]string{},
	}
	k.alarms[alarmTick].at = time.Now().Add(ticks.Every)
}

// tick logs the state of the call, and sets the alarm for the next tick.
func (c *Call) tick(now time.Time) {
	t := ticks.Tick{Caller: c.saying.floor.Speaking()}
	for id, v := range c.hearing.playback.voices {
		if v.sounds && !v.over && !v.from.After(now) && (c.legs.performs || v.until.After(now)) {
			t.Voice = true
			if works := c.tickLog.responses[id]; works != "" {
				t.Tells = works
			}
		}
	}
	for _, r := range c.saying.requests {
		if !r.answered {
			t.Open++
		}
	}
	c.tickLog.log.Add(now, t)
	c.alarms[alarmTick].at = now.Add(ticks.Every)
}

// noteTick adds a note to the tick log, if there is one.
func (k *core) noteTick(what, id string) {
	if k.tickLog != nil && id != "" {
		k.tickLog.log.Note(time.Now(), what, strings.Join(strings.Fields(id), "_"))
	}
}

// noteAsk notes, for the tick log, which utterances an ask tells. began notes which response answers it.
func (s *saying) noteAsk(tag string, utterances []string) {
	if s.tickLog == nil {
		return
	}
	var works []string
	if len(s.tickLog.asks) >= maxTicked {
		clear(s.tickLog.asks)
		clear(s.tickLog.responses)
	}
	for _, id := range utterances {
		works = append(works, s.utterances[id].Tells...)
	}
	s.tickLog.asks[tag] = strings.Join(works, ",")
}

// noteOutcome notes, in the tick log, whether the outcomes that an utterance told were heard.
func (s *saying) noteOutcome(said handoff.Said) {
	u := s.utterances[said.ID]
	if s.tickLog == nil || u == nil || len(u.Tells) == 0 {
		return
	}
	what := "heard"
	switch {
	case said.Unsaid:
		what = "unsaid"
	case said.Cut:
		what = "cut"
	}
	s.noteTick(what, strings.Join(u.Tells, ","))
}
