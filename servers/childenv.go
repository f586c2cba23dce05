package servers

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// passed are the variables of ours that a child gets without being asked: what a program needs to find its
// files, its language and the network. Whatever else ours hold (keys, tokens, addresses with passwords) is
// not for the commands that an agent runs. One that ends in "*" is a beginning. Set once.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TERM", "LANG", "LC_*", "XDG_*", "SSL_CERT_*",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
}

// ChildEnv makes the environment of a child out of ours and what its entry lists: NAME passes a variable of ours on,
// NAME=value sets one. What is Switchboard's own is never passed on. A kind may pass more on to its own programs, as
// patterns.
func ChildEnv(ours, listed []string, more ...string) []string {
	env := []string{} // not nil: that would be all of ours
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

// variableName matches what a variable may be called.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// CheckEnv reports what is wrong in what is listed for [ChildEnv].
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
