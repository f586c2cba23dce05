package speech

import (
	"slices"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/wording"
)

// saySpeakable says remarks, new activities and heartbeats that are due, in one utterance. A heartbeat of many works is
// that of the oldest, and is about all of them.
func (s *Schedule) saySpeakable() {
	s.dropStale()
	if at, ok := s.speakableFrom(); !ok || s.now.Before(at) {
		return
	}
	beating, crowd := s.beating()
	beat := slices.ContainsFunc(beating, func(w *pacedWork) bool { return !s.now.Before(w.heartbeatAt) })
	var open []wording.Open
	reported := 0
	for _, w := range s.works {
		o := wording.Open{Server: w.server, Asked: w.asked, Doing: w.doing, Age: s.now.Sub(w.began), Waits: w.waits,
			Named: s.shared(w)}
		switch chatty := s.level == handoff.LevelChatty; {
		case chatty && len(w.remarks) > 0 && reported < maxReported:
			reported++
			o.Remark = w.remarks[len(w.remarks)-1].text
			w.remarks = nil
			s.count("remark", 1)
			w.postpone(s.now)
		case w.waits:
			if !beat {
				continue
			}
		case beat && (crowd || !s.now.Add(heartbeatTogether).Before(w.heartbeatAt)):
			o.Beats = true
			s.count("heartbeat", 1)
			w.heartbeats++
			w.heartbeatAt = w.began.Add(heartbeatAge(w.heartbeats))
			for w.heartbeatAt.Sub(s.now) < heartbeatTimes[0] { // missed ones are not made up for
				w.heartbeats++
				w.heartbeatAt = w.began.Add(heartbeatAge(w.heartbeats))
			}
		case chatty && w.newDoing && reported < maxReported:
			reported++
			s.count("remark", 1)
			w.postpone(s.now)
		default:
			continue
		}
		w.newDoing = false
		open = append(open, o)
	}
	if len(open) > 0 {
		s.lastSpeakable = s.now
		s.say(&delivery{class: classSpeakable}, s.language.NewsMessage(open))
	}
}

// shared reports whether a machine has other work than this, so that its name does not name it.
func (s *Schedule) shared(w *pacedWork) bool {
	return slices.ContainsFunc(s.works, func(o *pacedWork) bool { return o != w && o.server == w.server })
}

// beating returns the works that set when a heartbeat is said: those that run, or of a crowd the oldest.
func (s *Schedule) beating() (works []*pacedWork, crowd bool) {
	for _, w := range s.works {
		if !w.waits {
			works = append(works, w)
		}
	}
	if len(works) > maxReported {
		return works[:1], true
	}
	return works, false
}

// speakableFrom returns the time from which something speakable may be said, if nothing happens before. It returns
// false if something must happen first.
func (s *Schedule) speakableFrom() (time.Time, bool) {
	unanswered := func(w *pacedWork) bool { return !w.answered }
	if !s.quiet || s.invited || s.level == handoff.LevelQuiet || s.lost >= maxLost || len(s.lookups) > 0 ||
		len(s.questions) > 0 || slices.ContainsFunc(s.works, unanswered) {
		return time.Time{}, false
	}
	at := latest(s.quietSince.Add(quietGap), s.lastSpeakable.Add(speakableGap))
	for _, f := range s.deliveries {
		if end := f.at.Add(deliveryWait); end.After(s.now) {
			at = latest(at, end)
		}
	}
	return at, true
}

// dropStale drops remarks that are too old, or from before the caller turned to something else. The latter is judged
// only when a remark could be said: until then, the caller's words may turn out to be about the same work.
func (s *Schedule) dropStale() {
	at, ok := s.speakableFrom()
	moved := ok && !s.now.Before(at)
	for _, w := range s.works {
		before := len(w.remarks)
		w.remarks = slices.DeleteFunc(w.remarks, func(r heldRemark) bool {
			return s.level != handoff.LevelChatty || s.now.Sub(r.at) > staleAfter ||
				moved && r.epoch < s.epoch && w.concerned < s.epoch
		})
		s.count("stale", before-len(w.remarks))
	}
}

// noteHeld gives held remarks to the model as notes: the caller may ask before they are said.
func (s *Schedule) noteHeld() {
	for _, w := range s.works {
		for i, r := range w.remarks {
			if r.whole != "" {
				s.note(w, r.whole)
				w.remarks[i].whole = ""
			}
		}
	}
}

// postpone postpones the next heartbeat, because something else about the work was just heard.
func (w *pacedWork) postpone(now time.Time) {
	next := now.Add(heartbeatAge(w.heartbeats) - heartbeatAge(w.heartbeats-1))
	if next.After(w.heartbeatAt) {
		w.heartbeatAt = next
	}
}

// heartbeatAge returns the age of a work at its nth heartbeat, from 0.
func heartbeatAge(n int) time.Duration {
	switch {
	case n < 0:
		return 0
	case n < len(heartbeatTimes):
		return heartbeatTimes[n]
	}
	return heartbeatTimes[len(heartbeatTimes)-1] + time.Duration(n-len(heartbeatTimes)+1)*heartbeatEvery
}

// wait notes that a work waits for another one, or has begun. It begins once.
func (w *pacedWork) wait(on bool, now time.Time) {
	if w.waits && !on {
		w.ran, w.began, w.heartbeatAt = true, now, now.Add(heartbeatTimes[0])
	}
	w.waits = on && !w.ran
}
