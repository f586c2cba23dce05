package simulator

import (
	"cmp"
	"slices"
	"strings"
)

// A Session is what the built-in agent knows in one session of a machine. It is not safe for concurrent use.
type Session struct {
	dir        string
	branch     string
	failing    bool     // the repository has the failing test
	sawFailure bool     // this session has seen the test fail
	pushed     bool     // the branch was pushed since the last change
	done       []string // what this session did, such as "fixed ...", oldest first
	steered    bool     // the prompt steers a running turn, whose work it ends
}

// NewSession returns a new session of a machine of the built-in world.
func NewSession(m Machine) *Session {
	branch := ""
	for _, s := range Seeds(m.Name) {
		if s.Dir == m.Dir {
			branch = s.Branch
		}
	}
	return newSession(m.Dir, branch)
}

func newSession(dir, branch string, done ...string) *Session {
	return &Session{dir: dir, branch: cmp.Or(branch, "main"), failing: isShop(dir), done: done}
}

// Plan returns the steps for a prompt. The session learns nothing yet.
func (s *Session) Plan(p Prompt) []Step {
	now := *s
	now.steered = p.Steered
	return intentOf(p.Text).plan(now)
}

// Recall adds things that were done earlier, in words.
func (s *Session) Recall(done ...string) { s.done = append(slices.Clip(s.done), done...) }

// Learn makes a fact true, as an [Effect] does.
func (s *Session) Learn(f Fact) {
	did := ""
	switch f {
	case FactSawFailure:
		s.sawFailure, did = true, "ran the tests and saw TestRefreshExpiredToken fail"
	case FactTestsPassed:
		s.sawFailure, did = false, "ran the tests, and all passed"
	case FactFixed:
		s.failing, s.pushed, did = false, false, "fixed the expired token check"
	case FactPushed:
		s.pushed, did = true, "pushed the branch "+s.branch
	case FactNotes:
		s.pushed, did = false, "wrote the release notes for version 2.4"
	case FactMeasured:
		did = "ran the benchmarks"
	case FactPublished:
		did = "published the release notes"
	}
	s.done = append(slices.DeleteFunc(slices.Clone(s.done), func(have string) bool { return have == did }), did)
}

// Shell returns the output and the exit code of a command of the agent on a machine of the built-in world. A command
// of no plan is not found.
func Shell(m Machine, command string) Run {
	s := *NewSession(m)
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
