package host

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
)

// A Policy is what the owner of a machine allows. Whoever is at the other end of the line cannot loosen it.
type Policy struct {
	Agents  []Setting // that may be used; nil: those that are installed
	Dirs    []string  // in which agents may be worked with, absolute; none: all
	Ceiling string    // the loosest sandbox: read-only, workspace-write or danger-full-access; "": any
	Answers bool      // what agents ask may be answered from elsewhere
	// AnyAgent lets who comes by ssh name the command of any agent of kind acp. Only where the owner has written down
	// nothing at all: a program of their choice keeps to no bound.
	AnyAgent bool
}

// A Setting is an agent that may be used.
type Setting struct {
	Name    string
	Kind    string   // codex or acp
	Command []string // nil: the usual one of that name
	Env     []string // what it gets beside the usual: NAME passes a variable on, NAME=value sets one
	Mode    string   // of kind acp: the mode that its sessions are in, whatever the ceiling; "": one that asks
}

// Ceilings are the words for sandboxes, from strict to loose. Set once.
var Ceilings = []string{"read-only", "workspace-write", "danger-full-access"}

// onWire are the words of Codex's answers for them. Set once.
var onWire = []string{"readOnly", "workspaceWrite", "dangerFullAccess"}

// mayRun reports whether a sandbox is none that is looser than the ceiling, in the words of either list. One that is in
// neither counts as the loosest.
func (p Policy) mayRun(sandbox string) bool {
	if p.Ceiling == "" {
		return true
	}
	most := slices.Index(Ceilings, p.Ceiling)
	is := max(slices.Index(Ceilings, sandbox), slices.Index(onWire, sandbox))
	return is >= 0 && is <= most
}

var errElsewhere = errors.New("the owner of this machine allows other directories only")

// mayBeIn reports why agents may not be worked with in a directory. Links are followed, so that none leads out. What
// stands before ".." may be a link, and then agents that leave both out go elsewhere than the system.
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
