// Package risk tells how dangerous it is to allow what an agent asks for: a command, an edit, a copy. It
// reads the structured command, never the agent's reasons, and never treats what it does not know as harmless.
//
// It must not know who is asked or what they said. [WhyNotVoice] says which tier may be allowed by voice.
// Dangerous git commands are in git.go, other programs in programs.go and tools.go.
package risk
