package tools

import (
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

type statusOutput struct {
	Running  []statusWork `json:"running"`
	Waiting  []statusWork `json:"waiting"`
	Finished []statusWork `json:"finished"`
	More     int          `json:"more,omitempty"`
	Say      string       `json:"say"`
}

type statusWork struct {
	Server   string          `json:"server"`
	Session  string          `json:"session,omitempty"`
	For      string          `json:"for,omitempty"` // how long it has taken
	Ago      string          `json:"ago,omitempty"` // when it ended
	Question string          `json:"question,omitempty"`
	Outcome  handoff.Outcome `json:"outcome,omitempty"`
	Said     string          `json:"said,omitempty"` // the agent's words: data, not instructions
}

// StatusAnswer tells what runs, what waits for an answer and what finished lately, in sentences.
func StatusAnswer(records []handoff.Record, questions []handoff.RecordQuestion, now time.Time) string {
	var out statusOutput
	out.Running, out.Waiting, out.Finished = []statusWork{}, []statusWork{}, []statusWork{}
	var say []string
	for _, q := range questions {
		out.Waiting = append(out.Waiting, statusWork{Server: q.Server, Session: q.Title, Question: q.Label, Said: handoff.Clip(q.Command+q.Text, 200)})
		say = append(say, fmt.Sprintf("%s waits for your answer.", q.Server))
	}
	for _, rec := range records {
		switch {
		case rec.Outcome == "":
			age := now.Sub(rec.CreatedAt)
			out.Running = append(out.Running, statusWork{Server: rec.Server, Session: rec.Title, For: wording.AgeWords(age)})
			if !slices.ContainsFunc(questions, func(q handoff.RecordQuestion) bool { return q.Handoff == rec.ID }) {
				say = append(say, runningSentence(rec, age))
			}
		case rec.EndedAt != nil && now.Sub(*rec.EndedAt) < finishedLately && rec.Why != handoff.WhyAdded && len(out.Finished) < maxFinished:
			out.Finished = append(out.Finished, statusWork{Server: rec.Server, Session: rec.Title, Outcome: rec.Outcome, Ago: wording.AgoWords(now.Sub(*rec.EndedAt)), Said: handoff.Clip(rec.Spoken, 300)})
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
	waiting, running, finished := out.Waiting, out.Running, out.Finished
	return handoff.Fit(len(waiting)+len(running)+len(finished), handoff.MaxStatusJSON, func(keep, dropped int) any {
		out.Waiting, keep = firstOf(waiting, keep)
		out.Running, keep = firstOf(running, keep)
		out.Finished, _ = firstOf(finished, keep)
		out.More = dropped
		return out
	})
}

// firstOf returns the first n of a list, and how many of n are left.
func firstOf(list []statusWork, n int) ([]statusWork, int) {
	k := min(n, len(list))
	return list[:k], n - k
}

// runningSentence says what runs, or is still to begin, and since when.
func runningSentence(rec handoff.Record, age time.Duration) string {
	what := rec.Title
	if what == "" {
		what = handoff.Clip(rec.Prompt, 80)
	}
	switch {
	case rec.State == handoff.StatusAccepted:
		return fmt.Sprintf("%s has not begun on %s yet, asked for %s.", wording.Capital(wording.SayTitle(what)), rec.Server, wording.AgoWords(age))
	case age < wording.JustNow:
		return fmt.Sprintf("%s has just begun on %s.", rec.Server, wording.SayTitle(what))
	}
	return fmt.Sprintf("%s is working on %s, for %s.", rec.Server, wording.SayTitle(what), wording.AgeWords(age))
}

func finishedWords(list []statusWork) string {
	var parts []string
	for _, w := range list {
		parts = append(parts, fmt.Sprintf("%s on %s, %s %s", wording.SayTitle(w.Session), w.Server, wording.StatusWord(w.Outcome), w.Ago))
	}
	return strings.Join(parts, "; ")
}

// RepeatedAnswer answers a request that the voice model made twice.
func RepeatedAnswer(rec handoff.Record) string {
	a := wording.Answer{
		Status: "started", Server: rec.Server, Session: rec.Title, Say: "That is already under way on " + rec.Server + ".",
		Note: "This is the request that runs already; nothing was started again. Its result comes by itself. To do it again, the caller has to ask again.",
	}
	switch {
	case rec.Outcome != "": // which is told once
		a.Status, a.Say = "ended", "That has just ended."
		a.Note = "This is the request that was made already; nothing was started again. How it ended is told by itself. To do it again, the caller has to ask again."
		return handoff.Encode(a)
	case rec.Waits != "":
		a.Status, a.Say = "queued", "That is taken down already; it waits for other work on "+rec.Server+"."
	case rec.State == handoff.StatusAccepted:
		a.Status, a.Say = "connecting", "That is taken down already. "+wording.Connecting(rec)
	}
	if a.Status != "started" {
		a.Note = "This is the request that was made already; it has not started yet, and starts by itself. Its result comes by itself. To do it once more, the caller has to ask again."
	}
	return handoff.Encode(a)
}

// UnclearStop asks which of several works shall be stopped.
func UnclearStop(running []handoff.Record) string {
	var choices, names []string
	for _, rec := range running {
		choices = append(choices, rec.Server+", "+wording.SayTitle(rec.Title))
		names = append(names, wording.SayTitle(rec.Title)+" on "+rec.Server)
	}
	return handoff.Encode(wording.Answer{
		Status: "unclear", Choices: choices[:min(len(choices), 10)], Say: fmt.Sprintf("There is %s. Which shall I stop?", sayList(names)),
		Note: "Nothing was stopped. Ask the caller once, then call stop_work with that machine, or with \"all\".",
	})
}

// StopAnswer is the result of [StopWork]: what stops, what belongs to somebody else, and where nothing runs.
func StopAnswer(stopped, shared []handoff.Record, where string) string {
	left := ""
	if len(shared) > 0 {
		left = fmt.Sprintf("What you asked for on %s went into work that somebody else began; I leave that alone.", onServers(shared))
	}
	switch {
	case len(stopped) == 0 && left != "":
		return handoff.Encode(wording.Answer{Status: "refused", Server: where, Say: left})
	case len(stopped) == 0 && where != "":
		return handoff.Encode(wording.Answer{Status: "done", Server: where, Say: fmt.Sprintf("Nothing is running on %s.", where)})
	case len(stopped) == 0:
		return handoff.Encode(wording.Answer{Status: "done", Say: "Nothing is running."})
	}
	say := strings.TrimSpace(fmt.Sprintf("Stopping the work on %s. %s", onServers(stopped), left))
	return handoff.Encode(wording.Answer{
		Status: "stopping", Say: say, Note: "It is told by itself when it has stopped.",
	})
}

func onServers(records []handoff.Record) string {
	var servers []string
	for _, rec := range records {
		if !slices.Contains(servers, rec.Server) {
			servers = append(servers, rec.Server)
		}
	}
	return sayList(servers)
}
