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

// A Kind is a way to run agents. Each is a package of its own; whoever wires the program registers it.
type Kind struct {
	Name string // as the configuration has it and people read it
	Doc  string // what it is, in a phrase
	// New returns the empty settings of one server.
	New func() Settings
	// Dial makes the dial function of a server, whose Own is of New, and what yields what is counted of it by then;
	// the second may be nil.
	Dial func(s Spec, log *zap.Logger) (Dial, iter.Seq[handoff.Metric])
	// Takes returns the setting and the value that an address to add stands for; false: it is none of this kind. nil:
	// it takes none.
	Takes func(address string) (row, value string, ok bool)
	// Fixed: its servers cannot be made twice in one process. One that changes waits for the next start.
	Fixed bool
	// IsThread reports whether a name has the form of a full thread id. Such a name is passed on as it is, also while
	// its server is down. nil: none has, and a thread is found only in the list of its server.
	IsThread func(name string) bool
}

// Settings are what only servers of one kind have: a pointer to a struct. A field with a tag yaml is the setting of
// that name; its tags doc and unset are its row in the table of settings. Fields are texts, numbers, true or false,
// lists and mappings of these, structs, and what implements [encoding.TextUnmarshaler].
type Settings interface {
	// Rows returns pointers to the structs that the server's entry is decoded into: this one and those that it is
	// put together of. Whoever reads the file reports unknown names and wrong types.
	Rows() []any
	// Check reports what else is wrong, and completes what was decoded.
	Check(to Report, files Files)
	// Describe fills in what follows from these settings: Dir, Host, Remote, Program, EndsWithUs, Credential and About.
	Describe(s *Spec)
}

// A Spec describes one server of the fleet. What has a tag is configured, whatever its kind.
type Spec struct {
	Name           string            `yaml:"name"            doc:"what you call the machine"`
	Aliases        []string          `yaml:"aliases"         doc:"what else you call it"`
	Kind           string            `yaml:"kind"            doc:"what runs its agents"`
	Projects       map[string]string `yaml:"projects"        doc:"names for other directories: {api: /home/me/src/api}"`
	VoiceApprovals string            `yaml:"voice_approvals" doc:"the riskiest that you may allow by voice: none, low or medium; the rest takes a tap" unset:"medium"`
	For            []string          `yaml:"for"             doc:"principals who may use it; for all others it is not there"                           unset:"everybody"`

	Own   Settings // those of its kind; nil: none are needed, as where Dial is given
	Entry string   // what the configuration says of it, to see whether that has changed

	Dir        string                   // directory of new threads, "" for the server's own default
	Host       string                   // where it runs, as people may name it; "" when that says nothing
	Remote     bool                     // its directories are on another machine
	Program    string                   // that is started here; "" for none
	EndsWithUs bool                     // its work ends with this process, as that of what is simulated does
	Credential Credential               // that it is told
	About      handoff.Machine          // what is shown of it; Name, Directory, VoiceApprovals and times are filled in
	Show       func(m *handoff.Machine) // adds to About what changes; nil: nothing does
	Simulated  bool

	Dial     Dial
	Metrics  iter.Seq[handoff.Metric] // what its kind counts of it; nil: nothing
	IsThread func(name string) bool   // see [Kind]
}

// A Credential is what a server is told so that it lets us in.
type Credential struct {
	Name string                 // what the configuration calls it: "token" or "key"
	Read func() (string, error) // reads it anew each time; nil: there is none
}

// A Report takes what is wrong in the configuration. A row is named as in the file, such as "url" or "env[0]"; ""
// is the server as a whole.
type Report interface {
	Bad(row, format string, args ...any)
	// OneOf reports a word that is not one of the known ones, with the one that was probably meant.
	OneOf(row, word string, known ...string)
	// IsSet reports whether the configuration has the row, also when what stands there is wrong.
	IsSet(row string) bool
}

// Files complete settings that lead to files of this machine.
type Files interface {
	// Path makes a path absolute: a relative one begins where the configuration is.
	Path(path string) string
	// Credential returns what reads a credential anew each time from a file or a variable, of which at most one may be
	// set; their rows are its name with _file and _env.
	Credential(name, file, variable string) Credential
	// Apart reports a directory in which the agents of a server could reach files of Switchboard's own.
	Apart(row, dir string)
}

// absolute matches absolute paths of any system: a server may run on another than ours.
var absolute = regexp.MustCompile(`^(/|\\\\|[A-Za-z]:[\\/])`)

// CheckDir completes a directory of this machine, and reports one of a remote machine that is not absolute.
func CheckDir(row, dir string, remote bool, to Report, files Files) string {
	switch {
	case dir == "": // it is not set, or an empty one was reported already
	case !remote:
		return files.Path(dir)
	case !absolute.MatchString(dir):
		to.Bad(row, "%q must be an absolute path: it is one of that machine", dir)
	}
	return dir
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
		to.Bad(a.Row, "%s:// to another machine goes in the clear: use %[1]ss:// or a tunnel, or set allow_plaintext: true",
			a.Plain)
	case !open && a.Allowed:
		to.Bad("allow_plaintext", "goes with %s:// addresses only", a.Plain)
	}
}

// Describe fills in what people are shown of an address, which is nothing that lets anybody in.
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

// Loopback reports whether a host is this machine alone. A wildcard is not; neither is a name that somebody's
// resolver decides.
func Loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
