package handoff

import "time"

// Limits of tools. Results are valid JSON below their limit: whole entries are dropped, never bytes.
const (
	MaxPrompt        = 64 << 10
	MaxServersJSON   = 4 << 10
	MaxSessionsJSON  = 6 << 10
	MaxReadJSON      = 8 << 10
	MaxStatusJSON    = 4 << 10
	MaxAnswerJSON    = 8 << 10
	MaxSessions      = 40     // in one answer
	MaxSessionsBack  = 20_000 // in all pages of a list
	DefaultSessions  = 10
	MaxReadLines     = 40
	MaxReadWhole     = 2000 // lines of a session that a person reads on the page
	DefaultReadLines = 12
)

const (
	// YesFor is how old a yes may be when the decision is sent, counted from its first word. Its transcript (4 s), the
	// voice model's function call and the audit (5 s) take less. After a longer delay the machine may have changed
	// since the caller spoke.
	YesFor = 30 * time.Second
	// AskAgainAfter is when an unanswered question is asked again, unless the settings say otherwise.
	AskAgainAfter = time.Minute
)

// A SpeechLevel is how much a caller wants to hear of running work.
type SpeechLevel string

// The levels. Questions and outcomes are heard at every level.
const (
	LevelMilestones SpeechLevel = "milestones" // the default: also the start, and a sign of life now and then
	LevelChatty     SpeechLevel = "chatty"     // also what the agents report on the way
	LevelQuiet      SpeechLevel = "quiet"      // nothing else
)

// ParseSpeechLevel reads a level as settings and the voice model write it; "" is the default.
func ParseSpeechLevel(s string) (SpeechLevel, bool) {
	switch l := SpeechLevel(s); l {
	case "":
		return LevelMilestones, true
	case LevelMilestones, LevelChatty, LevelQuiet:
		return l, true
	}
	return "", false
}
