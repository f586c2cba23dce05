package ledger

import (
	"context"
	"time"

	"switchboard/handoff"
)

// Bounds of handoffs that are over.
const (
	// MaxHistoryPage bounds the handoffs in one page of history.
	MaxHistoryPage = 100
	// MaxBody bounds each text of a [Body] but the request, in bytes.
	MaxBody = 256 << 10
	// MaxRequest bounds a whole request that waits, in bytes, pictures included.
	MaxRequest = 9 << 20
	// KeyFor is how long the key of a handoff is kept at least, even if nothing else of it is.
	KeyFor = 24 * time.Hour
)

// Bounds of the texts in an entry that is history, in bytes; the body has the whole texts. With names and ids, such an
// entry has about a kilobyte.
const (
	HistoryPrompt = 160
	HistoryTitle  = 100
	HistorySpoken = 300
)

// A Body has the texts of a handoff that are too long for its entry.
type Body struct {
	Prompt string `json:"prompt"` // the whole prompt
	Text   string `json:"text"`   // the agent's whole answer; "": there is none yet
	// Did has the details of the handoff, in the router's own format. If it is longer than [MaxBody], it is not kept.
	Did string `json:"-"`
	// Request has the whole request, in the router's own format. It is kept while [switchboard/handoff/work.State]
	// says so, unless it is longer than [MaxRequest].
	Request string `json:"-"`
}

// BodyOf returns the body that has these parts of texts.
func BodyOf(parts map[string]string) Body {
	return Body{Prompt: parts[PartPrompt], Text: parts[PartText], Did: parts[PartDid], Request: parts[PartRequest]}
}

// A History has the handoffs of callers that are over. A handoff becomes history when its outcome was heard. Unheard,
// it does when it ends, if its caller is nameless, or when too many wait and it is the oldest. A store deletes history
// after some time. Pages leave out handoffs of which no words are kept.
type History interface {
	// History returns a page, in which the handoff whose outcome was heard last comes first.
	History(ctx context.Context, c handoff.Caller, q HistoryQuery) (HistoryPage, error)
	// Bodies returns the bodies of handoffs of the caller by key, also of those that are not history yet. Those of
	// which no texts are kept are left out.
	Bodies(ctx context.Context, c handoff.Caller, keys ...string) (map[string]Body, error)
	// Find returns the entry of a handoff of the caller, also if it is not history yet; false if there is none.
	Find(ctx context.Context, c handoff.Caller, key string) (Entry, bool, error)
}

// HistoryQuery narrows a page of history. Zero values mean the newest of everything.
type HistoryQuery struct {
	// Search has words; each must be the beginning of a word in the entry's server, project, title, prompt or outcome,
	// in any case.
	Search string
	Limit  int    // at most [MaxHistoryPage]; 0 is that many
	Before string // from [HistoryPage.Next]
}

// A HistoryPage is one page of a caller's history. The outcomes of entries that are not delivered were never heard.
type HistoryPage struct {
	Entries []Entry
	Next    string // the Before of the next page, which may be empty; "": there is none
}

// Told returns the sentence about an entry that is history. Work that is history is not paused any more, so if the
// sentence still says so, Told returns "".
func (e Entry) Told() string {
	if e.Code == handoff.CodePaused && e.Spoken == handoff.Fault(e.Code, e.Target.Server, "").Spoken() {
		return ""
	}
	return e.Spoken
}

// History returns the entry as it is kept when it is history: without Watermark, and with shorter texts.
func (e Entry) History() Entry {
	e.Watermark = ""
	e.Prompt, e.Title = handoff.Cut(e.Prompt, HistoryPrompt), handoff.Cut(e.Title, HistoryTitle)
	e.Spoken = handoff.Cut(e.Spoken, HistorySpoken)
	return e
}
