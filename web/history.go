package web

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions"
)

// maxSaidBody bounds a request that adds lines of a conversation, in bytes.
const maxSaidBody = 1 << 20

// History returns a caller's ended work; see [ledger.History].
type History interface {
	History(ctx context.Context, c handoff.Caller, q ledger.HistoryQuery) (ledger.HistoryPage, error)
}

// pastInfo is a piece of ended work in a list.
type pastInfo struct {
	ID       string          `json:"id"`
	Server   string          `json:"server"`
	Project  string          `json:"project,omitempty"`
	ThreadID string          `json:"thread_id,omitempty"`
	Title    string          `json:"title,omitempty"`
	Client   string          `json:"client,omitempty"` // the program that gave it; "": a person
	Why      string          `json:"why,omitempty"`    // as in [handoff.Record]; "added": to other work
	Prompt   string          `json:"prompt"`
	Outcome  handoff.Outcome `json:"outcome"`
	Tests    handoff.Tests   `json:"tests,omitempty"`   // as in [brief]
	Crashed  bool            `json:"crashed,omitempty"` // as in [brief]
	Spoken   string          `json:"spoken,omitempty"`
	At       time.Time       `json:"at"`
	Ended    time.Time       `json:"ended,omitzero"`
}

// A paged is one page of a list.
type paged[T any] struct {
	list[T]
	Next string `json:"next,omitempty"` // the value of ?before= for the next page; "": this is the last one
}

// history serves a caller's ended work, and what they said and heard.
type history struct {
	router Router // Set once
	store  interface {
		History
		sessions.Conversations
	} // Set once
}

// untoldMark begins the value of ?before= that continues in the work whose outcome nobody has heard; an id follows.
const untoldMark = "untold:"

// list lists ended work: first what nobody has heard of, newest first, then the last heard first.
func (h history) list(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	limit, err := number(r, "limit", ledger.MaxHistoryPage)
	if err != nil {
		return err
	}
	limit = cmp.Or(limit, ledger.MaxHistoryPage)
	search, before := r.URL.Query().Get("search"), r.URL.Query().Get("before")
	out := paged[pastInfo]{list: listOf[pastInfo](nil)}
	if after, among := strings.CutPrefix(before, untoldMark); among || before == "" {
		before = ""
		untold := h.untold(r.Context(), g, search, after)
		out.Items = append(out.Items, untold[:min(limit, len(untold))]...)
		if len(untold) > 0 && len(untold) >= limit {
			out.Next = untoldMark + out.Items[limit-1].ID
			return writeJSON(w, http.StatusOK, out)
		}
	}
	found, err := h.store.History(r.Context(), g.Caller,
		ledger.HistoryQuery{Search: search, Before: before, Limit: limit - len(out.Items)})
	if err != nil {
		return err
	}
	out.Next = found.Next
	for _, e := range found.Entries {
		if !g.AllowsServer(e.Target.Server) {
			continue
		}
		out.Items = append(out.Items, pastInfo{
			ID: e.Key, Server: e.Target.Server, Project: e.Target.Project, ThreadID: e.Target.Thread, Title: e.Title,
			Why: e.Why, Client: e.Asker, Prompt: e.Prompt,
			Outcome: e.Outcome, Tests: e.Tests, Crashed: e.Code == handoff.CodeAgentEnded, Spoken: e.Told(), At: e.Accepted, Ended: e.Ended,
		})
	}
	return writeJSON(w, http.StatusOK, out)
}

// untold returns the ended work that fits a search and of which nobody has heard, after the one with an id. If that one
// was heard meanwhile, so were those after it: then it returns none.
func (h history) untold(ctx context.Context, g handoff.Grant, search, after string) []pastInfo {
	_ = h.router.Recall(ctx, g.Caller) // after an error, work from before a restart is missing
	all, _ := h.router.Handoffs(g)     // after an error, the list is incomplete
	if after != "" {
		at := slices.IndexFunc(all, func(rec handoff.Record) bool { return rec.ID == after })
		if at < 0 {
			return nil
		}
		all = all[at+1:]
	}
	words := ledger.SearchWords(search)
	var found []pastInfo
	for _, rec := range all {
		text := ledger.Words(strings.Join([]string{rec.Server, rec.Project, rec.Title, rec.Prompt, rec.Spoken}, " "))
		if rec.State != handoff.StatusCompleted || rec.Paused || rec.WentOn || rec.Unkept || !ledger.Found(text, words) {
			continue
		}
		info := pastInfo{
			ID: rec.ID, Server: rec.Server, Project: rec.Project, ThreadID: rec.ThreadID,
			Title: handoff.Cut(rec.Title, ledger.HistoryTitle), Why: rec.Why, Client: rec.Client,
			Prompt: handoff.Cut(rec.Prompt, ledger.HistoryPrompt), Outcome: rec.Outcome, Tests: rec.Tests(),
			Crashed: rec.Crashed(), Spoken: handoff.Cut(rec.Spoken, ledger.HistorySpoken), At: rec.CreatedAt,
		}
		if rec.EndedAt != nil {
			info.Ended = *rec.EndedAt
		}
		found = append(found, info)
	}
	return found
}

// pastWork is a piece of ended work, as far as it is kept; see [ledger.MaxBody].
type pastWork struct {
	Prompt  string                 `json:"prompt"`
	Text    string                 `json:"text"`
	Error   *handoff.RecordError   `json:"error,omitempty"`
	Items   []handoff.RecordItem   `json:"items,omitempty"`
	LeftOut int                    `json:"left_out,omitempty"` // as in [handoff.Record]
	Answers []handoff.RecordAnswer `json:"answers,omitempty"`
	Usage   *handoff.Usage         `json:"usage,omitempty"`
	Tests   handoff.Tests          `json:"tests,omitempty"` // as in [brief]
	Edits   *editSum               `json:"edits,omitempty"` // as in [brief]
}

// work serves a piece of ended work with its items.
func (h history) work(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	rec, ok, err := h.router.Past(r.Context(), g, r.PathValue("id"))
	if err != nil {
		return err
	}
	if !ok { // nobody has heard of it
		if rec, err = h.router.Handoff(g, r.PathValue("id")); err != nil {
			return err
		}
		ok = handoff.StatusCompleted == rec.State
	}
	// The history does not say where older work ran.
	if !ok || !g.AllowsServers() && (rec.Server == "" || !g.AllowsServer(rec.Server)) {
		return handoff.Fault(handoff.CodeNotFound, "work with this id", "")
	}
	return writeJSON(w, http.StatusOK, pastWork{
		Prompt: rec.Prompt, Text: rec.Text, Error: rec.Error, Items: rec.Items, LeftOut: rec.LeftOut, Answers: rec.Answers, Usage: rec.Usage,
		Tests: rec.Tests(), Edits: editsOf(rec.Items),
	})
}

// said lists what was said and heard, newest first.
func (h history) said(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	limit, err := number(r, "limit", sessions.MaxSaidPage)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	found, err := h.store.Said(
		r.Context(), g.Caller, sessions.SaidQuery{Search: query.Get("search"), Before: query.Get("before"), Limit: limit},
	)
	return answer(w, paged[sessions.Said]{list: listOf(found.Lines), Next: found.Next}, err)
}

// addSaid stores lines of a conversation, which the page sends for its own calls. A nameless caller has no history.
func (h history) addSaid(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	var body struct {
		Lines []sessions.Said `json:"lines"`
	}
	if err := decode(r.Body, &body); err != nil {
		return err
	}
	if len(body.Lines) > sessions.MaxSaidPage {
		return handoff.Fault(handoff.CodeTooLarge, "at most 100 lines at once", "")
	}
	now := time.Now()
	for i, l := range body.Lines {
		if l.ID == "" || len(l.ID) > 100 || l.Who != "you" && l.Who != "voice" || strings.TrimSpace(l.Text) == "" {
			return handoff.Fault(handoff.CodeMalformed, "a line has an id, who is you or voice, and a text", "")
		}
		if l.At.After(now) || l.At.Before(now.Add(-24*time.Hour)) { // the client's clock is wrong
			body.Lines[i].At = now
		}
	}
	if g.Caller.Nameless() {
		return done(w, nil)
	}
	return done(w, h.store.AddSaid(r.Context(), g.Caller, body.Lines))
}

// dropSaid deletes everything that the caller said and heard.
func (h history) dropSaid(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	return done(w, h.store.DropSaid(r.Context(), g.Caller))
}
