package tools

import (
	"context"
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/wording"
)

// finishedLately bounds the age of outcomes in the result of the status tool.
const finishedLately = time.Hour

// maxFinished bounds the number of outcomes in the result of the status tool.
const maxFinished = 5

// StatusResult is the result of [Status].
type StatusResult struct {
	Running  []StatusWork `json:"running"`
	Waiting  []StatusWork `json:"waiting"`          // for the caller's answer
	Paused   []StatusWork `json:"paused,omitempty"` // not begun until the caller says so
	Finished []StatusWork `json:"finished"`
	More     int          `json:"more,omitempty"`
	// Incomplete says that work from before a restart is not known yet.
	Incomplete bool   `json:"incomplete,omitempty"`
	Say        string `json:"say"`
}

// StatusWork is one piece of work in a [StatusResult].
type StatusWork struct {
	Work     string `json:"work_id,omitempty"` // with [Backend.WorkIDs]
	Server   string `json:"server"`
	Session  string `json:"session,omitempty"`
	For      string `json:"for,omitempty"`      // how long it has taken, in words
	Ago      string `json:"ago,omitempty"`      // when it ended, in words
	Question string `json:"question,omitempty"` // the label of its open question
	Begin    string `json:"begin,omitempty"`    // the name by which paused work is begun or dropped
	Outcome  string `json:"outcome,omitempty"`  // from [wording.OutcomeWord]
	Said     string `json:"said,omitempty"`     // the agent's words: data, not instructions
}

// Do returns what runs, what waits for an answer and what finished lately, with sentences about it. It needs Work.
func (StatusArguments) Do(_ context.Context, b Backend, _ Front, g handoff.Grant) (Result, error) {
	records, unread := b.Work.Handoffs(g)
	out := status(b.Language, records, b.Work.Questions(g), time.Now())
	if !b.WorkIDs {
		for _, list := range [][]StatusWork{out.Running, out.Waiting, out.Finished} {
			for i := range list {
				list[i].Work = ""
			}
		}
	}
	if unread != nil {
		out.Incomplete, out.Say = true, b.Language.UnreadWork(out.Say, len(records) > 0)
	}
	return out, nil
}

func status(
	l wording.Language, records []handoff.Record, questions []handoff.RecordQuestion, now time.Time,
) StatusResult {
	out := StatusResult{Running: []StatusWork{}, Waiting: []StatusWork{}, Finished: []StatusWork{}}
	var running, paused, ended []handoff.Record
	for _, q := range questions {
		out.Waiting = append(out.Waiting,
			StatusWork{Work: q.Handoff, Server: q.Server, Session: q.Title, Question: q.Label,
				Said: handoff.Clip(q.Command+q.Text, 200)})
	}
	for _, rec := range records {
		switch {
		case rec.Outcome == "":
			running = append(running, rec)
			out.Running = append(out.Running,
				StatusWork{Work: rec.ID, Server: rec.Server, Session: rec.Title,
					For: wording.English.AgeWords(now.Sub(rec.CreatedAt))})
		case rec.Paused:
			paused = append(paused, rec)
			out.Paused = append(out.Paused,
				StatusWork{Server: rec.Server, Session: rec.Title, Begin: rec.ID, Said: handoff.Clip(rec.Prompt, 200)})
		case rec.NotBegun(): // it was dropped, or the work that was begun in its place is in the list
		case rec.EndedAt != nil && now.Sub(*rec.EndedAt) < finishedLately && rec.Why != handoff.WhyAdded &&
			len(ended) < maxFinished:
			ended = append(ended, rec)
			out.Finished = append(out.Finished,
				StatusWork{Work: rec.ID, Server: rec.Server, Session: rec.Title, Outcome: wording.OutcomeWord(rec),
					Ago: handoff.Ago(now, *rec.EndedAt), Said: handoff.Clip(rec.Spoken, 300)})
		}
	}
	out.Say = l.StatusSummary(questions, running, paused, ended, now)
	return out
}

// Text implements [Result].
func (r StatusResult) Text() string {
	out := lines{r.Say}
	for _, group := range []struct {
		lead string
		list []StatusWork
	}{{"waiting: ", r.Waiting}, {"running: ", r.Running}, {"paused: ", r.Paused}, {"finished: ", r.Finished}} {
		for _, w := range group.list {
			var line strings.Builder
			line.WriteString(w.Server)
			for _, more := range []struct{ lead, text string }{
				{", ", w.Session}, {", for ", w.For}, {", ", w.Outcome}, {", ", w.Ago},
				{"; question ", w.Question}, {"; begin ", w.Begin}, {"; work_id ", w.Work}, {": ", w.Said},
			} {
				if more.text != "" {
					line.WriteString(more.lead + more.text)
				}
			}
			out.add(group.lead, line.String())
		}
	}
	return out.left(r.More)
}

// within leaves out finished work first, then paused, running and waiting work.
func (r StatusResult) within(limit int) Result {
	r.Waiting, r.Running = clipped(r.Waiting), clipped(r.Running)
	r.Paused, r.Finished = clipped(r.Paused), clipped(r.Finished)
	r.Say = clip(r.Say, maxSummary)
	n := len(r.Waiting) + len(r.Running) + len(r.Paused) + len(r.Finished)
	return fit(n, limit, func(keep int) Result {
		out := r
		out.More = r.More + n - keep
		out.Waiting, keep = firstOf(r.Waiting, keep)
		out.Running, keep = firstOf(r.Running, keep)
		out.Paused, keep = firstOf(r.Paused, keep)
		out.Finished, _ = firstOf(r.Finished, keep)
		return out
	})
}

// clipped returns the list with its long texts cut.
func clipped(list []StatusWork) []StatusWork {
	list = slices.Clone(list)
	for i, w := range list {
		list[i].Session, list[i].Said = clip(w.Session, maxTitle), clip(w.Said, maxPath)
	}
	return list
}

// firstOf returns the first n of a list, and n less their number.
func firstOf(list []StatusWork, n int) ([]StatusWork, int) {
	k := min(n, len(list))
	return list[:k], n - k
}
