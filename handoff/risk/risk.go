package risk

import (
	"cmp"
	"path"

	"switchboard/handoff"
)

// Tier says how a question may be answered: low and medium ones by a plain yes that is heard, high ones
// by a tap on the page only.
type Tier int

// The tiers.
const (
	Low    Tier = iota // listed programs that read, inside the workspace
	Medium             // listed acts: builds, tests, installs, an ordinary push, edits of plain files, reading the system
	High               // everything else
)

var tierNames = [...]string{"low", "medium", "high"}

// String returns the tier as settings and the audit name it.
func (t Tier) String() string { return tierNames[t] }

// Of returns how risky a question is, from its structure: the command as a shell reads it, the paths of
// an edit. The workspace is the absolute directory where the thread works; without one, everything but a copy is high.
// Paths are judged by their names; links are not followed. Whether a sandbox would stop a command does not count.
func Of(q handoff.Question, workspace string) Tier {
	if q.Beyond != "" || q.Person {
		return High
	}
	workspace = cleanWorkspace(workspace)
	place := whereabouts{workspace: workspace, cwds: []string{path.Clean(cmp.Or(q.Cwd, workspace))}}
	switch q.Kind {
	case handoff.QuestionCommand:
		return lineRisk(q.Command, place)
	case handoff.QuestionFileChange:
		risk := Medium
		for _, p := range q.Changes {
			risk = max(risk, place.write(p))
		}
		if len(q.Changes) == 0 { // nobody knows what is edited
			return High
		}
		return risk
	case handoff.QuestionCopy: // what then runs in it asks by itself
		return Low
	}
	return High
}

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
