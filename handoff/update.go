package handoff

import (
	"slices"
	"strings"
	"time"
	"unicode"
)

// An Update is something a turn reports: [Started], [ItemStarted], [Delta], [ItemDone], [ItemDropped],
// [Question], [QuestionClosed], [Usage], [GoesOn] or [TurnEnded].
type Update interface{ agentUpdate() }

// Started says that the turn was seen running.
type Started struct{ Turn TurnID }

// ItemStarted says that the agent began an item.
type ItemStarted struct{ Item Item }

// Delta is a piece of an item's text or output. It is advisory: [ItemDone] has the whole.
type Delta struct {
	ItemID string
	Kind   DeltaKind
	Text   string
}

// DeltaKind is what a delta is a piece of.
type DeltaKind string

// The kinds of deltas.
const (
	DeltaMessage   DeltaKind = "message"   // of what the agent says
	DeltaReasoning DeltaKind = "reasoning" // of what it thinks
	DeltaOutput    DeltaKind = "output"    // of what a command or tool prints
)

// Usage is the number of tokens that the turn has used so far. Each replaces the one before.
type Usage struct {
	Input     int64 `json:"input"`     // includes Cached
	Cached    int64 `json:"cached"`    // of the input
	Output    int64 `json:"output"`    // includes Reasoning
	Reasoning int64 `json:"reasoning"` // of the output
}

// ItemDone is a finished item with its authoritative content.
type ItemDone struct{ Item Item }

// ItemDropped withdraws an item that will never be finished, and its deltas. A command or an edit that is cut short by
// the end of its turn is not withdrawn: it may have had effects.
type ItemDropped struct{ ItemID string }

// QuestionClosed says that a question was answered, here or elsewhere, or withdrawn.
type QuestionClosed struct{ ID QuestionID }

// GoesOn says that the agent has ended a turn, and goes on by itself with the goal of the session. It is the same work:
// what follows comes under the id of the turn that was started.
type GoesOn struct{}

// TurnEnded is the last update of a turn.
type TurnEnded struct {
	Status TurnStatus
	Text   string // the last message of the agent, its authoritative answer; may be empty
	// Code is the reason of a failure; "" means [CodeAgentFailed]. A completed turn with [CodeUnread] may have another
	// answer than Text.
	Code   Code
	Detail string // of Code; for logs and the page
	// Undelivered are the words of steers that were accepted, and that the agent never got because the turn ended, in
	// their order.
	Undelivered []string
	Goal        Goal // how the goal of the session stands, if the turn worked for one
}

// Goal is how the goal of a session stands when the work for it has ended.
type Goal string

// How a goal can stand. "": there is none, or it is not known.
const (
	GoalComplete Goal = "complete"
	GoalBlocked  Goal = "blocked"
	GoalPaused   Goal = "paused"
	GoalLimited  Goal = "limited" // what may be used for it is used up
	GoalLeft     Goal = "left"    // it was asked for, and is not set, or not worked for any more
)

// TurnStatus is how a turn ended.
type TurnStatus int

// How a turn can end.
const (
	TurnCompleted TurnStatus = iota
	TurnFailed
	TurnInterrupted
)

// ItemKind is what an item of a turn is.
type ItemKind string

// The kinds of items that are shown. Everything else is [ItemOther].
const (
	ItemMessage    ItemKind = "message"     // the agent speaks
	ItemReasoning  ItemKind = "reasoning"   // the agent thinks
	ItemCommand    ItemKind = "command"     // a shell command
	ItemFileChange ItemKind = "file_change" // an edit
	ItemToolCall   ItemKind = "tool"        // another tool
	ItemPlan       ItemKind = "plan"        // what the agent proposes to do
	ItemReview     ItemKind = "review"      // the agent's own reviewer decided in a person's place; failed: not allowed
	ItemOther      ItemKind = "other"
)

// An Item is one thing the agent did in a turn.
type Item struct {
	ID   string
	Kind ItemKind
	Text string // message, reasoning or plan, the command line, the changed paths, the tool's name, what was reviewed
	// Arguments are what a tool was called with, as JSON; "" when they are not known or longer than 64 KiB.
	Arguments string
	Output    string       // a command's output so far, at most 64 KiB, its end kept
	Cut       bool         // the output has no beginning any more
	Exit      *int         // a command's exit code
	Changes   []FileChange // of an edit, file by file
	Failed    bool
	By        string // the subagent that did it, by its name; "": the agent of the turn
}

// MaxDiff bounds the diffs that are kept of one edit, in bytes, all files together.
const MaxDiff = 64 << 10

// A FileChange is what an edit did to one file.
type FileChange struct {
	Path    string `json:"path"`
	Kind    string `json:"kind,omitempty"`    // add, delete or update; "": the agent did not say
	To      string `json:"to,omitempty"`      // where an update moved it
	Diff    string `json:"diff,omitempty"`    // its hunks as in a unified diff, without a header, within [MaxDiff]
	Cut     bool   `json:"cut,omitempty"`     // the diff has more lines than are kept
	Added   int    `json:"added,omitempty"`   // lines, of the whole diff
	Removed int    `json:"removed,omitempty"` // lines, of the whole diff
}

// Show sets the diff and counts its lines. It keeps as many whole lines as fit into room bytes, and returns the rest of
// the room.
func (f *FileChange) Show(hunks string, room int) int {
	f.Diff = hunks
	for line := range strings.Lines(hunks) {
		switch line[0] {
		case '+':
			f.Added++
		case '-':
			f.Removed++
		}
	}
	if len(hunks) > room {
		f.Diff, f.Cut = hunks[:strings.LastIndexByte(hunks[:room], '\n')+1], true
	}
	return room - len(f.Diff)
}

// A Question is an approval request or another question of the agent. The turn waits for it.
type Question struct {
	ID QuestionID
	// Connection identifies the connection over which it was asked. If the question is asked again over another one, it
	// keeps its ID, but earlier answers do not count for it.
	Connection string
	Kind       QuestionKind
	Turn       TurnID
	Text       string   // what is asked, in words
	Command    string   // the exact command line, for approvals of commands
	Cwd        string   // where it would run
	Reason     string   // why the agent wants it, in its own words: untrusted
	Changes    []string // paths that an edit touches
	Decisions  []Decision
	Words      bool   // it is answered in words, by a [Replier]
	Asks       []Ask  // with Words: what is asked, one by one
	Beyond     string // what a yes would allow beyond this one act, in words; such a yes is never given by voice
	There      string // why a yes counts only on its machine, as a clause; "": none is known
	Person     bool   // the agent wants a person to decide this act, each time anew: never by voice or a program
	Program    string // of [QuestionCopy]: the program that has the session open; "": not known
	URL        string // the page that a person is asked to open: a yes says that they did, or will; it takes a tap
	Asked      time.Time
}

// Secret reports whether an answer to the question must not be said aloud.
func (q Question) Secret() bool {
	return slices.ContainsFunc(q.Asks, func(a Ask) bool { return a.Secret })
}

// QuestionKind is what an agent asks for.
type QuestionKind string

// The kinds of questions.
const (
	QuestionCommand     QuestionKind = "command"
	QuestionFileChange  QuestionKind = "file_change"
	QuestionPermissions QuestionKind = "permissions"
	QuestionInput       QuestionKind = "input"
	QuestionElicitation QuestionKind = "elicitation"
	QuestionOther       QuestionKind = "other" // can only be answered where the agent runs
	QuestionCopy        QuestionKind = "copy"  // of our own: may a session be copied?
)

// A Decision answers an approval.
type Decision string

// The decisions.
const (
	DecisionAccept           Decision = "accept"
	DecisionAcceptForSession Decision = "accept_for_session"
	DecisionDecline          Decision = "decline"
	DecisionStop             Decision = "stop" // decline and end the turn
	// For the audit alone.
	DecisionWords    Decision = "words"    // an answer in words
	DecisionWithheld Decision = "withheld" // the decision that was recorded before was not given, or did not count
	// For the audit alone: a person let another program in, which Client names, kept it out, or ended its access.
	DecisionLetIn      Decision = "let_in"
	DecisionKeepOut    Decision = "keep_out"
	DecisionDisconnect Decision = "disconnect"
)

func (Started) agentUpdate()        {}
func (ItemStarted) agentUpdate()    {}
func (Delta) agentUpdate()          {}
func (ItemDone) agentUpdate()       {}
func (ItemDropped) agentUpdate()    {}
func (Question) agentUpdate()       {}
func (QuestionClosed) agentUpdate() {}
func (Usage) agentUpdate()          {}
func (GoesOn) agentUpdate()         {}
func (TurnEnded) agentUpdate()      {}

// Bounds of an act that is said as a whole. A voice model shortens longer ones, and people do not listen to them.
const (
	maxSaidWords = 6  // of a command
	maxSaidWord  = 40 // bytes of one word
	maxSaidFiles = 3  // of an edit
)

// Sayable reports whether a voice can say the whole act that a question asks for. Other acts need a tap: nobody allows
// by voice what they have not heard. A question that names no command and no files is sayable.
func (q Question) Sayable() bool {
	if q.Kind == QuestionFileChange {
		return len(q.Changes) <= maxSaidFiles
	}
	words := 0
	for word := range strings.FieldsSeq(q.Command) {
		if len(word) > maxSaidWord {
			return false
		}
		if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			words++
		}
	}
	return words <= maxSaidWords && !strings.ContainsFunc(q.Command, unicode.IsControl)
}
