package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/user"
	"strconv"
	"time"
)

// A Mode is how much a command may do.
type Mode string

// The modes, as the configuration has them.
const (
	ReadOnly Mode = "read-only" // the command writes only in its scratch directory
	// The command also writes in its workspace, as far as it sees: the writes go to a layer of the scratch directory,
	// and [Scratch.Changed] returns them.
	WorkspaceWrite Mode = "workspace-write"
	// The command may do what its user may, also on the network. Only [Command.Hidden] stays hidden.
	Full Mode = "danger-full-access"
)

// A Command is a command and what it may reach.
type Command struct {
	Line      string   `json:"line"` // shell command line
	Dir       string   `json:"dir"`  // working directory, in the workspace
	Mode      Mode     `json:"mode"`
	Workspace string   `json:"workspace"`
	Readable  []string `json:"readable,omitempty"` // directories that it may read, beside the system's
	// Hidden files and directories are empty for the command in every mode, whatever else shows them.
	Hidden []string `json:"hidden,omitempty"`
	// User runs the command; nil for the user of this program, who must not be root then.
	User    *User         `json:"-"`
	Limits  Limits        `json:"limits"`
	Scratch string        `json:"scratch"` // Dir of a [Scratch]; the command sees its tmp as /tmp
	Env     []string      `json:"-"`
	Output  io.Writer     `json:"-"` // gets stdout and stderr
	Time    time.Duration `json:"-"` // after which it is killed
	probe   bool          // only try whether it could run
}

// Limits bound what a command may use at a time. A zero stands for the default.
type Limits struct {
	Processes int   `json:"processes,omitempty"` // processes and threads
	Memory    int64 `json:"memory,omitempty"`    // bytes, of all its processes together
	Tmp       int64 `json:"tmp,omitempty"`       // bytes in its /tmp, which is kept between commands, and in its layer
}

// DefaultLimits are enough for large builds and tests.
var DefaultLimits = Limits{Processes: 4096, Memory: 8 << 30, Tmp: 4 << 30}

// filled returns the limits with defaults for zeros.
func (l Limits) filled() Limits {
	return Limits{
		Processes: cmp.Or(l.Processes, DefaultLimits.Processes), Memory: cmp.Or(l.Memory, DefaultLimits.Memory),
		Tmp: cmp.Or(l.Tmp, DefaultLimits.Tmp),
	}
}

// A User runs commands when this program was started as root.
type User struct{ UID, GID int }

// LookupUser finds a user of this machine by name or number. It refuses root.
func LookupUser(name string) (*User, error) {
	found, err := user.Lookup(name)
	if err != nil {
		found, err = user.LookupId(name)
	}
	if err != nil {
		return nil, fmt.Errorf("there is no user %q on this machine", name)
	}
	uid, err := strconv.Atoi(found.Uid)
	gid, err2 := strconv.Atoi(found.Gid)
	switch {
	case err != nil || err2 != nil:
		return nil, fmt.Errorf("the user %q has no number", name)
	case uid == 0 || gid == 0:
		return nil, fmt.Errorf("the user %q is root", name)
	}
	return &User{UID: uid, GID: gid}, nil
}

// ErrTime means that a command was killed because its time was over.
var ErrTime = errors.New("it took too long and was ended, with everything that it had begun")

// ErrTmp means that a command was killed because it wrote too much.
var ErrTmp = errors.New("it wrote more than it may and was ended, with everything that it had begun; /tmp is empty " +
	"now, and nothing that it changed was taken over")

// errRoot is why no commands run as root.
var errRoot = errors.New("this Switchboard runs as root, and its commands would be root too: start it as an " +
	"ordinary user, or name one in the setting user")

// probeTime bounds the trial of a sandbox. It is tried once in the life of a process; if the machine is overloaded
// then, a short timeout would leave the agent without commands for good.
const probeTime = 30 * time.Second

// Probe returns why a command like this one could not run here, nil if it could. It tries everything except the
// command itself.
func Probe(ctx context.Context, c Command) error {
	c.probe, c.Time, c.Output = true, probeTime, io.Discard
	_, err := Run(ctx, c)
	return err
}
