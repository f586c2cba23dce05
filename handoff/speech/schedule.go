package speech

import (
	"slices"
	"strconv"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/speakable"
	"switchboard/handoff/wording"
)

// Times of the schedule.
const (
	// deadAir is how long after the caller's sentence an open request may be followed by nothing: what is
	// asked then is heard within two seconds.
	deadAir = 1400 * time.Millisecond
	// leastWait is what a request gets however long the caller has waited: what is quick is the answer.
	leastWait = 500 * time.Millisecond
	// sentenceFresh is how long after their sentence a request is what they wait for.
	sentenceFresh = 5 * time.Second
	// silentCall is how soon a response that only called a function is over; one that ends later spoke.
	silentCall = 300 * time.Millisecond
	// quietGap is how long both sides have been quiet before something is said that nobody asked for.
	quietGap = time.Second
	// speakableGap lies between two speakable things; with quietGap it keeps silence below ten seconds.
	speakableGap = 8 * time.Second
	// staleAfter is how long a remark is news.
	staleAfter = 20 * time.Second
	// urgentHold bounds how long a question or an outcome waits here for quiet, so that several become
	// one; then the floor waits with it.
	urgentHold = 3 * time.Second
	// questionRest leaves the caller time to answer before anything speakable is said.
	questionRest = 10 * time.Second
	// deliveryWait is how long something speakable may be on its way before it counts as lost.
	deliveryWait = 30 * time.Second
	// finalsTogether is how long after an outcome another one may come to be told with it, while other work runs.
	finalsTogether = 2 * time.Second
	// wordsWait is how long quiet waits for the words with which the caller interrupted an outcome.
	wordsWait = 1500 * time.Millisecond
	// unsaidRest is how long after the voice model chose to say nothing of an outcome it is told to say it.
	unsaidRest = 5 * time.Second
	// finalAgain is when an outcome that nobody confirmed is said again.
	finalAgain = time.Minute
	// heartbeatTogether lets a heartbeat that is nearly due ride on another.
	heartbeatTogether = 10 * time.Second
)

// heartbeatTimes is the age of a work at its heartbeats; then one every heartbeatEvery. Set once.
var heartbeatTimes = [...]time.Duration{35 * time.Second, 2 * time.Minute, 5 * time.Minute}

const heartbeatEvery = 10 * time.Minute

// Bounds of the schedule.
const (
	maxPaced         = 64  // works; when full a new one is not paced, its outcome is told nevertheless
	maxLookups       = 64  // open lookups; when full a new one gets no filler
	maxOpenQuestions = 64  // when full a new one is not said: it stands on the page and is told outside of the call
	maxHeldFinals    = 16  // outcomes waiting for quiet; when full the floor gets them at once
	maxHeldRemarks   = 4   // a work; when full the oldest goes: it is in the context as a note
	MaxPacedNotes    = 40  // a work; later remarks do not become notes, so that they do not fill the model's context
	maxDeliveries    = 192 // said and not confirmed: more than each open question twice; see fly
	maxTellings      = 2   // an outcome that nobody confirmed or that was not said, a question: never more often
	maxOffers        = 4   // an outcome that was interrupted: then it waits for the next call
	maxLost          = 2   // speakable things in a row that nobody confirmed; then only a sign of the caller goes on
)

// ScheduleCounts is what happened in a call so far.
type ScheduleCounts struct {
	Notes, Remarks, Heartbeats, Fillers, Questions, Finals int // given
	Stale, Cut, Lost, Overflow                             int // dropped; interrupted; never confirmed; refused by a bound
}

// A Schedule decides what one call says of its works, and when. It proposes; the floor decides at the moment of
// sending. It is pure: events bring the time, and effects say what to do. The loop that serves the call owns it:
//
//	s := New(level, askAgain, language)
//	for each event of the voice, and each event of a work of this call:
//	    for _, x := range s.Step(time.Now(), e) { … } // in order, before the next step
//
// It needs these events:
//
//   - Every event of the voice, as it came.
//   - Of a codex request: [Began] when it is accepted, and again when its names are resolved; [AnsweredEvent] when its
//     early answer went out; [Doing] for [handoff.ItemStarted]; [Remark] for a message that is certainly not the last;
//     [Question] and [QuestionClosed]. At the end [Ended] where a message is due, or [Gave] where the outcome was the
//     answer, or part of a summary.
//   - Of a side question, whose answer may take a while: the same, and [Lookup] under the same id.
//   - Of a request that answers a question: [Claimed], and [Asked] when its output asks the question again.
//   - Of any other request: [Lookup] and [AnsweredEvent].
//   - Of a request that steers or queues: [Concerned], for the work that it reached.
//   - Of a work from an earlier call: [Began] with Answered set.
//
// Its effects mean:
//
//   - [DoNote] and [DoSay] are utterances. Their ids (s1, s2, …) are unique in the call; the call's own utterances
//     need other ids.
//   - [DoGiven] with works means "delivered" in the ledger. With a question it tells when the question had been heard.
//   - [DoNotify] means that nobody answers a question in this call, so that it is told outside of calls as well.
//   - [DoWake] replaces the one timer of the call. Its [Wake] may come late, or once too often.
//
// The answer of a work goes out [Schedule.Within] its request. It asks for the floor unless the response spoke, so that
// nothing is said twice. An outcome that no [DoGiven] confirms was not heard: whoever holds it tells it again after
// [handoff.CallEnded], when the schedule says no more.
type Schedule struct {
	level      handoff.SpeechLevel
	language   wording.Language // Set once
	askAgain   time.Duration    // until an unanswered question is asked again, and as long until it is told elsewhere
	works      []*pacedWork     // oldest first
	lookups    []*lookup
	questions  []*askedQuestion
	finals     []heldFinal // wait for quiet
	deliveries []*delivery // given, not confirmed, oldest first
	quiet      bool        // both sides; a call begins quiet
	invited    bool        // only the client asks: what we say waits for that, so nothing speakable is said
	since      time.Time   // quiet began
	epoch      int         // the caller's utterances so far
	sentence   time.Time   // when their last one was known to be over; zero while they speak
	voiced     time.Time   // when they last began to speak
	wordless   bool        // the words of that have not come
	worded     time.Time   // when they began to say what was no backchannel and no hush
	hushed     time.Time   // when they last began to ask for quiet
	spoke      time.Time   // the last speakable thing was said
	asked      time.Time   // the last question was said
	lost       int         // speakable things in a row that nobody confirmed
	over       bool        // the call has ended
	serial     int
	wake       time.Time // as last told
	Counts     ScheduleCounts

	now time.Time // of the step that runs
	out []Effect  // of the step that runs
}

// A pacedWork is what the schedule knows of a work.
type pacedWork struct {
	ID, server, title string
	began             time.Time
	answered          bool
	waits             bool      // for another one to end
	heartbeats        int       // heartbeats so far
	heartbeatAt       time.Time // the next one
	doing             string    // what it does, in words
	newDoing          bool      // that was not said yet
	early             []string  // remarks from before the answer
	remarks           []heldRemark
	notes             int
	concerned         int // epoch in which the caller's words were about it
}

type heldRemark struct {
	text  string // fit to be said
	whole string // for a note; "" once noted
	at    time.Time
	epoch int
}

// A lookup is an open request that is no work.
type lookup struct {
	ID, server string
	opened     time.Time
	due        time.Time // for the filler
	spoke      bool      // something was heard meanwhile
}

type askedQuestion struct {
	ID     handoff.QuestionID
	work   string
	text   string
	opened time.Time
	times  int       // announced
	told   bool      // outside of the call as well
	at     time.Time // last announced or heard
}

type heldFinal struct {
	rec handoff.Record
	at  time.Time
}

// A class says how urgent it is that something is heard.
type class int

const (
	classSpeakable class = iota // worth hearing now or never
	classUrgent                 // a question
	classFinal                  // an outcome
)

// A delivery is something said that the voice has not confirmed.
type delivery struct {
	IDs      []string // of its utterances, the newest last
	class    class
	works    []string
	outcomes int // that it tells, also those that the caller was told elsewhere
	question handoff.QuestionID
	text     string
	at       time.Time // last said
	calm     bool      // it was quiet then, so that the voice model began it at once
	stopped  time.Time // when it ended before its meaning had been heard; zero: it did not
	vague    bool      // perhaps nothing of it had been heard then
	unsaid   bool      // the voice model chose to say nothing of it then
	heard    string    // as much of it as had been heard then
	answer   bool      // to a request: its first utterance is not taken back
}

// New returns the schedule of one call. The level is what the caller wants to hear. A question that nobody answers is
// asked again after askAgain, and told outside of the call after as long again.
func New(level handoff.SpeechLevel, askAgain time.Duration, language wording.Language) *Schedule {
	return &Schedule{level: level, askAgain: askAgain, language: language, quiet: true}
}

// Step takes an event and returns what is to be done. The result is valid until the next step.
func (s *Schedule) Step(now time.Time, e Event) []Effect {
	s.out, s.now = s.out[:0], now
	if s.over {
		return nil
	}
	switch e := e.(type) {
	case handoff.Spoke:
		s.heardCaller()
		s.setQuiet(false)
		s.sentence, s.voiced, s.wordless = time.Time{}, e.At, true
	case handoff.Heard:
		if e.Typed {
			s.heardCaller()
		}
		s.sentence, s.wordless = now, false
		s.worded = began(e.Began, now)
	case Backchannel:
		s.sentence, s.wordless = now, false
	case Hush:
		if e.Typed {
			s.heardCaller()
		}
		s.sentence, s.wordless, s.hushed = now, false, began(e.Began, now)
		s.hush()
	case handoff.Quiet:
		s.invited = e.Invited
		s.setQuiet(e.On)
	case handoff.Said:
		s.said(e)
	case handoff.CallEnded:
		*s = Schedule{over: true, Counts: s.Counts}
		return nil
	case Sentence:
		s.sentence = e.At
	case LevelSet:
		s.level = e.Level
	case Gave:
		s.gave(e)
	case Ended:
		if s.forget(e.Rec.ID) { // it is told when both sides are quiet, or by the floor a little later
			s.finals = append(s.finals, heldFinal{rec: e.Rec, at: s.now})
		}
	case Told:
		s.told(e.ID)
	case Context:
		s.Counts.Notes++
		s.emit(Effect{Act: DoNote, ID: s.nextID(), Text: e.Text})
	case Yielded:
		s.forget(e.ID)
	case Question:
		s.question(e)
	case QuestionClosed:
		s.closeQuestion(e.ID)
	case Claimed:
		if q := s.openQuestion(e.ID); q != nil && q.times > 0 && q.times < maxTellings {
			q.at = s.now // the caller has turned to it, so it is not repeated into their answer
		}
	case Asked:
		s.askedByRouter(e)
	case Lookup:
		if len(s.lookups) >= maxLookups {
			s.Counts.Overflow++
			break
		}
		s.lookups = append(s.lookups, &lookup{ID: e.ID, server: e.Server, opened: now, due: now.Add(s.Within(now))})
	case AnsweredEvent:
		s.answered(e.ID)
	case Began:
		s.began(e)
	case Waits:
		if w := s.work(e.ID); w != nil {
			w.waits = e.On
		}
	case Doing:
		if w := s.work(e.ID); w != nil {
			if words := s.language.DoingWords(e.Kind, e.Text); words != "" && words != w.doing {
				w.doing, w.newDoing = words, true
			}
		}
	case Remark:
		s.remark(e)
	case Concerned:
		if w := s.work(e.ID); w != nil {
			w.concerned = s.epoch
		}
	}
	s.expire()
	s.askQuestions() // the weightier first
	s.tellFinals()
	s.fill()
	s.speak()
	s.noteHeld()
	s.arm()
	return s.out
}

// began is when the caller began to say what was understood now, if nobody knows better.
func began(known, now time.Time) time.Time {
	if known.IsZero() {
		return now
	}
	return known
}

// heardCaller notes that the caller turned to something: what waited may no longer matter, and somebody
// is there.
func (s *Schedule) heardCaller() {
	s.epoch++
	s.lost = 0
	for _, l := range s.lookups {
		l.spoke = true
	}
}

func (s *Schedule) setQuiet(on bool) {
	if on == s.quiet {
		return
	}
	s.quiet = on
	if on {
		s.since = s.now
	}
	for _, l := range s.lookups { // the model spoke: now, or in the response that held the request
		l.spoke = l.spoke || !on || s.now.Sub(l.opened) > silentCall
	}
}

func (s *Schedule) began(e Began) {
	if w := s.work(e.ID); w != nil {
		w.server, w.title = e.Server, e.Title
		return
	}
	if len(s.works) >= maxPaced {
		s.Counts.Overflow++
		return
	}
	w := &pacedWork{ID: e.ID, server: e.Server, title: e.Title, began: s.now, answered: e.Answered,
		heartbeatAt: s.now.Add(heartbeatTimes[0]), concerned: s.epoch}
	s.works = append(s.works, w)
}

// Within returns how long a request that comes now may stay unanswered: then something must follow.
func (s *Schedule) Within(now time.Time) time.Duration {
	if now.Sub(s.sentence) > sentenceFresh { // it was never told, or the model talked first
		return deadAir
	}
	return max(s.sentence.Add(deadAir).Sub(now), leastWait)
}

// answered closes a request. What the agent said before is context now: the answer came first.
func (s *Schedule) answered(id string) {
	s.lookups = slices.DeleteFunc(s.lookups, func(l *lookup) bool { return l.ID == id })
	w := s.work(id)
	if w == nil || w.answered {
		return
	}
	w.answered = true
	for _, text := range w.early {
		s.note(w, text)
	}
	w.early = nil
}

func (s *Schedule) remark(e Remark) {
	w := s.work(e.ID)
	if w == nil || e.Text == "" {
		return
	}
	if !w.answered {
		if len(w.early) >= maxHeldRemarks {
			w.early = w.early[1:]
			s.Counts.Overflow++
		}
		w.early = append(w.early, e.Text)
		return
	}
	text := ""
	if s.level == handoff.LevelChatty {
		text = speakable.Speakable(e.Text, wording.MaxProgress)
	}
	if text == "" {
		s.note(w, e.Text)
		return
	}
	if len(w.remarks) >= maxHeldRemarks {
		w.remarks = w.remarks[1:]
		s.Counts.Stale++
	}
	w.remarks = append(w.remarks, heldRemark{text: text, whole: e.Text, at: s.now, epoch: s.epoch})
}

func (s *Schedule) note(w *pacedWork, text string) {
	if w.notes >= MaxPacedNotes {
		s.Counts.Overflow++
		return
	}
	w.notes++
	s.Counts.Notes++
	s.emit(Effect{Act: DoNote, ID: s.nextID(), Works: []string{w.ID},
		Text: wording.RemarkNote(handoff.Record{Server: w.server}, text)})
}

func (s *Schedule) question(e Question) {
	if s.openQuestion(e.ID) != nil {
		return
	}
	if len(s.questions) >= maxOpenQuestions {
		s.Counts.Overflow++
		s.emit(Effect{Act: DoNotify, Question: e.ID})
		return
	}
	s.questions = append(s.questions, &askedQuestion{ID: e.ID, work: e.Work, text: e.Text, opened: s.now})
}

// closeQuestion forgets a question, and takes it back where it waits to be said. Its work waited and now works again,
// so that its heartbeats begin anew.
func (s *Schedule) closeQuestion(id handoff.QuestionID) {
	s.deliveries = slices.DeleteFunc(s.deliveries, func(f *delivery) bool {
		asks := f.class == classUrgent && f.question == id && f.text != "" // the output of a request stays one
		if asks {
			s.emit(Effect{Act: DoTakeBack, ID: f.IDs[len(f.IDs)-1], Question: id})
		}
		return asks
	})
	s.questions = slices.DeleteFunc(s.questions, func(q *askedQuestion) bool {
		if w := s.work(q.work); q.ID == id && w != nil {
			w.heard(s.now)
		}
		return q.ID == id
	})
}

func (s *Schedule) work(id string) *pacedWork {
	i := slices.IndexFunc(s.works, func(w *pacedWork) bool { return w.ID == id })
	if i < 0 {
		return nil
	}
	return s.works[i]
}

// heard moves the next sign of life: something else of the work was just heard.
func (w *pacedWork) heard(now time.Time) {
	next := now.Add(heartbeatAge(w.heartbeats) - heartbeatAge(w.heartbeats-1))
	if next.After(w.heartbeatAt) {
		w.heartbeatAt = next
	}
}

// heartbeatAge is the age of a work at its nth heartbeat, from 0.
func heartbeatAge(n int) time.Duration {
	switch {
	case n < 0:
		return 0
	case n < len(heartbeatTimes):
		return heartbeatTimes[n]
	}
	return heartbeatTimes[len(heartbeatTimes)-1] + time.Duration(n-len(heartbeatTimes)+1)*heartbeatEvery
}

func (s *Schedule) nextID() string {
	s.serial++
	return "s" + strconv.Itoa(s.serial)
}

func (s *Schedule) emit(x Effect) { s.out = append(s.out, x) }
