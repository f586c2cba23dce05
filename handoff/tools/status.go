package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"switchboard/handoff"
	"switchboard/handoff/speakable"
	"switchboard/handoff/wording"
	"time"
)

// finishedLately is how old an outcome may be to be told as news by the status tool.
const finishedLately = time.Hour

// maxFinished is how many outcomes the status tool tells.
const maxFinished = 5

// StatusResult is the result of [Status].
type StatusResult struct {
	Running  []StatusWork `json:"running"`
	Waiting  []StatusWork `json:"waiting"` // for the caller's answer
	Finished []StatusWork `json:"finished"`
	More     int          `json:"more,omitempty"`
	Say      string       `json:"say"`
}

// StatusWork is what [StatusResult] tells of one piece of work.
type StatusWork struct {
	Server   string          `json:"server"`
	Session  string          `json:"session,omitempty"`
	For      string          `json:"for,omitempty"`      // how long it has taken, in words
	Ago      string          `json:"ago,omitempty"`      // when it ended, in words
	Question string          `json:"question,omitempty"` // the name of what it waits for
	Outcome  handoff.Outcome `json:"outcome,omitempty"`
	Said     string          `json:"said,omitempty"` // the agent's words: data, not instructions
}

// Do tells what runs, what waits for an answer and what finished lately, in sentences. It needs Work.
func (StatusArguments) Do(_ context.Context, b Backend, g handoff.Grant) (Result, error) {
	return status(b.Work.Handoffs(g), b.Work.Questions(g), time.Now()), nil
}

func status(records []handoff.Record, questions []handoff.RecordQuestion, now time.Time) StatusResult {
	out := StatusResult{Running: []StatusWork{}, Waiting: []StatusWork{}, Finished: []StatusWork{}}
	var say []string
	for _, q := range questions {
		out.Waiting = append(out.Waiting, StatusWork{Server: q.Server, Session: q.Title, Question: q.Label, Said: handoff.Clip(q.Command+q.Text, 200)})
		say = append(say, fmt.Sprintf("%s waits for your answer.", q.Server))
	}
	for _, rec := range records {
		switch {
		case rec.Outcome == "":
			age := now.Sub(rec.CreatedAt)
			out.Running = append(out.Running, StatusWork{Server: rec.Server, Session: rec.Title, For: wording.AgeWords(age)})
			if !slices.ContainsFunc(questions, func(q handoff.RecordQuestion) bool { return q.Handoff == rec.ID }) {
				say = append(say, runningSentence(rec, now))
			}
		case rec.EndedAt != nil && now.Sub(*rec.EndedAt) < finishedLately && rec.Why != handoff.WhyAdded && len(out.Finished) < maxFinished:
			out.Finished = append(out.Finished, StatusWork{Server: rec.Server, Session: rec.Title, Outcome: rec.Outcome, Ago: handoff.Ago(now, *rec.EndedAt), Said: handoff.Clip(rec.Spoken, 300)})
		}
	}
	switch n := len(out.Finished); {
	case n > 0:
		say = append(say, fmt.Sprintf("Lately %s ended: %s.", speakable.CountWord(n, true), finishedWords(out.Finished)))
	case len(say) == 0:
		say = append(say, "Nothing is running.")
	}
	out.Say = strings.Join(say, " ")
	if len(out.Say) > wording.MaxSpoken {
		out.Say = speakable.CutSentence(out.Say, wording.MaxSpoken)
	}
	return out
}

// within leaves out what ended first, then what runs, then what waits.
func (r StatusResult) within(limit int) Result {
	if fits(r, limit) {
		return r
	}
	r.Waiting, r.Running, r.Finished, r.Say = clipped(r.Waiting), clipped(r.Running), clipped(r.Finished), clip(r.Say, maxSummary)
	n := len(r.Waiting) + len(r.Running) + len(r.Finished)
	return fit(n, limit, func(keep int) Result {
		out := r
		out.More = r.More + n - keep
		out.Waiting, keep = firstOf(r.Waiting, keep)
		out.Running, keep = firstOf(r.Running, keep)
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

// firstOf returns the first n of a list, and how many of n are left.
func firstOf(list []StatusWork, n int) ([]StatusWork, int) {
	k := min(n, len(list))
	return list[:k], n - k
}

// runningSentence says what runs, or is still to begin, and since when.
func runningSentence(rec handoff.Record, now time.Time) string {
	age := now.Sub(rec.CreatedAt)
	what := rec.Title
	if what == "" {
		what = handoff.Clip(rec.Prompt, 80)
	}
	switch {
	case rec.State == handoff.StatusAccepted:
		return fmt.Sprintf("%s has not begun on %s yet, asked for %s.", wording.Capital(wording.SayTitle(what)), rec.Server, handoff.Ago(now, rec.CreatedAt))
	case age < wording.JustNow:
		return fmt.Sprintf("%s has just begun on %s.", rec.Server, wording.SayTitle(what))
	}
	return fmt.Sprintf("%s is working on %s, for %s.", rec.Server, wording.SayTitle(what), wording.AgeWords(age))
}

func finishedWords(list []StatusWork) string {
	var parts []string
	for _, w := range list {
		parts = append(parts, fmt.Sprintf("%s on %s, %s %s", wording.SayTitle(w.Session), w.Server, wording.StatusWord(w.Outcome), w.Ago))
	}
	return strings.Join(parts, "; ")
}
