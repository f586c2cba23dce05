package main

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"switchboard/servers"
	"switchboard/servers/responses"
	"switchboard/sessions"
)

// absolute matches absolute paths of any system: the server may run on another than ours.
var absolute = regexp.MustCompile(`^(/|\\\\|[A-Za-z]:[\\/])`)

// server checks one agent server.
func (c *checker) server(path string, s *serverSetting) {
	if !plainName.MatchString(s.Name) {
		c.bad(path+".name", "must be a name of A-Z a-z 0-9 . _ -; other forms are aliases")
	}
	for i, alias := range s.Aliases {
		if strings.Contains(alias, "/") {
			c.bad(elem(path+".aliases", i), "has a slash, which stands between a machine and a project")
		}
	}
	if s.VoiceApprovals != "" {
		c.oneOf(path+".voice_approvals", s.VoiceApprovals, "none", "low", "medium")
	}
	c.principals(path+".for", s.For)
	if len(s.Command) > 0 && strings.ContainsRune(s.Command[0], filepath.Separator) { // else it is looked up in PATH
		s.Command[0] = c.path(s.Command[0])
	}
	if s.Unix != "" {
		s.Unix = c.path(s.Unix)
	}
	if s.Workspace != "" {
		s.Workspace = c.path(s.Workspace)
	}
	c.oneOf(path+".kind", s.Kind, kindNames()...)
	for i := range s.Readable {
		s.Readable[i] = c.path(s.Readable[i])
	}
	kind := kindOfServer(s.Kind, nil)
	if kind.Check != nil {
		kind.Check(s.settings(), report{c, path})
	}
	c.secret(path, s, kind)
	c.directories(path, s)
}

// secret reads the credential of a server; each kind has its own name for it.
func (c *checker) secret(path string, s *serverSetting, kind servers.Kind) {
	names := []string{"token", "key"}
	files, variables := []string{s.TokenFile, s.KeyFile}, []string{s.TokenEnv, s.KeyEnv}
	own := slices.Index(names, cmp.Or(kind.Secret, names[0]))
	s.Token, _ = c.token(path, names[own], files[own], variables[own], s.URL != "", "url")
	other := 1 - own
	for row, set := range map[string]string{"_file": files[other], "_env": variables[other]} {
		if set != "" && kind.Name != "" {
			c.bad(path+"."+names[other]+row, "is called %s for servers of kind %s", names[own]+row, kind.Name)
		}
	}
}

// A report takes what a kind of servers says of one.
type report struct {
	c    *checker
	path string // of the server
}

func (r report) Bad(row, format string, args ...any) { r.c.bad(r.at(row), format, args...) }

func (r report) OneOf(row, word string, known ...string) { r.c.oneOf(r.at(row), word, known...) }

func (r report) at(row string) string { return strings.TrimSuffix(r.path+"."+row, ".") }

// oneOf checks a word against those there are.
func (c *checker) oneOf(path, word string, known ...string) {
	switch {
	case word == "":
		c.bad(path, "is missing; there is %s", strings.Join(known, ", "))
	case !slices.Contains(known, word):
		c.bad(path, "%q is unknown%s", word, suggest(word, known))
	}
}

// token returns what reads the token of a file or variable, nil without one, and which setting names it. It is read
// each time it is used, so that a new one needs no restart; a server whose token cannot be read is down, and nothing
// else.
func (c *checker) token(
	path, name, file, variable string, hasAddress bool, address string,
) (read func() (string, error), from string) {
	set := file
	from, read = path+"."+name+"_file", c.file(file)
	if variable != "" {
		set, from, read = variable, path+"."+name+"_env", c.variable(variable)
	}
	switch {
	case set == "":
		return nil, ""
	case file != "" && variable != "":
		c.bad(path, "has both %[1]s_file and %[1]s_env", name)
		return nil, ""
	case !hasAddress:
		c.bad(from, "goes with a %s only", address)
		return nil, ""
	}
	return read, from
}

// directories completes those of a child and checks those of another machine, which are not ours.
func (c *checker) directories(path string, s *serverSetting) {
	fix := func(at, dir string) string {
		if s.URL == "" {
			return c.path(dir)
		}
		if !absolute.MatchString(dir) {
			c.bad(at, "%q must be an absolute path: it is one of that machine", dir)
		}
		return dir
	}
	if s.Cwd != "" {
		s.Cwd = fix(path+".cwd", s.Cwd)
	}
	for name, dir := range s.Projects {
		if name == "" || strings.Contains(name, "/") {
			c.bad(join(path+".projects", name), "a project needs a name without a slash")
		}
		if dir != "" { // an empty one was told already
			s.Projects[name] = fix(join(path+".projects", name), dir)
		}
	}
}

// names checks that each name belongs to one server.
func (c *checker) names() {
	owners := map[string]int{}
	for i, s := range c.s.Servers {
		for j, name := range append([]string{s.Name}, s.Aliases...) {
			at := elem("servers", i) + ".name"
			if j > 0 {
				at = elem(elem("servers", i)+".aliases", j-1)
			}
			said := strings.ToLower(name)
			if other, taken := owners[said]; taken && other != i {
				c.bad(at, "%q is already a name of %s", name, elem("servers", other))
			} else if said != "" {
				owners[said] = i
			}
		}
	}
}

// workspaces holds the directories of agents apart from what is ours. It comes when all files are known.
func (c *checker) workspaces() {
	for i, s := range c.s.Servers {
		if s.Kind != responses.Name {
			continue
		}
		if path := elem("servers", i); s.Workspace != "" {
			c.apart(path+".workspace", s.Workspace)
		}
		for j, dir := range s.Readable {
			c.apart(elem(elem("servers", i)+".readable", j), dir)
		}
	}
}

// apart holds a directory of an agent apart from the state directory, where a command that sees its socket may do what
// its user may, from the configuration file, which is obeyed, and from the files of keys and tokens.
func (c *checker) apart(path, dir string) {
	at := resolved(dir)
	if state, err := sessions.StatePath(c.env); err == nil { // else the start says so
		if state = resolved(state); within(at, state) || within(state, at) {
			c.bad(path, "must be apart from %s, where Switchboard keeps its state: what an agent runs could reach it; "+
				"set XDG_STATE_HOME to a directory elsewhere", state)
		}
	}
	for _, file := range c.ours {
		named := filepath.Join(resolved(filepath.Dir(file)), filepath.Base(file)) // it may be a link
		if within(named, at) || within(resolved(file), at) {
			c.bad(path, "must be apart from %s, which is Switchboard's own: its agent could read or change it; "+
				"name a directory that has none of Switchboard's files, such as a new one beside it", file)
			return
		}
	}
}

// resolved is where a path leads, also one of which only the beginning exists.
func resolved(path string) string {
	if at, err := filepath.EvalSymlinks(path); err == nil {
		return at
	}
	if parent := filepath.Dir(path); parent != path {
		return filepath.Join(resolved(parent), filepath.Base(path))
	}
	return path
}

// within reports whether a directory is another one or in it.
func within(inner, outer string) bool {
	rel, err := filepath.Rel(outer, inner)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}
