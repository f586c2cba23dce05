// Package risk tells how dangerous it is to allow what an agent asks for: a command, an edit, a copy. It
// reads the structured command, never the agent's reasons, and what it does not know is not harmless.
//
// It must not know who is asked or what they said. Which tier may be allowed by voice is [WhyNotVoice].
// Dangerous git commands are in git.go, other programs in programs.go and tools.go.
package risk
