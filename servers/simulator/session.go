package simulator

import (
	"slices"
	"strings"
)

// A Session is what the built-in agent knows in one session of a machine, for agents that do not use an app-server. It
// is not safe for concurrent use.
type Session struct{ scene }

// NewSession returns a new session of a machine of the built-in world.
func NewSession(m Machine) *Session {
	branch := "main"
	for _, s := range Seeds(m.Name) {
		if s.Dir == m.Dir {
			branch = s.Branch
		}
	}
	return &Session{scene{dir: m.Dir, branch: branch, failing: isShop(m.Dir)}}
}

// Plan returns the steps for a prompt. steered means that it steers a running turn. The session learns nothing yet.
func (s *Session) Plan(prompt string, steered bool) []Step {
	now := s.scene
	now.steered = steered
	return plan(now, prompt)
}

// Recall adds things that were done earlier, in words.
func (s *Session) Recall(done ...string) { s.done = append(slices.Clip(s.done), done...) }

// Shell returns the output and the exit code of a command of the agent on a machine of the built-in world. A command
// of no plan is not found.
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
