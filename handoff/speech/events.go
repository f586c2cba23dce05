package speech

import (
	"time"

	"switchboard/handoff"
)

// A Event is something the schedule has to know: an event of the voice as it came ([handoff.Spoke],
// [handoff.Heard], [handoff.Quiet], [handoff.Said], [handoff.CallEnded]) or one of those below. Events of the voice that mean nothing to
// it ([handoff.Hint], [handoff.Request]) may be given too; whatever else comes changes nothing.
type Event any

type (
	// Began: a work of this call exists and its request is open, until [AnsweredEvent]; with
	// answered there is no open request (the work is older than the call). Repeated for the same id, it
	// corrects the names.
	Began struct {
		ID, Server, Title string
		Answered          bool
	}
	// AnsweredEvent: the request of a work or lookup got its output.
	AnsweredEvent struct{ ID string }
	// Lookup: a request that is no work is open: a list, a look into a session, a side question.
	Lookup struct{ ID, Server string }
	// Doing: the agent began an item.
	Doing struct {
		ID   string
		Kind handoff.ItemKind
		Text string
	}
	// Remark: the agent said something on the way, in its own words.
	Remark struct{ ID, Text string }
	// Question: the agent of a work waits for the caller; text is the message that announces it.
	Question struct {
		ID   handoff.QuestionID
		Work string
		Text string
	}
	// QuestionClosed: somebody answered it, or it was withdrawn.
	QuestionClosed struct{ ID handoff.QuestionID }
	// Claimed: the voice model brought an answer to it, which is being judged.
	Claimed struct{ ID handoff.QuestionID }
	// Asked: the router asked it itself, by an answer of its own.
	Asked struct {
		ID        handoff.QuestionID
		Utterance string
	}
	// Ended: a work has ended and the caller is to be told by a message.
	Ended struct{ Rec handoff.Record }
	// Yielded: another life of the router has the work and tells what becomes of it.
	Yielded struct{ ID string }
	// Gave: the router gave outcomes itself, as an answer or a summary. text says the same as a
	// message, for the case that nobody heard the utterance; "" leaves that to the next call.
	Gave struct {
		Utterance, Text string
		Works           []string
	}
	// Concerned: the caller's last words were about this work: they steered it or asked for it.
	Concerned struct{ ID string }
	// LevelSet: the caller wants to hear more or less.
	LevelSet struct{ Level handoff.SpeechLevel }
	// Sentence: the caller's sentence was over then, which the voice tells with a request.
	Sentence struct{ At time.Time }
	// Wake: the time of the last [DoWake] has come. One too many does no harm.
	Wake struct{}
)

// A Class is how much something wants to be heard.
type Class int

const (
	classSilent    Class = iota // context only
	classSpeakable              // worth hearing now or never
	classUrgent                 // a question, a failure
	classFinal                  // an outcome
)

var speechClassNames = [...]string{"silent", "speakable", "urgent", "final"}

// String returns the class as logs and metrics name it.
func (c Class) String() string { return speechClassNames[c] }

// A scheduleAct is what is to be done.
type scheduleAct int

const (
	DoNote     scheduleAct = iota // Say(Utterance{ID: id, Text: text, Floor: FloorNone})
	DoSay                         // Say(Utterance{ID: id, Text: text, Floor: FloorAsk})
	DoGiven                       // the caller heard the outcomes of works, or question
	DoKeep                        // nobody heard the outcomes of works, and the call has ended: keep them for the next
	DoDrop                        // count speakable things will never be said
	DoTakeBack                    // Say(Utterance{ID: id}): what it asks was answered meanwhile
	DoNotify                      // tell the question outside of calls: nobody answers in this one
	DoWake                        // give a Wake at this time; an older wake is void
)

// A Effect is one thing to be done, in order.
type Effect struct {
	Act      scheduleAct
	class    Class
	ID       string // DoNote, DoSay: unique in the call, s1, s2, …
	Text     string
	Works    []string
	Question handoff.QuestionID // DoSay, DoGiven: the question announced; DoNotify
	At       time.Time          // DoWake; DoGiven: when it had been heard, as [handoff.Said] says
	cut      bool               // DoGiven: it was interrupted
	Count    int
}
