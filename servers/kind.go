package servers

import (
	"iter"
	"net/netip"
	"net/url"
	"regexp"
	"strings"

	"go.uber.org/zap"

	"switchboard/handoff"
)

// A Kind is a way to run agents. Each is a package of its own, which cmd registers.
type Kind struct {
	Name string // in the configuration, also for people
	Doc  string // what it is, in a phrase
	// New returns the empty settings of one server.
	New func() Settings
	// Dial returns the dial function of a server, and its metrics, which may be nil. The Own of the spec is from New.
	Dial func(s Spec, log *zap.Logger) (Dial, iter.Seq[handoff.Metric])
	// Takes returns the settings for what a person adds: an address, the command of an agent of this machine, or an
	// address and a command of the agent there. chosen says that the person has named this kind, so that the command
	// need not be a known one. It returns nil for what this kind does not take.
	Takes func(words []string, chosen bool) []Row
	// Joined returns the settings of an agent of a machine that joined: own, which are those of its entry, as far as
	// the machine's owner allows them, or where own is nil those that the machine brings. nil: no machine brings agents
	// of this kind.
	Joined func(own Settings, a Arrived) Settings
	// Fixed says that a server cannot be made twice in one process. A change of its entry waits for the next start.
	Fixed bool
	// IsThread reports whether a name has the form of a full thread id. Such a name need not be in the list of its
	// server, which may be down. nil: no name has it, and a thread is found only in the list.
	IsThread func(name string) bool
}

// A Row is a setting in the entry of a server: text, or a list.
type Row struct {
	Name, Text string
	List       []string // nil: it is Text
}

// An Arrived is what a machine that joined says of one of its agents.
type Arrived struct {
	Dir     string // of new sessions; "": the agent's own
	Mode    string // of its sessions; ""
	Ceiling string // the loosest sandbox that the owner of the machine allows; "": any
}

// Settings are the settings of one kind of servers: a pointer to a struct. A field with the tag yaml is a setting of
// that name, and has a row in the table of web/help/3-settings.md. Fields are strings, numbers, booleans, lists and
// maps of these, pointers to them, structs, and types that implement [encoding.TextUnmarshaler].
type Settings interface {
	// Rows returns pointers to the structs that the server's entry is decoded into: this one and its parts. The decoder
	// reports unknown names and wrong types.
	Rows() []any
	// Check reports what else is wrong, and completes the settings.
	Check(to Report, files Files)
	// Describe sets the fields of a spec that follow from the settings: Dir, Host, Remote, Joined, Way, Program,
	// EndsWithUs, Private, Credential and About.
	Describe(s *Spec)
}

// A Spec describes one server of the fleet. Fields with a tag are settings of all kinds.
type Spec struct {
	Name           string             `yaml:"name"`
	Aliases        []string           `yaml:"aliases"`
	Kind           string             `yaml:"kind"`
	Named          map[string]Project `yaml:"projects"`
	VoiceApprovals string             `yaml:"voice_approvals"`
	Watch          string             `yaml:"watch"` // [unwatched] or [watchedAll]; "": "named", as far as somebody asks
	For            []string           `yaml:"for"`

	Projects  map[string]string // directories by name, as Named has them
	Worktrees map[string]bool   // projects whose new sessions begin in worktrees of their own

	Own   Settings // of its kind; nil: none are needed, as if Dial is set
	Entry string   // its text in the configuration, to find changes

	Dir        string                   // directory of new threads; "": the server's own default
	Host       string                   // where it runs, as people may name it; "": not known, or this machine
	Remote     bool                     // its directories are on another machine
	Joined     bool                     // it is an agent of a machine that joined, or waits for one
	Way        Way                      // how it is reached; nil: its kind has no transports
	Program    string                   // that is started here; "": none
	EndsWithUs bool                     // its work ends with this process
	Private    bool                     // turns that others begin there do not show
	Credential Credential               // that we show it
	About      handoff.Machine          // for people, without Name, Directory, VoiceApprovals and times
	Show       func(m *handoff.Machine) // adds to About what changes; nil: nothing does
	Simulated  bool

	Dial     Dial
	Metrics  iter.Seq[handoff.Metric] // of its kind; nil: none
	IsThread func(name string) bool   // see [Kind]
}

// unwatched is the value of Watch with which nothing is followed that others began there, and watchedAll the one with
// which all is followed, for the owner.
const (
	unwatched  = "none"
	watchedAll = "all"
)

// private reports whether turns that others begin there do not show.
func (s *Spec) private() bool { return s.EndsWithUs || s.Simulated || s.Private }

// A Project is a named directory of a server. In the configuration, its directory alone stands for it too.
type Project struct {
	Dir      string `yaml:"dir"`
	Worktree bool   `yaml:"worktree"` // new sessions begin in a worktree of their own
}

// A Credential is the secret by which a server lets us in.
type Credential struct {
	Name string                 // in the configuration: "token" or "key"
	Read func() (string, error) // reads it anew each time; nil: there is none
}

// A Report collects faults of the configuration. A row is named as in the file, such as "url" or "env[0]"; "" is the
// server as a whole.
type Report interface {
	Bad(row, format string, args ...any)
	// OneOf reports a word that is not one of the known ones, with the one that was probably meant; "" is no word.
	OneOf(row, word string, known ...string)
	// IsSet reports whether the configuration has the row, also with a wrong value.
	IsSet(row string) bool
}

// Files complete settings about files of this machine.
type Files interface {
	// Path makes a path absolute. A relative one begins in the directory of the configuration.
	Path(path string) string
	// Credential returns a credential that is read from a file or a variable, of which at most one may be set. Their
	// rows are name_file and name_env.
	Credential(name, file, variable string) Credential
	// Apart reports a directory in which the agents of a server could reach files of Switchboard's own.
	Apart(row, dir string)
}

// absolute matches absolute paths of any system: a server may run on another than ours.
var absolute = regexp.MustCompile(`^(/|\\\\|[A-Za-z]:[\\/])`)

// CheckDir returns the absolute path of a directory on this machine. It reports a directory on a remote machine whose
// path is not absolute.
func CheckDir(row, dir string, remote bool, to Report, files Files) string {
	switch {
	case dir == "": // not set, or reported before
	case !remote:
		return files.Path(dir)
	case !absolute.MatchString(dir):
		to.Bad(row, "%q must be an absolute path: it is one of that machine", dir)
	}
	return dir
}

// An Address is the address of a server that gets a secret.
type Address struct {
	Row, URL string // its name in the configuration, and its value, which reports must not quote
	Plain    string // its scheme without TLS: "ws" or "http"
	What     string // what it must be, with an example
	Secret   string // that the server gets: "token" or "key"
	Allowed  bool   // plaintext to another machine is allowed
}

// Check reports what is wrong in the address.
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
		to.Bad(a.Row, "%s:// to another machine goes in the clear: use %[1]ss:// or a tunnel, or set allow_plaintext: true",
			a.Plain)
	case !open && a.Allowed:
		to.Bad("allow_plaintext", "goes with %s:// addresses only", a.Plain)
	}
}

// Describe sets what people see of an address: its scheme and host, without any secret.
func (a Address) Describe(s *Spec) {
	u, err := url.Parse(a.URL)
	if err != nil || u.Host == "" {
		return
	}
	s.About.Address = u.Scheme + "://" + u.Host
	if !Loopback(u.Hostname()) {
		s.Host = u.Hostname()
	}
}

// Loopback reports whether a host means this machine only. Wildcard addresses do not, nor do names other than
// localhost, since a resolver decides about them.
func Loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
