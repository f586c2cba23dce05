package work

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
)

// Bounds of the items that are kept, in bytes.
const (
	maxCutItem  = 1 << 10 // of the text of a cut item, and of its output
	leastOfPast = 4 << 10 // an item must leave as much room in [ledger.MaxBody], or it and all older ones are left out
)

// recordDetails is the JSON of what the ledger keeps of a record, beside its entry, its prompt and its text.
type recordDetails struct {
	Asked   time.Time              `json:"asked"`           // when the request came, before its entry was made
	Items   []json.RawMessage      `json:"items,omitempty"` // each a [handoff.RecordItem], oldest first
	Usage   *handoff.Usage         `json:"usage,omitempty"`
	Answers []handoff.RecordAnswer `json:"answers,omitempty"`
	Spoken  string                 `json:"spoken,omitempty"`
	Error   *handoff.RecordError   `json:"error,omitempty"`
	Unheard []string               `json:"unheard,omitempty"` // see [handoff.Record.Undelivered]
	Goal    handoff.Goal           `json:"goal,omitempty"`
	Into    string                 `json:"into,omitempty"`   // see [handoff.Record.Into]
	Server  string                 `json:"server,omitempty"` // "": an older Switchboard wrote it
	Tests   handoff.Tests          `json:"tests,omitempty"`  // see [handoff.Record.Tested]
	Tree    *handoff.Worktree      `json:"worktree,omitempty"`
	Left    int                    `json:"left,omitempty"` // see [handoff.Record.LeftOut]
}

// encodeDetails returns the [recordDetails] of a record, at most [ledger.MaxBody] bytes. The newest items are whole; an
// item that would take more than half of the remaining room is cut, and the oldest, for which there is no room, are
// left out.
func encodeDetails(rec handoff.Record) string {
	d := recordDetails{
		Asked: rec.CreatedAt, Usage: rec.Usage, Answers: rec.Answers, Spoken: rec.Spoken, Error: rec.Error,
		Unheard: rec.Undelivered, Goal: rec.Goal, Into: rec.Into, Server: rec.Server, Tests: rec.Tested, Tree: rec.Worktree,
	}
	left := ledger.MaxBody - len(handoff.Encode(d)) - 100
	for _, it := range slices.Backward(rec.Items) {
		text := handoff.Encode(it)
		if len(text) > left/2 {
			text = handoff.Encode(cutItem(it))
		}
		if len(text) > left-leastOfPast {
			break
		}
		left -= len(text) + 1
		d.Items = append(d.Items, json.RawMessage(text))
	}
	slices.Reverse(d.Items)
	d.Left = rec.LeftOut + len(rec.Items) - len(d.Items)
	return handoff.Encode(d)
}

// cutDetails cuts the items that a record keeps in memory to what the store keeps of them.
func (h *Handoff) cutDetails() {
	var cut handoff.Record
	restoreDetails(&cut, ledger.Body{Did: encodeDetails(h.Record)})
	h.Items, h.LeftOut = cut.Items, cut.LeftOut
	h.log.trim(1)
}

// cutItem returns an item with the beginning of its text, the end of its output, and no diffs.
func cutItem(it handoff.RecordItem) handoff.RecordItem {
	it.Cut = true
	it.Text, it.Output = handoff.Clip(it.Text, maxCutItem), handoff.Tail(it.Output, maxCutItem)
	it.Changes = slices.Clone(it.Changes)
	for i := range it.Changes {
		it.Changes[i].Diff, it.Changes[i].Cut = "", true
	}
	return it
}

// restoreDetails sets the fields of a record that are kept in a body.
func restoreDetails(rec *handoff.Record, b ledger.Body) {
	rec.Prompt, rec.Text = cmp.Or(b.Prompt, rec.Prompt), cmp.Or(b.Text, rec.Text)
	var d recordDetails
	if b.Did == "" || json.Unmarshal([]byte(b.Did), &d) != nil {
		return
	}
	for _, text := range d.Items {
		var it handoff.RecordItem
		if json.Unmarshal(text, &it) == nil {
			it.Output = handoff.Plain(it.Output) // an older Switchboard kept it as it was printed
			rec.Items = append(rec.Items, it)
		}
	}
	if !d.Asked.IsZero() {
		rec.CreatedAt = d.Asked
	}
	rec.Usage, rec.Answers, rec.Spoken, rec.Undelivered = d.Usage, d.Answers, cmp.Or(d.Spoken, rec.Spoken), d.Unheard
	rec.Goal, rec.Into, rec.Worktree, rec.LeftOut = d.Goal, d.Into, d.Tree, d.Left
	rec.Server, rec.Tested = cmp.Or(rec.Server, d.Server), cmp.Or(d.Tests, rec.Tested)
	if d.Error != nil {
		rec.Error = d.Error
		if rec.Fault != nil {
			rec.Fault.Detail, rec.Fault.Why = d.Error.Detail, d.Error.Why
		}
	}
}

// recordOf returns the record of an entry, without what only the body has.
func recordOf(e ledger.Entry, id string, registered func(server string) handoff.Registered) handoff.Record {
	rec := handoff.Record{
		ID: id, Server: e.Target.Server, Project: e.Target.Project, ThreadID: e.Target.Thread, Title: e.Title, Why: e.Why,
		Prompt: e.Prompt, State: e.Status, Outcome: e.Outcome, Spoken: e.Spoken, CreatedAt: e.Accepted, TurnID: e.Turn,
		EndsWithUs: registered(e.Target.Server).EndsWithUs, Unkept: e.Unkept,
		Key: e.Giver, Client: e.Asker, Parent: e.Parent, Tested: e.Tests,
	}
	if e.Outcome == "" {
		return rec
	}
	rec.EndedAt = new(e.Ended)
	if e.Code != "" {
		rec.Fault = handoff.Fault(e.Code, e.Target.Server, "")
		rec.Error = recordError(rec.Fault)
	}
	return rec
}
