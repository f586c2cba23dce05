package workspace

import (
	"bytes"
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
	Trusted     bool             // only in trusted workspaces
	run         func(ctx context.Context, w *Workspace, args json.RawMessage, out *Output) (Result, error)
}

// A Result is what a tool gave back. An error of a tool is a result too: whoever called it reads why.
type Result struct {
	Text     string
	Pictures []string // data: addresses
	Failed   bool
	Exit     *int // of a command
}

// A Workspace is one directory. It is safe for concurrent use.
type Workspace struct {
	dir     string   // Set once, without links in it
	root    *os.Root // Set once
	trusted bool     // Set once
}

// Open opens a directory. Links in its own name are followed; from then on it is that directory, whatever the name
// leads to later.
func Open(dir string, trusted bool) (*Workspace, error) {
	real, err := filepath.EvalSymlinks(dir)
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
	return &Workspace{dir: real, root: root, trusted: trusted}, nil
}

// Close lets go of the directory.
func (w *Workspace) Close() error { return w.root.Close() }

// Dir is the directory.
func (w *Workspace) Dir() string { return w.dir }

// Tools returns every tool there is, in an order that never changes, whether it may be used or not.
func (w *Workspace) Tools() []Tool { return table() }

// Allowed returns the names of the tools that may be used here.
func (w *Workspace) Allowed() []string {
	var names []string
	for _, t := range table() {
		if w.may(t) {
			names = append(names, t.Name)
		}
	}
	return names
}

func (w *Workspace) may(t Tool) bool { return w.trusted || !t.Trusted }

// table is every tool. The order is part of what a model's cache keeps.
func table() []Tool { return readTools() }

// Run uses a tool. What it prints while it works goes to out as well. It returns when nothing of it is left running.
func (w *Workspace) Run(ctx context.Context, name string, args json.RawMessage, out *Output) Result {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	result, err := w.use(ctx, name, args, out)
	if err != nil {
		result = Result{Text: "Error: " + plain(err), Failed: true}
	}
	result.Text = bounded(result.Text, maxOutput)
	return result
}

func (w *Workspace) use(ctx context.Context, name string, args json.RawMessage, out *Output) (Result, error) {
	if len(args) > maxArgs || handoff.TooDeep(args) {
		return Result{}, errors.New("the arguments are too large")
	}
	for _, t := range table() {
		if t.Name != name {
			continue
		}
		if !w.may(t) {
			return Result{}, errors.New("denied: this workspace is not trusted, so it can only be read")
		}
		return t.run(ctx, w, args, out)
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

// decode reads arguments strictly: a model that misspells one is told so.
func decode[T any](args json.RawMessage) (T, error) {
	var a T
	d := json.NewDecoder(bytes.NewReader(args))
	d.DisallowUnknownFields()
	err := d.Decode(&a)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return a, fmt.Errorf("the arguments do not fit: %q is %s", wrong.Field, wrong.Value)
	}
	if err != nil {
		return a, fmt.Errorf("the arguments do not fit: %w", err)
	}
	return a, nil
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
	for _, t := range table() {
		if t.Name == name && t.Kind != "" {
			it.Kind = t.Kind
		}
	}
	return it
}

// lines is text without the spaces at its end, in lines.
func lines(s string) []string { return strings.Split(strings.TrimRight(s, "\n"), "\n") }
