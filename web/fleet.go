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

// Stickies has the session in use on each server. A server is "bigpc", or "bigpc/api" for a project.
type Stickies interface {
	Stickies(ctx context.Context, g handoff.Grant) ([]handoff.RecordSticky, error)
	ClearSticky(ctx context.Context, g handoff.Grant, server string) error
	PutSticky(ctx context.Context, g handoff.Grant, server, thread, title string) error
}

// Machines describes and tests the servers, and manages the sessions there.
type Machines interface {
	Machines(g handoff.Grant) []handoff.Machine
	Test(ctx context.Context, g handoff.Grant, server string) (took time.Duration, err error)
	Shelf
}

// Shelf archives and renames sessions, and removes their worktrees.
type Shelf interface {
	Archive(ctx context.Context, g handoff.Grant, t handoff.Target, on bool) error
	RenameSession(ctx context.Context, g handoff.Grant, t handoff.Target, name string) error
	// RemoveWorktree removes the worktree of a session and its branch, unless something would be lost.
	RemoveWorktree(ctx context.Context, g handoff.Grant, t handoff.Target) error
}

// Fleet is the machines and the sessions on them.
type Fleet interface {
	handoff.Directory
	Machines
}

// list is the form of every list.
type list[T any] struct {
	Items []T `json:"items"`
}

// listOf returns a list whose items are never null.
func listOf[T any](items []T) list[T] {
	if items == nil {
		items = []T{}
	}
	return list[T]{Items: items}
}

// maxStickyTitle bounds the title of a session that is put to use, in bytes.
const maxStickyTitle = 200

// fleet serves the caller's machines and the sessions on them.
type fleet struct {
	tools    tools.Backend // Set once: what the tools work on
	machines Machines      // Set once
	stickies Stickies      // Set once
	past     Past          // Set once
	voice    VoiceInfo     // Set once

	instances func() []InstanceInfo // Set once; nil for a single instance
	owner     machines              // Set once: decides who may see the instances
	documents sessions.Documents    // Set once
}

func (f fleet) servers(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	found, err := tools.ServersArguments{}.Do(r.Context(), f.tools, nil, g)
	if err != nil {
		return err
	}
	voice, simulated := f.voice, func(s handoff.ServerInfo) bool { return s.Simulated }
	if !slices.ContainsFunc(found.(tools.ServersResult).Items, simulated) { // the chips are about those
		voice.Chips = nil
	}
	if voice.Chips == nil {
		voice.Chips = []Chip{}
	}
	var instances []InstanceInfo
	if f.instances != nil && f.owner.mayManage(r, g) == nil {
		instances = f.instances()
	}
	result := found.(tools.ServersResult)
	return writeJSON(w, http.StatusOK, struct {
		tools.ServersResult
		Colours   map[string]int `json:"colours"` // of the page, by machine
		Voice     VoiceInfo      `json:"voice"`
		Instances []InstanceInfo `json:"instances,omitempty"`
	}{result, f.colours(r.Context(), g.Caller, result.Items), voice, instances})
}

const (
	// coloursID is the id of the document with the colours of a caller's machines: JSON, by name.
	coloursID = "page: the colours of machines"
	// colourCount is how many colours the page has.
	colourCount = 6
)

// colours returns the colour of each machine, a number below [colourCount], the same on every device and from then on.
// A new machine gets one that the fewest others have.
func (f fleet) colours(ctx context.Context, c handoff.Caller, all []handoff.ServerInfo) map[string]int {
	had := map[string]int{}
	d, there, err := f.documents.Document(ctx, c, coloursID)
	if there {
		_ = json.Unmarshal(d.Body, &had) // what cannot be read is given anew
	}
	var used [colourCount]int
	now := map[string]int{}
	for _, s := range all {
		if n, known := had[s.Name]; known && n >= 0 && n < colourCount {
			now[s.Name] = n
			used[n]++
		}
	}
	fresh := there && time.Until(d.Ends) > sessions.HistoryFor/2
	for _, s := range all {
		if _, known := now[s.Name]; known {
			continue
		}
		n := slices.Index(used[:], slices.Min(used[:]))
		now[s.Name], had[s.Name], fresh = n, n, false
		used[n]++
	}
	if err != nil || fresh || c.Nameless() || len(all) == 0 {
		return now
	}
	if len(had) > 2*len(all)+colourCount { // machines that are gone are forgotten at last
		had = now
	}
	_ = f.documents.PutDocument(ctx, sessions.Document{Owner: c, ID: coloursID, Body: []byte(handoff.Encode(had)),
		Ends: time.Now().Add(sessions.HistoryFor)}) // without it, the next one does
	return now
}

func (f fleet) sessions(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	limit, err := number(r, "limit", handoff.MaxSessions)
	if err != nil {
		return err
	}
	skip, err := number(r, "skip", handoff.MaxSessionsBack)
	if err != nil {
		return err
	}
	args := &tools.SessionsArguments{
		Server: r.URL.Query().Get("server"), Query: r.URL.Query().Get("query"), Limit: limit, Skip: skip,
	}
	if err := args.Check(); err != nil {
		return err
	}
	found, err := args.Do(r.Context(), f.tools, nil, g)
	if err != nil {
		return err
	}
	_ = f.past.Recall(r.Context(), g.Caller) // after an error, work from before a restart is missing
	all, _ := f.tools.Work.Handoffs(g)       // after an error, the list is incomplete
	return writeJSON(w, http.StatusOK, withWork(found.(tools.SessionsResult), all))
}

func (f fleet) session(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	limit, err := number(r, "limit", handoff.MaxReadWhole)
	if err != nil {
		return err
	}
	args := &tools.ReadArguments{Server: r.PathValue("server"), Thread: r.PathValue("thread")}
	if err := args.Check(); err != nil {
		return err
	}
	if limit > 0 { // a person has room for more lines than a voice model
		args.Limit = limit
	}
	result, err := args.Do(r.Context(), f.tools, nil, g)
	return answer(w, result, err)
}

func (f fleet) listStickies(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	items, err := f.stickies.Stickies(r.Context(), g)
	return answer(w, listOf(items), err)
}

func (f fleet) clearSticky(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	return done(w, f.stickies.ClearSticky(r.Context(), g, r.PathValue("server")))
}

func (f fleet) listMachines(w http.ResponseWriter, _ *http.Request, g handoff.Grant) error {
	return writeJSON(w, http.StatusOK, listOf(f.machines.Machines(g)))
}

// testMachine sends a machine a request, and answers how long it took.
func (f fleet) testMachine(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	took, err := f.machines.Test(r.Context(), g, r.PathValue("server"))
	return answer(w, map[string]int64{"took_ms": max(took.Milliseconds(), 1)}, err)
}

// archive archives a session, or restores it.
func (f fleet) archive(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	t := handoff.Target{Server: r.PathValue("server"), Thread: r.PathValue("thread")}
	return done(w, f.machines.Archive(r.Context(), g, t, r.Method == http.MethodPost))
}

// removeWorktree removes the worktree of a session.
func (f fleet) removeWorktree(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	t := handoff.Target{Server: r.PathValue("server"), Thread: r.PathValue("thread")}
	return done(w, f.machines.RemoveWorktree(r.Context(), g, t))
}

// rename gives a session a name.
func (f fleet) rename(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	var body struct {
		Name string `json:"name"`
	}
	if err := decode(r.Body, &body); err != nil {
		return err
	}
	t := handoff.Target{Server: r.PathValue("server"), Thread: r.PathValue("thread")}
	return done(w, f.machines.RenameSession(r.Context(), g, t, body.Name))
}

// putSticky makes a session the one in use on a machine.
func (f fleet) putSticky(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	var body struct {
		Thread string `json:"thread_id"`
		Title  string `json:"title"` // as the page shows it
	}
	if err := decode(r.Body, &body); err != nil {
		return err
	}
	if body.Thread == "" {
		return handoff.Fault(handoff.CodeMalformed, "thread_id is missing", "")
	}
	return done(
		w, f.stickies.PutSticky(r.Context(), g, r.PathValue("server"), body.Thread, handoff.Clip(body.Title, maxStickyTitle)),
	)
}

// maxSaid bounds the line about the last work in a session, in bytes.
const maxSaid = 200

// sessionPage is one page of sessions, the newest first. The next page is requested with skip.
type sessionPage struct {
	Items []session `json:"items"`
	tools.SessionsResult
}

// A session is a session with the caller's last work there.
type session struct {
	handoff.SessionInfo
	Last *lastWork `json:"last,omitempty"` // nil: none is known
}

// lastWork is the last work of a caller in a session.
type lastWork struct {
	ID       string          `json:"id"`
	State    handoff.Status  `json:"state"`
	Outcome  handoff.Outcome `json:"outcome,omitempty"`
	Tests    handoff.Tests   `json:"tests,omitempty"`
	Declined bool            `json:"declined,omitempty"`
	Crashed  bool            `json:"crashed,omitempty"`
	Said     string          `json:"said,omitempty"` // one line: its result, or while it runs its prompt
	EndedAt  *time.Time      `json:"ended_at,omitempty"`
}

// withWork adds the newest work to each session; all is sorted newest first.
func withWork(found tools.SessionsResult, all []handoff.Record) sessionPage {
	newest := map[handoff.Target]*handoff.Record{}
	for i, r := range all {
		at := handoff.Target{Server: r.Server, Thread: r.ThreadID}
		if newest[at] == nil && r.Why != handoff.WhyAdded && !r.WentOn {
			newest[at] = &all[i]
		}
	}
	page := sessionPage{SessionsResult: found, Items: make([]session, 0, len(found.Items))}
	for _, s := range found.Items {
		row := session{SessionInfo: s}
		if r := newest[handoff.Target{Server: s.Server, Thread: s.ID}]; r != nil {
			b := briefOf(*r)
			said := r.Prompt
			if r.Outcome != "" {
				said = cmp.Or(r.Spoken, r.Text)
				if r.Error != nil {
					said = cmp.Or(said, r.Error.Message)
				}
			}
			line, _, _ := strings.Cut(strings.TrimSpace(said), "\n")
			row.Last = &lastWork{r.ID, r.State, r.Outcome, b.Tests, b.Declined, b.Crashed, handoff.Clip(line, maxSaid), r.EndedAt}
		}
		page.Items = append(page.Items, row)
	}
	return page
}
