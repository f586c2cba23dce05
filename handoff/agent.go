package handoff

import (
	"context"
	"iter"
	"strings"
)

// Fleet finds agent threads. Implementations are safe for concurrent use; errors are [*Error].
type Fleet interface {
	// Resolve turns spoken or partial names into canonical ones: Server is a name of the fleet,
	// Thread is "", [NewThread] or a full thread id. It never guesses.
	Resolve(ctx context.Context, g Grant, t Target) (Target, error)
	// Attach resumes the thread of a resolved target and subscribes to it. It runs nothing and may be
	// repeated. The thread attached is exactly the one asked for.
	Attach(ctx context.Context, t Target) (Attached, error)
	// Create makes a fresh thread on the server and project of a resolved target.
	Create(ctx context.Context, t Target) (Attached, error)
}

// Attached is a thread that is ready for a turn.
type Attached struct {
	Agent   Agent
	Target  Target // with the thread's id
	Title   string // its name or first words; "" when it has none yet
	Running TurnID // the turn that runs now, or ""
	Newest  TurnID // the newest turn known; a later start is told apart from it

	// Workspace is the thread's directory on its server: what lies outside of it is not the thread's own.
	Workspace string
	// VoiceApprovals is the highest risk that may be approved by voice there: "none", "low" or "medium".
	VoiceApprovals string
}

// Agent is one attached thread. If it also implements [Controls], the running turn can be steered,
// interrupted and answered.
type Agent interface {
	// Start gives the thread a turn: one try, never repeated here or below. An error with code
	// [CodeUnknownStart] means that it may have started nevertheless, [CodeUnreachable] that it was certainly
	// not sent. An error with code [CodeJoined] comes with the id of somebody else's turn, which took the
	// words in: it may be followed, but it is not ours.
	Start(ctx context.Context, turn Turn) (TurnID, error)
	// Follow yields what the turn reports, beginning with what was already buffered, and ends after
	// [TurnEnded] or with an error: [CodeTurnGone] when the thread does not hold the turn, so that following it again
	// is in vain. Leaving it never touches the turn.
	//
	// A turn may also have begun before the thread was attached here, on an earlier connection of ours.
	// Then the items that it has finished come first, under the ids they had (who heard one already skips
	// it), and questions that are open come again under the ids they had. Whoever follows a turn says with it that
	// the turn is ours: its questions are asked through Follow and answered by [Controls]. Those of turns
	// that nobody follows are left alone.
	Follow(ctx context.Context, id TurnID) iter.Seq2[Update, error]
	// Close detaches: unsubscribes when nobody else here uses the thread.
	Close() error
}

// Controls is what else a running turn can be told.
type Controls interface {
	// Steer gives the turn more input, by one try. [CodeAgentGone] and [CodeUnknownStart] mean that it may
	// have taken it nevertheless, any other error that it certainly did not: [CodeNotPending] that it has
	// ended, [CodeUnreachable] that it was not sent. What is given by several steers is heard in their order.
	Steer(ctx context.Context, turn TurnID, input []Part) error
	Interrupt(ctx context.Context, turn TurnID) error
	// Decide answers a question of a turn that we started. A question that is answered, withdrawn or
	// foreign gives [CodeNotPending].
	Decide(ctx context.Context, id QuestionID, d Decision) error
}

// A Reconciler can tell what became of a start whose acknowledgement was lost. It waits until the old
// connection's bytes are resolved (two equal looks), then returns the turn that carries our id or, failing
// that, one that is newer than after and is not known to be somebody else's; "" when there is none, so that the
// start certainly never ran and never will. after is the newest turn before the start, see [Attached].
// [CodeJoined] comes with the id of somebody else's turn that took our words in. Any other error leaves the
// question open: attach and ask again.
type Reconciler interface {
	Reconcile(ctx context.Context, after TurnID, id string) (TurnID, error)
}

// A Bystander is an [Agent] whose turns can be followed by somebody who only waits for their end: what such a turn
// asks stays with those who began it.
type Bystander interface {
	// Watch yields the end that [Agent.Follow] yields, and may yield what comes before it, but no questions.
	Watch(ctx context.Context, turn TurnID) iter.Seq2[Update, error]
}

// A Replier can answer a question of kind [QuestionInput] in words. Several questions in one are answered
// by as many lines. [CodeMalformed] means that the words do not fit. Whoever calls it sees to it that what
// asks for a secret ([Ask]) gets words that were typed, never such that were said.
type Replier interface {
	Reply(ctx context.Context, id QuestionID, words string) error
}

// A Forker copies a thread, also one that is held elsewhere, up to and with the turn last; "" copies all of
// it, with what runs as interrupted. A [Fleet] may be one; [CodeUnsupported] means that the server cannot
// copy, [CodeNotFound] that the thread has no such turn, [CodeBusy] that last still runs. The copy is
// attached and nothing runs in it. Its turns may keep their ids, so a turn is known by thread and turn
// together.
type Forker interface {
	Fork(ctx context.Context, t Target, last TurnID) (Attached, error)
}

// An Ephemeral makes threads of which nothing is kept: no list has them, nobody else can attach them, and they are
// gone when nobody here uses them any more, or their connection is lost. A [Fleet] may be one; on a server that knows
// no such threads CreateEphemeral makes one as [Fleet.Create] does, and ForkEphemeral fails with [CodeUnsupported].
// What it copies stays as it is, see [Forker].
type Ephemeral interface {
	CreateEphemeral(ctx context.Context, t Target) (Attached, error)
	ForkEphemeral(ctx context.Context, t Target, last TurnID) (Attached, error)
}

// A Registrar knows what is configured of a server, by its canonical name. A [Fleet] may be one.
type Registrar interface {
	Registered(server string) Registered
}

// Registered is what is configured of a server.
type Registered struct {
	Known bool     // the fleet has a server of exactly this name
	Names []string // what people call it: its name and its aliases
	// VoiceApprovals is the highest risk that may be approved by voice there: "none", "low" or "medium".
	VoiceApprovals string
	EndsWithUs     bool // its work ends when this process does, or loses it: a child, a simulator, an agent of ours
}

// Stickies keeps the sticky threads of callers beyond the process. The router is its only writer.
type Stickies interface {
	List(ctx context.Context, c Caller) ([]Sticky, error)
	Set(ctx context.Context, c Caller, s Sticky) error
	Clear(ctx context.Context, c Caller, t Target) error
}

// A Part is one piece of what an agent is told: a [Text] or an [Image]. An agent that cannot take
// a kind of part refuses the whole input with [CodeUnsupported].
type Part interface{ inputPart() }

// Text is words, verbatim.
type Text string

// Image is a picture.
type Image struct {
	URL string // https: or data:
}

func (Text) inputPart()  {}
func (Image) inputPart() {}

// TextInput is an input of words alone.
func TextInput(words string) []Part { return []Part{Text(words)} }

// InputText returns the words of an input, one text a line. Pictures are left out.
func InputText(input []Part) string {
	var texts []string
	for _, p := range input {
		if text, ok := p.(Text); ok {
			texts = append(texts, string(text))
		}
	}
	return strings.Join(texts, "\n")
}
