package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"switchboard/servers"
	"switchboard/servers/acp"
	"switchboard/servers/codex"
)

type addVerb struct {
	Name    string   `arg:"" help:"What you call the machine."`
	Where   []string `arg:"" help:"The address of its agent server, ws:// or wss:// of a codex app-server, unix:PATH of its socket on this machine, ssh:me@mini.local of another machine with Codex, or with the agent of kind acp whose program follows, http:// or https:// of an API like OpenAI's; or the program that is one, such as codex app-server or claude-agent-acp."`
	Install bool     `help:"For ssh: copy this program there first, as ~/.local/bin/switchboard; its system and processor must be the same."`
	Set     []string `sep:"none" placeholder:"SETTING=VALUE" help:"A setting of the machine, as under servers in the file; may be given again."`
}

// Help shows examples.
func (addVerb) Help() string {
	return examples("switchboard add bigpc ws://127.0.0.1:4500", "switchboard add laptop -- codex app-server",
		"switchboard add box unix:/run/codex.sock", "switchboard add mini ssh:me@mini.local --install",
		"switchboard add studio ssh:me@studio.local claude-agent-acp --set cwd=/home/me/src",
		"switchboard add bigpc ws://127.0.0.1:4500 --set cwd=/home/me/src --set 'aliases=[big pc]' --set 'projects={api: "+
			"/home/me/src/api}'",
		"switchboard add helper https://api.openai.com/v1 --set model=gpt-5.5 --set workspace=notes --set key_env=VOICE_KEY")
}

// do adds a server to the configuration file, which it creates if there is none. The file stays as it is if the result
// would not be valid.
func (a addVerb) do(ctx context.Context, o *options, env func(string) string, stdout io.Writer) error {
	named, _ := o.configFile()
	file := cmp.Or(named, defaultFile)
	before, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	entry, err := a.entry(kinds(nil, nil))
	if err != nil {
		return err
	}
	after, err := insertServer(file, before, entry)
	if err != nil {
		return err
	}
	s, err := settingsOf(o, env, file, after, kinds(nil, nil))
	if err != nil {
		return errors.Join(fmt.Errorf("%s was left as it is, because with %s it would be wrong", file, a.Name), err)
	}
	if err := a.check(ctx, s.Servers, stdout); err != nil {
		return err
	}
	outcome, err := rewrite(ctx, env, file, before, after)
	if err != nil {
		return err
	}
	next := "`switchboard doctor` says whether it is reached"
	if len(s.Servers) == 1 {
		next = "the simulated machines are gone now; " + next
	}
	_, err = fmt.Fprintf(stdout, "added %s to %s%s\n", a.Name, file, outcome.orNext(next))
	return err
}

// check connects to a machine that is reached by ssh before it is added, and looks for a program on this machine. Other
// machines are not checked here.
func (a addVerb) check(ctx context.Context, all []servers.Spec, stdout io.Writer) error {
	i := slices.IndexFunc(all, func(s servers.Spec) bool { return s.Name == a.Name })
	if i >= 0 {
		if way, ok := overSSH(all[i]); ok {
			return checkSSH(ctx, all[i], way, a.Install, stdout)
		}
		if program := all[i].Program; program != "" && !installed(program) {
			return typed("there is no program " + program + " on this machine")
		}
	}
	if a.Install {
		return typed("--install goes with an ssh: address")
	}
	return nil
}

// entry returns the server as lines of the file, without indentation. The first kind that takes the address decides
// which setting it goes into.
func (a addVerb) entry(kinds []servers.Kind) ([]string, error) {
	lines := []string{"name: " + scalar(a.Name)}
	add := func(setting, text string) { lines = append(lines, setting+": "+text) }
	where, kind, row, value := a.Where[0], codex.Name, "", ""
	setKind, agent := "", "" // the kind that --set names, and the command of an agent at the other end of an ssh
	for _, set := range a.Set {
		if name, ok := strings.CutPrefix(set, "kind="); ok {
			setKind, kind = name, name
		}
	}
	for _, k := range kinds {
		if row != "" || k.Takes == nil || setKind != "" && k.Name != setKind {
			continue
		}
		if to, text, ok := k.Takes(where); ok {
			kind, row, value = k.Name, to, text
		}
	}
	if row == "" && strings.Contains(where, "://") {
		row, value = "url", where // the loader says what is wrong with it, with its line
	}
	switch {
	case slices.ContainsFunc(a.Where,
		func(word string) bool { return word == "--set" || strings.HasPrefix(word, "--set=") }):
		return nil, typed("--set stands before the --: what comes after it is the command of " + a.Name)
	case row == "ssh" && len(a.Where) > 1 && cmp.Or(setKind, kindOfCommand(a.Where[1:])) != codex.Name:
		kind, value, agent = acp.Name, scalar(value), "["+scalars(a.Where[1:])+"]"
	case row != "" && len(a.Where) > 1:
		return nil, typed("an address stands alone: " + strings.Join(a.Where[1:], " ") + " is too much")
	case row != "":
		value = scalar(value)
	case len(a.Where) == 1 && setKind == "" && !installed(where):
		return nil, typed(where + " is no address, as ws://bigpc:4500, unix:PATH, ssh:bigpc and https://api.openai.com/v1 are, and no " +
			"program on this machine")
	default:
		row, value, kind = "command", "["+scalars(a.Where)+"]", cmp.Or(setKind, kindOfCommand(a.Where))
	}
	if kind == "" {
		return nil, typed("what " + strings.Join(a.Where, " ") + " speaks is not known: say it with --set kind=codex or --set kind=acp")
	}
	if setKind == "" {
		add("kind", kind)
	}
	add(row, value)
	if agent != "" {
		add("command", agent)
	}
	for _, set := range a.Set {
		name, value, ok := strings.Cut(set, "=")
		if !ok || name == "" || value == "" || strings.ContainsAny(name, ": \n") {
			return nil, typed("--set " + set + " is not SETTING=VALUE")
		}
		if !strings.ContainsAny(value[:1], "[{") && value != "true" && value != "false" {
			value = scalar(value)
		}
		add(name, value)
	}
	return lines, nil
}

// kindOfCommand returns the kind of the agent that a command starts, by its words; "": they do not tell.
func kindOfCommand(command []string) string {
	for _, word := range command {
		switch name := filepath.Base(word); {
		case name == "app-server":
			return codex.Name
		case name == "acp", strings.HasSuffix(name, "-acp"):
			return acp.Name
		}
	}
	return ""
}

// installed reports whether a word names a program on this machine.
func installed(word string) bool {
	_, err := exec.LookPath(word)
	return err == nil
}

// scalars writes words as YAML, for a list in brackets.
func scalars(words []string) string {
	var all []string
	for _, word := range words {
		all = append(all, scalar(word))
	}
	return strings.Join(all, ", ")
}

// scalar writes text as YAML, in quotes where it needs them.
func scalar(text string) string {
	if strings.ContainsAny(text, ",[]{}\n") { // these would end an unquoted word in a list in brackets
		return fmt.Sprintf("%q", text)
	}
	data, err := yaml.Marshal(text)
	if err != nil {
		return fmt.Sprintf("%q", text)
	}
	return strings.TrimSpace(string(data))
}

// insertServer inserts a server after the others of a file, and changes nothing else: comments stay where they are.
func insertServer(file string, text []byte, entry []string) ([]byte, error) {
	was := &decoder{file: file, kinds: kinds(nil, nil)}
	before := defaults()
	if was.decode(text, &before); len(was.found) > 0 {
		return nil, was.found.sorted()
	}
	if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
		text = append(slices.Clone(text), '\n')
	}
	at, margin, block := placeOfServers(text)
	lines := strings.SplitAfter(string(text), "\n")
	var added strings.Builder
	if at == 0 {
		at = len(lines)
		if len(text) > 0 {
			added.WriteString("\n")
		}
		added.WriteString("servers:\n")
		margin = "  "
	}
	for i, line := range entry {
		mark := "  "
		if i == 0 {
			mark = "- "
		}
		added.WriteString(margin + mark + line + "\n")
	}
	after := []byte(strings.Join(slices.Concat(lines[:at], []string{added.String()}, lines[at:]), ""))
	is := &decoder{file: file, kinds: kinds(nil, nil)}
	now := defaults()
	is.decode(after, &now)
	n := len(before.Servers)
	// Only the other settings are compared here: the loader reports problems of the new server later, with its line.
	same := block && len(now.Servers) == n+1 && (n == 0 || reflect.DeepEqual(now.Servers[:n], before.Servers))
	now.Servers = before.Servers
	if !same || !reflect.DeepEqual(now, before) {
		return nil, fmt.Errorf("%s is written in a way that cannot be added to; add this to its servers yourself:\n  - %s",
			file, strings.Join(entry, "\n    "))
	}
	return after, nil
}

// placeOfServers returns the line after the last server, counted from 0 (0: there are no servers yet), and the
// indentation of their dashes. block is false where lines cannot be inserted: the file is not YAML, or the list of
// servers is not written as lines with dashes.
func placeOfServers(text []byte) (line int, margin string, block bool) {
	parsed, err := parse(text)
	if err != nil {
		return 0, "", false
	}
	for _, doc := range parsed.Docs {
		entries, _ := mapping(doc.Body)
		for i, e := range entries {
			if e.Key.GetToken().Value != "servers" {
				continue
			}
			list, ok := e.Value.(*ast.SequenceNode)
			if !ok || list.IsFlowStyle || list.Start == nil {
				return 0, "", false
			}
			end := bytes.Count(text, []byte("\n"))
			if i+1 < len(entries) {
				end = entries[i+1].Key.GetToken().Position.Line - 1
			}
			lines := strings.Split(string(text), "\n")
			for end > 0 && isComment(lines[end-1]) {
				end-- // comments before the next setting are about that setting
			}
			return end, strings.Repeat(" ", list.Start.Position.Column-1), true
		}
	}
	return 0, "", true
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
