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
	// deadAir bounds the silence after the caller's sentence while a request is open. The voice model needs some more
	// time, so that something is heard within two seconds.
	deadAir = 1400 * time.Millisecond
	// leastWait is the least time in which a result can still be the answer, however long the caller has waited.
	leastWait = 500 * time.Millisecond
	// sentenceFresh is how long after a sentence a request may still be due to that sentence.
	sentenceFresh = 5 * time.Second
	// silentCall is how long a response takes at most that only calls a function; a longer one has spoken.
	silentCall = 300 * time.Millisecond
	// quietGap is how long both sides must be quiet before something speakable is said.
	quietGap = time.Second
	// speakableGap is the least time between two speakable things; with quietGap, silence stays below ten seconds.
	speakableGap = 8 * time.Second
	// staleAfter is the age at which a remark is not worth saying any more.
	staleAfter = 20 * time.Second
	// urgentHold bounds how long questions and outcomes are held for quiet, so that several outcomes become one
	// message. After that, the floor has them and waits for quiet.
	urgentHold = 3 * time.Second
	// deliveryWait is how long something speakable may stay unconfirmed before it counts as lost.
	deliveryWait = 30 * time.Second
	// finalsTogether is how long an outcome waits for another one to be told with it, while other work runs.
	finalsTogether = 2 * time.Second
	// wordsWait is how long an interrupted outcome waits in quiet for the transcript of the interruption.
	wordsWait = 1500 * time.Millisecond
	// unsaidRest is when the voice model is told again to say an outcome, after it chose to say nothing.
	unsaidRest = 5 * time.Second
	// finalAgain is when an outcome that nobody confirmed is said again.
	finalAgain = time.Minute
	// heartbeatTogether is how much too early a heartbeat may be said together with another one.
	heartbeatTogether = 10 * time.Second
)

// heartbeatTimes is the age of a work at its first heartbeats; after these, one is due every heartbeatEvery. Set once.
var heartbeatTimes = [...]time.Duration{35 * time.Second, 2 * time.Minute, 5 * time.Minute}

const heartbeatEvery = 10 * time.Minute

// Bounds of the schedule.
const (
	maxPaced         = 64  // works; of a further one only the outcome is told
	maxLookups       = 64  // open lookups; a further one gets no filler
	maxOpenQuestions = 64  // a further one is not said: it is on the page, and a notice is sent
	maxHeldFinals    = 64  // outcomes that wait for quiet; when full, the floor gets them at once
	maxHeldNews      = 16  // other messages that wait for an answer; when full, the oldest is dropped
	maxReported      = 2   // works of which an utterance tells what they do; more are only counted
	maxHeldRemarks   = 4   // of a work; when full, the oldest is dropped: the model has it as a note
	MaxPacedNotes    = 40  // of a work; later remarks do not become notes, so that they do not fill the model's context
	maxDeliveries    = 192 // unconfirmed utterances: more than twice the open questions; see track
	maxTellings      = 2   // how often a question is said, or an outcome that was not confirmed or not said
	maxOffers        = 4   // how often an interrupted outcome is said; then it waits for the next call
	maxLost          = 2   // lost speakable things in a row; after these, none is said until the caller is heard again
)

// The words by which a schedule counts.
var (
	Given  = []string{"note", "remark", "heartbeat", "filler", "question", "outcome"} // to the voice model, by kind
	Unsaid = []string{"stale", "interrupted", "unconfirmed", "full"}                  // what was not heard as planned: why
)

// A Schedule decides what one call says about its works, and when. It proposes utterances; the floor decides when they
// are sent. It is pure: events bring the time, and effects say what to do. The loop of the call owns it:
//
//	s := New(level, askAgain, language, count)
//	for each event of the voice, and each event of a work of this call:
//	    for _, x := range s.Step(time.Now(), e) { … } // in order, before the next step
//
// It needs these events:
//
//   - Every event of the voice, as it came.
//   - Of a codex request: [Began] when it is accepted, and again when its names are resolved; [AnsweredEvent] when its
//     early answer went out; [Doing] for [handoff.ItemStarted]; [Remark] for a message that is certainly not the last;
//     [Question] and [QuestionClosed]. At the end [Ended] if a message is due, or [Gave] if the outcome was the answer.
//   - Of a side question, whose answer may take a while: the same, and [Lookup] with the same id.
//   - Of a request that answers a question: [Claimed], and [Asked] when its output asks the question again.
//   - Of any other request: [Lookup] and [AnsweredEvent].
//   - Of a request that steers or queues: [Concerned], for the work that it reached.
//   - Of a work from an earlier call: [Began] with Answered set.
//
// Its effects mean:
//
//   - [DoNote] and [DoSay] are utterances. Their ids (s1, s2, …) are unique in the call; the call's own utterances
//     need other ids.
//   - [DoGiven] with works means "delivered" in the ledger. With a question it says when the question was heard.
//   - [DoNotify] means that nobody answers a question in this call, so that a notice is sent outside of calls.
//   - [DoWake] sets the one timer of the call. Its [Wake] may come late, or once too often.
//
// The answer to the request of a work must go out [Schedule.Within] the request. It asks for the floor unless the
// response with the request spoke, so that nothing is said twice. An outcome without a [DoGiven] was not heard: the
// router gives it to the next listener after [handoff.CallEnded].
type Schedule struct {
	level         handoff.SpeechLevel
	language      wording.Language // Set once
	askAgain      time.Duration    // until an unanswered question is asked again, and as long again until a notice is sent
	works         []*pacedWork     // oldest first
	lookups       []*lookup
	questions     []*askedQuestion
	finals        []heldFinal // outcomes that wait for quiet, or until a question is answered
	news          []wording.Answer
	deliveries    []*delivery              // utterances that are not confirmed, oldest first
	quiet         bool                     // both sides are; a call begins quiet
	invited       bool                     // only the client asks for responses, so nothing speakable is said
	quietSince    time.Time                // when quiet began
	epoch         int                      // number of the caller's utterances so far
	sentenceEnd   time.Time                // when their last sentence was known to be over; zero while they speak
	callerSpoke   time.Time                // when they last began to speak
	untranscribed bool                     // there is no transcript of that yet
	callerWords   time.Time                // when they last began to say something other than a backchannel or a hush
	callerHushed  time.Time                // when they last began to ask for quiet
	lastSpeakable time.Time                // when the last speakable thing was said
	lost          int                      // number of speakable things in a row that nobody confirmed
	over          bool                     // the call has ended
	serial        int                      // number of the last id
	wake          time.Time                // of the last [DoWake]
	count         func(word string, n int) // Set once: counts what happens, by Given and Unsaid

	now time.Time // of the step that runs
	out []Effect  // of the step that runs
}

// A pacedWork is what the schedule knows of a work.
type pacedWork struct {
	ID, server  string
	asked       string // for
	began       time.Time
	answered    bool
	waits       bool      // for another one to end
	ran         bool      // it began after it had waited
	heartbeats  int       // heartbeats so far
	heartbeatAt time.Time // the next one
	doing       string    // what it does, in words
	newDoing    bool      // doing was not said yet
	early       []string  // remarks from before the answer
	remarks     []heldRemark
	notes       int // number of notes so far
	concerned   int // the last epoch in which the caller's words were about it
}

type heldRemark struct {
	text  string // to be said
	whole string // for a note; "" once noted
	at    time.Time
	epoch int
}

// A lookup is an open request that is no work.
type lookup struct {
	ID, server string
	opened     time.Time
	due        time.Time // for the filler
	filled     bool      // something was heard since, so no filler is needed
}

type askedQuestion struct {
	ID        handoff.QuestionID
	work      string
	message   wording.Answer
	opened    time.Time
	times     int       // how often it was asked
	notified  bool      // a notice was sent outside of the call
	lastAsked time.Time // when it was last asked, or heard
}

type heldFinal struct {
	rec  handoff.Record
	when wording.When
	at   time.Time
}

// A class says how urgent an utterance is.
type class int

const (
	classSpeakable class = iota // said soon, or dropped
	classUrgent                 // a question
	classFinal                  // an outcome
)

// A delivery is something that was given to the voice model, and that the voice has not confirmed.
type delivery struct {
	IDs          []string // of its utterances, the newest last
	class        class
	works        []string
	outcomes     int // number of outcomes that it tells, also those that the caller was told elsewhere
	question     handoff.QuestionID
	message      wording.Answer
	at           time.Time // when it was last said
	inQuiet      bool      // it was quiet then, so that the voice model began at once
	stopped      time.Time // when it ended before its meaning was heard; zero: it did not
	maybeUnheard bool      // with stopped: perhaps nothing of it was heard
	unsaid       bool      // with stopped: the voice model chose to say nothing of it
	heard        string    // with stopped: the part of the text that was heard
	answer       bool      // it answers a request: its first utterance cannot be taken back
}

// New returns the schedule of one call. A question that nobody answers is asked again after askAgain, and a notice of
// it is sent after as long again. count is called in steps, with what happens of [Given] and [Unsaid].
func New(
	level handoff.SpeechLevel, askAgain time.Duration, language wording.Language, count func(word string, n int),
) *Schedule {
	return &Schedule{level: level, askAgain: askAgain, language: language, count: count, quiet: true}
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
		s.sentenceEnd, s.callerSpoke, s.untranscribed = time.Time{}, e.At, true
	case handoff.Heard:
		if e.Typed {
			s.heardCaller()
		}
		s.sentenceEnd, s.untranscribed = now, false
		s.callerWords = orNow(e.Began, now)
	case Backchannel:
		s.sentenceEnd, s.untranscribed = now, false
	case Hush:
		if e.Typed {
			s.heardCaller()
		}
		s.sentenceEnd, s.untranscribed, s.callerHushed = now, false, orNow(e.Began, now)
		s.hush()
	case handoff.Quiet:
		s.invited = e.Invited
		s.setQuiet(e.On)
	case handoff.Said:
		s.said(e)
	case handoff.CallEnded:
		*s = Schedule{over: true, count: s.count}
		return nil
	case Sentence:
		s.sentenceEnd = e.At
	case LevelSet:
		s.level = e.Level
	case Gave:
		s.gave(e)
	case Ended:
		s.ended(e.Rec, wording.WhenNow)
	case Unheard:
		s.unheard(e)
	case News:
		s.hold(e.Message)
	case Told:
		s.outcomeTold(e.ID)
	case Context:
		s.count("note", 1)
		s.emit(Effect{Act: DoNote, ID: s.nextID(), Text: e.Message.Encode()})
	case Yielded:
		s.forget(e.ID)
	case Question:
		s.question(e)
	case QuestionClosed:
		s.closeQuestion(e.ID)
	case Claimed:
		if q := s.openQuestion(e.ID); q != nil && q.times > 0 && q.times < maxTellings {
			q.lastAsked = s.now // the caller is answering it, so it is not repeated now
		}
	case Asked:
		s.askedByRouter(e)
	case Lookup:
		if len(s.lookups) >= maxLookups {
			s.count("full", 1)
			break
		}
		s.lookups = append(s.lookups, &lookup{ID: e.ID, server: e.Server, opened: now, due: now.Add(s.Within(now))})
	case AnsweredEvent:
		s.answered(e.ID)
	case Began:
		s.began(e)
	case Waits:
		if w := s.work(e.ID); w != nil {
			w.wait(e.On, now)
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
	s.giveUpDeliveries()
	s.askQuestions() // in the order of importance
	s.tellFinals()
	s.tellNews()
	s.sayFiller()
	s.saySpeakable()
	s.noteHeld()
	s.setWake()
	return s.out
}

// orNow returns the time known, or now if it is zero.
func orNow(known, now time.Time) time.Time {
	if known.IsZero() {
		return now
	}
	return known
}

// heardCaller notes that the caller said something: somebody is there, and what is held may not matter to them any
// more.
func (s *Schedule) heardCaller() {
	s.epoch++
	s.lost = 0
	for _, l := range s.lookups {
		l.filled = true
	}
}

func (s *Schedule) setQuiet(on bool) {
	if on == s.quiet {
		return
	}
	s.quiet = on
	if on {
		s.quietSince = s.now
	}
	for _, l := range s.lookups { // the model spoke: now, or in the response with the request
		l.filled = l.filled || !on || s.now.Sub(l.opened) > silentCall
	}
}

func (s *Schedule) began(e Began) {
	if w := s.work(e.ID); w != nil {
		w.server, w.asked = e.Server, e.Asked
		return
	}
	if len(s.works) >= maxPaced {
		s.count("full", 1)
		return
	}
	w := &pacedWork{ID: e.ID, server: e.Server, asked: e.Asked, began: orNow(e.Since, s.now), answered: e.Answered,
		heartbeatAt: s.now.Add(heartbeatTimes[0]), concerned: s.epoch}
	s.works = append(s.works, w)
}

// ended holds an outcome that the caller is to be told.
func (s *Schedule) ended(rec handoff.Record, when wording.When) {
	if s.forget(rec.ID) {
		s.finals = append(s.finals, heldFinal{rec: rec, when: when, at: s.now})
	}
}

// unheard holds outcomes that nobody was told.
func (s *Schedule) unheard(e Unheard) {
	when := wording.WhenMeanwhile
	if e.Away {
		when = wording.WhenAway
	}
	for _, rec := range e.Recs {
		s.ended(rec, when)
	}
}

// hold holds other news.
func (s *Schedule) hold(message wording.Answer) {
	if len(s.news) >= maxHeldNews {
		s.news = s.news[1:]
		s.count("full", 1)
	}
	s.news = append(s.news, message)
}

// Within returns how long a request that comes now may stay unanswered.
func (s *Schedule) Within(now time.Time) time.Duration {
	if now.Sub(s.sentenceEnd) > sentenceFresh { // no sentence end is known, or the model talked first
		return deadAir
	}
	return max(s.sentenceEnd.Add(deadAir).Sub(now), leastWait)
}

// answered closes a request. Earlier remarks of the agent become notes, since the answer had to come first.
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
			s.count("full", 1)
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
		s.count("stale", 1)
	}
	w.remarks = append(w.remarks, heldRemark{text: text, whole: e.Text, at: s.now, epoch: s.epoch})
}

func (s *Schedule) note(w *pacedWork, text string) {
	if w.notes >= MaxPacedNotes {
		s.count("full", 1)
		return
	}
	w.notes++
	s.count("note", 1)
	s.emit(Effect{Act: DoNote, ID: s.nextID(), Works: []string{w.ID},
		Text: wording.RemarkNote(handoff.Record{Server: w.server}, text).Encode()})
}

func (s *Schedule) question(e Question) {
	if s.openQuestion(e.ID) != nil {
		return
	}
	if len(s.questions) >= maxOpenQuestions {
		s.count("full", 1)
		s.emit(Effect{Act: DoNotify, Question: e.ID})
		return
	}
	s.questions = append(s.questions, &askedQuestion{ID: e.ID, work: e.Work, message: e.Message, opened: s.now})
}

// closeQuestion removes a question, and takes back its utterance if that is not said yet. Its work goes on now, so the
// next heartbeat is postponed.
func (s *Schedule) closeQuestion(id handoff.QuestionID) {
	s.deliveries = slices.DeleteFunc(s.deliveries, func(f *delivery) bool {
		asks := f.class == classUrgent && f.question == id && f.message.Say != "" // not the output of a request, see [Asked]
		if asks {
			s.emit(Effect{Act: DoTakeBack, ID: f.IDs[len(f.IDs)-1], Question: id})
		}
		return asks
	})
	s.questions = slices.DeleteFunc(s.questions, func(q *askedQuestion) bool {
		if w := s.work(q.work); q.ID == id && w != nil {
			w.postpone(s.now)
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

func (s *Schedule) nextID() string {
	s.serial++
	return "s" + strconv.Itoa(s.serial)
}

func (s *Schedule) emit(x Effect) { s.out = append(s.out, x) }
