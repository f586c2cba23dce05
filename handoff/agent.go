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
	Newest  TurnID // the newest turn of the thread, from which a later start is told apart

	// Workspace is the thread's directory on its server. Files outside of it are not the thread's own.
	Workspace string
	Worktree  *Worktree // that the thread is in; nil: none that Switchboard made
	// VoiceApprovals is the highest risk that may be approved by voice there: "none", "low" or "medium".
	VoiceApprovals string
}

// Agent is one attached thread. If it also implements [Controls], the running turn can be steered,
// interrupted and answered.
type Agent interface {
	// Start starts a turn in the thread. It tries once; no layer below repeats it. [CodeUnknownStart] means that the
	// turn may have started nevertheless, [CodeUnreachable] that the start was certainly not sent. [CodeJoined] comes
	// with the id of somebody else's turn, into which the server put the words: it may be followed, but it is not ours.
	Start(ctx context.Context, turn Turn) (TurnID, error)
	// Follow yields the updates of the turn, beginning with those that were buffered, and ends after [TurnEnded] or
	// with an error: [CodeTurnGone] if the thread does not have the turn, so that following it again cannot help.
	// Leaving the loop never touches the turn.
	//
	// A turn may also have begun before the thread was attached here, on an earlier connection of ours. Then the items
	// that it has finished come first, and its open questions come again, all under their old ids; a follower that
	// knows an id skips the item. To follow a turn is to say that it is ours: its questions are asked through Follow
	// and answered by [Controls]. Questions of turns that nobody follows are left alone.
	Follow(ctx context.Context, id TurnID) iter.Seq2[Update, error]
	// Close detaches: unsubscribes when nobody else here uses the thread.
	Close() error
}

// Controls acts on a running turn.
type Controls interface {
	// Steer gives the turn more input. It tries once. After [CodeAgentGone] and [CodeUnknownStart] the turn may have
	// taken the input nevertheless; after any other error it has not: [CodeNotPending] means that the turn has ended,
	// [CodeUnreachable] that nothing was sent. The turn gets the input of several steers in their order.
	Steer(ctx context.Context, turn TurnID, input []Part) error
	Interrupt(ctx context.Context, turn TurnID) error
	// Decide answers a question of a turn that we started. If the question is answered, withdrawn or not ours, it
	// returns [CodeNotPending].
	Decide(ctx context.Context, id QuestionID, d Decision) error
}

// A Pursuer is an [Agent] whose thread can have a goal.
type Pursuer interface {
	// Pursue is [Agent.Start] of a turn whose words are the thread's goal, too: others follow until it is reached. If
	// the thread can have no goal, or works for one, it starts nothing and returns [CodeNoGoal]. That a goal cannot be
	// set once the turn has started is no error: the turn is then the only one.
	Pursue(ctx context.Context, turn Turn) (TurnID, error)
}

// A Reconciler finds out what became of a start whose acknowledgement was lost. It waits until the old connection's
// bytes are resolved (two equal looks). Then it returns the turn that carries our id or, failing that, a turn that is
// newer than after and is not known to be somebody else's; "" means that there is none, and that the start never ran
// and never will. after is the newest turn before the start, see [Attached]. [CodeJoined] comes with the id of somebody
// else's turn that took our words. After any other error it is still not known: attach and ask again.
type Reconciler interface {
	Reconcile(ctx context.Context, after TurnID, id string) (TurnID, error)
}

// A Bystander is an [Agent] whose turns can be followed by somebody who only waits for their end. The questions of such
// a turn stay with those who began it.
type Bystander interface {
	// Watch yields the end of a turn as [Agent.Follow] does. It may yield updates before it, but no questions.
	Watch(ctx context.Context, turn TurnID) iter.Seq2[Update, error]
}

// A Replier can answer a question in words: with the answers to each of its fields, as [Question.Read] returns them.
// [CodeMalformed] means that they do not fit. The caller of Reply ensures that an answer to an Ask for a secret was
// typed, never said.
type Replier interface {
	Reply(ctx context.Context, id QuestionID, answers [][]string) error
}

// A Forker copies a thread, also one that another program has open, up to and including the turn last; "" copies all of
// it, a running turn as interrupted. A [Fleet] may be a Forker. [CodeUnsupported] means that the server cannot copy,
// [CodeNotFound] that the thread has no such turn, [CodeBusy] that last still runs. The copy is attached and nothing
// runs in it. Its turns may keep their ids, so a turn is identified by thread and turn together.
type Forker interface {
	Fork(ctx context.Context, t Target, last TurnID) (Attached, error)
}

// An Ephemeral makes threads of which nothing is kept: no list has them, nobody else can attach them, and they are gone
// when nobody here uses them any more, or their connection is lost. A [Fleet] may be an Ephemeral. On a server without
// such threads, CreateEphemeral makes a thread as [Fleet.Create] does, and ForkEphemeral fails with [CodeUnsupported].
// ForkEphemeral does not change the thread that it copies, see [Forker].
type Ephemeral interface {
	CreateEphemeral(ctx context.Context, t Target) (Attached, error)
	ForkEphemeral(ctx context.Context, t Target, last TurnID) (Attached, error)
}

// A Registrar knows the configuration of a server, by its canonical name. A [Fleet] may be a Registrar.
type Registrar interface {
	Registered(server string) Registered
}

// Registered is the part of a server's configuration that others need.
type Registered struct {
	Known bool     // the fleet has a server of exactly this name
	Names []string // what people call it: its name and its aliases
	// Others are what they call the other servers: who hears one of these hears of something else.
	Others []string
	// VoiceApprovals is the highest risk that may be approved by voice there: "none", "low" or "medium".
	VoiceApprovals string
	Unwatched      bool // work that others began there is not followed
	Private        bool // turns that others begin there do not show: it is a program of our own
	EndsWithUs     bool // its work ends when this process ends or loses it: a child, a simulator, an agent of ours
}

// A Part is one piece of an agent's input: a [Text] or an [Image]. An agent that cannot take a kind of part refuses the
// whole input with [CodeUnsupported].
type Part interface{ inputPart() }

// Text is words, verbatim.
type Text string

// Image is a picture.
type Image struct {
	URL string // https: or data:
}

func (Text) inputPart()  {}
func (Image) inputPart() {}

// TextInput returns an input of words alone.
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
