package trees

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"switchboard/handoff"
)

// Ran is what came of a command.
type Ran struct {
	Exit int    `json:"exit"`
	Out  string `json:"out,omitempty"`
	Err  string `json:"err,omitempty"` // what git printed as an error
	// Lacks says in a clause what was missing, so that nothing ran: git itself, or the directory; "": it ran.
	Lacks string `json:"lacks,omitempty"`
	// Runs is a key of the repository's own configuration for which git could run a program, so that nothing ran and
	// Exit is not 0; "": there is none.
	Runs string `json:"runs,omitempty"`
}

// A Git runs git with some arguments in a directory of one machine. It runs only what [Check] allows. An error means
// that nothing is known of the command, or that the machine refuses it; it is a [*handoff.Error].
type Git func(ctx context.Context, dir string, args []string) (Ran, error)

// Method is the method by which the gate of a machine runs git, with a [Request]. It answers with a [Ran]. No agent has
// it.
const Method = "_switchboard/git"

// A Request has the parameters of [Method].
type Request struct {
	Cwd  string   `json:"cwd"`
	Args []string `json:"args"`
}

// RefusedMethod is the message by which the gate of a machine refuses a method that it does not know.
const RefusedMethod = "this machine lets no such request through"

// Takes bounds one command. To check out a large repository takes longest.
const Takes = 2 * time.Minute

// maxOut bounds each output of a command, in bytes.
const maxOut = 256 << 10

// Words that stand for arguments in the list of commands.
const (
	branch   = "BRANCH"   // of a worktree
	upstream = "UPSTREAM" // of that branch
	place    = "PLACE"    // the directory of a worktree
	commit   = "COMMIT"
)

// allowed are all commands that are ever run. Set once.
var allowed = [][]string{
	{"rev-parse", "--is-inside-work-tree", "--show-prefix"},
	{"worktree", "list", "--porcelain"},
	{"worktree", "add", "-b", branch, place},
	{"worktree", "remove", place},
	{"branch", "-d", branch},
	{"merge-base", "--is-ancestor", commit, "HEAD"},
	{"merge-base", "--is-ancestor", commit, upstream},
	{"rev-parse", "--verify", "--quiet", upstream},
	{"log", "-g", "--date=unix", "--format=%H %gd", branch, "--"},
}

// settings precede the arguments. Without them, programs that the repository names would run, outside of every sandbox:
// an agent may have written them, or their names. Set once.
var settings = []string{"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false"}

// programs lists the keys, each after its scope and a tab, that name a program which a command that writes could run,
// and which no setting takes back; and those of files that count only where the command has gone to. Set once.
var programs = []string{"config", "--show-scope", "--includes", "--name-only", "--get-regexp",
	`^(filter\..*\.(smudge|clean|process)|hook\..*\.command|includeif\..*)$`}

// Command returns the whole command for arguments that [Check] allows.
func Command(args []string) []string { return slices.Concat([]string{"git"}, settings, args) }

// Environment are the variables that a command needs beside the usual: it asks nobody for a password, and fetches
// nothing that a partial clone lacks, for which it would run what the repository names. Set once.
var Environment = []string{"GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=none", "LC_ALL=C"}

var (
	errNotAllowed = errors.New("no such command of git is run")
	hash          = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)
)

// Check returns an error unless the arguments are one of the few commands that are ever run, for one worktree beside
// the directory or beside one that it is in.
func Check(dir string, args []string) error {
	if !plain(dir) || !slices.ContainsFunc(allowed, func(form []string) bool { return fits(form, dir, args) }) {
		return errNotAllowed
	}
	return nil
}

func fits(form []string, dir string, args []string) bool {
	if len(form) != len(args) {
		return false
	}
	name := "" // of the one worktree that all arguments are about
	same := func(is string) bool {
		if name == "" {
			name = is
		}
		return is == name && handoff.IsWorktreeName(is)
	}
	for i, word := range form {
		arg, ok := args[i], false
		switch word {
		case branch:
			is, cut := strings.CutPrefix(arg, handoff.WorktreeBranch)
			ok = cut && same(is)
		case upstream:
			is, begins := strings.CutPrefix(arg, handoff.WorktreeBranch)
			is, ends := strings.CutSuffix(is, "@{upstream}")
			ok = begins && ends && same(is)
		case place:
			w := handoff.WorktreeAt(arg)
			ok = w != nil && w.Root == arg && plain(arg) && same(w.Name) &&
				(dir == w.Of || strings.HasPrefix(dir, w.Of+"/"))
		case commit:
			ok = hash.MatchString(arg)
		default:
			ok = arg == word
		}
		if !ok {
			return false
		}
	}
	return true
}

// Writes reports whether a command that [Check] allows changes anything.
func Writes(args []string) bool {
	return len(args) > 1 && (args[0] == "branch" || args[0] == "worktree" && args[1] != "list")
}

// Place returns the directory of the worktree that a command is about; "": none.
func Place(args []string) string {
	if len(args) > 2 && args[0] == "worktree" && args[1] != "list" {
		return args[len(args)-1]
	}
	return ""
}

// plain reports whether a path is absolute, in its shortest form, and without control characters.
func plain(p string) bool {
	return strings.HasPrefix(p, "/") && p != "/" && path.Clean(p) == p && !strings.ContainsFunc(p, unicode.IsControl)
}

// Guarded returns a Git that runs what [Check] allows, by run. Where the repository's own configuration names a program
// that could run, it changes nothing. What the user has set for all repositories is the user's own.
func Guarded(run Git) Git {
	return func(ctx context.Context, dir string, args []string) (Ran, error) {
		if err := Check(dir, args); err != nil {
			return Ran{}, handoff.Fault(handoff.CodeRefused, "", err.Error())
		}
		if !Writes(args) {
			return run(ctx, dir, args)
		}
		at := dir
		if args[1] == "remove" { // a worktree may have settings of its own
			at = Place(args)
		}
		ran, err := run(ctx, at, programs)
		for line := range strings.Lines(ran.Out) {
			scope, key, _ := strings.Cut(strings.TrimSpace(line), "\t")
			if scope != "system" && scope != "global" && scope != "command" {
				key = handoff.ClipRunes(key, 100)
				return Ran{Exit: 1, Err: "the repository's own configuration has " + key, Runs: key}, err
			}
		}
		if err != nil || ran.Exit > 1 { // 1: there are none
			return ran, err
		}
		return run(ctx, dir, args) // also where the worktree is gone: there is nothing to look at
	}
}

// Here returns a Git of this machine. env is the environment of its commands, beside [Environment].
func Here(env []string) Git {
	return Guarded(func(ctx context.Context, dir string, args []string) (Ran, error) {
		ctx, cancel := context.WithTimeout(ctx, Takes)
		defer cancel()
		command := Command(args)
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		var out, complains bounded
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, slices.Concat(env, Environment), &out, &complains
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // git then removes what it has half made
		cmd.WaitDelay = 5 * time.Second
		err := cmd.Run()
		ran := Ran{Out: string(out), Err: string(complains)}
		ended, exits := errors.AsType[*exec.ExitError](err)
		switch {
		case ctx.Err() != nil:
			return ran, handoff.Fault(handoff.CodeUnreachable, "", "git did not end in time")
		case exits:
			ran.Exit = ended.ExitCode()
		case errors.Is(err, exec.ErrNotFound):
			ran.Lacks = "git is not installed there"
		case errors.Is(err, fs.ErrNotExist):
			ran.Lacks = "there is no directory " + dir
		case err != nil:
			return ran, handoff.Fault(handoff.CodeRefused, "", err.Error())
		}
		return ran, nil
	})
}

// bounded keeps the first maxOut bytes that are written to it.
type bounded []byte

// Write implements [io.Writer].
func (b *bounded) Write(p []byte) (int, error) {
	*b = append(*b, p[:min(len(p), maxOut-len(*b))]...)
	return len(p), nil
}
