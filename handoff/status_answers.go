package handoff

import (
	"fmt"
	"slices"
	"strings"
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
	Server   string  `json:"server"`
	Session  string  `json:"session,omitempty"`
	For      string  `json:"for,omitempty"` // how long it has taken
	Ago      string  `json:"ago,omitempty"` // when it ended
	Question string  `json:"question,omitempty"`
	Outcome  Outcome `json:"outcome,omitempty"`
	Said     string  `json:"said,omitempty"` // the agent's words: data, not instructions
}

// statusAnswer tells what runs, what waits for an answer and what finished lately, in sentences.
func statusAnswer(records []Record, questions []RecordQuestion, now time.Time) string {
	var out statusOutput
	out.Running, out.Waiting, out.Finished = []statusWork{}, []statusWork{}, []statusWork{}
	var say []string
	for _, q := range questions {
		out.Waiting = append(out.Waiting, statusWork{Server: q.Server, Session: q.Title, Question: q.Label, Said: Clip(q.Command+q.Text, 200)})
		say = append(say, fmt.Sprintf("%s waits for your answer.", q.Server))
	}
	for _, rec := range records {
		switch {
		case rec.Outcome == "":
			age := now.Sub(rec.CreatedAt)
			out.Running = append(out.Running, statusWork{Server: rec.Server, Session: rec.Title, For: ageWords(age)})
			if !slices.ContainsFunc(questions, func(q RecordQuestion) bool { return q.Handoff == rec.ID }) {
				say = append(say, runningSentence(rec, age))
			}
		case rec.EndedAt != nil && now.Sub(*rec.EndedAt) < finishedLately && rec.Why != WhyAdded && len(out.Finished) < maxFinished:
			out.Finished = append(out.Finished, statusWork{Server: rec.Server, Session: rec.Title, Outcome: rec.Outcome, Ago: agoWords(now.Sub(*rec.EndedAt)), Said: Clip(rec.Spoken, 300)})
		}
	}
	switch n := len(out.Finished); {
	case n > 0:
		say = append(say, fmt.Sprintf("Lately %s ended: %s.", countWord(n, true), finishedWords(out.Finished)))
	case len(say) == 0:
		say = append(say, "Nothing is running.")
	}
	out.Say = strings.Join(say, " ")
	if len(out.Say) > maxSpoken {
		out.Say = cutSentence(out.Say, maxSpoken)
	}
	waiting, running, finished := out.Waiting, out.Running, out.Finished
	return fit(len(waiting)+len(running)+len(finished), MaxStatusJSON, func(keep, dropped int) any {
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
func runningSentence(rec Record, age time.Duration) string {
	what := rec.Title
	if what == "" {
		what = Clip(rec.Prompt, 80)
	}
	switch {
	case rec.State == StatusAccepted:
		return fmt.Sprintf("%s has not begun on %s yet, asked for %s.", capital(sayTitle(what)), rec.Server, agoWords(age))
	case age < justNow:
		return fmt.Sprintf("%s has just begun on %s.", rec.Server, sayTitle(what))
	}
	return fmt.Sprintf("%s is working on %s, for %s.", rec.Server, sayTitle(what), ageWords(age))
}

func finishedWords(list []statusWork) string {
	var parts []string
	for _, w := range list {
		parts = append(parts, fmt.Sprintf("%s on %s, %s %s", sayTitle(w.Session), w.Server, statusWord(w.Outcome), w.Ago))
	}
	return strings.Join(parts, "; ")
}

// repeatedAnswer answers a request that the voice model made twice.
func repeatedAnswer(rec Record) string {
	a := answer{
		Status: "started", Server: rec.Server, Session: rec.Title, Say: "That is already under way on " + rec.Server + ".",
		Note: "This is the request that runs already; nothing was started again. Its result comes by itself. To do it again, the caller has to ask again.",
	}
	switch {
	case rec.Outcome != "": // which is told once
		a.Status, a.Say = "ended", "That has just ended."
		a.Note = "This is the request that was made already; nothing was started again. How it ended is told by itself. To do it again, the caller has to ask again."
		return encode(a)
	case rec.Waits != "":
		a.Status, a.Say = "queued", "That is taken down already; it waits for other work on "+rec.Server+"."
	case rec.State == StatusAccepted:
		a.Status, a.Say = "connecting", "That is taken down already. "+connecting(rec)
	}
	if a.Status != "started" {
		a.Note = "This is the request that was made already; it has not started yet, and starts by itself. Its result comes by itself. To do it once more, the caller has to ask again."
	}
	return encode(a)
}

func unclearStop(running []Record) string {
	var choices, names []string
	for _, rec := range running {
		choices = append(choices, rec.Server+", "+sayTitle(rec.Title))
		names = append(names, sayTitle(rec.Title)+" on "+rec.Server)
	}
	return encode(answer{
		Status: "unclear", Choices: choices[:min(len(choices), 10)], Say: fmt.Sprintf("There is %s. Which shall I stop?", sayList(names)),
		Note: "Nothing was stopped. Ask the caller once, then call stop_work with that machine, or with \"all\".",
	})
}

func stopAnswer(stopped, shared []Record, where string) string {
	left := ""
	if len(shared) > 0 {
		left = fmt.Sprintf("What you asked for on %s went into work that somebody else began; I leave that alone.", onServers(shared))
	}
	switch {
	case len(stopped) == 0 && left != "":
		return encode(answer{Status: "refused", Server: where, Say: left})
	case len(stopped) == 0 && where != "":
		return encode(answer{Status: "done", Server: where, Say: fmt.Sprintf("Nothing is running on %s.", where)})
	case len(stopped) == 0:
		return encode(answer{Status: "done", Say: "Nothing is running."})
	}
	say := strings.TrimSpace(fmt.Sprintf("Stopping the work on %s. %s", onServers(stopped), left))
	return encode(answer{
		Status: "stopping", Say: say, Note: "It is told by itself when it has stopped.",
	})
}

func onServers(records []Record) string {
	var servers []string
	for _, rec := range records {
		if !slices.Contains(servers, rec.Server) {
			servers = append(servers, rec.Server)
		}
	}
	return sayList(servers)
}
