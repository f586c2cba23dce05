package servers

import (
	"iter"
	"net/netip"
	"net/url"
	"strings"

	"go.uber.org/zap"

	"switchboard/handoff"
)

// A Kind is a way to run agents. Each is a package of its own; whoever wires the program registers it.
type Kind struct {
	Name string // as the configuration has it and people read it
	// Check reports what is wrong in what is configured of a server. What all kinds have (names, directories, who
	// may use it, voice approvals, the token's file) is checked elsewhere.
	Check func(s Settings, to Report)
	// Secret is what its configuration calls what is sent to its address: "token", which "" is too, or "key".
	Secret string
	// Dial makes the dial function of a server and what yields what is counted of it by then; the second may be nil.
	Dial func(s Settings, log *zap.Logger) (Dial, iter.Seq[handoff.Metric])
	// IsThread reports whether a name has the form of a full thread id. Such a name is passed on as it is, also while
	// its server is down. nil: none has, and a thread is found only in the list of its server.
	IsThread func(name string) bool
}

// Settings is what is configured of one server, of whatever kind. Empty fields leave the server's own setting.
type Settings struct {
	Name           string
	URL            string
	Unix           string                 // path of a socket on this machine
	Command        []string               // a child process
	Env            []string               // of a child or of commands, beside what every program needs: NAME or NAME=value
	AllowPlaintext bool                   // to another machine
	Token          func() (string, error) // reads it anew each time; nil: none
	Dir            string                 // of new threads
	Model          string                 // of new threads
	Sandbox        string                 // of new threads
	Approval       string                 // of new threads
	Ceiling        string                 // the loosest sandbox that may run

	Workspace    string    // the only directory of an agent that runs here
	Trusted      bool      // it may also be changed, and commands run there
	Readable     []string  // directories that those may read besides
	User         string    // of this machine, whom they run as when this program is root
	Limits       Limits    // of each of those
	Continuation string    // how requests to a model follow each other
	Store        *bool     // whether its API keeps responses; nil: as the rest needs it
	Include      []string  // what else the API gives back
	Reasoning    Reasoning // of a model
	Verbosity    string    // of a model
}

// Limits are how much one command may use at a time. What is zero has its default.
type Limits struct {
	Processes int // and threads
	MemoryMiB int // of all of them together
	TmpMiB    int // in its /tmp
}

// Reasoning is how a model thinks. Empty fields leave its own setting.
type Reasoning struct {
	Effort    string
	Summary   string
	Encrypted bool // have it given back encrypted instead of kept
}

// A Report takes what is wrong in the configuration. A row is named as in the file, such as "url" or "env[0]"; ""
// is the server as a whole.
type Report interface {
	Bad(row, format string, args ...any)
	// OneOf reports a word that is not one of the known ones, with the one that was probably meant.
	OneOf(row, word string, known ...string)
}

// An Address is where something is reached that is told a secret.
type Address struct {
	Row, URL string // its name in the configuration, and what stands there, which no report quotes
	Plain    string // its scheme in the clear, "ws" or "http"; with an s more it is not
	What     string // that it must be, with an example
	Secret   string // that goes there: "token" or "key"
	Allowed  bool   // to go to another machine in the clear
}

// Check reports what is wrong in it. The setting that allows it stands beside its row.
func (a Address) Check(to Report) {
	u, err := url.Parse(a.URL)
	if err != nil || u.Hostname() == "" || u.Fragment != "" || u.Scheme != a.Plain && u.Scheme != a.Plain+"s" {
		to.Bad(a.Row, "must be %s", a.What)
		return
	}
	if u.User != nil {
		to.Bad(a.Row, "has a user name in it; a %s belongs into %[1]s_file or %[1]s_env", a.Secret)
	}
	switch open := u.Scheme == a.Plain; {
	case open && !Loopback(u.Hostname()) && !a.Allowed:
		to.Bad(a.Row, "%s:// to another machine goes in the clear: use %[1]ss:// or a tunnel, or set allow_plaintext: true", a.Plain)
	case !open && a.Allowed:
		to.Bad("allow_plaintext", "goes with %s:// addresses only", a.Plain)
	}
}

// Loopback reports whether a host is this machine alone. A wildcard is not; neither is a name that somebody's
// resolver decides.
func Loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
