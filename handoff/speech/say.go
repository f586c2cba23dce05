package speech

import (
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/speakable"
	"switchboard/handoff/wording"
)

// noteHeld gives what could not be said at once as context: the caller may ask before it can be.
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

// gave watches an utterance of the call's own that carries outcomes.
func (s *Schedule) gave(e Gave) {
	works := slices.DeleteFunc(slices.Clone(e.Works), func(id string) bool { return !s.forget(id) })
	if len(works) > 0 {
		s.fly(&delivery{IDs: []string{e.Utterance}, class: classFinal, works: works, outcomes: len(e.Works), text: e.Text,
			answer: e.Answer})
	}
}

// forget ends the pacing of a work: nothing it did on the way matters any more. It reports whether the outcome is still
// to be told: false, it is on its way already.
func (s *Schedule) forget(id string) bool {
	s.answered(id)
	if w := s.work(id); w != nil {
		s.Counts.Stale += len(w.remarks)
		s.works = slices.DeleteFunc(s.works, func(o *pacedWork) bool { return o == w })
	}
	s.questions = slices.DeleteFunc(s.questions, func(q *askedQuestion) bool { return q.work == id })
	return !slices.ContainsFunc(s.finals, func(f heldFinal) bool { return f.rec.ID == id }) &&
		!slices.ContainsFunc(s.deliveries, func(f *delivery) bool {
			return f.class == classFinal && slices.Contains(f.works, id)
		})
}

// fly remembers something said until it is confirmed. Where there is no room it forgets the oldest delivery of no
// weight, else the oldest outcome. One of an open question stays, or nobody would know when that had been heard.
func (s *Schedule) fly(f *delivery) {
	if len(s.deliveries) >= maxDeliveries {
		i := slices.IndexFunc(s.deliveries, func(old *delivery) bool {
			return old.class == classSpeakable || old.class == classUrgent && s.openQuestion(old.question) == nil
		})
		if i < 0 {
			i = max(0, slices.IndexFunc(s.deliveries, func(old *delivery) bool { return old.class == classFinal }))
		}
		s.Counts.Overflow++
		s.deliveries = slices.Delete(s.deliveries, i, i+1)
	}
	f.at = s.now
	s.deliveries = append(s.deliveries, f)
}

// say proposes an utterance and watches it.
func (s *Schedule) say(f *delivery, text string) {
	f.IDs = append(f.IDs, s.nextID())
	s.emit(Effect{Act: DoSay, ID: f.IDs[len(f.IDs)-1], Text: text, Works: f.works, Question: f.question})
	if len(f.IDs) == 1 {
		s.fly(f)
	}
	f.at, f.stopped, f.unsaid, f.calm = s.now, time.Time{}, false, s.quiet
}

// hush takes back each outcome that the caller asked for quiet at, as far as it waits to be said again: where no word
// of it had been heard, the floor would begin it anew at the next quiet. It is offered like one that was cut later.
func (s *Schedule) hush() {
	for _, f := range s.deliveries {
		if f.class == classFinal && f.calm && f.stopped.IsZero() && s.hushed.After(f.at) {
			f.stopped, f.heard, f.vague = s.now, "", false
			s.emit(Effect{Act: DoTakeBack, ID: f.IDs[len(f.IDs)-1], Works: f.works})
		}
	}
}

// said takes what was heard of an utterance. An outcome that was interrupted before its meaning had been heard is still
// to be told, and so is one of which the voice model said nothing.
func (s *Schedule) said(e handoff.Said) {
	i := slices.IndexFunc(s.deliveries, func(f *delivery) bool { return slices.Contains(f.IDs, e.ID) })
	if i < 0 {
		return
	}
	f := s.deliveries[i]
	s.lost = 0
	if e.Cut {
		s.Counts.Cut++
	}
	if f.class == classFinal && (e.Unsaid || e.Cut && (e.At.IsZero() || !s.understood(e, f))) {
		f.stopped, f.heard = s.now, ""
		if !e.At.IsZero() {
			f.stopped, f.heard = e.At, heardOf(e)
		}
		f.vague, f.unsaid = e.At.IsZero(), e.Unsaid
		if len(f.IDs) >= maxOffers || e.Unsaid && len(f.IDs) >= maxTellings { // it stays in the outbox
			s.deliveries = slices.Delete(s.deliveries, i, i+1)
		}
		return
	}
	s.deliveries = slices.Delete(s.deliveries, i, i+1)
	switch f.class {
	case classSpeakable:
		s.spoke = s.now
		return
	case classUrgent:
		s.asked = s.now
		q := s.openQuestion(f.question)
		if q == nil {
			return
		}
		q.at = s.now
	}
	s.emit(Effect{Act: DoGiven, ID: e.ID, Works: f.works, Question: f.question, At: e.At})
}

// expire gives up what nobody confirmed: something speakable is lost, an outcome is said once more.
func (s *Schedule) expire() {
	s.deliveries = slices.DeleteFunc(s.deliveries, func(f *delivery) bool {
		switch {
		case s.now.Sub(f.at) < deliveryWait || f.class == classFinal:
			return false
		case f.class == classUrgent:
			return s.openQuestion(f.question) == nil
		}
		s.lost++
		s.Counts.Lost++
		return true
	})
	if !s.quiet || s.invited {
		return
	}
	for _, f := range s.deliveries {
		switch {
		case f.class != classFinal || f.text == "":
		case !f.stopped.IsZero():
			s.offer(f)
		case len(f.IDs) < maxTellings && s.now.Sub(f.at) >= finalAgain:
			s.Counts.Lost++
			s.say(f, wording.AgainMessage(f.text))
		}
	}
}

// offer tells an outcome again that was interrupted, in the way that fits what the caller said then: after a
// backchannel it goes on, after words it is said shortly. After a plain "stop", and where they stopped it without a
// word, it waits until they have said something else. One of which the voice model said nothing is told after a rest,
// since the silence may have been for what the caller was about; a "stop" in that rest counts as well.
func (s *Schedule) offer(f *delivery) {
	spoke, worded, hushed := s.voiced.After(f.at), s.worded.After(f.at), s.hushed.After(f.at)
	switch {
	case f.unsaid && s.now.Sub(f.stopped) < unsaidRest:
	case spoke && s.wordless && s.now.Sub(s.since) < wordsWait:
	case worded && s.since.Before(s.worded) && s.now.Sub(s.worded) < wordsWait: // written words are answered first
	case hushed && !s.wordless && !s.worded.After(s.hushed):
	case f.unsaid:
		s.say(f, wording.UnsaidMessage(f.text))
	case f.vague:
		if len(f.IDs) < maxTellings {
			s.say(f, wording.AgainMessage(f.text))
		}
	case worded && s.worded.After(s.hushed), spoke && s.wordless:
		s.say(f, s.language.ResumeMessage(f.text))
	case spoke && !hushed:
		s.say(f, wording.GoOnMessage(f.text, f.heard))
	}
}

// understood reports whether the meaning of an outcome that was interrupted had been heard: its first sentence whole,
// or 80 % of its sound. A sentence that only says that the work is done is not the first: "bigpc is done in the session
// Auth." Of several outcomes the first sentence tells one at most, and the sound counts to 80 % of the last of them.
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
		leads = s.language.LeadsIn(f.text, sentence)
	}
	return f.outcomes == 1 && len(heardOf(e)) >= end
}

// heardOf returns as much of what a response said as had been heard, to the last whole word.
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

// askQuestions announces each question by an utterance of its own, so that it can be told which of them
// was heard.
func (s *Schedule) askQuestions() {
	for _, q := range s.questions {
		switch {
		case q.times == 0 && (s.quiet || s.now.Sub(q.opened) >= urgentHold):
		case q.times == 1 && s.quiet && s.now.Sub(q.at) >= s.askAgain:
			q.text = s.language.AskAgainMessage(q.text)
		case q.times > 0 && !q.told && s.now.Sub(q.at) >= s.tellAfter(q):
			q.told = true
			s.emit(Effect{Act: DoNotify, Question: q.ID})
			continue
		default:
			continue
		}
		q.times++
		q.at, s.asked = s.now, s.now
		s.Counts.Questions++
		s.say(&delivery{class: classUrgent, question: q.ID, text: q.text}, q.text)
	}
}

// told forgets an outcome that the caller was told, and takes back what would tell it, unless it is being said. What
// tells others besides stays as it is.
func (s *Schedule) told(id string) {
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

// askedByRouter counts a question that the output of a request asked, as one of the times that it was asked.
func (s *Schedule) askedByRouter(e Asked) {
	q := s.openQuestion(e.ID)
	if q == nil {
		return
	}
	q.times = min(q.times+1, maxTellings)
	q.at, s.asked = s.now, s.now
	s.Counts.Questions++
	s.fly(&delivery{IDs: []string{e.Utterance}, class: classUrgent, question: e.ID})
}

// tellAfter is how long after a question was last asked it is told outside of the call: also where there
// was no quiet to ask it again in.
func (s *Schedule) tellAfter(q *askedQuestion) time.Duration {
	return time.Duration(maxTellings-q.times+1) * s.askAgain
}

// openQuestion finds a question that waits for the caller.
func (s *Schedule) openQuestion(id handoff.QuestionID) *askedQuestion {
	i := slices.IndexFunc(s.questions, func(q *askedQuestion) bool { return q.ID == id })
	if i < 0 {
		return nil
	}
	return s.questions[i]
}

// tellFinals tells all outcomes that wait as one utterance.
func (s *Schedule) tellFinals() {
	if len(s.finals) == 0 {
		return
	}
	age := s.now.Sub(s.finals[0].at)
	switch {
	case len(s.finals) >= maxHeldFinals:
	case !s.quiet && age < urgentHold:
		return
	case s.quiet && age < finalsTogether && s.running(): // another one may end just now
		return
	}
	f := &delivery{class: classFinal, outcomes: len(s.finals)}
	var ended []handoff.Record
	for _, held := range s.finals {
		f.works, ended = append(f.works, held.rec.ID), append(ended, held.rec)
	}
	f.text, s.finals = s.language.FinalsMessage(ended), nil
	s.Counts.Finals += len(f.works)
	s.say(f, f.text)
}

// running reports whether a work may end any moment.
func (s *Schedule) running() bool {
	return slices.ContainsFunc(s.works, func(w *pacedWork) bool { return !w.waits && !s.waitsForCaller(w) })
}

// fill breaks the silence of a lookup whose request came without a word.
func (s *Schedule) fill() {
	if !s.quiet || s.invited || s.level == handoff.LevelQuiet {
		return
	}
	var slow *lookup
	for _, l := range s.lookups {
		if !l.spoke && !s.now.Before(l.due) {
			slow, l.spoke = l, true
		}
	}
	underWay := func(f *delivery) bool { return s.now.Sub(f.at) < deliveryWait }
	if slow != nil && !slices.ContainsFunc(s.deliveries, underWay) {
		s.Counts.Fillers++
		s.spoke = s.now
		s.say(&delivery{class: classSpeakable}, s.language.FillerMessage(slow.server))
	}
}

// waitsForCaller reports whether a question of the work is open: then it is the caller who is waited for.
func (s *Schedule) waitsForCaller(w *pacedWork) bool {
	return slices.ContainsFunc(s.questions, func(q *askedQuestion) bool { return q.work == w.ID })
}

// speak says what is worth hearing now, of all works at once.
func (s *Schedule) speak() {
	s.dropStale()
	if at, ok := s.free(); !ok || s.now.Before(at) {
		return
	}
	var news []wording.WorkNews
	beat := slices.ContainsFunc(s.works, func(w *pacedWork) bool { return s.heartbeatDue(w, 0) })
	for _, w := range s.works {
		n := wording.WorkNews{Name: s.name(w), Doing: w.doing}
		switch {
		case s.level == handoff.LevelChatty && len(w.remarks) > 0:
			for _, r := range w.remarks {
				n.Remarks = append(n.Remarks, r.text)
			}
			w.remarks = nil
			s.Counts.Remarks++
			w.heard(s.now)
		case beat && s.heartbeatDue(w, heartbeatTogether):
			n.Age = s.now.Sub(w.began)
			s.Counts.Heartbeats++
			w.heartbeats++
			w.heartbeatAt = w.began.Add(heartbeatAge(w.heartbeats))
			for w.heartbeatAt.Sub(s.now) < heartbeatTimes[0] { // missed ones are not made up for
				w.heartbeats++
				w.heartbeatAt = w.began.Add(heartbeatAge(w.heartbeats))
			}
		case s.level == handoff.LevelChatty && w.newDoing && !s.waitsForCaller(w):
			s.Counts.Remarks++
			w.heard(s.now)
		default:
			continue
		}
		w.newDoing = false
		news = append(news, n)
	}
	if len(news) > 0 {
		s.spoke = s.now
		s.say(&delivery{class: classSpeakable}, s.language.NewsMessage(news))
	}
}

// name says which work is meant: its machine, and its session where the machine has several works.
func (s *Schedule) name(w *pacedWork) string {
	others := func(o *pacedWork) bool { return o != w && o.server == w.server }
	if w.title == "" || !slices.ContainsFunc(s.works, others) {
		return w.server
	}
	return s.language.SessionName(w.server, w.title)
}

// heartbeatDue reports whether the work owes a heartbeat now, or within the time given.
func (s *Schedule) heartbeatDue(w *pacedWork, within time.Duration) bool {
	return !s.now.Add(within).Before(w.heartbeatAt) && !s.waitsForCaller(w)
}

// free returns when something speakable may be said if nothing happens before. False: not before
// something happens.
func (s *Schedule) free() (time.Time, bool) {
	unanswered := func(w *pacedWork) bool { return !w.answered }
	if !s.quiet || s.invited || s.level == handoff.LevelQuiet || s.lost >= maxLost || len(s.lookups) > 0 ||
		slices.ContainsFunc(s.works, unanswered) {
		return time.Time{}, false
	}
	at := latest(s.since.Add(quietGap), s.spoke.Add(speakableGap))
	if len(s.questions) > 0 {
		at = latest(at, s.asked.Add(questionRest))
	}
	for _, f := range s.deliveries {
		if end := f.at.Add(deliveryWait); end.After(s.now) {
			at = latest(at, end)
		}
	}
	return at, true
}

// dropStale forgets remarks that are no news any more. Whether the caller has turned to something else is
// judged only when one could be said: until then their words may turn out to be about the same work.
func (s *Schedule) dropStale() {
	at, ok := s.free()
	moved := ok && !s.now.Before(at)
	for _, w := range s.works {
		before := len(w.remarks)
		w.remarks = slices.DeleteFunc(w.remarks, func(r heldRemark) bool {
			return s.level != handoff.LevelChatty || s.now.Sub(r.at) > staleAfter ||
				moved && r.epoch < s.epoch && w.concerned < s.epoch
		})
		s.Counts.Stale += before - len(w.remarks)
	}
}

// arm asks for a wake at the next time at which something is due, if nothing happens before.
func (s *Schedule) arm() {
	var next time.Time
	consider := func(at time.Time) {
		if at.After(s.now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	for _, q := range s.questions {
		if q.times == 0 {
			consider(q.opened.Add(urgentHold))
		} else if !q.told {
			consider(q.at.Add(s.askAgain))
			consider(q.at.Add(s.tellAfter(q)))
		}
	}
	if len(s.finals) > 0 {
		if s.quiet && s.running() {
			consider(s.finals[0].at.Add(finalsTogether))
		}
		consider(s.finals[0].at.Add(urgentHold))
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
				consider(latest(rested, s.since.Add(wordsWait)))
				consider(latest(rested, s.worded.Add(wordsWait)))
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
	if at, ok := s.free(); ok {
		for _, w := range s.works {
			if s.waitsForCaller(w) || s.level == handoff.LevelChatty && (len(w.remarks) > 0 || w.newDoing) {
				consider(at)
			} else {
				consider(latest(at, w.heartbeatAt))
			}
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
