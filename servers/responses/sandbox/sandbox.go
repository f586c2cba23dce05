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
	ReadOnly       Mode = "read-only"       // it changes nothing but its scratch directory
	WorkspaceWrite Mode = "workspace-write" // it also writes in its workspace
	// it may do what this program's user may, on the network too, where nothing is hidden
	Full Mode = "danger-full-access"
)

// A Command is one command and what it may reach.
type Command struct {
	Line      string   `json:"line"` // as a shell reads it
	Dir       string   `json:"dir"`  // where it begins, in the workspace
	Mode      Mode     `json:"mode"`
	Workspace string   `json:"workspace"`
	Readable  []string `json:"readable,omitempty"` // directories, beside the system's
	// directories that stand empty for it in every mode, whatever else has them
	Hidden []string `json:"hidden,omitempty"`
	Kept   []string `json:"kept,omitempty"` // files and directories of the workspace that it only reads
	// whom it runs as; nil: this program's own, which must not be root then
	User    *User         `json:"-"`
	Limits  Limits        `json:"limits"`
	Scratch string        `json:"scratch"` // of a [Scratch]; the command sees it as /tmp
	Env     []string      `json:"-"`
	Output  io.Writer     `json:"-"` // both streams of the command, as they come
	Time    time.Duration `json:"-"` // after which it is killed
	probe   bool          // only see whether it could run
	without layer         // left out, so that the other one can be tested alone
}

// Limits are how much a command may use at a time. Zero fields have their defaults.
type Limits struct {
	Processes int   `json:"processes,omitempty"` // and threads
	Memory    int64 `json:"memory,omitempty"`    // bytes, of all its processes together
	Tmp       int64 `json:"tmp,omitempty"`       // bytes in its /tmp, which stays from one command to the next
}

// DefaultLimits let large builds and tests run.
var DefaultLimits = Limits{Processes: 4096, Memory: 8 << 30, Tmp: 4 << 30}

// filled returns the limits with defaults in place of zeros.
func (l Limits) filled() Limits {
	return Limits{
		Processes: cmp.Or(l.Processes, DefaultLimits.Processes), Memory: cmp.Or(l.Memory, DefaultLimits.Memory),
		Tmp: cmp.Or(l.Tmp, DefaultLimits.Tmp),
	}
}

// A User is whom the commands of a program run as that was started as root.
type User struct{ UID, GID int }

// LookupUser finds a user of this machine by name or number. Root is refused.
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

// A layer is one of the two that hold a command where it belongs.
type layer string

const (
	mounts   layer = "mounts"
	landlock layer = "landlock"
)

// ErrTime says that a command was ended because its time was over.
var ErrTime = errors.New("it took too long and was ended, with everything that it had begun")

// ErrTmp says that a command was ended because it filled its /tmp.
var ErrTmp = errors.New("it filled its /tmp and was ended, with everything that it had begun; /tmp is empty now")

// errRoot says why this program runs no commands as root.
var errRoot = errors.New("this Switchboard runs as root, and its commands would be root too: start it as an " +
	"ordinary user, or name one in the setting user")

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
