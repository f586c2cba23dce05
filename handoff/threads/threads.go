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
	// Lease is how long a running turn counts as alive after its last write. Its runner writes at least every
	// third of that.
	Lease = 15 * time.Second
	// maxDepth is how many copies a thread may be away from the one that was copied from nothing.
	maxDepth = 32
	// MaxItem bounds one item, in bytes. Pictures are in there.
	MaxItem = 20 << 20
	// maxItems is how many items a thread may have, with those of the threads that it was copied from.
	maxItems = 20_000
	// MaxSteers is how many steers of one turn wait for its model. More are refused.
	MaxSteers = 16
	// MaxWords is how much is kept of the words of one steer, in bytes.
	MaxWords = 4 << 10
	// maxID bounds every id, in bytes.
	maxID = 256
)

// A Thread is one conversation, without its turns and items.
type Thread struct {
	ID      string
	Owner   string // whose it is; to anybody else it is not there
	Title   string
	Dir     string // of the agent's workspace
	Parent  string // the thread that it was copied from; "": none
	ForkAt  int    // how many of the parent's items are its first ones
	Depth   int    // how many copies it is away from a thread without a parent
	Items   int    // with the parent's
	Tip     string // the newest turn that has ended, which may be of an ancestor; "": none
	Active  string // the turn that runs, or whose runner was lost; "": none
	Fence   int64  // of the newest claim; the writes of older ones do not count
	Lease   time.Time
	Created time.Time
	Updated time.Time
}

// Running returns the turn that runs at a time, or "". One whose lease has passed was lost.
func (t Thread) Running(now time.Time) string {
	if t.Active != "" && now.Before(t.Lease) {
		return t.Active
	}
	return ""
}

// Newest returns the turn that began last, or "".
func (t Thread) Newest() string { return cmp.Or(t.Active, t.Tip) }

// Status is how far a turn is.
type Status string

// The statuses. All but the first are ends.
const (
	Running     Status = "running"
	Completed   Status = "completed"
	Incomplete  Status = "incomplete" // it ended with words, but was not done
	Failed      Status = "failed"
	Interrupted Status = "interrupted" // also: its runner was lost
)

// A Turn is one run of a thread. Its id is unique only together with its thread.
type Turn struct {
	ID       string
	Thread   string // where it ran; copies of that thread see it too
	Previous string // the turn that it went on from; "": none
	Forked   bool   // its thread was made for it
	Claim    string `json:",omitempty"` // the key of the claim that began it
	Status   Status
	Fence    int64
	From     int    // its items in the thread begin here
	Until    int    // and end before here
	Anchor   Anchor // of its newest item
	Started  time.Time
	Ended    time.Time
	Code     string          // why it failed
	Detail   string          // likewise, for logs and the page
	Text     string          // its answer
	Steers   []Steer         `json:",omitempty"` // that wait for its model, while it runs
	Steered  int             `json:",omitempty"` // the number of the newest steer
	Unheard  []string        `json:",omitempty"` // the words of steers that its model never got; once it has ended
	Usage    json.RawMessage // tokens, as its writer reports them
}

// Left returns the words that the turn took and that its model never got, or has not got yet.
func (t Turn) Left() []string {
	left := slices.Clone(t.Unheard)
	for _, s := range t.Steers {
		left = append(left, s.Words)
	}
	return left
}

// A Steer is words that a running turn took besides. Its model gets them with an item of their own, or it is over
// first: then they are in Unheard, also when its runner was lost.
type Steer struct {
	N     int // numbers grow, from 1
	Words string
}

// An Anchor is the newest whole response of a model that a later one can continue by naming it. Zero: there is none.
type Anchor struct {
	Response string
	Upstream string    // who keeps it
	Items    int       // of the thread, up to its end
	At       time.Time // when it was made
}

// An Item is one item of a thread.
type Item struct {
	Turn string // that it came with; a step need not say it
	From string // who made it: the upstream of a model, or "" for what a model was given
	JSON json.RawMessage
}

// A Record is a whole thread. Turns and items come oldest first, those of its ancestors among them.
type Record struct {
	Thread Thread
	Turns  []Turn
	Items  []Item
}

// A Store keeps threads. Implementations are safe for concurrent use. Every method is one try; errors are
// [*switchboard/handoff.Error]. When a store elsewhere does not answer, it cannot be told whether a step was written;
// repeating it is safe.
type Store interface {
	// Advance makes one step. The result tells what the thread and turn are then.
	Advance(ctx context.Context, s Step) (Result, error)
	// Read returns a thread with everything in it; [switchboard/handoff.CodeSessionGone] when it is not there.
	Read(ctx context.Context, owner, thread string) (Record, error)
	// List returns the threads of an owner in which anything ran, newest first, at most limit.
	List(ctx context.Context, owner string, limit int) ([]Thread, error)
}

// A Step is one of [Create], [Fork], [Claim], [Append], [End] and [Undo].
type Step interface{ about() (owner, thread string) }

// Create makes an empty thread. Made again under the same id, it is the same.
type Create struct {
	Owner, Thread string
	Title, Dir    string
	At            time.Time
}

// Fork copies a thread up to the end of a turn. Nothing is moved: the copy reads its first items from there.
type Fork struct {
	Owner, Thread string
	After         string // the last turn of the copy; "": the newest that has ended
	Copy          string // the id of the copy
	At            time.Time
}

// Claim begins a turn. When somebody else runs one there, or when After is not the newest, the turn begins in a
// copy, if there is an id for one. Of any number of claims with the same After exactly one goes on in the thread
// itself. A claim that is made again, under the same turn and copy, is the same: whose it was tells Turn.Claim.
type Claim struct {
	Owner, Thread string
	After         string // the turn to go on from; "": the newest
	Turn          string
	Copy          string // the id of the copy; "": a thread that is busy or further is refused
	Key           string // tells this claim from every other of the same turn; may be ""
	Items         []Item // what the turn is given; at least one
	Title         string // of the thread, if it has none yet
	At            time.Time
}

// Append adds items to a running turn, or a steer, and renews its lease.
type Append struct {
	Owner, Thread, Turn string
	Fence               int64
	At                  time.Time
	From                int     // how many items the thread has, as the writer knows it; it counts only with items
	Items               []Item  // may be none
	Anchor              *Anchor // nil: as it was
	Steer               *Steer  // that the turn takes; nil: none. One that is not newer than the newest is known already
	Heard               int     // the number up to which steers wait no more; 0: as it was
}

// End is an [Append] with which the turn is over. Status is one of the ends. Steers that wait are never heard any more.
type End struct {
	Append
	Status Status
	Code   string
	Detail string
	Text   string
	Usage  json.RawMessage
}

// Undo takes a claim back of which nothing may be left: its turn and items, and the copy that it made.
type Undo struct {
	Owner, Thread, Turn string
	Fence               int64
}

func (s Create) about() (string, string) { return s.Owner, s.Thread }
func (s Fork) about() (string, string)   { return s.Owner, s.Thread }
func (s Claim) about() (string, string)  { return s.Owner, s.Thread }
func (s Append) about() (string, string) { return s.Owner, s.Thread }
func (s Undo) about() (string, string)   { return s.Owner, s.Thread }

// Result is what a step led to.
type Result struct {
	Thread Thread // where the turn is: the copy, if there is one
	Turn   Turn
	Forked bool // the turn or the copy is in a thread of its own
	Same   bool // it was already so
}
