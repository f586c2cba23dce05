package workspace

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/servers/responses/sandbox"
)

// Bounds of what a tool gives back and of what it may take.
const (
	maxOutput = 64 << 10         // bytes of words; the middle is left out of what is longer
	maxTime   = 30 * time.Second // of a tool that reads
	maxArgs   = 1 << 20          // bytes of arguments
)

// A Tool is one thing that can be done.
type Tool struct {
	Name        string
	Description string
	Parameters  map[string]any   // JSON schema of an object
	Kind        handoff.ItemKind // how it is shown
	Trusted     bool             // only in trusted workspaces; it bounds its time itself, because a person may be asked
	run         func(ctx context.Context, w *Workspace, args json.RawMessage, call Call) (Result, error)
}

// A Call is what a tool may use while it works.
type Call struct {
	Out *Output // what it prints
	// Ask asks a person and waits. An error says that nobody can answer any more.
	Ask func(ctx context.Context, q handoff.Question) (yes bool, err error)
}

// A Result is what a tool gave back. An error of a tool is a result too: the model reads the reason.
type Result struct {
	Text     string
	Pictures []string // data: addresses
	Failed   bool
	Exit     *int                 // of a command
	Changes  []handoff.FileChange // of an edit
}

// Config is a workspace and what may be done in it.
type Config struct {
	Dir      string
	Trusted  bool         // else it can only be read
	Approval string       // [Untrusted], [OnRequest] or [Never]; "" is [OnRequest]
	Sandbox  sandbox.Mode // "" is [sandbox.WorkspaceWrite]
	Readable []string     // directories that commands may read beside it and the system's
	Hidden   []string     // directories that commands never see, also those that run without a sandbox
	Env      []string     // of commands
	// whom commands run as, and who owns what edits make; nil: this program's own, who must not be root then
	User   *sandbox.User
	Limits sandbox.Limits // of each command
	Others []*Workspace   // those that are open already: what changes overlapping ones waits for each other
}

// A Workspace is one directory. It is safe for concurrent use.
type Workspace struct {
	cfg      Config           // Set once
	dir      string           // Set once, without links in it
	root     *os.Root         // Set once
	scratch  *sandbox.Scratch // Set once: what commands have beside it; nil when there are none
	noExec   error            // Set once: why commands cannot be run
	readable []string         // Set once
	// Set once: those of overlapping workspaces in the order in which they were opened, its own last
	turns []turn
}

// Open opens a directory. Links in its own name are followed; from then on it is that directory, whatever the name
// leads to later. Whether commands can be run there is tried.
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
	w := &Workspace{cfg: cfg, dir: real, root: root}
	w.takeTurns(cfg.Others)
	if cfg.Trusted {
		w.readable = append(cfg.Readable, programs(cfg.Env)...)
		w.scratch, w.noExec = sandbox.NewScratch(cfg.User)
	}
	if w.scratch != nil {
		w.noExec = sandbox.Probe(ctx, w.command("", ".", cfg.Sandbox))
	}
	return w, nil
}

// Close lets go of the directory, and removes what commands left beside it.
func (w *Workspace) Close() error {
	err := w.root.Close()
	if w.scratch != nil {
		err = errors.Join(err, w.scratch.Close())
	}
	return err
}

// Dir is the directory.
func (w *Workspace) Dir() string { return w.dir }

// CanRun says why no commands can be run there, nil when they can.
func (w *Workspace) CanRun() error { return w.noExec }

// About says in a sentence what may be done there, or why not more.
func (w *Workspace) About() string {
	switch {
	case !w.cfg.Trusted:
		return "Its workspace is not trusted: it only reads."
	case w.noExec != nil:
		return "It runs no commands: " + w.noExec.Error() + "."
	}
	return modes[w.cfg.Sandbox]
}

// modes says what commands may do. Set once.
var modes = map[sandbox.Mode]string{
	sandbox.ReadOnly: "Its commands run in a sandbox of Landlock, namespaces and seccomp, change nothing and " +
		"have no network.",
	sandbox.WorkspaceWrite: "Its commands run in a sandbox of Landlock, namespaces and seccomp, write in the workspace " +
		"alone and have no network.",
	sandbox.Full: "Its commands run without a sandbox.",
}

// Tools returns [All] tools, whether they may be used here or not.
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

// denied says why a tool may not be used here, nil when it may.
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

// All returns every tool there is, in an order that never changes: it is part of what a model's cache keeps.
func All() []Tool { return append(readTools(), changeTools()...) }

// Run uses a tool. It returns when nothing of it is left running.
func (w *Workspace) Run(ctx context.Context, name string, args json.RawMessage, call Call) Result {
	result, err := w.use(ctx, name, args, call)
	if err != nil {
		result = Result{Text: "Error: " + plain(err), Failed: true}
	}
	result.Text = bounded(result.Text, maxOutput)
	return result
}

func (w *Workspace) use(ctx context.Context, name string, args json.RawMessage, call Call) (Result, error) {
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

// plain is an error without the parts that say nothing to a model.
func plain(err error) string {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Path + ": " + e.Err.Error()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "it took too long"
	}
	return err.Error()
}

// decoded is what a tool runs with arguments that are read strictly: a model that misspells one is told so.
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

// local makes a path of the workspace of what a model names: relative to it, or absolute and below it.
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

// bounded keeps the beginning and the end of long text.
func bounded(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	head, tail := handoff.Cut(text, limit/2), handoff.Tail(text, limit/2)
	return fmt.Sprintf("%s\n[… %d bytes are left out …]\n%s", head, len(text)-len(head)-len(tail), tail)
}

// object is a JSON schema of an object whose properties are all required; those that may be left out are null.
func object(properties map[string]any, names ...string) map[string]any {
	return map[string]any{"type": "object", "properties": properties, "required": names, "additionalProperties": false}
}

func text(what string) map[string]any { return map[string]any{"type": "string", "description": what} }

func optional(kind, what string) map[string]any {
	return map[string]any{"type": []string{kind, "null"}, "description": what}
}

// Shown is how the use of a tool looks before it has a result.
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

// lines is text without the spaces at its end, in lines.
func lines(s string) []string { return strings.Split(strings.TrimRight(s, "\n"), "\n") }
