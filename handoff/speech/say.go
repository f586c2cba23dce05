package speech

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/speakable"
	"switchboard/handoff/wording"
)

// gave tracks an answer by which the call itself told an outcome.
func (s *Schedule) gave(e Gave) {
	if s.forget(e.Work) {
		s.track(&delivery{IDs: []string{e.Utterance}, class: classFinal, works: []string{e.Work}, outcomes: 1,
			message: e.Message, answer: true})
	}
}

// forget ends the pacing of a work: its remarks and questions are dropped. It returns false if its outcome is held or
// on its way already.
func (s *Schedule) forget(id string) bool {
	s.answered(id)
	if w := s.work(id); w != nil {
		s.count("stale", len(w.remarks))
		s.works = slices.DeleteFunc(s.works, func(o *pacedWork) bool { return o == w })
	}
	s.questions = slices.DeleteFunc(s.questions, func(q *askedQuestion) bool { return q.work == id })
	return !slices.ContainsFunc(s.finals, func(f heldFinal) bool { return f.rec.ID == id }) &&
		!slices.ContainsFunc(s.deliveries, func(f *delivery) bool {
			return f.class == classFinal && slices.Contains(f.works, id)
		})
}

// track keeps a delivery until it is confirmed. If there is no room, it removes the oldest delivery that is speakable
// or of a closed question, or else the oldest outcome. Deliveries of open questions stay, since it matters when these
// were heard.
func (s *Schedule) track(f *delivery) {
	if len(s.deliveries) >= maxDeliveries {
		i := slices.IndexFunc(s.deliveries, func(old *delivery) bool {
			return old.class == classSpeakable || old.class == classUrgent && s.openQuestion(old.question) == nil
		})
		if i < 0 {
			i = max(0, slices.IndexFunc(s.deliveries, func(old *delivery) bool { return old.class == classFinal }))
		}
		s.count("full", 1)
		s.deliveries = slices.Delete(s.deliveries, i, i+1)
	}
	f.at = s.now
	s.deliveries = append(s.deliveries, f)
}

// say proposes an utterance and tracks it.
func (s *Schedule) say(f *delivery, message wording.Answer) {
	f.IDs = append(f.IDs, s.nextID())
	s.emit(Effect{Act: DoSay, ID: f.IDs[len(f.IDs)-1], Text: message.Encode(), Works: f.works, Question: f.question})
	if len(f.IDs) == 1 {
		s.track(f)
	}
	f.at, f.stopped, f.unsaid, f.inQuiet = s.now, time.Time{}, false, s.quiet
}

// hush takes back the outcomes at which the caller asked for quiet, as far as the floor holds them: if no word of one
// was heard, the floor would begin it again at the next quiet. They are offered again like outcomes that were cut.
func (s *Schedule) hush() {
	for _, f := range s.deliveries {
		if f.class == classFinal && f.inQuiet && f.stopped.IsZero() && s.callerHushed.After(f.at) {
			f.stopped, f.heard, f.maybeUnheard = s.now, "", false
			s.emit(Effect{Act: DoTakeBack, ID: f.IDs[len(f.IDs)-1], Works: f.works})
		}
	}
}

// said handles the confirmation of an utterance. An outcome that was interrupted before its meaning was heard is still
// to be told, and so is one of which the voice model said nothing.
func (s *Schedule) said(e handoff.Said) {
	i := slices.IndexFunc(s.deliveries, func(f *delivery) bool { return slices.Contains(f.IDs, e.ID) })
	if i < 0 {
		return
	}
	f := s.deliveries[i]
	s.lost = 0
	if e.Cut {
		s.count("interrupted", 1)
	}
	if f.class == classFinal && (e.Unsaid || e.Cut && (e.At.IsZero() || !s.understood(e, f))) {
		f.stopped, f.heard = s.now, ""
		if !e.At.IsZero() {
			f.stopped, f.heard = e.At, heardOf(e)
		}
		f.maybeUnheard, f.unsaid = e.At.IsZero(), e.Unsaid
		if len(f.IDs) >= maxOffers || e.Unsaid && len(f.IDs) >= maxTellings { // it stays in the outbox
			s.deliveries = slices.Delete(s.deliveries, i, i+1)
		}
		return
	}
	s.deliveries = slices.Delete(s.deliveries, i, i+1)
	switch f.class {
	case classSpeakable:
		s.lastSpeakable = s.now
		return
	case classUrgent:
		q := s.openQuestion(f.question)
		if q == nil {
			return
		}
		q.lastAsked = s.now
	}
	s.emit(Effect{Act: DoGiven, ID: e.ID, Works: f.works, Question: f.question, At: e.At})
}

// giveUpDeliveries handles deliveries that nobody confirmed in time: speakable ones are lost, and outcomes are said
// once more. In quiet, it also offers interrupted outcomes again.
func (s *Schedule) giveUpDeliveries() {
	s.deliveries = slices.DeleteFunc(s.deliveries, func(f *delivery) bool {
		switch {
		case s.now.Sub(f.at) < deliveryWait || f.class == classFinal:
			return false
		case f.class == classUrgent:
			return s.openQuestion(f.question) == nil
		}
		s.lost++
		s.count("unconfirmed", 1)
		return true
	})
	if !s.quiet || s.invited || s.asking() {
		return
	}
	for _, f := range s.deliveries {
		switch {
		case f.class != classFinal:
		case !f.stopped.IsZero():
			s.offer(f)
		case len(f.IDs) < maxTellings && s.now.Sub(f.at) >= finalAgain:
			s.count("unconfirmed", 1)
			s.say(f, wording.AgainMessage(f.message))
		}
	}
}

// offer says an interrupted outcome again, in a way that depends on the interruption: after a backchannel it goes on
// where it was cut, after words it is said in short. After a plain "stop", or if the caller stopped it without a word,
// it waits until they say something else. An outcome of which the voice model said nothing is said after unsaidRest,
// since the model may have been silent for what the caller was doing; a "stop" meanwhile counts, too.
func (s *Schedule) offer(f *delivery) {
	spoke, worded, hushed := s.callerSpoke.After(f.at), s.callerWords.After(f.at), s.callerHushed.After(f.at)
	switch {
	case f.unsaid && s.now.Sub(f.stopped) < unsaidRest:
	case spoke && s.untranscribed && s.now.Sub(s.quietSince) < wordsWait:
	// Typed words are answered first.
	case worded && s.quietSince.Before(s.callerWords) && s.now.Sub(s.callerWords) < wordsWait:
	case hushed && !s.untranscribed && !s.callerWords.After(s.callerHushed):
	case f.unsaid:
		s.say(f, wording.UnsaidMessage(f.message))
	case f.maybeUnheard:
		if len(f.IDs) < maxTellings {
			s.say(f, wording.AgainMessage(f.message))
		}
	case worded && s.callerWords.After(s.callerHushed), spoke && s.untranscribed:
		s.say(f, s.language.ResumeMessage(f.message))
	case spoke && !hushed:
		s.say(f, wording.GoOnMessage(f.message, f.heard))
	}
}

// understood reports whether the meaning of an interrupted outcome was heard: its whole first sentence, or 80 % of its
// sound. A sentence that only says that the work is done does not count as the first: "bigpc is done in the session
// Auth." The first sentence tells one of several outcomes at most. So for these only the sound counts, up to 80 % of
// the last one.
func (s *Schedule) understood(e handoff.Said, f *delivery) bool {
	if e.Made && e.Share >= 1-0.2/float64(f.outcomes) {
		return true
	}
	end := 0
	for leads := true; leads; {
		sentence := speakable.FirstSentence(e.Text[end:])
		if sentence == "" {
			return false
		}
		end += len(sentence)
		leads = s.language.LeadsIn(f.message, sentence)
	}
	return f.outcomes == 1 && len(heardOf(e)) >= end
}

// heardOf returns the part of a response's text that was heard, to the last whole word.
func heardOf(e handoff.Said) string {
	n := int(e.Share * float64(len(e.Text)))
	if n >= len(e.Text) {
		return e.Text
	}
	head := strings.ToValidUTF8(e.Text[:max(n, 0)], "")
	if i := strings.LastIndexByte(head, ' '); i > 0 && e.Text[n] != ' ' {
		head = head[:i]
	}
	return strings.TrimSpace(head)
}

// askQuestions says each question that is due in an utterance of its own, so that it is known which of them was heard,
// and sends notices of those that nobody answers.
func (s *Schedule) askQuestions() {
	for _, q := range s.questions {
		switch {
		case q.times == 0 && (s.quiet || s.now.Sub(q.opened) >= urgentHold):
		case q.times == 1 && s.quiet && s.now.Sub(q.lastAsked) >= s.askAgain:
			q.message = s.language.AskAgainMessage(q.message)
		case q.times > 0 && !q.notified && s.now.Sub(q.lastAsked) >= s.notifyAfter(q):
			q.notified = true
			s.emit(Effect{Act: DoNotify, Question: q.ID})
			continue
		default:
			continue
		}
		q.times++
		q.lastAsked = s.now
		s.count("question", 1)
		s.say(&delivery{class: classUrgent, question: q.ID, message: q.message}, q.message)
	}
}

// outcomeTold removes an outcome that the caller was told, and takes back an utterance that would tell it. An utterance
// that also tells other outcomes stays.
func (s *Schedule) outcomeTold(id string) {
	same := func(other string) bool { return other == id }
	s.finals = slices.DeleteFunc(s.finals, func(f heldFinal) bool { return f.rec.ID == id })
	s.deliveries = slices.DeleteFunc(s.deliveries, func(f *delivery) bool {
		if f.class != classFinal || !slices.Contains(f.works, id) {
			return false
		}
		f.works = slices.DeleteFunc(slices.Clone(f.works), same) // an effect has the others
		if len(f.works) == 0 && (!f.answer || len(f.IDs) > 1) {
			s.emit(Effect{Act: DoTakeBack, ID: f.IDs[len(f.IDs)-1], Works: []string{id}})
		}
		return len(f.works) == 0
	})
}

// askedByRouter notes that the output of a request asked a question, which counts as one telling.
func (s *Schedule) askedByRouter(e Asked) {
	q := s.openQuestion(e.ID)
	if q == nil {
		return
	}
	q.times = min(q.times+1, maxTellings)
	q.lastAsked = s.now
	s.count("question", 1)
	s.track(&delivery{IDs: []string{e.Utterance}, class: classUrgent, question: e.ID})
}

// notifyAfter returns how long after a question was last asked the notice is sent, also if there was no quiet in which
// to ask it again.
func (s *Schedule) notifyAfter(q *askedQuestion) time.Duration {
	return time.Duration(maxTellings-q.times+1) * s.askAgain
}

// openQuestion returns an open question, or nil.
func (s *Schedule) openQuestion(id handoff.QuestionID) *askedQuestion {
	i := slices.IndexFunc(s.questions, func(q *askedQuestion) bool { return q.ID == id })
	if i < 0 {
		return nil
	}
	return s.questions[i]
}

// tellFinals says the held outcomes that are due: those that have just come in one utterance, and those of which nobody
// was told before in another.
func (s *Schedule) tellFinals() {
	if s.asking() {
		return
	}
	for _, when := range [...]wording.When{wording.WhenAway, wording.WhenMeanwhile, wording.WhenNow} {
		f := &delivery{class: classFinal}
		var ended []handoff.Record
		var first time.Time
		for _, held := range s.finals {
			if held.when == when {
				first = cmp.Or(first, held.at)
				f.works, ended = append(f.works, held.rec.ID), append(ended, held.rec)
			}
		}
		age := s.now.Sub(first)
		switch {
		case len(ended) == 0, !s.quiet && age < urgentHold && len(ended) < maxHeldFinals:
			continue
		case s.quiet && when == wording.WhenNow && age < finalsTogether && s.mayEnd(): // another one may end just now
			continue
		}
		f.outcomes, f.message = len(ended), s.language.FinalsMessage(ended, when)
		s.finals = slices.DeleteFunc(s.finals, func(held heldFinal) bool { return held.when == when })
		s.count("outcome", len(ended))
		s.say(f, f.message)
	}
}

// tellNews says what else the caller is to be told.
func (s *Schedule) tellNews() {
	if s.asking() {
		return
	}
	for _, message := range s.news {
		s.emit(Effect{Act: DoSay, ID: s.nextID(), Text: message.Encode()})
	}
	s.news = nil
}

// asking reports whether the call is asking a question: it is open, and was not left to a notice outside of the call.
// Meanwhile nothing else is announced.
func (s *Schedule) asking() bool {
	return slices.ContainsFunc(s.questions, func(q *askedQuestion) bool { return !q.notified })
}

// mayEnd reports whether a work may end at any moment.
func (s *Schedule) mayEnd() bool {
	return slices.ContainsFunc(s.works, func(w *pacedWork) bool { return !w.waits && !s.waitsForCaller(w) })
}

// sayFiller says a few words if a lookup takes long, and the model said nothing with its request.
func (s *Schedule) sayFiller() {
	if !s.quiet || s.invited || s.level == handoff.LevelQuiet {
		return
	}
	var slow *lookup
	for _, l := range s.lookups {
		if !l.filled && !s.now.Before(l.due) {
			slow, l.filled = l, true
		}
	}
	underWay := func(f *delivery) bool { return s.now.Sub(f.at) < deliveryWait }
	if slow != nil && !slices.ContainsFunc(s.deliveries, underWay) {
		s.count("filler", 1)
		s.lastSpeakable = s.now
		s.say(&delivery{class: classSpeakable}, s.language.FillerMessage(slow.server))
	}
}

// waitsForCaller reports whether a question of the work is open.
func (s *Schedule) waitsForCaller(w *pacedWork) bool {
	return slices.ContainsFunc(s.questions, func(q *askedQuestion) bool { return q.work == w.ID })
}

// setWake asks for a wake at the next time at which something is due, if nothing happens before.
func (s *Schedule) setWake() {
	var next time.Time
	consider := func(at time.Time) {
		if at.After(s.now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	for _, q := range s.questions {
		if q.times == 0 {
			consider(q.opened.Add(urgentHold))
		} else if !q.notified {
			consider(q.lastAsked.Add(s.askAgain))
			consider(q.lastAsked.Add(s.notifyAfter(q)))
		}
	}
	for _, f := range s.finals {
		if s.quiet && s.mayEnd() {
			consider(f.at.Add(finalsTogether))
		}
		consider(f.at.Add(urgentHold))
	}
	for _, f := range s.deliveries {
		switch f.class {
		case classFinal:
			consider(f.at.Add(finalAgain))
			rested := f.stopped
			if f.unsaid {
				rested = rested.Add(unsaidRest)
			}
			if !f.stopped.IsZero() && s.quiet {
				consider(latest(rested, s.quietSince.Add(wordsWait)))
				consider(latest(rested, s.callerWords.Add(wordsWait)))
			}
		case classSpeakable:
			consider(f.at.Add(deliveryWait))
		}
	}
	if s.quiet && !s.invited && s.level != handoff.LevelQuiet {
		for _, l := range s.lookups {
			consider(l.due)
		}
	}
	if at, ok := s.speakableFrom(); ok {
		for _, w := range s.works {
			if s.level == handoff.LevelChatty && (len(w.remarks) > 0 || w.newDoing) {
				consider(at)
			}
		}
		beating, _ := s.beating()
		for _, w := range beating {
			consider(latest(at, w.heartbeatAt))
		}
	}
	if !next.Equal(s.wake) && !next.IsZero() {
		s.emit(Effect{Act: DoWake, At: next})
	}
	s.wake = next
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
