package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"switchboard/cmd/switchboard/verbs"
	"switchboard/handoff"
	"switchboard/sessions"
)

// do removes a machine from the configuration file, if it has an entry there, and has the running service forget it.
func (v removeVerb) do(ctx context.Context, o *options, env func(string) string, stdout, stderr io.Writer) error {
	file, before, after, err := v.withoutEntry(o)
	if err != nil {
		return err
	}
	if after == nil {
		return clientVerb(ctx, o, env, stdout, stderr)
	}
	if _, err := settingsOf(o, env, file, after, kinds(nil, nil)); err != nil {
		return errors.Join(fmt.Errorf("%s was left as it is, because without %s it would be wrong", file, v.Name), err)
	}
	outcome, err := rewrite(ctx, env, file, before, after)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "removed %s from %s%s\n", v.Name, file, outcome.orNext("the next start is without it"))
	if err != nil || !outcome.running {
		return err
	}
	client, err := o.client(env)
	if err != nil {
		return err
	}
	t := &verbs.Terminal{Client: *client, Out: stdout, Err: stderr, Name: "switchboard"}
	err = t.Remove(ctx, v.Name) // a machine may have joined under the entry's name
	if fault, ok := errors.AsType[*verbs.Fault](err); ok && fault.Status == 404 {
		return nil
	}
	return err
}

// withoutEntry returns the path of the file, and its text before and after removing the machine's entry. after is nil
// if there is no entry, or if --url names a service elsewhere.
func (v removeVerb) withoutEntry(o *options) (file string, before, after []byte, err error) {
	file, _ = o.configFile()
	if file == "" || v.URL != "" {
		return file, nil, nil, nil
	}
	if before, err = os.ReadFile(file); err != nil {
		return file, nil, nil, err
	}
	if _, broken := parse(before); broken == nil && entriesOf(before)[v.Name] == "" {
		return file, nil, nil, nil
	}
	after, err = dropServer(file, before, v.Name)
	return file, before, after, err
}

// dropServer removes a server from a file, and changes nothing else. Comments before the next server stay.
func dropServer(file string, text []byte, name string) ([]byte, error) {
	was := &decoder{file: file, kinds: kinds(nil, nil)}
	before := defaults()
	if was.decode(text, &before); len(was.found) > 0 {
		return nil, was.found.sorted()
	}
	lines := strings.SplitAfter(string(text), "\n")
	first, end := entryLines(text, name)
	if len(before.Servers) == 1 {
		first = slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "servers:") })
	}
	var after []byte
	if first >= 0 && first < end {
		after = []byte(strings.Join(slices.Concat(lines[:first], lines[end:]), ""))
	}
	is := &decoder{file: file, kinds: kinds(nil, nil)}
	now := defaults()
	is.decode(after, &now)
	want := before
	want.Servers = nil
	for _, s := range before.Servers {
		if s.Name != name {
			want.Servers = append(want.Servers, s)
		}
	}
	if after == nil || len(is.found) > 0 || !reflect.DeepEqual(now, want) {
		return nil, fmt.Errorf("%s is written in a way that cannot be changed; take %s out of its servers yourself", file, name)
	}
	return after, nil
}

// entryLines returns the lines of a server's entry, counted from 0: the first line, and the line after the last one.
// Both are 0 if the entry does not stand on lines of its own.
func entryLines(text []byte, name string) (first, end int) {
	parsed, err := parse(text)
	if err != nil {
		return 0, 0
	}
	last, _, block := placeOfServers(text)
	for _, doc := range parsed.Docs {
		top, _ := mapping(doc.Body)
		for _, e := range top {
			list, ok := e.Value.(*ast.SequenceNode)
			if !ok || !block || e.Key.GetToken().Value != "servers" {
				continue
			}
			for i, item := range list.Values {
				rows, _ := mapping(item)
				called := func(row *ast.MappingValueNode) bool {
					value, ok := row.Value.(*ast.StringNode)
					return ok && row.Key.GetToken().Value == "name" && value.Value == name
				}
				if !slices.ContainsFunc(rows, called) {
					continue
				}
				end = last
				if i+1 < len(list.Values) {
					next, _ := mapping(list.Values[i+1])
					end = next[0].Key.GetToken().Position.Line - 1
				}
				first = rows[0].Key.GetToken().Position.Line - 1
				lines := strings.Split(string(text), "\n")
				for end > first+1 && isComment(lines[end-1]) {
					end-- // comments before the next server are about that server
				}
				return first, end
			}
		}
	}
	return 0, 0
}

// isComment reports whether a line is empty or a comment.
func isComment(line string) bool {
	line = strings.TrimSpace(line)
	return line == "" || strings.HasPrefix(line, "#")
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
