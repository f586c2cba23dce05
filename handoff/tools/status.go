package tools

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/wording"
)

// finishedLately bounds the age of outcomes in the result of the status tool.
const finishedLately = time.Hour

// maxFinished bounds the number of outcomes in the lists of the status tool. Its sentences count all of them.
const maxFinished = 5

// StatusResult is the result of [Status].
type StatusResult struct {
	Running  []StatusWork `json:"running"`
	Queued   []StatusWork `json:"queued,omitempty"` // not begun: for the work before it, or still being prepared
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
	Asked    string `json:"asked,omitempty"`    // what was asked for
	For      string `json:"for,omitempty"`      // how long it has run, or waited, in words
	Ago      string `json:"ago,omitempty"`      // when it ended, in words
	Question string `json:"question,omitempty"` // the label of its open question
	Begin    string `json:"begin,omitempty"`    // the name by which paused work is begun or dropped
	Outcome  string `json:"outcome,omitempty"`  // from [wording.OutcomeWord]
	Said     string `json:"said,omitempty"`     // the agent's words: data, not instructions
}

// Do returns what runs, what waits and what finished lately, with sentences about it. It needs Work.
func (StatusArguments) Do(_ context.Context, b Backend, _ Front, g handoff.Grant) (Result, error) {
	records, unread := b.Work.Handoffs(g)
	out := status(b.Language, records, b.Work.Questions(g), time.Now(), unread != nil)
	if !b.WorkIDs {
		for _, list := range out.lists() {
			for i := range list {
				list[i].Work = ""
			}
		}
	}
	return out, nil
}

func status(
	l wording.Language, records []handoff.Record, questions []handoff.RecordQuestion, now time.Time, unread bool,
) StatusResult {
	out := StatusResult{Running: []StatusWork{}, Waiting: []StatusWork{}, Finished: []StatusWork{}, Incomplete: unread}
	news := wording.News{When: wording.WhenLately, Now: now, Unread: unread}
	for _, q := range questions {
		out.Waiting = append(out.Waiting,
			StatusWork{Work: q.Handoff, Server: q.Server, Session: q.Title, Question: q.Label,
				Said: handoff.Clip(q.Command+q.Text, 200)})
		if !slices.Contains(news.Asking, q.Server) {
			news.Asking = append(news.Asking, q.Server)
		}
	}
	for _, rec := range records {
		w := StatusWork{Work: rec.ID, Server: rec.Server, Session: rec.Title, Asked: handoff.Clip(rec.Prompt, 200)}
		age := now.Sub(rec.Since())
		switch {
		case rec.Outcome == "":
			w.For = wording.English.AgeWords(age)
			open := wording.Open{Server: rec.Server, Asked: cmp.Or(rec.Prompt, rec.Title), Age: age, Named: true}
			if open.Waits = rec.State == handoff.StatusAccepted; open.Waits {
				out.Queued = append(out.Queued, w)
			} else {
				out.Running = append(out.Running, w)
			}
			if !slices.ContainsFunc(questions, func(q handoff.RecordQuestion) bool { return q.Handoff == rec.ID }) {
				news.Open = append(news.Open, open)
			}
		case rec.Paused:
			news.Paused = append(news.Paused, rec)
			out.Paused = append(out.Paused, StatusWork{Server: w.Server, Session: w.Session, Begin: rec.ID, Said: w.Asked})
		case rec.NotBegun(): // it was dropped, or the work that was begun in its place is in the list
		case rec.EndedAt != nil && now.Sub(*rec.EndedAt) < finishedLately && rec.Why != handoff.WhyAdded:
			news.Ended = append(news.Ended, rec)
			if len(out.Finished) < maxFinished {
				w.Outcome, w.Ago, w.Said = wording.OutcomeWord(rec), handoff.Ago(now, *rec.EndedAt), handoff.Clip(rec.Spoken, 300)
				out.Finished = append(out.Finished, w)
			}
		}
	}
	slices.Reverse(news.Open) // the oldest are named first
	out.Say = l.Brief(news)
	return out
}

// lists returns the lists, in the order of their importance.
func (r StatusResult) lists() [][]StatusWork {
	return [][]StatusWork{r.Waiting, r.Running, r.Queued, r.Paused, r.Finished}
}

// Text implements [Result].
func (r StatusResult) Text() string {
	out := lines{r.Say}
	for _, group := range []struct {
		lead string
		list []StatusWork
	}{{"waiting: ", r.Waiting}, {"running: ", r.Running}, {"queued: ", r.Queued}, {"paused: ", r.Paused},
		{"finished: ", r.Finished}} {
		for _, w := range group.list {
			var line strings.Builder
			line.WriteString(w.Server)
			for _, more := range []struct{ lead, text string }{
				{", ", w.Session}, {", asked for ", w.Asked}, {", for ", w.For}, {", ", w.Outcome}, {", ", w.Ago},
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

// within leaves out finished work first, then paused, queued, running and waiting work.
func (r StatusResult) within(limit int) Result {
	r.Say = clip(r.Say, maxSummary)
	lists, n := r.lists(), 0
	for i, list := range lists {
		lists[i] = clipped(list)
		n += len(list)
	}
	return fit(n, limit, func(keep int) Result {
		out := r
		out.More = r.More + n - keep
		for i, kept := range []*[]StatusWork{&out.Waiting, &out.Running, &out.Queued, &out.Paused, &out.Finished} {
			k := min(keep, len(lists[i]))
			*kept, keep = lists[i][:k], keep-k
		}
		return out
	})
}

// clipped returns the list with its long texts cut.
func clipped(list []StatusWork) []StatusWork {
	list = slices.Clone(list)
	for i, w := range list {
		list[i].Session, list[i].Said, list[i].Asked = clip(w.Session, maxTitle), clip(w.Said, maxPath), clip(w.Asked, maxPath)
	}
	return list
}
