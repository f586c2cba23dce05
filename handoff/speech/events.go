package speech

import (
	"time"

	"switchboard/handoff"
)

// An Event is an event of the voice as it came ([handoff.Spoke], [handoff.Heard], [handoff.Quiet], [handoff.Said],
// [handoff.CallEnded]), or one of the types below. All others, such as [handoff.Hint], are ignored.
type Event any

type (
	// Began: a work of this call exists. Its request is open until [AnsweredEvent], unless Answered is set, for a work
	// from an earlier call. A second Began with the same id corrects the names.
	Began struct {
		ID, Server, Title string
		Answered          bool
	}
	// AnsweredEvent: the request of a work or lookup got its output.
	AnsweredEvent struct{ ID string }
	// Lookup: a request is open that began no work, such as list_sessions, or one that asks a side question.
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
	// Claimed: the voice model claims an answer to the question, and the claim is being judged.
	Claimed struct{ ID handoff.QuestionID }
	// Asked: the output of a request asked the question once more. Utterance is the id of that output.
	Asked struct {
		ID        handoff.QuestionID
		Utterance string
	}
	// Ended: a work has ended, and a message is to tell the caller.
	Ended struct{ Rec handoff.Record }
	// Context: something that the voice model is to know and not to say.
	Context struct{ Text string }
	// Yielded: other work, or another process, tells the outcome of this work.
	Yielded struct{ ID string }
	// Gave: the call itself told outcomes, as an answer or in a summary. Text is a message with the same outcomes, in
	// case that nobody heard the utterance; "": the next call tells them then.
	Gave struct {
		Utterance, Text string
		Works           []string
		Answer          bool // the utterance answers a request, so it cannot be taken back
	}
	// Told: the caller was told the outcome of a work, in this call or elsewhere.
	Told struct{ ID string }
	// Concerned: the caller's last words were about this work: they steered it or asked for it.
	Concerned struct{ ID string }
	// LevelSet: the caller wants to hear more or less.
	LevelSet struct{ Level handoff.SpeechLevel }
	// Backchannel: the caller said no words, or only words that show that they listen. It replaces [handoff.Heard].
	Backchannel struct{}
	// Hush: the caller asked for quiet and for nothing else. It replaces [handoff.Heard]. Began is when they began.
	Hush struct {
		Began time.Time
		Typed bool
	}
	// Sentence: the caller's sentence was over at this time. It comes with a request.
	Sentence struct{ At time.Time }
	// Wake: the time of the last [DoWake] has come. Extra wakes are harmless.
	Wake struct{}
)

// A scheduleAct is what an [Effect] asks for.
type scheduleAct int

const (
	DoNote     scheduleAct = iota // Say(Utterance{ID: id, Text: text, Floor: FloorNone})
	DoSay                         // Say(Utterance{ID: id, Text: text, Floor: FloorAsk})
	DoGiven                       // the caller heard the outcomes of works, or the question
	DoTakeBack                    // Say(Utterance{ID: id}), which withdraws the utterance: it is not needed any more
	DoNotify                      // send a notice of the question outside of calls: nobody answers it in this one
	DoWake                        // step with a Wake at this time; an older wake is void
)

// An Effect is one thing to do. The effects of a step are done in order.
type Effect struct {
	Act      scheduleAct
	ID       string // DoNote, DoSay: unique in the call, s1, s2, …
	Text     string
	Works    []string
	Question handoff.QuestionID // DoSay, DoGiven: the question announced; DoNotify
	At       time.Time          // DoWake; DoGiven: when it was heard, from [handoff.Said]
}
