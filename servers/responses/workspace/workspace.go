package workspace

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"

	"switchboard/handoff"
	"switchboard/servers/responses/sandbox"
)

// Bounds of tools.
const (
	maxOutput = 64 << 10         // bytes of text; of longer text the middle is left out
	maxTime   = 30 * time.Second // for a tool that reads
	maxArgs   = 1 << 20          // bytes of arguments
)

// A Tool is a tool of an agent.
type Tool struct {
	Name        string
	Description string
	Parameters  map[string]any   // JSON schema of an object
	Kind        handoff.ItemKind // how a call is shown
	Trusted     bool             // only in trusted workspaces; it bounds its own time, since a person may be asked
	run         func(ctx context.Context, w *Workspace, args json.RawMessage, call Call) (Result, error)
}

// A Call is what a tool may use during a call.
type Call struct {
	Out io.Writer // for what the tool prints; it never blocks
	// Ask asks a person and waits. It fails if nobody can answer any more.
	Ask func(ctx context.Context, q handoff.Question) (yes bool, err error)
}

// A Result is the result of a tool. Errors of a tool are results too, which the model reads.
type Result struct {
	Text     string
	Pictures []string // data: URLs
	Failed   bool
	Exit     *int                 // exit code of a command
	Changes  []handoff.FileChange // changes of an edit
}

// Config configures a workspace.
type Config struct {
	Dir      string
	Trusted  bool            // whether it can be changed
	Approval string          // [Untrusted], [OnRequest] or [Never]; "" is [OnRequest]
	Sandbox  sandbox.Mode    // "" is [sandbox.WorkspaceWrite]
	Readable []string        // directories that commands may read, beside the workspace and the system's
	Hidden   func() []string // files and directories that are empty for commands, even without a sandbox; nil: none
	Env      []string        // environment of commands
	// User runs the commands and owns the files of edits; nil for the user of this program, who must not be root then.
	User   *sandbox.User
	Limits sandbox.Limits // limits of each command
}

// A Workspace is one directory. It is safe for concurrent use.
type Workspace struct {
	cfg      Config           // Set once
	dir      string           // Set once; absolute path without links
	root     *os.Root         // Set once
	scratch  *sandbox.Scratch // Set once: temporary directory of commands; nil when commands cannot run
	noExec   error            // Set once: why commands cannot run; nil when they can
	readable []string         // Set once: Readable and the directories of programs
	busy     chan struct{}    // Set once; full while a command runs or an edit is made
}

// Open opens a directory. Links in its path are followed once; from then on it is that directory, wherever the path
// leads later. Open tries whether commands can run there.
func Open(ctx context.Context, cfg Config) (*Workspace, error) {
	cfg.Approval, cfg.Sandbox = cmp.Or(cfg.Approval, OnRequest), cmp.Or(cfg.Sandbox, sandbox.WorkspaceWrite)
	real, err := filepath.EvalSymlinks(cfg.Dir)
	if err == nil && !filepath.IsAbs(real) {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, err
	}
	w := &Workspace{cfg: cfg, dir: real, root: root, busy: make(chan struct{}, 1)}
	if cfg.Trusted {
		w.readable = append(cfg.Readable, programs(cfg.Env)...)
		w.scratch, w.noExec = sandbox.NewScratch(cfg.User)
	}
	if w.scratch != nil {
		w.noExec = sandbox.Probe(ctx, w.command("", ".", cfg.Sandbox))
	}
	return w, nil
}

// Close closes the directory and removes the temporary files of commands.
func (w *Workspace) Close() error {
	err := w.root.Close()
	if w.scratch != nil {
		err = errors.Join(err, w.scratch.Close())
	}
	return err
}

// CanRun returns why no commands can run there, nil when they can.
func (w *Workspace) CanRun() error { return w.noExec }

// About returns a sentence about what may be done there, or why not more.
func (w *Workspace) About() string {
	switch {
	case !w.cfg.Trusted:
		return "Its workspace is not trusted: it only reads."
	case w.noExec != nil:
		return "It runs no commands: " + w.noExec.Error() + "."
	}
	return modes[w.cfg.Sandbox]
}

// modes are these sentences, by mode. Set once.
var modes = map[sandbox.Mode]string{
	sandbox.ReadOnly: "Its commands run in a sandbox, change nothing and have no network.",
	sandbox.WorkspaceWrite: "Its commands run in a sandbox and have no network; plain files that they change are taken " +
		"over into the workspace.",
	sandbox.Full: "Its commands run without a sandbox.",
}

// begin waits until no command runs and no edit is made in the workspace. The caller calls end.
func (w *Workspace) begin(ctx context.Context) error {
	select {
	case w.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *Workspace) end() { <-w.busy }

// Tools returns [All] tools, including those that may not be used here.
func (w *Workspace) Tools() []Tool { return All() }

// Allowed returns the names of the tools that may be used here.
func (w *Workspace) Allowed() []string {
	var names []string
	for _, t := range All() {
		if w.denied(t) == nil {
			names = append(names, t.Name)
		}
	}
	return names
}

// denied returns why a tool may not be used here, nil when it may.
func (w *Workspace) denied(t Tool) error {
	switch {
	case !t.Trusted:
		return nil
	case !w.cfg.Trusted:
		return errors.New("denied: this workspace is not trusted, so it can only be read")
	case t.Kind == handoff.ItemFileChange && w.cfg.Sandbox == sandbox.ReadOnly:
		return errors.New("denied: the sandbox is read-only, so nothing can be changed")
	case t.Kind == handoff.ItemCommand && w.noExec != nil:
		return fmt.Errorf("denied: %w", w.noExec)
	}
	return nil
}

// All returns all tools, always in the same order, since a cache of the model depends on it.
func All() []Tool { return append(readTools(), changeTools()...) }

// Run runs a tool. It returns when nothing of the tool is left running.
func (w *Workspace) Run(ctx context.Context, name string, args json.RawMessage, call Call) Result {
	result, err := w.runTool(ctx, name, args, call)
	if err != nil {
		result = Result{Text: "Error: " + plain(err), Failed: true}
	}
	result.Text = bounded(result.Text, maxOutput)
	return result
}

func (w *Workspace) runTool(ctx context.Context, name string, args json.RawMessage, call Call) (Result, error) {
	if len(args) > maxArgs || handoff.TooDeep(args) {
		return Result{}, errors.New("the arguments are too large")
	}
	for _, t := range All() {
		if t.Name != name {
			continue
		}
		if err := w.denied(t); err != nil {
			return Result{}, err
		}
		if !t.Trusted {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, maxTime)
			defer cancel()
		}
		return t.run(ctx, w, args, call)
	}
	return Result{}, fmt.Errorf("there is no tool %s", name)
}

// plain returns the text of an error without the parts that say nothing to a model.
func plain(err error) string {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Path + ": " + e.Err.Error()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "it took too long"
	}
	return err.Error()
}

// decoded adds strict decoding of the arguments to the function of a tool, so that a model is told of a misspelled
// one.
func decoded[T any](
	run func(context.Context, *Workspace, T, Call) (Result, error),
) func(context.Context, *Workspace, json.RawMessage, Call) (Result, error) {
	return func(ctx context.Context, w *Workspace, args json.RawMessage, call Call) (Result, error) {
		var a T
		d := json.NewDecoder(bytes.NewReader(args))
		d.DisallowUnknownFields()
		err := d.Decode(&a)
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return Result{}, fmt.Errorf("the arguments do not fit: %q is %s", wrong.Field, wrong.Value)
		}
		if err != nil {
			return Result{}, fmt.Errorf("the arguments do not fit: %w", err)
		}
		return run(ctx, w, a, call)
	}
}

// local returns the path within the workspace of a path from a model, which is relative, or absolute and inside the
// workspace.
func (w *Workspace) local(name string) (string, error) {
	if filepath.IsAbs(name) {
		rel, err := filepath.Rel(w.dir, name)
		if err != nil || !filepath.IsLocal(rel) {
			return "", fmt.Errorf("%s is outside of the workspace", name)
		}
		name = rel
	}
	name = path.Clean(filepath.ToSlash(name))
	if name == "" || !filepath.IsLocal(name) {
		return "", fmt.Errorf("%s is outside of the workspace", name)
	}
	return name, nil
}

// bounded returns text of at most about limit bytes: the beginning and the end of longer text.
func bounded(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	head, tail := handoff.Cut(text, limit/2), handoff.Tail(text, limit/2)
	return fmt.Sprintf("%s\n[… %d bytes are left out …]\n%s", head, len(text)-len(head)-len(tail), tail)
}

// object returns the JSON schema of an object whose properties are all required; optional ones may be null.
func object(properties map[string]any, names ...string) map[string]any {
	return map[string]any{"type": "object", "properties": properties, "required": names, "additionalProperties": false}
}

func text(description string) map[string]any {
	return map[string]any{"type": "string", "description": description}
}

func optional(kind, description string) map[string]any {
	return map[string]any{"type": []string{kind, "null"}, "description": description}
}

// Shown returns how a call is shown before it has a result.
func Shown(name, args string) handoff.Item {
	it := handoff.Item{Kind: handoff.ItemToolCall, Text: name}
	if len(args) <= 64<<10 {
		it.Arguments = args
	}
	for _, t := range All() {
		if t.Name == name && t.Kind != "" {
			it.Kind = t.Kind
			it.Text = about(name, args)
		}
	}
	return it
}
