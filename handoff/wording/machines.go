package wording

import (
	"fmt"
	"time"

	"switchboard/handoff"
)

// GoneNotice returns the notice that a machine has been gone for a time while so many pieces of work wait for it.
func GoneNotice(s handoff.ServerInfo, gone time.Duration, work int) string {
	waits := "a piece of your work waits for it"
	if work > 1 {
		waits = fmt.Sprintf("%d pieces of your work wait for it", work)
	}
	text := fmt.Sprintf("%s has been gone for %s, and %s.", s.Name, English.AgeWords(gone), waits)
	if s.Problem != "" {
		text += fmt.Sprintf(" The reason: %s. %s", s.Problem, s.Next)
	}
	return text
}

// BackNotice returns the notice that the machine is back.
func BackNotice(server string) string { return server + " is back." }
