package wording

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/speakable"
)

// FleetSummary is the short summary of a fleet: who answers, who works, who does not answer.
func FleetSummary(items []handoff.ServerInfo) string {
	var up, down, working []string
	for _, s := range items {
		if s.Health == handoff.HealthUp {
			up = append(up, s.Name)
		} else {
			down = append(down, s.Name)
		}
		if len(s.Working) > 0 {
			working = append(working, fmt.Sprintf("%s is working on %s", s.Name, SayTitle(s.Working[0])))
		}
	}
	if len(items) == 0 {
		return "There are no machines."
	}
	var parts []string
	if len(up) > 0 {
		parts = append(parts, fmt.Sprintf("%s %s ready.", List(up), IsAre(up)))
	}
	if len(down) > 0 {
		parts = append(parts, fmt.Sprintf("%s %s not answering.", List(down), IsAre(down)))
	}
	for _, w := range working[:min(len(working), 3)] {
		parts = append(parts, w+".")
	}
	return strings.Join(parts, " ")
}

// List joins names as people do: "a, b and c", and at most five of them.
func List(names []string) string {
	if n := len(names); n > 5 {
		names = append(append([]string(nil), names[:4]...), fmt.Sprintf("%d more", n-4))
	}
	return handoff.ListWords(names)
}

// IsAre is the verb for one name, or for several.
func IsAre(names []string) string {
	if len(names) == 1 {
		return "is"
	}
	return "are"
}

// SessionsSummary tells the latest of a list of sessions, and whom they could not be asked of.
func SessionsSummary(list handoff.SessionList) string {
	var parts []string
	if len(list.Items) == 0 {
		parts = append(parts, "I found no sessions.")
	}
	for i, it := range list.Items[:min(len(list.Items), 3)] {
		s := fmt.Sprintf("%s on %s, %s", SayTitle(it.Title), it.Server, it.Age)
		switch {
		case it.Status == handoff.SessionRunning:
			s += ", working now"
		case it.Status == handoff.SessionWaiting:
			s += ", waiting for you"
		}
		if i == 0 {
			s = "The latest is " + s
		}
		parts = append(parts, s+".")
	}
	switch n := len(list.Items) + list.More - 3; {
	case n == 1:
		parts = append(parts, "There is one more.")
	case n > 1:
		parts = append(parts, fmt.Sprintf("There are %d more.", n))
	}
	var silent []string
	for _, e := range list.Errors {
		silent = append(silent, e.Server)
	}
	if len(silent) > 0 {
		parts = append(parts, fmt.Sprintf("%s could not be asked.", List(silent)))
	}
	return strings.Join(parts, " ")
}

// TranscriptSummary tells the last report in a session.
func TranscriptSummary(t handoff.Transcript) string {
	for i := len(t.Lines) - 1; i >= 0; i-- {
		if t.Lines[i].Role == "agent" {
			return fmt.Sprintf("In %s on %s, the last report was: %s", SayTitle(t.Title), t.Server,
				speakable.Speakable(t.Lines[i].Text, maxSpoken))
		}
	}
	return fmt.Sprintf("Nothing was said yet in %s on %s.", SayTitle(t.Title), t.Server)
}

// StatusSummary tells what waits for the caller's answer, what runs, what is paused, and what ended lately.
func StatusSummary(waiting []handoff.RecordQuestion, running, paused, ended []handoff.Record, now time.Time) string {
	var say []string
	for _, q := range waiting {
		say = append(say, fmt.Sprintf("%s waits for your answer.", q.Server))
	}
	for _, rec := range running {
		if !slices.ContainsFunc(waiting, func(q handoff.RecordQuestion) bool { return q.Handoff == rec.ID }) {
			say = append(say, runningSentence(rec, now))
		}
	}
	for _, rec := range paused {
		say = append(say, fmt.Sprintf("On %s, %s is paused until you say go on or drop it.", rec.Server,
			SayTitle(handoff.Clip(rec.Prompt, 80))))
	}
	var list []string
	for _, rec := range ended {
		list = append(list, fmt.Sprintf("%s on %s, %s %s", SayTitle(rec.Title), rec.Server, OutcomeWord(rec.Outcome),
			handoff.Ago(now, *rec.EndedAt)))
	}
	switch {
	case list != nil:
		say = append(say, fmt.Sprintf("Lately %s ended: %s.", speakable.CountWord(len(list), true), strings.Join(list, "; ")))
	case say == nil:
		say = append(say, "Nothing is running.")
	}
	text := strings.Join(say, " ")
	if len(text) > maxSpoken {
		text = speakable.CutSentence(text, maxSpoken)
	}
	return text
}

// UnreadWork adds to what is said of work that there may be more from before a restart; known reports whether there is
// any that is known.
func UnreadWork(say string, known bool) string {
	const unread = "I can't look up right now what was going on before I was started again."
	if !known {
		return unread
	}
	return say + " " + unread
}

// runningSentence says what runs, or is still to begin, and since when.
func runningSentence(rec handoff.Record, now time.Time) string {
	age := now.Sub(rec.CreatedAt)
	what := cmp.Or(rec.Title, handoff.Clip(rec.Prompt, 80))
	switch {
	case rec.State == handoff.StatusAccepted:
		return fmt.Sprintf("%s has not begun on %s yet, asked for %s.", capital(SayTitle(what)), rec.Server,
			handoff.Ago(now, rec.CreatedAt))
	case age < justNow:
		return fmt.Sprintf("%s has just begun on %s.", rec.Server, SayTitle(what))
	}
	return fmt.Sprintf("%s is working on %s, for %s.", rec.Server, SayTitle(what), AgeWords(age))
}
