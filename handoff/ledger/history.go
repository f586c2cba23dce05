package ledger

import (
	"context"
	"time"

	"switchboard/handoff"
)

// Bounds of what is remembered of handoffs that are over.
const (
	// MaxUnheard is how many outcomes wait for one caller until they are heard; older ones become history.
	MaxUnheard = 1000
	// MaxHistoryPage is how many handoffs one page of history has at most.
	MaxHistoryPage = 100
	// MaxBody bounds each text of a [Body] but the request, in bytes.
	MaxBody = 256 << 10
	// MaxRequest bounds a whole request whose words wait, in bytes: pictures may be in it.
	MaxRequest = 9 << 20
	// KeyFor is how long the key of a handoff is known at least, also where nothing else of it is kept.
	KeyFor = 24 * time.Hour
)

// Waits returns how many outcomes wait for a caller until they are heard: none for one whom nobody named, who
// can hear of them in that call alone. They are history from the start.
func Waits(c handoff.Caller) int {
	if c.Nameless() {
		return 0
	}
	return MaxUnheard
}

// What a handoff that is history keeps in its entry, in bytes; its body has the whole. Together with its names
// and ids such an entry has about a kilobyte.
const (
	HistoryPrompt = 160
	HistoryTitle  = 100
	HistorySpoken = 300
)

// A Body is the words of a handoff that are too long for its entry.
type Body struct {
	Prompt string `json:"prompt"` // the whole prompt, so that words which wait are kept until they are sent
	Text   string `json:"text"`   // the agent's whole answer, "" before there is one
	// Did is what was done, as the router wrote it down for itself. Longer than [MaxBody] it is not kept.
	Did string `json:"-"`
	// Request is the whole of what was asked, as the router wrote it down for itself. It is kept while [Step.Keeps]
	// says so; longer than [MaxRequest] it is not kept.
	Request string `json:"-"`
}

// A History gives what a caller's handoffs were. Handoffs get there when their outcome was heard, or as the
// oldest of more than wait ([Waits]); they leave it when they are as old as the store keeps any. Those of which no
// words are kept are in no page.
type History interface {
	// History returns a page, what was heard last first.
	History(ctx context.Context, c handoff.Caller, q HistoryQuery) (HistoryPage, error)
	// Body returns the whole words of a handoff of the caller, also of one that is not history yet; false
	// when there is none under this key.
	Body(ctx context.Context, c handoff.Caller, key string) (Body, bool, error)
	// Find returns the entry of a key of the caller, whether it is history or not; false when there is none.
	Find(ctx context.Context, c handoff.Caller, key string) (Entry, bool, error)
}

// HistoryQuery narrows a page of history. Zero values mean the newest of everything.
type HistoryQuery struct {
	// Search has words; each must begin a word of the server, project, title, prompt or outcome as the entry
	// keeps them. Case does not matter.
	Search string
	Limit  int    // at most [MaxHistoryPage]; 0 is that many
	Before string // from [HistoryPage.Next]
}

// A HistoryPage is some of a caller's history. An entry that is delivered was heard; any other was not.
type HistoryPage struct {
	Entries []Entry
	Next    string // asks for the page after this one, which may be empty; "": there is none
}

// Told is what is said of an entry that is history. That work is paused holds only while it waits: where nothing else
// was written of it, nothing is said.
func (e Entry) Told() string {
	if e.Code == handoff.CodePaused && e.Spoken == handoff.Fault(e.Code, e.Target.Server, "").Spoken() {
		return ""
	}
	return e.Spoken
}

// History returns an entry as it is kept when it is over: what went on at the wire is forgotten, and texts
// are cut to what a list shows.
func (e Entry) History() Entry {
	e.CallID, e.Watermark = "", ""
	e.Prompt, e.Title = handoff.Cut(e.Prompt, HistoryPrompt), handoff.Cut(e.Title, HistoryTitle)
	e.Spoken = handoff.Cut(e.Spoken, HistorySpoken)
	return e
}
