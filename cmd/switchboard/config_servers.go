package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"switchboard/servers"
	"switchboard/sessions"
)

// server checks one agent server.
func (c *checker) server(path string, s *servers.Spec) {
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
	principals := []string{ownerName}
	for _, k := range c.s.Keys {
		principals = append(principals, k.Principal)
	}
	c.someOf(path+".for", s.For, principals)
	var known []string
	for _, k := range c.kinds {
		known = append(known, k.Name)
	}
	c.oneOf(path+".kind", s.Kind, known...)
	r := report{c, path}
	if s.Own != nil {
		s.Own.Check(r, r)
		s.Own.Describe(s)
	}
	for name, dir := range s.Projects {
		row := join("projects", name)
		if name == "" || strings.Contains(name, "/") {
			r.Bad(row, "a project needs a name without a slash")
		}
		s.Projects[name] = servers.CheckDir(row, dir, s.Remote, r, r)
	}
}

// A report lets a kind of servers check the settings of one server. It implements [servers.Report] and [servers.Files].
type report struct {
	c    *checker
	path string // of the server
}

func (r report) at(row string) string { return strings.TrimSuffix(r.path+"."+row, ".") }

func (r report) Bad(row, format string, args ...any) { r.c.bad(r.at(row), format, args...) }

func (r report) OneOf(row, word string, known ...string) { r.c.oneOf(r.at(row), word, known...) }

func (r report) IsSet(row string) bool { return r.c.isSet(r.at(row)) }

func (r report) Path(path string) string { return r.c.path(path) }

func (r report) Credential(name, file, variable string) servers.Credential {
	read, _ := r.c.token(r.path, name, file, variable)
	return servers.Credential{Name: name, Read: read}
}

func (r report) Apart(row, dir string) { r.c.agents = append(r.c.agents, agentDir{r.at(row), dir}) }

// An agentDir is a directory that an agent reads, and the path of its setting.
type agentDir struct{ path, dir string }

// oneOf checks that a word is one of the known ones.
func (c *checker) oneOf(path, word string, known ...string) {
	switch {
	case word == "":
		c.bad(path, "is missing; there is %s", strings.Join(known, ", "))
	case !slices.Contains(known, word):
		c.bad(path, "%q is unknown%s", word, suggest(word, known))
	}
}

// token returns a function that reads the token from its file or variable (nil: neither is set), and the path of the
// setting that names it. The token is read at each use, so that a new one needs no restart. A server whose token cannot
// be read is down; others are not affected.
func (c *checker) token(path, name, file, variable string) (read func() (string, error), from string) {
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
	}
	return read, from
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

// apart checks that an agent's directory does not contain, and is not in, the state directory: a command that can reach
// the socket there may do what its user may. Nor may it contain the configuration file or the files of keys and tokens.
func (c *checker) apart(path, dir string) {
	at := resolved(dir)
	if state, err := sessions.StatePath(c.env); err == nil { // the start reports the error
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

// resolved resolves the symbolic links of a path, of which only the beginning need exist.
func resolved(path string) string {
	if at, err := filepath.EvalSymlinks(path); err == nil {
		return at
	}
	if parent := filepath.Dir(path); parent != path {
		return filepath.Join(resolved(parent), filepath.Base(path))
	}
	return path
}

// within reports whether inner is outer itself or a path inside it.
func within(inner, outer string) bool {
	rel, err := filepath.Rel(outer, inner)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// suggest returns "; did you mean …?" if a known word is close to word, else a list of the known words.
func suggest(word string, known []string) string {
	best, least := "", max(2, len(word)/3)+1
	for _, k := range known {
		if n := distance(strings.ToLower(word), k); n < least {
			best, least = k, n
		}
	}
	if best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return "; there is " + strings.Join(known, ", ")
}

// distance returns the edit distance of two words: how many bytes to add, drop or change to make one of the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
