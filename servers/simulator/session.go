package simulator

import (
	"slices"
	"strings"
)

// A Session is what the built-in agent knows of one session of a machine, for agents that are reached another way than
// through an app-server. It is not safe for concurrent use.
type Session struct{ scene }

// NewSession returns a session of a machine of the built-in world in which nothing was done.
func NewSession(m Machine) *Session {
	branch := "main"
	for _, s := range Seeds(m.Name) {
		if s.Dir == m.Dir {
			branch = s.Branch
		}
	}
	return &Session{scene{dir: m.Dir, branch: branch, failing: isShop(m.Dir)}}
}

// Plan decides what the agent does for a prompt. Steered says that it came into running work. Nothing is learned yet.
func (s *Session) Plan(prompt string, steered bool) []Step {
	now := s.scene
	now.steered = steered
	return plan(now, prompt)
}

// Recall makes what was done before it true, in words.
func (s *Session) Recall(done ...string) { s.done = append(slices.Clip(s.done), done...) }

// Shell is what a command of the agent's prints and how it ends, for a machine of the built-in world. A command that no
// plan has is not found.
func Shell(m Machine, command string) Run {
	s := NewSession(m).scene
	steps := slices.Concat(testSteps(s), notesSteps(s), benchSteps(s), pushSteps(s), published([]string{command}))
	for _, step := range steps {
		switch step := step.(type) {
		case Run:
			if step.Command == command {
				return step
			}
		case Ask:
			if step.Command == command {
				return Run{Command: command, Lines: step.Lines, Exit: step.Exit}
			}
		}
	}
	name, _, _ := strings.Cut(command, " ")
	return Run{Command: command, Lines: []Line{{Text: "bash: " + name + ": command not found"}}, Exit: 127}
}
