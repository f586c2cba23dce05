package speech

import (
	"time"

	"switchboard/handoff"
)

// An Event is something that the schedule has to know: an event of the voice as it came ([handoff.Spoke],
// [handoff.Heard], [handoff.Quiet], [handoff.Said], [handoff.CallEnded]), or one of those below. Whatever else comes
// changes nothing, such as [handoff.Hint] and [handoff.Request].
type Event any

type (
	// Began: a work of this call exists. Its request is open until [AnsweredEvent], unless Answered is set: then the
	// work is older than the call. A second one for the same id corrects the names.
	Began struct {
		ID, Server, Title string
		Answered          bool
	}
	// AnsweredEvent: the request of a work or lookup got its output.
	AnsweredEvent struct{ ID string }
	// Lookup: a request that began no work is open, such as a list or a look into a session; or a side question.
	Lookup struct{ ID, Server string }
	// Waits: a work waits for another one to end, or no longer does.
	Waits struct {
		ID string
		On bool
	}
	// Doing: the agent began an item.
	Doing struct {
		ID   string
		Kind handoff.ItemKind
		Text string
	}
	// Remark: the agent said something on the way, in its own words.
	Remark struct{ ID, Text string }
	// Question: the agent of a work waits for the caller. Text is the message that announces the question.
	Question struct {
		ID   handoff.QuestionID
		Work string
		Text string
	}
	// QuestionClosed: somebody answered the question, or it was withdrawn.
	QuestionClosed struct{ ID handoff.QuestionID }
	// Claimed: the voice model brought an answer to the question, and the answer is being judged.
	Claimed struct{ ID handoff.QuestionID }
	// Asked: the output of a request asked the question once more. Utterance is the id of that output.
	Asked struct {
		ID        handoff.QuestionID
		Utterance string
	}
	// Ended: a work has ended and the caller is to be told by a message.
	Ended struct{ Rec handoff.Record }
	// Context: something that the voice model has to know, and not to say.
	Context struct{ Text string }
	// Yielded: other work, or another process, has taken over the work and tells its outcome.
	Yielded struct{ ID string }
	// Gave: the call gave outcomes itself, as an answer or in a summary. Text says the same as a message, in case
	// nobody heard the utterance; "" leaves that to the next call.
	Gave struct {
		Utterance, Text string
		Works           []string
		Answer          bool // to a request, which has to have it
	}
	// Told: the caller was told the outcome of a work, in this call or elsewhere.
	Told struct{ ID string }
	// Concerned: the caller's last words were about this work: they steered it or asked for it.
	Concerned struct{ ID string }
	// LevelSet: the caller wants to hear more or less.
	LevelSet struct{ Level handoff.SpeechLevel }
	// Backchannel: what the caller said was no word, or only showed that they listen. It takes the place of
	// [handoff.Heard].
	Backchannel struct{}
	// Hush: the caller asked for quiet, and for nothing else. Likewise. Began is when they began to.
	Hush struct {
		Began time.Time
		Typed bool
	}
	// Sentence: the caller's sentence was over at this time. The voice tells it with a request.
	Sentence struct{ At time.Time }
	// Wake: the time of the last [DoWake] has come. An extra one does no harm.
	Wake struct{}
)

// A scheduleAct is what an [Effect] asks for.
type scheduleAct int

const (
	DoNote     scheduleAct = iota // Say(Utterance{ID: id, Text: text, Floor: FloorNone})
	DoSay                         // Say(Utterance{ID: id, Text: text, Floor: FloorAsk})
	DoGiven                       // the caller heard the outcomes of works, or question
	DoTakeBack                    // Say(Utterance{ID: id}), which withdraws it: somebody answered or told it meanwhile
	DoNotify                      // tell the question outside of calls: nobody answers it in this one
	DoWake                        // give a Wake at this time; an older wake is void
)

// An Effect is one thing to do. The effects of a step are done in order.
type Effect struct {
	Act      scheduleAct
	ID       string // DoNote, DoSay: unique in the call, s1, s2, …
	Text     string
	Works    []string
	Question handoff.QuestionID // DoSay, DoGiven: the question announced; DoNotify
	At       time.Time          // DoWake; DoGiven: when it had been heard, as [handoff.Said] says
}
