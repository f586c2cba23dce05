package web

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/tools"
	"switchboard/sessions"
)

// Work is the work of the agents. The error for an unknown id, and for one of another caller, has code
// [handoff.CodeNotFound].
type Work interface {
	// Handoffs returns a caller's work, newest first. With an error the list may be incomplete.
	Handoffs(g handoff.Grant) ([]handoff.Record, error)
	Handoff(g handoff.Grant, id string) (handoff.Record, error)
	Stop(ctx context.Context, g handoff.Grant, id string, of handoff.StopOf) error
}

// Outbox has the outcomes that the next call tells. HeardForGood takes one out, durably. Answered notes that who asked
// for work has the answer to that request.
type Outbox interface {
	HeardForGood(ctx context.Context, g handoff.Grant, id handoff.ID) error
	Answered(g handoff.Grant, id handoff.ID, lost time.Duration)
}

// Past has a caller's work from before a restart. After Recall, [Work] lists it, too.
type Past interface {
	Recall(ctx context.Context, c handoff.Caller) error
	// Past returns a piece of work by its id in the history, and false if there is none.
	Past(ctx context.Context, g handoff.Grant, id string) (handoff.Record, bool, error)
}

// Bounds of work in answers, in bytes unless the comment says otherwise.
const (
	maxPage     = 100 // pieces of work in one answer
	defaultPage = 50

	maxListPrompt = 1 << 10 // of a prompt in a list; the work's own path has all of it
	maxListText   = 2 << 10 // likewise, of an answer and of an error
	maxStep       = 200     // of the current step

	maxItems    = 2 << 20 // of the items of one piece of work as JSON: the newest are whole, the others are cut
	maxCutItem  = 1 << 10 // of the text of a cut item, and of its output
	itemCutMark = "…"
)

// work serves the caller's work.
type work struct {
	router    Router             // Set once
	documents sessions.Documents // Set once
	tools     tools.Backend      // Set once
}

// brief is a piece of work without its items, for lists and the feed.
type brief struct {
	handoff.Record
	ItemCount int           `json:"item_count,omitempty"` // without a message that is its answer
	Clipped   bool          `json:"clipped,omitempty"`    // a text is cut; the work's own path has all of it
	Tests     handoff.Tests `json:"tests,omitempty"`      // the result of the last test run
	Edits     *editSum      `json:"edits,omitempty"`
	Declined  bool          `json:"declined,omitempty"` // its last question was declined
	Crashed   bool          `json:"crashed,omitempty"`  // it ended because its agent's program did
	Step      *step         `json:"step,omitempty"`     // its latest item; nil once it has ended
}

// step is the latest item of running work.
type step struct {
	Kind handoff.ItemKind `json:"kind"`
	Text string           `json:"text"`
}

// briefOf returns the brief of a record.
func briefOf(r handoff.Record) brief {
	b := brief{Record: r}
	b.Items = nil
	answer := strings.TrimSpace(r.Text)
	for _, it := range r.Items {
		if answer == "" || it.Kind != handoff.ItemMessage || strings.TrimSpace(it.Text) != answer {
			b.ItemCount++
		}
	}
	b.Tests, b.Edits = r.Tests(), editsOf(r.Items)
	b.Declined, b.Crashed = r.Declined(), r.Crashed()
	if n := len(r.Items); n > 0 && r.Outcome == "" {
		b.Step = &step{Kind: r.Items[n-1].Kind, Text: handoff.Clip(r.Items[n-1].Text, maxStep)}
	}
	return b
}

// listed returns the brief of a record with its texts cut, for a list.
func listed(r handoff.Record) brief {
	b := briefOf(r)
	clip := func(text string, limit int) string {
		b.Clipped = b.Clipped || len(text) > limit
		return handoff.Clip(text, limit)
	}
	b.Prompt, b.Text, b.Spoken = clip(r.Prompt, maxListPrompt), clip(r.Text, maxListText), clip(r.Spoken, maxListText)
	b.Answers, b.Undelivered = nil, slices.Clone(r.Undelivered)
	for i, words := range b.Undelivered {
		b.Undelivered[i] = clip(words, maxListPrompt)
	}
	if r.Error != nil {
		b.Error = new(*r.Error)
		b.Error.Detail = clip(r.Error.Detail, maxListText)
	}
	return b
}

// workPage is one page of work, newest first.
type workPage struct {
	list[brief]
	More int `json:"more,omitempty"` // how many older pieces there are; ?before= the last id is the next page
	// Incomplete says that work from before a restart could not be read yet; the client should try again.
	Incomplete bool `json:"incomplete,omitempty"`
}

func (wk work) list(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	limit, err := number(r, "limit", maxPage)
	if err != nil {
		return err
	}
	away := wk.router.Recall(r.Context(), g.Caller)
	all, unread := wk.router.Handoffs(g)
	if query := r.URL.Query(); query.Has("before") {
		before := query.Get("before")
		at := slices.IndexFunc(all, func(rec handoff.Record) bool { return rec.ID == before })
		if at < 0 {
			return handoff.Fault(handoff.CodeMalformed, "before is the id of work in this list; read it from its beginning", "")
		}
		all = all[at+1:]
	}
	if r.URL.Query().Get("failed") == "true" {
		all = slices.DeleteFunc(all, func(rec handoff.Record) bool { return !rec.Failed() })
	}
	n := min(cmp.Or(limit, defaultPage), len(all))
	page := workPage{
		list: list[brief]{Items: make([]brief, 0, n)}, More: len(all) - n, Incomplete: away != nil || unread != nil,
	}
	for _, rec := range all[:n] {
		page.Items = append(page.Items, listed(rec))
	}
	return writeJSON(w, http.StatusOK, page)
}

// status describes in sentences what runs, what waits for an answer and what ended lately, as the tool does.
func (wk work) status(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	result, err := tools.StatusArguments{}.Do(r.Context(), wk.tools, nil, g)
	return answer(w, result, err)
}

// whole is a piece of work with its items, within [maxItems].
type whole struct {
	handoff.Record
	Items []json.RawMessage `json:"items,omitempty"`
}

func (wk work) read(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	away := wk.router.Recall(r.Context(), g.Caller)
	record, err := wk.router.Handoff(g, r.PathValue("id"))
	if err != nil {
		return cmp.Or(away, err)
	}
	return writeJSON(w, http.StatusOK, whole{record, boundedItems(record.Items)})
}

// item serves one item of a piece of work, as far as it is kept.
func (wk work) item(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	record, err := wk.router.Handoff(g, r.PathValue("id"))
	if err != nil {
		return err
	}
	for _, it := range record.Items {
		if it.ID == r.PathValue("item") {
			return writeJSON(w, http.StatusOK, it)
		}
	}
	return handoff.Fault(handoff.CodeNotFound, "step with this id", "")
}

// boundedItems encodes items within [maxItems], oldest first. The newest are whole; the others are cut.
func boundedItems(items []handoff.RecordItem) []json.RawMessage {
	out := make([]json.RawMessage, len(items))
	left := maxItems
	for i, it := range slices.Backward(items) {
		if left >= 0 {
			out[i], _ = json.Marshal(it) // texts and numbers always marshal
			left -= len(out[i])
		}
		if left >= 0 {
			continue
		}
		it.Cut, it.Text = true, handoff.Clip(it.Text, maxCutItem)
		it.Changes = withoutDiffs(it.Changes)
		if len(it.Output) > maxCutItem {
			it.Output = itemCutMark + handoff.Tail(it.Output, maxCutItem)
		}
		out[i], _ = json.Marshal(it)
	}
	return out
}

func (wk work) stop(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	of, query := handoff.StopOurs, r.URL.Query()
	switch sure, watching := query.Get("sure") == "true", query.Get("watching") == "true"; {
	case sure && watching:
		return handoff.Fault(handoff.CodeMalformed, "either the work is stopped, or the watching", "")
	case sure:
		of = handoff.StopTheirs
	case watching:
		of = handoff.StopWatching
	}
	return done(w, wk.router.Stop(r.Context(), g, r.PathValue("id"), of))
}

// clearedID is the id of the document with the time until which a caller's finished work is hidden on the page.
const clearedID = "page: finished work was put away"

// clearedInfo has the time until which finished work is hidden on the page; the zero time hides none.
type clearedInfo struct {
	At time.Time `json:"at,omitzero"`
}

// cleared serves the caller's clearedInfo, so that all their devices show the same work.
func (wk work) cleared(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	d, there, err := wk.documents.Document(r.Context(), g.Caller, clearedID)
	if err != nil {
		return err
	}
	var info clearedInfo
	if there {
		_ = info.At.UnmarshalText(d.Body) // never fails for what setCleared wrote
	}
	return writeJSON(w, http.StatusOK, info)
}

// setCleared hides finished work or shows it again, and notifies every page of the caller. The history keeps the work.
func (wk work) setCleared(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	var info clearedInfo
	if err := decode(r.Body, &info); err != nil {
		return err
	}
	if g.Caller.Nameless() {
		return done(w, nil)
	}
	text, err := info.At.MarshalText()
	if err != nil {
		return handoff.Fault(handoff.CodeMalformed, "at is a time", err.Error())
	}
	d := sessions.Document{Owner: g.Caller, ID: clearedID, Body: text, Ends: time.Now().Add(sessions.HistoryFor)}
	if err := wk.documents.PutDocument(r.Context(), d); err != nil {
		return err
	}
	wk.router.Feed(g).Publish(handoff.PageEvent{Kind: handoff.PageCleared})
	return done(w, nil)
}

// An editSum is the size of all edits.
type editSum struct {
	Files   int `json:"files"`
	Added   int `json:"added"` // lines, the sum of all edits
	Removed int `json:"removed"`
}

func editsOf(items []handoff.RecordItem) *editSum {
	var n editSum
	files := map[string]bool{}
	for _, it := range items {
		if it.State != "done" {
			continue
		}
		for _, c := range it.Changes {
			files[c.Path] = true
			n.Added, n.Removed = n.Added+c.Added, n.Removed+c.Removed
		}
	}
	if n.Files = len(files); n.Files == 0 {
		return nil
	}
	return &n
}

// withoutDiffs returns changes without their diffs.
func withoutDiffs(changes []handoff.FileChange) []handoff.FileChange {
	short := slices.Clone(changes)
	for i := range short {
		short[i].Cut = short[i].Cut || short[i].Diff != ""
		short[i].Diff = ""
	}
	return short
}
