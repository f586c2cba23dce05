package risk

// Why something cannot be allowed by voice, fit to be said.
const (
	whyOff   = "nothing may be allowed by voice on that machine"
	whyRisky = "it is too risky to be allowed by voice"
)

// WhyNotVoice is why a question of a tier cannot be allowed by voice under a setting (none, low or medium; "" is
// medium), or "". High never is.
func WhyNotVoice(level string, tier Tier) string {
	switch {
	case level == "none":
		return whyOff
	case tier == Low && level == "low", tier <= Medium && (level == "" || level == "medium"):
		return ""
	}
	return whyRisky
}
