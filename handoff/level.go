package handoff

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
