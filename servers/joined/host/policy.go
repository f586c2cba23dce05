package host

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"switchboard/servers/codex"
)

// A Policy is what the owner of a machine allows. The other end of the line cannot loosen it.
type Policy struct {
	Agents  []Setting // the agents that may be used; nil: those that are installed
	Dirs    []string  // the directories in which agents may work, absolute; none: all
	Ceiling string    // the loosest sandbox: read-only, workspace-write or danger-full-access; "": any
	Answers bool      // questions of agents may be answered through the line
	// AnyAgent lets a client by ssh name the command of any agent of kind acp. It is set only where the owner has
	// written no policy at all, since an arbitrary program keeps to no bound.
	AnyAgent bool
}

// A Setting is an agent that may be used.
type Setting struct {
	Name    string   `yaml:"name"`
	Kind    string   `yaml:"kind"`    // codex or acp
	Command []string `yaml:"command"` // nil: the usual one of that name
	Env     []string `yaml:"env"`     // variables beside the usual: NAME passes a variable on, NAME=value sets one
	Mode    string   `yaml:"mode"`    // of kind acp: the mode of its sessions, whatever the ceiling; "": one that asks
}

// cwd returns the directory in which agents begin: the first that the owner allows, or the user's home; "": it is
// not known.
func (p Policy) cwd() string {
	if len(p.Dirs) > 0 {
		return p.Dirs[0]
	}
	home, _ := os.UserHomeDir()
	return home
}

// listens reports whether the agent takes connections itself, by WebSocket, also those of other programs. Another one
// has a mux, to which connections carry lines.
func (s Setting) listens() bool { return s.Kind == codex.Name }

// Ceilings are the words for sandboxes, from strict to loose. Set once.
var Ceilings = []string{"read-only", "workspace-write", "danger-full-access"}

var errElsewhere = errors.New("the owner of this machine allows other directories only")

// mayBeIn returns why agents may not work in a directory; nil: they may. It follows symbolic links, so that none leads
// out. It refuses "..": after a link, the system and an agent that cleans the path would find different directories.
func (p Policy) mayBeIn(dir string) error {
	if len(p.Dirs) == 0 {
		return nil
	}
	if !filepath.IsAbs(dir) || slices.Contains(strings.Split(dir, "/"), "..") {
		return errElsewhere
	}
	at, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return errElsewhere
	}
	for _, allowed := range p.Dirs {
		root, err := filepath.EvalSymlinks(allowed)
		if err == nil && (at == root || strings.HasPrefix(at, strings.TrimSuffix(root, "/")+"/")) {
			return nil
		}
	}
	return errElsewhere
}
