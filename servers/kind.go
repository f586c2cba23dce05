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
	// Takes returns the setting, and its value, for an address that a person adds; false: this kind does not take the
	// address. nil: it takes none.
	Takes func(address string) (row, value string, ok bool)
	// Fixed says that a server cannot be made twice in one process. A change of its entry waits for the next start.
	Fixed bool
	// IsThread reports whether a name has the form of a full thread id. Such a name need not be in the list of its
	// server, which may be down. nil: no name has it, and a thread is found only in the list.
	IsThread func(name string) bool
}

// Settings are the settings of one kind of servers: a pointer to a struct. A field with the tag yaml is a setting of
// that name; its tags doc and unset are its row in the table of settings. Fields are strings, numbers, booleans, lists
// and maps of these, structs, and types that implement [encoding.TextUnmarshaler].
type Settings interface {
	// Rows returns pointers to the structs that the server's entry is decoded into: this one and its parts. The decoder
	// reports unknown names and wrong types.
	Rows() []any
	// Check reports what else is wrong, and completes the settings.
	Check(to Report, files Files)
	// Describe sets the fields of a spec that follow from the settings: Dir, Host, Remote, Program, EndsWithUs,
	// Credential and About.
	Describe(s *Spec)
}

// A Spec describes one server of the fleet. Fields with a tag are settings of all kinds.
type Spec struct {
	Name           string            `yaml:"name"            doc:"what you call the machine"`
	Aliases        []string          `yaml:"aliases"         doc:"what else you call it"`
	Kind           string            `yaml:"kind"            doc:"what runs its agents"`
	Projects       map[string]string `yaml:"projects"        doc:"names for other directories: {api: /home/me/src/api}"`
	VoiceApprovals string            `yaml:"voice_approvals" doc:"the riskiest that you may allow by voice: none, low or medium; the rest takes a tap" unset:"medium"`
	For            []string          `yaml:"for"             doc:"principals who may use it; for all others it is not there"                           unset:"everybody"`

	Own   Settings // of its kind; nil: none are needed, as if Dial is set
	Entry string   // its text in the configuration, to find changes

	Dir        string                   // directory of new threads; "": the server's own default
	Host       string                   // where it runs, as people may name it; "": not known, or this machine
	Remote     bool                     // its directories are on another machine
	Program    string                   // that is started here; "": none
	EndsWithUs bool                     // its work ends with this process
	Credential Credential               // that we show it
	About      handoff.Machine          // for people, without Name, Directory, VoiceApprovals and times
	Show       func(m *handoff.Machine) // adds to About what changes; nil: nothing does
	Simulated  bool

	Dial     Dial
	Metrics  iter.Seq[handoff.Metric] // of its kind; nil: none
	IsThread func(name string) bool   // see [Kind]
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
	// OneOf reports a word that is not one of the known ones, with the one that was probably meant.
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
