package threads

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"
)

// Bounds.
const (
	// maxDepth bounds a chain of copies of copies.
	maxDepth = 32
	// MaxItem bounds one item, in bytes, pictures included.
	MaxItem = 20 << 20
	// maxItems bounds the items of a thread, together with those of the threads that it was copied from.
	maxItems = 20_000
	// MaxSteers bounds the steers of one turn that wait for its model. More are refused.
	MaxSteers = 16
	// MaxWords bounds the words of one steer, in bytes.
	MaxWords = 4 << 10
	// maxID bounds every id, in bytes.
	maxID = 256
)

// A Thread is one conversation, without its turns and items.
type Thread struct {
	ID      string
	Owner   string // nobody else sees the thread
	Title   string
	Dir     string // of the agent's workspace
	Parent  string // the thread that it was copied from; "": none
	ForkAt  int    // number of the parent's items that it begins with
	Depth   int    // upper bound of the number of its ancestors
	Items   int    // number of items, with those of the parent
	Tip     string // the newest turn that has ended, which may be of an ancestor; "": none
	Active  string // the turn that runs, or whose runner was lost; "": none
	Fence   int64  // of the newest claim; writes with an older fence are refused
	Created time.Time
	Updated time.Time
}

// Newest returns the turn that began last, or "".
func (t Thread) Newest() string { return cmp.Or(t.Active, t.Tip) }

// Status is the status of a turn.
type Status string

// The statuses. With all but the first, the turn has ended.
const (
	Running     Status = "running"
	Completed   Status = "completed"
	Incomplete  Status = "incomplete" // it ended with words, but was not done
	Failed      Status = "failed"
	Interrupted Status = "interrupted" // also if its runner was lost
)

// A Turn is one run of a thread. Its id is unique only together with its thread.
type Turn struct {
	ID       string
	Thread   string // in which it ran; copies of that thread see it, too
	Previous string // the turn before it; "": none
	Claim    string `json:",omitempty"` // the key of the claim that began it
	Status   Status
	Fence    int64
	From     int    // index of its first item in the thread
	Until    int    // index after its last item
	Anchor   Anchor // the newest
	Started  time.Time
	Ended    time.Time
	Code     string          // why it failed
	Detail   string          // likewise, for logs and the page
	Text     string          // its answer
	Steers   []Steer         `json:",omitempty"` // steers that wait for its model, while it runs
	Steered  int             `json:",omitempty"` // the number of the newest steer
	Unheard  []string        `json:",omitempty"` // after the end: the words of steers that its model never got
	Usage    json.RawMessage // tokens, as its writer reports them
}

// Left returns the words of steers that the model never got, or has not got yet.
func (t Turn) Left() []string {
	left := slices.Clone(t.Unheard)
	for _, s := range t.Steers {
		left = append(left, s.Words)
	}
	return left
}

// A Steer is more words for a running turn. The model gets them in an item of their own. If the turn ends first, or its
// runner is lost, they are in Unheard.
type Steer struct {
	N     int // ascending, from 1
	Words string
}

// An Anchor is the newest complete response of a model, which a later response can continue by its id. Zero: none.
type Anchor struct {
	Response string
	Upstream string    // the API that keeps the response
	Items    int       // number of the thread's items up to its end
	At       time.Time // when it was made
}

// An Item is one item of a thread.
type Item struct {
	Turn string // its turn; not needed in a step
	From string // the upstream of the model that made it; "": it is input for a model
	JSON json.RawMessage
}

// A Record is a whole thread. Turns and items come oldest first, and include those of its ancestors.
type Record struct {
	Thread Thread
	Turns  []Turn
	Items  []Item
}

// A Store stores threads. Implementations are safe for concurrent use. Every method tries once; errors are
// [*switchboard/handoff.Error]. If a store elsewhere does not answer, it is not known whether a step was written;
// repeating it is safe.
type Store interface {
	// Advance makes one step, and returns the thread and the turn afterwards.
	Advance(ctx context.Context, s Step) (Result, error)
	// Read returns a whole thread, or [switchboard/handoff.CodeSessionGone].
	Read(ctx context.Context, owner, thread string) (Record, error)
	// List returns the threads of an owner in which anything ran, newest first, at most limit.
	List(ctx context.Context, owner string, limit int) ([]Thread, error)
}

// A Step is one of [Create], [Fork], [Claim], [Append] and [End].
type Step interface{ about() about }

// about is what a step is about, in the same form for all steps. Empty fields are not needed by the step.
type about struct {
	owner, thread, turn, after, copied string
	at                                 time.Time
	items                              []Item
	steer                              *Steer
}

// Create makes an empty thread. If there is a thread with this id, it changes nothing.
type Create struct {
	Owner, Thread string
	Title, Dir    string
	At            time.Time
}

// Fork copies a thread up to the end of a turn. No items are copied: the copy reads its first items from its parent.
type Fork struct {
	Owner, Thread string
	After         string // the last turn of the copy; "": the newest that has ended
	Lost          string // the active turn, which the copier knows to be lost: it ends in the same step; "": none
	Copy          string // the id of the copy
	At            time.Time
}

// Claim begins a turn after the newest one. Of several claims exactly one begins; while its turn runs, the others are
// refused. A repeated claim, with the same turn, changes nothing; Turn.Claim has the key of the first one.
type Claim struct {
	Owner, Thread string
	Turn          string
	Key           string // identifies this claim among others of the same turn; may be ""
	Lost          string // the active turn, which the claimer knows to be lost: it ends in the same step; "": none
	Items         []Item // the input of the turn; at least one
	Title         string // of the thread, if it has none yet
	At            time.Time
}

// Append adds items to a running turn, or a steer.
type Append struct {
	Owner, Thread, Turn string
	Fence               int64
	At                  time.Time
	From                int     // number of items in the thread, as the writer knows it; used only with items
	Items               []Item  // may be none
	Anchor              *Anchor // nil: unchanged
	Steer               *Steer  // more words for the turn; nil: none. A number that is not new is a repetition
	Heard               int     // the model has got the steers up to this number; 0: unchanged
}

// End is an [Append] that ends the turn. Status is any but Running. Steers that still wait become Unheard.
type End struct {
	Append
	Status Status
	Code   string
	Detail string
	Text   string
	Usage  json.RawMessage
}

func (s Create) about() about { return about{owner: s.Owner, thread: s.Thread, at: s.At} }
func (s Fork) about() about {
	return about{owner: s.Owner, thread: s.Thread, after: s.After, copied: s.Copy, at: s.At}
}
func (s Claim) about() about {
	return about{owner: s.Owner, thread: s.Thread, turn: s.Turn, at: s.At, items: s.Items}
}
func (s Append) about() about {
	return about{owner: s.Owner, thread: s.Thread, turn: s.Turn, at: s.At, items: s.Items, steer: s.Steer}
}

// Result is the result of a step.
type Result struct {
	Thread Thread // of the turn, or the copy
	Turn   Turn
	Forked bool // Thread is a copy that the step made
	Same   bool // the step is a repetition, and changed nothing
}
