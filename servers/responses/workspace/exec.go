package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"switchboard/handoff"
	"switchboard/servers/responses/sandbox"
)

// Bounds of a command.
const (
	defaultTime = 2 * time.Minute
	maxCommand  = 30 * time.Minute
	maxLine     = 16 << 10 // bytes of a command line
	maxEnd      = 24 << 10 // bytes of the output that a model gets from its beginning and from its end, each
)

// changeTools returns the tools of trusted workspaces.
func changeTools() []Tool {
	return []Tool{
		{Name: "exec", Kind: handoff.ItemCommand, Trusted: true, run: decoded(execute),
			Description: "Runs a command with bash and waits for it. It runs in a sandbox: it has no network, and nothing that " +
				"it starts outlives it. It sees the workspace, and when it has ended, the plain files that it changed are taken " +
				"over, without the right to be run. Anything else that it makes (.git, hidden files, programs, links) is there " +
				"for your next commands alone, and such changes of what was there are undone; it says so. /tmp is kept. " +
				"Set outside only when the sandbox keeps the command from doing what the task needs: a person is asked then.",
			Parameters: object(map[string]any{
				"command": text("as bash reads it"), "dir": optional("string",
					"where it runs, relative to the workspace; null is the workspace"),
				"seconds": optional("integer", "how long it may take; null is 120, at most 1800"),
				"outside": optional("boolean", "run it without the sandbox"),
				"reason":  optional("string", "for outside: why, in one sentence for the person who is asked"),
			}, "command", "dir", "seconds", "outside", "reason")},
		{Name: "apply_patch", Kind: handoff.ItemFileChange, Trusted: true, run: decoded(applyPatch),
			Description: "Changes files of the workspace, all or none. The patch begins with *** Begin Patch and ends with " +
				"*** End Patch. Between them stand " +
				"*** Add File: PATH with lines that begin with +, *** Delete File: PATH, and *** Update File: PATH, which *** " +
				"Move to: PATH may follow, with hunks: " +
				"@@ and optionally a line that stands above, then lines that begin with a space (context, three before and " +
				"after), - or +.",
			Parameters: object(map[string]any{"patch": text("the whole patch")}, "patch")},
		{Name: "write_file", Kind: handoff.ItemFileChange, Trusted: true, run: decoded(writeFile),
			Description: "Writes a whole text file of the workspace, in place of what is there.",
			Parameters: object(map[string]any{"path": text("relative to the workspace"), "content": text("all of it")}, "path",
				"content")},
	}
}

// execArgs are the arguments of exec.
type execArgs struct {
	Command string  `json:"command"`
	Dir     *string `json:"dir"`
	Seconds *int    `json:"seconds"`
	Outside *bool   `json:"outside"`
	Reason  *string `json:"reason"`
}

// execute runs a command if it is allowed.
func execute(ctx context.Context, w *Workspace, args execArgs, call Call) (Result, error) {
	dir, err := w.directory(value(args.Dir))
	switch {
	case err != nil:
		return Result{}, err
	case strings.TrimSpace(args.Command) == "" || strings.ContainsRune(args.Command, 0):
		return Result{}, errors.New("there is no command")
	case len(args.Command) > maxLine:
		return Result{}, fmt.Errorf("a command has at most %d bytes; write a script", maxLine)
	}
	mode := w.cfg.Sandbox
	if value(args.Outside) {
		mode = sandbox.Full
	}
	if err := w.allowed(ctx, call, w.aboutCommand(args, dir, mode)); err != nil {
		return Result{}, err
	}
	if err := w.begin(ctx); err != nil {
		return Result{}, err
	}
	defer w.end()
	if again, err := w.directory(value(args.Dir)); err != nil || again != dir {
		return Result{}, errors.Join(errors.New("the directory was changed meanwhile"), err)
	}
	out := &ends{also: call.Out}
	c := w.command(args.Command, dir, mode)
	c.Output, c.Time = out, defaultTime
	if seconds := value(args.Seconds); seconds > 0 {
		c.Time = min(time.Duration(min(seconds, 1<<20))*time.Second, maxCommand)
	}
	began := time.Now()
	code, err := sandbox.Run(ctx, c)
	note := w.take(began) // however it ended
	_, _ = io.WriteString(call.Out, note)
	if errors.Is(err, sandbox.ErrTime) || errors.Is(err, sandbox.ErrTmp) {
		return Result{Text: fmt.Sprintf("Error: %v\n%s%s", err, out, note), Failed: true}, nil
	}
	if err != nil {
		return Result{}, err
	}
	return Result{Text: fmt.Sprintf("Exit code: %d\n%s%s", code, out, note), Exit: &code, Failed: code != 0}, nil
}

// value returns what a pointer points to, or the zero value for nil.
func value[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}

// directory returns the absolute path of a directory of the workspace; "" is the workspace itself. It fails if the
// workspace was moved.
func (w *Workspace) directory(name string) (string, error) {
	name, err := w.local(cmp.Or(name, "."))
	if err != nil {
		return "", err
	}
	about, err := w.root.Stat(name)
	if err != nil {
		return "", err
	}
	opened, err := w.root.Stat(".")
	named, err2 := os.Stat(w.dir)
	switch {
	case !about.IsDir():
		return "", fmt.Errorf("%s is no directory", name)
	case err != nil || err2 != nil || !os.SameFile(opened, named):
		return "", errors.New("the workspace was moved")
	}
	return filepath.Join(w.dir, name), nil
}

// command returns the sandbox command of a command line.
func (w *Workspace) command(line, dir string, mode sandbox.Mode) sandbox.Command {
	if dir == "." {
		dir = w.dir
	}
	scratch := ""
	if w.scratch != nil {
		scratch = w.scratch.Dir
	}
	var hidden []string
	if w.cfg.Hidden != nil {
		hidden = w.cfg.Hidden()
	}
	return sandbox.Command{
		Line: line, Dir: dir, Mode: mode, Workspace: w.dir, Readable: w.readable, Hidden: hidden, Scratch: scratch,
		Env:  w.cfg.Env,
		User: w.cfg.User, Limits: w.cfg.Limits,
	}
}

// programs returns the directories of PATH that are not part of the system, which commands see anyhow.
func programs(env []string) []string {
	var dirs []string
	for _, pair := range env {
		if list, ok := strings.CutPrefix(pair, "PATH="); ok {
			dirs = filepath.SplitList(list)
		}
	}
	return slices.DeleteFunc(dirs, func(dir string) bool {
		return !filepath.IsAbs(dir) || slices.ContainsFunc([]string{"/usr", "/bin", "/sbin", "/opt"},
			func(system string) bool { return dir == system || strings.HasPrefix(dir, system+"/") })
	})
}

// ends keeps the beginning and the end of the output.
type ends struct {
	also io.Writer // Set once; gets everything

	mu   sync.Mutex
	kept []byte // Guarded by mu, like below: maxEnd bytes from the beginning, and at least as many from the end
	left int    // bytes between them that are left out
}

// Write implements [io.Writer]. It never fails.
func (e *ends) Write(p []byte) (int, error) {
	_, _ = e.also.Write(p)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.kept = append(e.kept, p...); len(e.kept) > 4*maxEnd {
		e.cut()
	}
	return len(p), nil
}

// cut leaves out what need not be kept. The caller holds mu.
func (e *ends) cut() {
	if over := len(e.kept) - 2*maxEnd; over > 0 {
		e.kept = slices.Delete(e.kept, maxEnd, maxEnd+over)
		e.left += over
	}
}

// String returns the output, with a note of how many bytes are left out.
func (e *ends) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cut(); e.left == 0 {
		return strings.ToValidUTF8(string(e.kept), "?")
	}
	return fmt.Sprintf("%s\n[… %d bytes are left out …]\n%s", strings.ToValidUTF8(string(e.kept[:maxEnd]), "?"), e.left,
		strings.ToValidUTF8(string(e.kept[maxEnd:]), "?"))
}
