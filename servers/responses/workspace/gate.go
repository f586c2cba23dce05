package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/risk"
	"switchboard/servers/responses/sandbox"
)

// When a person is asked, as the configuration names it.
const (
	Untrusted = "untrusted"  // before everything except commands that only read in the workspace
	OnRequest = "on-request" // before leaving the sandbox, and before edits of what is no plain file
	Never     = "never"      // never: acts that need a yes are refused
)

// errDeclined tells the model that a person said no.
var errDeclined = errors.New("declined: the person who was asked said no. Do not try to get there another way; go " +
	"on without it, or say what you would have needed it for")

// A request is an act that a tool is about to do.
type request struct {
	question handoff.Question
	beyond   bool // leaves the configured sandbox
	open     bool // runs without a sandbox
}

// allowed returns nil if an act may be done: nobody has to be asked, or a person said yes.
func (w *Workspace) allowed(ctx context.Context, call Call, r request) error {
	tier := risk.Of(r.question, w.dir)
	var ask bool
	switch {
	case r.beyond:
		ask = true
	case r.question.Kind == handoff.QuestionFileChange:
		ask = w.cfg.Approval == Untrusted || tier == risk.High
	case r.open, w.cfg.Approval == Untrusted:
		ask = tier > risk.Low
	}
	switch {
	case !ask, w.cfg.Approval == Never && w.cfg.Sandbox == sandbox.Full:
		return nil
	case w.cfg.Approval == Never:
		return errors.New("denied: nobody is asked here (approval: never), so only what the sandbox holds may be done")
	}
	r.question.Asked = time.Now()
	r.question.Decisions = []handoff.Decision{handoff.DecisionAccept, handoff.DecisionAcceptForSession,
		handoff.DecisionDecline, handoff.DecisionStop}
	yes, err := call.Ask(ctx, r.question)
	if err != nil {
		return err
	}
	if !yes {
		return errDeclined
	}
	return nil
}

// aboutCommand returns the request for a command.
func (w *Workspace) aboutCommand(args execArgs, dir string, mode sandbox.Mode) request {
	q := handoff.Question{Kind: handoff.QuestionCommand, Text: "May this command run?", Command: args.Command, Cwd: dir,
		Reason: handoff.ClipRunes(value(args.Reason), 500)}
	beyond := mode != w.cfg.Sandbox
	if beyond {
		q.Text = "May this command run outside of its sandbox, with the network and all of your files?"
	}
	return request{question: q, beyond: beyond, open: mode == sandbox.Full}
}

// aboutEdit returns the request for an edit. A path that leads to a file through links counts if it takes a yes.
func (w *Workspace) aboutEdit(l links, changes []change) request {
	q := handoff.Question{Kind: handoff.QuestionFileChange, Text: "May these files be changed?", Cwd: w.dir}
	for _, c := range changes {
		names := l.names(c.path)
		if len(names) >= maxNames {
			q.Beyond = "the same change under many other names, through links"
		}
		for i, name := range names {
			one := q
			if one.Changes = []string{filepath.Join(w.dir, name)}; i == 0 || risk.Of(one, w.dir) == risk.High {
				q.Changes = append(q.Changes, one.Changes...)
			}
		}
	}
	return request{question: q}
}

// about returns what a call is about: its command or its paths, or else its name.
func about(name, args string) string {
	var a struct {
		Command string `json:"command"`
		Patch   string `json:"patch"`
		Path    string `json:"path"`
	}
	if handoff.TooDeep([]byte(args)) || json.Unmarshal([]byte(args), &a) != nil {
		return name
	}
	var paths []string
	for line := range strings.Lines(a.Patch) {
		for _, head := range []string{addFile, deleteFile, updateFile, moveTo} {
			if path, ok := strings.CutPrefix(strings.TrimSpace(line), head); ok {
				paths = append(paths, strings.TrimSpace(path))
			}
		}
	}
	switch {
	case a.Command != "":
		return a.Command
	case a.Path != "":
		return a.Path
	case len(paths) > 0:
		return strings.Join(paths, "\n")
	}
	return name
}

// links are the symbolic links of a workspace, by the paths that they lead to.
type links map[string][]string

// links returns the links of the workspace, as far as its directories can be read, unless ctx ends. Those in
// node_modules do not count: they lead to packages of the workspace itself.
func (w *Workspace) links(ctx context.Context) (links, error) {
	all := links{}
	return all, filepath.WalkDir(w.dir, func(full string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil && e.IsDir() && e.Name() == "node_modules" {
			return fs.SkipDir
		}
		if err != nil || e.Type() != fs.ModeSymlink {
			return nil
		}
		to, _ := os.Readlink(full)
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(full), to)
		}
		real, _ := filepath.EvalSymlinks(full) // it differs when links are on the way; "" when nothing is there
		name, _ := filepath.Rel(w.dir, full)
		for _, to := range slices.Compact([]string{to, real}) {
			if to, err := filepath.Rel(w.dir, to); err == nil && filepath.IsLocal(to) {
				all[to] = append(all[to], name)
			}
		}
		return nil
	})
}

// maxNames is how many paths a plain file may have.
const maxNames = 200

// names returns a path and the paths that lead to it through links, each link once; at least maxNames if there are
// more.
func (l links) names(name string) []string {
	all := []string{name}
	for i := 0; i < len(all) && len(all) < maxNames; i++ {
		for at, rest := all[i], ""; ; at, rest = path.Dir(at), path.Join(path.Base(at), rest) {
			for _, link := range l[at] {
				name := path.Join(link, rest)
				if !slices.Contains(all, name) && !strings.Contains("/"+all[i]+"/", "/"+link+"/") {
					all = append(all, name)
				}
			}
			if at == "." {
				break
			}
		}
	}
	return all
}

// isPlain reports whether a path may be changed without a question.
func (w *Workspace) isPlain(l links, name string) bool {
	return risk.Of(w.aboutEdit(l, []change{{path: name}}).question, w.dir) < risk.High
}
