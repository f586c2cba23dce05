package main

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"switchboard/cmd/switchboard/cli"
	"switchboard/handoff"
	"switchboard/servers"
)

// A place is where a setting was set: a line of the file, a flag or a variable.
type place struct {
	name      string // file, flag or variable
	line, col int    // from 1; 0 outside a file
}

// A problem is one mistake in the configuration, in words.
type problem struct {
	at   place
	text string
}

// problems are all mistakes of a configuration. With them, the process ends with exit code 2.
type problems []problem

// Error returns a line for each problem: "file:line:col: message" or "--flag: message".
func (ps problems) Error() string {
	lines := make([]string, 0, len(ps))
	for _, p := range ps {
		at := p.at.name
		if p.at.line > 0 {
			at = fmt.Sprintf("%s:%d:%d", p.at.name, p.at.line, p.at.col)
		}
		lines = append(lines, at+": "+p.text)
	}
	return strings.Join(lines, "\n")
}

// sorted returns the problems in the order of the file (by name, line and column), without duplicates.
func (ps problems) sorted() problems {
	slices.SortStableFunc(ps, func(a, b problem) int {
		return cmp.Or(cmp.Compare(a.at.name, b.at.name), cmp.Compare(a.at.line, b.at.line), cmp.Compare(a.at.col, b.at.col))
	})
	return slices.Compact(ps)
}

// suggest returns "; did you mean …?" if a known word is close to word, else a list of the known words.
func suggest(word string, known []string) string {
	best, least := "", max(2, len(word)/3)+1
	for _, k := range known {
		if n := cli.Distance(strings.ToLower(word), k); n < least {
			best, least = k, n
		}
	}
	if best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return "; there is " + strings.Join(known, ", ")
}

// A reader decodes a file into settings, and checks them after file, environment and flags were merged. It goes on
// after each problem.
type reader struct {
	file   string
	kinds  []servers.Kind // the known kinds of servers
	env    func(string) string
	dir    string           // absolute; relative paths of the file begin here
	places map[string]place // where each setting was set, by its path
	ours   []string         // files that no agent may reach: the configuration, keys and tokens
	agents []agentDir
	found  problems
}

// An agentDir is a directory that an agent reads, and the path of its setting.
type agentDir struct{ path, dir string }

func (r *reader) add(at place, format string, args ...any) {
	r.found = append(r.found, problem{at, fmt.Sprintf(format, args...)})
}

// A report checks the settings of one struct, which are named by their rows; "" is the struct itself. It implements
// [servers.Report] and [servers.Files].
type report struct {
	*reader
	path string // of the struct
}

// in returns the report of the struct in a row.
func (r report) in(row string) report { return report{r.reader, join(r.path, row)} }

// Bad records a problem of a setting. The place is where the setting was set, or else the nearest setting around it.
func (r report) Bad(row, format string, args ...any) {
	path := join(r.path, row)
	at, ok := r.places[path]
	for parent := path; !ok && parent != ""; {
		parent = parent[:max(strings.LastIndexAny(parent, ".["), 0)]
		at, ok = r.places[parent]
	}
	text := fmt.Sprintf(format, args...)
	if !ok {
		at = place{name: path}
	}
	if at.name != path { // otherwise the place names the setting already
		text = label(path) + ": " + text
	}
	r.found = append(r.found, problem{at, text})
}

// OneOf checks that a word, if there is one, is one of the known ones.
func (r report) OneOf(row, word string, known ...string) {
	if word != "" && !slices.Contains(known, word) {
		r.Bad(row, "%q is unknown%s", word, suggest(word, known))
	}
}

// someOf checks that all words of a list are known. An empty list is a problem, too: it is probably a mistake.
func (r report) someOf(row string, words, known []string) {
	if words != nil && len(words) == 0 {
		r.Bad(row, "names nothing; leave it out for all")
	}
	for i, word := range words {
		if r.OneOf(elem(row, i), word, known...); word == "" {
			r.Bad(elem(row, i), "is missing; there is %s", strings.Join(known, ", "))
		}
	}
}

// IsSet reports whether the file, a flag or the environment sets a row.
func (r report) IsSet(row string) bool {
	_, set := r.places[join(r.path, row)]
	return set
}

// fill sets each limit that no row sets to that of other.
func (r report) fill(limits *handoff.Limits, other handoff.Limits) {
	usual := maps.Collect(rows(reflect.ValueOf(other)))
	for row, limit := range rows(reflect.ValueOf(limits).Elem()) {
		if !r.IsSet(row) {
			limit.Set(usual[row])
		}
	}
}

// Path makes a path of the file absolute.
func (r report) Path(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(r.dir, path)
}

// Apart notes a directory that an agent reads.
func (r report) Apart(row, dir string) { r.agents = append(r.agents, agentDir{join(r.path, row), dir}) }

// Credential returns the credential that a file or a variable holds; see [report.secret].
func (r report) Credential(name, file, variable string) servers.Credential {
	read, _ := r.secret(name, file, variable)
	return servers.Credential{Name: name, Read: read}
}

// secret returns a function that reads a secret from its file or variable, and the row that names it; nil: neither is
// set. The secret is read at each use, so that a new one needs no restart. A server whose token cannot be read is down;
// others are not affected. The file belongs to those that no agent may reach.
func (r report) secret(name, file, variable string) (read func() (string, error), row string) {
	switch {
	case file != "" && variable != "":
		r.Bad("", "has both %[1]s_file and %[1]s_env", name)
	case variable != "":
		return func() (string, error) {
			if text := strings.TrimSpace(r.env(variable)); text != "" {
				return text, nil
			}
			return "", fmt.Errorf("the environment has no %s", variable)
		}, name + "_env"
	case file != "":
		path := r.Path(file)
		r.ours = append(r.ours, path)
		return func() (string, error) { return readSecret(path) }, name + "_file"
	}
	return nil, ""
}
