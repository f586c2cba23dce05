package speech

import (
	"time"

	"switchboard/handoff"
	"switchboard/handoff/wording"
)

// An Event is an event of the voice as it came ([handoff.Spoke], [handoff.Heard], [handoff.Quiet], [handoff.Said],
// [handoff.CallEnded]), or one of the types below. All others, such as [handoff.Hint], are ignored.
type Event any

type (
	// Began: a work of this call exists. Its request is open until [AnsweredEvent], unless Answered is set, for a work
	// from an earlier call, which was asked for at Since. A second Began with the same id corrects the names.
	Began struct {
		ID, Server string
		Asked      string // what was asked for
		Since      time.Time
		Answered   bool
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
	// Question: the agent of a work waits for the caller. Message announces the question.
	Question struct {
		ID      handoff.QuestionID
		Work    string
		Message wording.Answer
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
	// Unheard: works ended, and nobody was told. A message is to tell the caller of all of them. Away says that one
	// ended before the call.
	Unheard struct {
		Recs []handoff.Record
		Away bool
	}
	// News: something else that the caller is to be told. It is not confirmed, and not told again.
	News struct{ Message wording.Answer }
	// Context: something that the voice model is to know and not to say.
	Context struct{ Message wording.Answer }
	// Yielded: other work, or another process, tells the outcome of this work.
	Yielded struct{ ID string }
	// Gave: the call itself told an outcome, as the answer to a request. Message tells the same, in case that nobody
	// heard the answer.
	Gave struct {
		Utterance, Work string
		Message         wording.Answer
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
