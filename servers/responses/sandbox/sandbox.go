package sandbox

import (
	"context"
	"errors"
	"io"
	"time"
)

// A Mode is how much a command may do.
type Mode string

// The modes, as the configuration has them.
const (
	ReadOnly       Mode = "read-only"          // it changes nothing but its scratch directory
	WorkspaceWrite Mode = "workspace-write"    // it also writes in its workspace
	Full           Mode = "danger-full-access" // it may do what this program's user may, on the network too, where nothing is hidden
)

// A Command is one command and what it may reach.
type Command struct {
	Line      string        `json:"line"` // as a shell reads it
	Dir       string        `json:"dir"`  // where it begins, in the workspace
	Mode      Mode          `json:"mode"`
	Workspace string        `json:"workspace"`
	Readable  []string      `json:"readable,omitempty"` // directories, beside the system's
	Hidden    []string      `json:"hidden,omitempty"`   // directories that stand empty for it in every mode, whatever else has them
	Scratch   string        `json:"scratch"`            // of a [Scratch]; the command sees it as /tmp
	Env       []string      `json:"-"`
	Output    io.Writer     `json:"-"` // both streams of the command, as they come
	Time      time.Duration `json:"-"` // after which it is killed
	probe     bool          // only see whether it could run
	without   layer         // left out, so that the other one can be tested alone
}

// A layer is one of the two that hold a command where it belongs.
type layer string

const (
	mounts   layer = "mounts"
	landlock layer = "landlock"
)

// ErrTime says that a command was ended because its time was over.
var ErrTime = errors.New("it took too long and was ended, with everything that it had begun")

// probeTime bounds the trial of a sandbox. It is tried once in the life of a process: on a machine that is at its limit
// just then, a short one would leave the agent without commands for good.
const probeTime = 30 * time.Second

// Probe tells why commands like this one could not be run here, nil when they could. It tries, with everything but the
// command itself.
func Probe(ctx context.Context, c Command) error {
	c.probe, c.Time, c.Output = true, probeTime, io.Discard
	_, err := Run(ctx, c)
	return err
}
