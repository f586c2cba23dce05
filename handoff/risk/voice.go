package risk

// Why something cannot be allowed by voice, fit to be said.
const (
	whyOff   = "nothing may be allowed by voice on that machine"
	whyRisky = "it is too risky to be allowed by voice"
)

// voiceMay tells whether a setting (none, low or medium; "" is medium) lets a question of a tier be
// allowed by voice. High never is.
func voiceMay(level string, tier Tier) bool {
	switch level {
	case "", "medium":
		return tier <= Medium
	case "low":
		return tier == Low
	}
	return false
}

// WhyNotVoice is why a question of a tier cannot be allowed by voice, or "".
func WhyNotVoice(level string, tier Tier) string {
	switch {
	case voiceMay(level, tier):
		return ""
	case level == "none":
		return whyOff
	}
	return whyRisky
}
