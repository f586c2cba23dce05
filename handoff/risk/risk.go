package risk

import (
	"cmp"
	"path"

	"switchboard/handoff"
)

// Tier is the risk of allowing a question. Low and medium ones may be allowed by a spoken yes, high ones only by a tap
// on the page.
type Tier int

// The tiers.
const (
	Low    Tier = iota // listed programs that read source and prose, inside the workspace
	Medium             // other reads there, and listed acts: builds, tests, an ordinary push, edits of plain files
	High               // everything else
)

var tierNames = [...]string{"low", "medium", "high"}

// String returns the tier as settings and the audit name it.
func (t Tier) String() string { return tierNames[t] }

// Of returns the risk of allowing a question, from its structure: the command as a shell parses it, the paths of an
// edit. workspace is the absolute directory of the thread; without one, everything but a copy is high. Paths are judged
// by their names; links are not followed. It does not matter whether a sandbox would stop a command.
func Of(q handoff.Question, workspace string) Tier {
	if q.Beyond != "" || q.Person {
		return High
	}
	workspace = cleanWorkspace(workspace)
	place := &whereabouts{workspace: workspace, cwds: []string{path.Clean(cmp.Or(q.Cwd, workspace))}}
	switch q.Kind {
	case handoff.QuestionCommand:
		return place.line(q.Command)
	case handoff.QuestionFileChange:
		if len(q.Changes) == 0 { // it is not known what is edited
			return High
		}
		risk := Medium
		for _, p := range q.Changes {
			risk = max(risk, place.each(p, edit))
		}
		return risk
	case handoff.QuestionCopy: // a turn in the copy asks its own questions
		return Low
	}
	return High
}

// Reasons why something cannot be allowed by voice. They can be said.
const (
	whyOff   = "nothing may be allowed by voice on that machine"
	whyRisky = "it is too risky to be allowed by voice"
)

// WhyNotVoice returns why a question of a tier cannot be allowed by voice under a setting: none, low or medium; "" is
// medium. It returns "" if the question can be allowed by voice, which a high one never can.
func WhyNotVoice(level string, tier Tier) string {
	switch {
	case level == "none":
		return whyOff
	case tier == Low && level == "low", tier <= Medium && (level == "" || level == "medium"):
		return ""
	}
	return whyRisky
}
