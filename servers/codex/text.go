package codex

import (
	"strings"

	"switchboard/handoff"
)

// plainCommand takes the shell off a command line that codex wrapped in one, so that people read what was
// run. Anything it does not take apart safely stays as it is.
func plainCommand(command string) string {
	for _, shell := range []string{"bash", "zsh", "sh"} {
		_, rest, ok := strings.Cut(command, shell+" -lc ")
		if !ok || strings.ContainsAny(command[:len(command)-len(rest)-len(shell+" -lc ")], " '\"") {
			continue
		}
		for _, quote := range []string{"'", `"`} {
			inner := strings.TrimSuffix(strings.TrimPrefix(rest, quote), quote)
			if len(inner) == len(rest)-2 && !strings.ContainsAny(inner, quote+`\`) {
				return inner
			}
		}
		if !strings.ContainsAny(rest, `'"\ `) {
			return rest
		}
	}
	return command
}

// Bounds of a title made of a thread's first words.
const (
	titleWords = 8
	titleRunes = 60
	nameRunes  = 300 // of a name that somebody gave it
)

// title returns what a thread is called: its name, else its first words.
func title(t *wireThread) string {
	if t.Name != nil && strings.TrimSpace(*t.Name) != "" {
		return handoff.ClipRunes(strings.Join(strings.Fields(*t.Name), " "), nameRunes)
	}
	words := strings.Fields(handoff.ClipRunes(t.Preview, 4*titleRunes))
	return handoff.ClipRunes(strings.Join(words[:min(len(words), titleWords)], " "), titleRunes)
}

// sessionStatus translates a thread's status. A thread whose last turn failed rests.
func sessionStatus(s threadStatus) handoff.SessionStatus {
	switch {
	case s.Type == "active" && len(s.ActiveFlags) > 0:
		return handoff.SessionWaiting
	case s.Type == "active":
		return handoff.SessionRunning
	case s.Type == "idle", s.Type == "systemError":
		return handoff.SessionIdle
	}
	return handoff.SessionUnknown
}
