package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"github.com/goccy/go-yaml/ast"

	"switchboard/cmd/switchboard/verbs"
	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/sessions"
)

// A serverList is the list of servers in the text of a configuration file. Lines are counted from 0.
type serverList struct {
	lines   []string // of the file, each with its newline
	first   int      // the line of the list's key; -1: there is no list
	end     int      // the line after the last server
	margin  string   // the indentation of the dashes
	inLines bool     // each server has lines of its own
	entries []serverEntry
}

// A serverEntry is the entry of a server.
type serverEntry struct {
	name       string
	first, end int // its lines
}

// serversIn finds the servers in the text of a file.
func serversIn(text []byte) (serverList, error) {
	l := serverList{lines: strings.SplitAfter(string(text), "\n"), first: -1, margin: "  ", inLines: true}
	l.end = len(l.lines)
	body, err := parse(text)
	top, _ := mapping(body)
	for i, row := range top {
		if row.Key.GetToken().Value != "servers" {
			continue
		}
		l.first, l.end = lineOf(row), bytes.Count(text, []byte("\n"))
		if i+1 < len(top) {
			l.end = lineOf(top[i+1])
		}
		l.read(row.Value)
	}
	return l, err
}

// read reads the entries of the list, which ends before the line l.end.
func (l *serverList) read(node ast.Node) {
	list, ok := node.(*ast.SequenceNode)
	if l.inLines = ok && !list.IsFlowStyle && list.Start != nil; !ok {
		return
	}
	if l.inLines {
		l.margin = strings.Repeat(" ", list.Start.Position.Column-1)
	}
	for _, item := range list.Values {
		rows, _ := mapping(item)
		if len(rows) == 0 {
			continue // the loader reports it
		}
		entry := serverEntry{first: lineOf(rows[0])}
		for _, row := range rows {
			if row.Key.GetToken().Value == "name" {
				entry.name, _ = textOf(row.Value)
			}
		}
		l.entries = append(l.entries, entry)
	}
	for i := range l.entries {
		e := &l.entries[i]
		if e.end = l.end; i+1 < len(l.entries) {
			e.end = l.entries[i+1].first
		}
		for e.end > e.first+1 && isComment(l.lines[e.end-1]) {
			e.end-- // comments before something are about that
		}
		if i+1 == len(l.entries) {
			l.end = e.end
		}
	}
}

// lineOf returns the line of a key.
func lineOf(row *ast.MappingValueNode) int { return row.Key.GetToken().Position.Line - 1 }

// isComment reports whether a line is empty or a comment.
func isComment(line string) bool {
	line = strings.TrimSpace(line)
	return line == "" || strings.HasPrefix(line, "#")
}

// with returns the text of the file with another server after the others, whose settings are lines.
func (l serverList) with(settings []string) []byte {
	var added strings.Builder
	at := l.end
	if l.first < 0 {
		if at = len(l.lines); len(l.lines) > 1 {
			added.WriteString("\n")
		}
		added.WriteString("servers:\n")
	}
	for i, line := range settings {
		added.WriteString(l.margin + []string{"- ", "  "}[min(i, 1)] + line + "\n")
	}
	return []byte(strings.Join(slices.Concat(l.lines[:at], []string{added.String()}, l.lines[at:]), ""))
}

// index returns the index of the entry of a server; -1: there is none.
func (l serverList) index(name string) int {
	return slices.IndexFunc(l.entries, func(e serverEntry) bool { return e.name == name })
}

// without returns the text of the file without a server; nil: it has no lines of its own.
func (l serverList) without(name string) []byte {
	i := l.index(name)
	if i < 0 || !l.inLines {
		return nil
	}
	first, end := l.entries[i].first, l.entries[i].end
	if len(l.entries) == 1 {
		first = l.first
	}
	return []byte(strings.Join(slices.Concat(l.lines[:first], l.lines[end:]), ""))
}

// decodeFile decodes the text of a file, without checking what it says.
func decodeFile(file string, text []byte) (settings, problems) {
	r, s := &reader{file: file, kinds: kinds(nil, nil), places: map[string]place{}}, defaults()
	r.decode(text, &s)
	return s, r.found.sorted()
}

// insertServer inserts a server after the others of a file, and changes nothing else: comments stay where they are.
// Problems of the server itself are left to the loader.
func insertServer(file string, text []byte, entry []string) ([]byte, error) {
	if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
		text = append(slices.Clone(text), '\n')
	}
	before, wrong := decodeFile(file, text)
	if len(wrong) > 0 {
		return nil, wrong
	}
	list, _ := serversIn(text) // it was decoded
	after := list.with(entry)
	now, _ := decodeFile(file, after)
	n := len(before.Servers)
	same := list.inLines && len(now.Servers) == n+1 && (n == 0 || reflect.DeepEqual(now.Servers[:n], before.Servers))
	if now.Servers = before.Servers; !same || !reflect.DeepEqual(now, before) {
		return nil, fmt.Errorf("%s is written in a way that cannot be added to; add this to its servers yourself:\n  - %s",
			file, strings.Join(entry, "\n    "))
	}
	return after, nil
}

// dropServer removes a server from a file, and changes nothing else. Comments before the next server stay.
func dropServer(file string, text []byte, name string) ([]byte, error) {
	want, wrong := decodeFile(file, text)
	if len(wrong) > 0 {
		return nil, wrong
	}
	list, _ := serversIn(text) // it was decoded
	after := list.without(name)
	now, wrong := decodeFile(file, after)
	want.Servers = slices.DeleteFunc(want.Servers, func(s servers.Spec) bool { return s.Name == name })
	if len(want.Servers) == 0 {
		want.Servers = nil
	}
	if after == nil || len(wrong) > 0 || !reflect.DeepEqual(now, want) {
		return nil, fmt.Errorf("%s is written in a way that cannot be changed; take %s out of its servers yourself", file, name)
	}
	return after, nil
}

// maxLinks is how many symbolic links may lead to a file, as in Linux.
const maxLinks = 40

// behindLinks follows symbolic links from a path to where the file is, or would be created.
func behindLinks(file string) (string, error) {
	for range maxLinks {
		in, name := filepath.Split(file)
		dir, err := filepath.EvalSymlinks(cmp.Or(in, ".")) // filepath.Clean would resolve ".." wrongly after a link
		if err != nil {
			return "", err
		}
		file = filepath.Join(dir, name)
		to, err := os.Readlink(file)
		if err != nil { // the file is no link, or does not exist
			return file, nil
		}
		if !filepath.IsAbs(to) {
			to = dir + string(filepath.Separator) + to
		}
		file = to
	}
	return "", fmt.Errorf("%s: too many links lead there", file)
}

// copyOwner gives a file the owner and group of another file.
func copyOwner(f *os.File, as fs.FileInfo) error {
	is, err := f.Stat()
	if err != nil {
		return err
	}
	have, _ := is.Sys().(*syscall.Stat_t)
	want, ok := as.Sys().(*syscall.Stat_t)
	if !ok || have.Uid == want.Uid && have.Gid == want.Gid {
		return nil
	}
	if err := f.Chown(int(want.Uid), int(want.Gid)); err != nil {
		return fmt.Errorf("%s belongs to somebody else, and would be yours: add to it as that user: %w", as.Name(), err)
	}
	return nil
}

// replaceFile replaces the text of a file in one step: a reader finds the old or the new text. It fails, and leaves the
// file alone, if its text is no longer before.
func replaceFile(file string, before, after []byte) error {
	target, err := behindLinks(file)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+".*") // 0600, and ours
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // fails after the rename, and need not succeed then
	_, err = f.Write(after)
	if about, missing := os.Stat(target); missing == nil {
		err = errors.Join(err, copyOwner(f, about), f.Chmod(about.Mode().Perm()))
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	now, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !bytes.Equal(now, before) {
		return fmt.Errorf("%s was changed meanwhile: try again", file)
	}
	return os.Rename(f.Name(), target)
}

// A rewriteOutcome is what a running service did with a changed configuration file.
type rewriteOutcome struct {
	running bool   // a service runs with the state directory
	text    string // for people; "" if none runs
}

// orNext returns the end of a verb's line: the outcome, or next if no service runs.
func (o rewriteOutcome) orNext(next string) string { return "; " + cmp.Or(o.text, next) }

// rewrite replaces a configuration file, and has the running service read it. If the service refuses the settings, the
// old file is restored. After any other error of the service the new file stays, because the service may have read it.
func rewrite(ctx context.Context, env func(string) string, file string, before, after []byte) (rewriteOutcome, error) {
	if err := replaceFile(file, before, after); err != nil {
		return rewriteOutcome{}, err
	}
	state, err := sessions.StatePath(env)
	if err != nil || !serving(state) {
		return rewriteOutcome{}, nil
	}
	reloaded, err := hereClient(state, "").Reload(ctx)
	fault, refused := errors.AsType[*verbs.Fault](err)
	switch {
	case err == nil:
	case !refused || fault.Code != handoff.CodeSettings:
		return rewriteOutcome{true, "whether the Switchboard that runs has taken it is not known (" +
			verbs.Plain(words(err)) + "): `switchboard reload` has it read again"}, nil
	default:
		var restored error
		if before == nil {
			restored = os.Remove(file)
		} else {
			restored = replaceFile(file, after, before)
		}
		return rewriteOutcome{}, errors.Join(fmt.Errorf("%s was left as it is: %w", file, err), restored)
	}
	text := "the Switchboard that runs has taken it"
	switch own, err := filepath.Abs(file); {
	case err != nil || reloaded.File == "":
		text = "the Switchboard that runs reads no file: start it again"
	case own != reloaded.File:
		text = "the Switchboard that runs reads " + verbs.Plain(reloaded.File)
	case len(reloaded.Restart) > 0:
		text += "; what needs a restart: " + verbs.Plain(strings.Join(reloaded.Restart, ", "))
	}
	return rewriteOutcome{true, text}, nil
}
