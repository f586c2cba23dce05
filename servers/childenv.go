package servers

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// passed are the variables of ours that every child gets: a program needs them to find its files, its language and the
// network. Others may hold keys, tokens or addresses with passwords, which an agent's commands must not see. A name
// that ends in "*" is a prefix. Set once.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TERM", "LANG", "LC_*", "XDG_*", "SSL_CERT_*",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
}

// ChildEnv makes the environment of a child from ours and from the list of its entry: NAME passes a variable of ours
// on, NAME=value sets one. Settings of Switchboard are never passed on because of the list. more are patterns of
// variables that the kind passes on to its programs.
func ChildEnv(ours, listed []string, more ...string) []string {
	env := []string{} // not nil: to exec, nil means all of ours
	for _, pair := range ours {
		name, _, _ := strings.Cut(pair, "=")
		if slices.ContainsFunc(slices.Concat(passed, more), func(p string) bool { return fits(p, name) }) ||
			slices.Contains(listed, name) && !own(name) {
			env = append(env, pair)
		}
	}
	for _, pair := range listed {
		if strings.Contains(pair, "=") {
			env = append(env, pair) // the last of a name counts
		}
	}
	return env
}

// own reports whether a variable is a setting of Switchboard.
func own(name string) bool { return strings.HasPrefix(name, "SWITCHBOARD_") }

func fits(pattern, name string) bool {
	if start, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, start)
	}
	return name == pattern
}

// variableName matches names of variables.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// CheckEnv reports what is wrong in a list for [ChildEnv].
func CheckEnv(listed []string, to Report) {
	for i, entry := range listed {
		name, _, _ := strings.Cut(entry, "=")
		switch at := fmt.Sprintf("env[%d]", i); {
		case !variableName.MatchString(name):
			to.Bad(at, "must be NAME, which passes a variable on, or NAME=value")
		case own(name):
			to.Bad(at, "%s is Switchboard's own, and what an agent runs could read it", name)
		}
	}
}
