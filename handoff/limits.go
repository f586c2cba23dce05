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
	MaxSessionsBack  = 20_000 // how far back they are listed at all
	DefaultSessions  = 10
	MaxReadLines     = 40
	MaxReadWhole     = 2000 // lines of a session that a person reads on the page
	DefaultReadLines = 12
)

const (
	// YesFor is how old a yes may be, from when it began, when the decision leaves. Its transcript (4 s), the
	// voice model's call and the audit (5 s) fit in easily; what takes longer is a stall or a repetition, and
	// by then the machine may not be what it was when the caller spoke.
	YesFor = 30 * time.Second
	// AskAgainAfter is when a question that nobody answers is asked again, unless the settings say otherwise.
	AskAgainAfter = time.Minute
)

// A SpeechLevel is how much a caller wants to hear of work that runs.
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
