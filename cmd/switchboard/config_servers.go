package main

import (
	"path/filepath"
	"slices"
	"strings"

	"switchboard/servers"
	"switchboard/sessions"
)

// checkServers checks the servers, and that each name belongs to one of them.
func (s *settings) checkServers(r report) {
	principals := []string{ownerName}
	for _, k := range s.Keys {
		principals = append(principals, k.Principal)
	}
	owners := map[string]int{}
	for i := range s.Servers {
		server, row := &s.Servers[i], elem("servers", i)
		if r.places[row] != codexFlag {
			r.in(row).server(server, principals)
		}
		for j, name := range append([]string{server.Name}, server.Aliases...) {
			at := row + ".name"
			if j > 0 {
				at = elem(row+".aliases", j-1)
			}
			said := strings.ToLower(name)
			if other, taken := owners[said]; taken && other != i {
				r.Bad(at, "%q is already a name of %s", name, elem("servers", other))
			} else if said != "" {
				owners[said] = i
			}
		}
		if r.IsSet("peers") {
			r.in(row).sharedServer(server)
		}
	}
}

// server checks one server, and completes its settings.
func (r report) server(s *servers.Spec, principals []string) {
	if !plainName.MatchString(s.Name) {
		r.Bad("name", "must be a name of A-Z a-z 0-9 . _ -; other forms are aliases")
	}
	for i, alias := range s.Aliases {
		if strings.Contains(alias, "/") {
			r.Bad(elem("aliases", i), "has a slash, which stands between a machine and a project")
		}
	}
	r.OneOf("voice_approvals", s.VoiceApprovals, "none", "low", "medium")
	r.OneOf("watch", s.Watch, "none", "named", "all")
	if s.Watch == "all" && len(s.For) > 0 && !slices.Contains(s.For, ownerName) {
		r.Bad("watch", "all is watched for the owner, for whom this machine is not")
	}
	r.someOf("for", s.For, principals)
	var known []string
	for _, k := range r.kinds {
		known = append(known, k.Name)
	}
	if s.Kind == "" {
		r.Bad("kind", "is missing; there is %s", strings.Join(known, ", "))
	}
	r.OneOf("kind", s.Kind, known...)
	if s.Own != nil {
		s.Own.Check(r, r)
		s.Own.Describe(s)
	}
	s.Projects, s.Worktrees = map[string]string{}, map[string]bool{}
	for name, project := range s.Named {
		row := join("projects", name)
		if r.IsSet(join(row, "worktree")) && project.Dir == "" {
			r.Bad(row, "needs dir, its directory, beside worktree")
		}
		s.Worktrees[name] = project.Worktree
		if name == "" || strings.Contains(name, "/") {
			r.Bad(row, "a project needs a name without a slash")
		}
		s.Projects[name] = servers.CheckDir(row, project.Dir, s.Remote, r, r)
	}
}

// sharedServer checks that every instance reaches the same server, so that one can go on with work that another began.
func (r report) sharedServer(s *servers.Spec) {
	switch {
	case r.places[r.path] == codexFlag:
		r.Bad("", "does not go with peers: this Codex ends with its instance, and no other one reaches it")
	case s.Program != "":
		r.Bad("command", "does not go with peers: the program ends with its instance, and no other one reaches it; let its "+
			"machine join, or name its address")
	case s.EndsWithUs:
		r.Bad("", "does not go with peers: each instance would have an agent and files of its own")
	}
}

// apart checks that an agent's directory does not contain, and is not in, the state directory: a command that can reach
// the socket there may do what its user may. Nor may it contain the configuration file or the files of keys and tokens.
func (r report) apart(a agentDir) {
	at, from := resolved(a.dir), report{r.reader, a.path}
	if state, err := sessions.StatePath(r.env); err == nil { // the start reports the error
		if state = resolved(state); within(at, state) || within(state, at) {
			from.Bad("", "must be apart from %s, where Switchboard keeps its state: what an agent runs could reach it; "+
				"set XDG_STATE_HOME to a directory elsewhere", state)
		}
	}
	for _, file := range r.ours {
		named := filepath.Join(resolved(filepath.Dir(file)), filepath.Base(file)) // it may be a link
		if within(named, at) || within(resolved(file), at) {
			from.Bad("", "must be apart from %s, which is Switchboard's own: its agent could read or change it; "+
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
