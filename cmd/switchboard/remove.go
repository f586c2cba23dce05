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

// do takes a machine out of the configuration file, if it stands there, and has the running service forget it.
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
	told, err := rewrite(ctx, env, file, before, after)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "removed %s from %s%s\n", v.Name, file, told.orNext("the next start is without it"))
	if err != nil || !told.runs {
		return err
	}
	client, err := o.client(env)
	if err != nil {
		return err
	}
	t := &verbs.Terminal{Client: *client, Out: stdout, Err: stderr, Name: "switchboard"}
	err = t.Remove(ctx, v.Name) // the machine that the entry waited for
	if fault, ok := errors.AsType[*verbs.Fault](err); ok && fault.Status == 404 {
		return nil
	}
	return err
}

// withoutEntry returns the file, and its text before and after the entry of the machine is taken out; after is nil
// where it has none, or where another service is meant than that of the file.
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

// dropServer takes a server out of a file, and changes nothing else in it. What stands before the next one stays.
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
	left := before
	left.Servers = nil
	for _, s := range before.Servers {
		if s.Name != name {
			left.Servers = append(left.Servers, s)
		}
	}
	if after == nil || len(is.found) > 0 || !reflect.DeepEqual(now, left) {
		return nil, fmt.Errorf("%s is written in a way that cannot be changed; take %s out of its servers yourself", file, name)
	}
	return after, nil
}

// entryLines finds the lines of a server that is written on lines of its own, counted from 0: the first one, and that
// behind the last.
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
				for end > first+1 && comments(lines[end-1]) {
					end-- // about the next one
				}
				return first, end
			}
		}
	}
	return 0, 0
}

// comments reports whether a line is empty or a comment.
func comments(line string) bool {
	line = strings.TrimSpace(line)
	return line == "" || strings.HasPrefix(line, "#")
}

// A taken is what a running service made of a file that was changed.
type taken struct {
	runs bool   // one does
	text string // what it says
}

// orNext is what a verb says of it; next is what is so where no service runs.
func (t taken) orNext(next string) string { return "; " + cmp.Or(t.text, next) }

// rewrite replaces a configuration file, and has the service that runs read it. Where that refuses the settings, the
// file is put back. What goes wrong otherwise says nothing about them: the service may have taken them.
func rewrite(ctx context.Context, env func(string) string, file string, before, after []byte) (taken, error) {
	if err := replaceFile(file, before, after); err != nil {
		return taken{}, err
	}
	state, err := sessions.StatePath(env)
	if err != nil || !serving(state) {
		return taken{}, nil
	}
	told, err := hereClient(state, "").Reload(ctx)
	fault, refused := errors.AsType[*verbs.Fault](err)
	switch {
	case err == nil:
	case !refused || fault.Code != handoff.CodeSettings:
		return taken{true, "whether the Switchboard that runs has taken it is not known (" + verbs.Plain(words(err)) +
			"): `switchboard reload` has it read again"}, nil
	default:
		var back error
		if before == nil {
			back = os.Remove(file)
		} else {
			back = replaceFile(file, after, before)
		}
		return taken{}, errors.Join(fmt.Errorf("%s was left as it is: %w", file, err), back)
	}
	text := "the Switchboard that runs has taken it"
	switch own, err := filepath.Abs(file); {
	case err != nil || told.File == "":
		text = "the Switchboard that runs reads no file: start it again"
	case own != told.File:
		text = "the Switchboard that runs reads " + verbs.Plain(told.File)
	case len(told.Restart) > 0:
		text += "; what needs a restart: " + verbs.Plain(strings.Join(told.Restart, ", "))
	}
	return taken{true, text}, nil
}
