package web

import (
	"cmp"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/tools"
)

// maxSaid bounds the line that tells what came of work in a session, in bytes.
const maxSaid = 200

// sessionPage is one page of sessions, the newest first; the next page skips as many as came before it.
type sessionPage struct {
	Items []session `json:"items"`
	tools.SessionsResult
}

// A session is a session with the caller's own work there.
type session struct {
	handoff.SessionInfo
	Last *lastWork `json:"last,omitempty"` // what was asked for there last; nil: nothing that is known
}

// lastWork is what came of work in a session.
type lastWork struct {
	ID       string          `json:"id"`
	State    handoff.Status  `json:"state"`
	Outcome  handoff.Outcome `json:"outcome,omitempty"`
	Tests    handoff.Tests   `json:"tests,omitempty"`
	Declined bool            `json:"declined,omitempty"`
	Said     string          `json:"said,omitempty"` // in one line: what came of it, or what was asked
	EndedAt  *time.Time      `json:"ended_at,omitempty"`
}

// withWork adds to each session the newest of some work, which comes newest first.
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
			row.Last = &lastWork{r.ID, r.State, r.Outcome, b.Tests, b.Declined, handoff.Clip(line, maxSaid), r.EndedAt}
		}
		page.Items = append(page.Items, row)
	}
	return page
}
