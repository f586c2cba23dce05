package main

import (
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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
	c.oneOf(path+".kind", s.Kind, "codex")
	c.policy(path, s)
	c.principals(path+".for", s.For)
	switch {
	case (s.URL == "") == (len(s.Command) == 0):
		c.bad(path, "needs either url or command")
	case s.URL != "":
		c.serverURL(path, s)
	default:
		c.command(path, s)
	}
	c.childEnv(path+".env", s)
	s.Token = c.token(path, s.TokenFile, s.TokenEnv, s.URL != "", "url")
	c.directories(path, s)
}

// sandboxes are the words for sandboxes, from strict to loose. Set once.
var sandboxes = []string{"read-only", "workspace-write", "danger-full-access"}

// policy checks what may be done on a server.
func (c *checker) policy(path string, s *serverSetting) {
	for _, word := range []struct {
		key, value string
		known      []string
	}{
		{"sandbox", s.Sandbox, sandboxes},
		{"approval", s.Approval, []string{"untrusted", "on-request", "never"}},
		{"ceiling", s.Ceiling, sandboxes},
		{"voice_approvals", s.VoiceApprovals, []string{"none", "low", "medium"}},
	} {
		if word.value != "" {
			c.oneOf(path+"."+word.key, word.value, word.known...)
		}
	}
	if i := slices.Index(sandboxes, s.Ceiling); i >= 0 && slices.Index(sandboxes, s.Sandbox) > i {
		c.bad(path+".sandbox", "%s is looser than the ceiling %s, so no new session could run", s.Sandbox, s.Ceiling)
	}
}

// oneOf checks a word against those there are.
func (c *checker) oneOf(path, word string, known ...string) {
	switch {
	case word == "":
		c.bad(path, "is missing; there is %s", strings.Join(known, ", "))
	case !slices.Contains(known, word):
		c.bad(path, "%q is unknown%s", word, suggest(word, known))
	}
}

func (c *checker) serverURL(path string, s *serverSetting) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Hostname() == "" || u.Fragment != "" || u.Scheme != "ws" && u.Scheme != "wss" {
		c.bad(path+".url", "must be the address of an app-server, such as ws://127.0.0.1:4500")
		return
	}
	if u.User != nil {
		c.bad(path+".url", "has a user name in it; a token belongs into token_file or token_env")
	}
	if u.Scheme == "ws" && !loopback(u.Hostname()) && !s.AllowPlaintext {
		c.bad(path+".url", "ws:// to another machine goes in the clear: use wss:// or a tunnel, or set allow_plaintext: true")
	}
	if u.Scheme == "wss" && s.AllowPlaintext {
		c.bad(path+".allow_plaintext", "goes with a ws:// address only")
	}
}

func (c *checker) command(path string, s *serverSetting) {
	if s.AllowPlaintext {
		c.bad(path+".allow_plaintext", "goes with a ws:// address only")
	}
	if strings.ContainsRune(s.Command[0], filepath.Separator) { // else it is looked up in PATH
		s.Command[0] = c.path(s.Command[0])
	}
}

// variableName matches what a variable may be called.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// childEnv checks what a child gets of our environment.
func (c *checker) childEnv(path string, s *serverSetting) {
	for i, entry := range s.Env {
		name, _, _ := strings.Cut(entry, "=")
		switch at := elem(path, i); {
		case len(s.Command) == 0:
			c.bad(at, "goes with a command only")
		case !variableName.MatchString(name):
			c.bad(at, "must be NAME, which passes a variable on, or NAME=value")
		case strings.HasPrefix(name, "SWITCHBOARD_"):
			c.bad(at, "%s is Switchboard's own, and what an agent runs could read it", name)
		}
	}
}

// token returns what reads the token of a file or variable, nil without one, and checks that it can be read
// now. It is read again each time it is used, so that a new one needs no restart. It goes with an address.
func (c *checker) token(path, file, variable string, hasAddress bool, address string) func() (string, error) {
	set, from, read := file, path+".token_file", c.file(file)
	if variable != "" {
		set, from, read = variable, path+".token_env", c.variable(variable)
	}
	switch {
	case set == "":
		return nil
	case file != "" && variable != "":
		c.bad(path, "has both token_file and token_env")
		return nil
	case !hasAddress:
		c.bad(from, "goes with a %s only", address)
		return nil
	}
	if _, err := read(); err != nil {
		c.bad(from, "%v", err)
		return nil
	}
	return read
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
