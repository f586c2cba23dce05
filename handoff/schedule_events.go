package handoff

import "time"

// A scheduleEvent is something the schedule has to know: an event of the voice as it came ([Spoke],
// [Heard], [Quiet], [Said], [CallEnded]) or one of those below. Events of the voice that mean nothing to
// it ([Hint], [Request]) may be given too; whatever else comes changes nothing.
type scheduleEvent any

type (
	// beganEvent: a work of this call exists and its request is open, until [answeredEvent]; with
	// answered there is no open request (the work is older than the call). Repeated for the same id, it
	// corrects the names.
	beganEvent struct {
		id, server, title string
		answered          bool
	}
	// answeredEvent: the request of a work or lookup got its output.
	answeredEvent struct{ id string }
	// lookupEvent: a request that is no work is open: a list, a look into a session, a side question.
	lookupEvent struct{ id, server string }
	// doingEvent: the agent began an item.
	doingEvent struct {
		id   string
		kind ItemKind
		text string
	}
	// remarkEvent: the agent said something on the way, in its own words.
	remarkEvent struct{ id, text string }
	// questionEvent: the agent of a work waits for the caller; text is the message that announces it.
	questionEvent struct {
		id   QuestionID
		work string
		text string
	}
	// questionClosedEvent: somebody answered it, or it was withdrawn.
	questionClosedEvent struct{ id QuestionID }
	// claimedEvent: the voice model brought an answer to it, which is being judged.
	claimedEvent struct{ id QuestionID }
	// askedEvent: the router asked it itself, by an answer of its own.
	askedEvent struct {
		id        QuestionID
		utterance string
	}
	// outcomeEvent: a work has ended and the caller is to be told by a message.
	outcomeEvent struct{ rec Record }
	// yieldedEvent: another life of the router has the work and tells what becomes of it.
	yieldedEvent struct{ id string }
	// gaveEvent: the router gave outcomes itself, as an answer or a summary. text says the same as a
	// message, for the case that nobody heard the utterance; "" leaves that to the next call.
	gaveEvent struct {
		utterance, text string
		works           []string
	}
	// concernedEvent: the caller's last words were about this work: they steered it or asked for it.
	concernedEvent struct{ id string }
	// levelEvent: the caller wants to hear more or less.
	levelEvent struct{ level SpeechLevel }
	// sentenceEvent: the caller's sentence was over then, which the voice tells with a request.
	sentenceEvent struct{ at time.Time }
	// wakeEvent: the time of the last [doWake] has come. One too many does no harm.
	wakeEvent struct{}
)

// A speechClass is how much something wants to be heard.
type speechClass int

const (
	classSilent    speechClass = iota // context only
	classSpeakable                    // worth hearing now or never
	classUrgent                       // a question, a failure
	classFinal                        // an outcome
)

var speechClassNames = [...]string{"silent", "speakable", "urgent", "final"}

// String returns the class as logs and metrics name it.
func (c speechClass) String() string { return speechClassNames[c] }

// A scheduleAct is what is to be done.
type scheduleAct int

const (
	doNote     scheduleAct = iota // Say(Utterance{ID: id, Text: text, Floor: FloorNone})
	doSay                         // Say(Utterance{ID: id, Text: text, Floor: FloorAsk})
	doAnswer                      // answer the requests of these works early, now
	doGiven                       // the caller heard the outcomes of works, or question
	doKeep                        // nobody heard the outcomes of works, and the call has ended: keep them for the next
	doDrop                        // count speakable things will never be said
	doTakeBack                    // Say(Utterance{ID: id}): what it asks was answered meanwhile
	doNotify                      // tell the question outside of calls: nobody answers in this one
	doWake                        // give a wakeEvent at this time; an older wake is void
)

// A scheduleEffect is one thing to be done, in order.
type scheduleEffect struct {
	act      scheduleAct
	class    speechClass
	id       string // doNote, doSay: unique in the call, s1, s2, …
	text     string
	works    []string
	question QuestionID // doSay, doGiven: the question announced; doNotify
	at       time.Time  // doWake; doGiven: when it had been heard, as [Said] says
	cut      bool       // doGiven: it was interrupted
	count    int
}
