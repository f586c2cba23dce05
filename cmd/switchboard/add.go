package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"switchboard/cmd/switchboard/cli"
	"switchboard/servers"
	"switchboard/servers/transport"
)

// adding are the flags and arguments of the verb add.
type adding struct {
	name       string
	where, set []string
	install    bool
}

// addVerb is the verb that adds a server to the configuration file, which it creates if there is none.
func addVerb(c *console) *cli.Verb {
	var a adding
	return &cli.Verb{
		Name: "add", Help: "Add a machine to switchboard.yaml.", Uses: onlyConfig,
		Args: []cli.Arg{
			{Name: "name", Into: &a.name, Help: "What you call the machine."},
			{Name: "where", Into: &a.where, Help: "The address of its agent server, ws:// or wss:// of a codex app-server, " +
				"unix:PATH of its socket on this machine, ssh:me@mini.local of another machine with Codex, or with the agent of " +
				"kind acp whose program follows, http:// or https:// of an API like OpenAI's; or the program that is one, such as " +
				"codex app-server or claude-agent-acp."},
		},
		Flags: []cli.Flag{
			{Name: "install", Into: &a.install, Help: "For ssh: copy this program there first, as ~/.local/bin/switchboard; its " +
				"system and processor must be the same."},
			{Name: "set", Value: "SETTING=VALUE", Into: &a.set,
				Help: "A setting of the machine, as under servers in the file; may be given again."},
		},
		Examples: []string{"switchboard add bigpc ws://127.0.0.1:4500", "switchboard add laptop -- codex app-server",
			"switchboard add box unix:/run/codex.sock", "switchboard add mini ssh:me@mini.local --install",
			"switchboard add studio ssh:me@studio.local claude-agent-acp --set cwd=/home/me/src",
			"switchboard add bigpc ws://127.0.0.1:4500 --set cwd=/home/me/src --set 'aliases=[big pc]' --set 'projects={api: " +
				"/home/me/src/api}'",
			"switchboard add helper https://api.openai.com/v1 --set model=gpt-5.5 --set workspace=notes --set key_env=VOICE_KEY"},
		Run: func(ctx context.Context) error { return c.add(ctx, a) },
	}
}

// add adds a server to the configuration file. The file stays as it is if the result would not be valid.
func (c *console) add(ctx context.Context, a adding) error {
	named, _ := c.configFile()
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
	s, err := settingsOf(&c.options, c.env, file, after, kinds(nil, nil))
	if err != nil {
		return errors.Join(fmt.Errorf("%s was left as it is, because with %s it would be wrong", file, a.name), err)
	}
	if err := a.check(ctx, s.Servers, c.stdout); err != nil {
		return err
	}
	outcome, err := rewrite(ctx, c.env, file, before, after)
	if err != nil {
		return err
	}
	next := "`switchboard doctor` says whether it is reached"
	if len(s.Servers) == 1 {
		next = "the simulated machines are gone now; " + next
	}
	return c.say("added %s to %s%s", a.name, file, outcome.orNext(next))
}

// check connects to a machine that is reached by ssh before it is added, and looks for a program on this machine. Other
// machines are not checked here.
func (a adding) check(ctx context.Context, all []servers.Spec, stdout io.Writer) error {
	i := slices.IndexFunc(all, func(s servers.Spec) bool { return s.Name == a.name })
	if i >= 0 {
		if way, ok := all[i].Way.(transport.RemoteWay); ok {
			return checkSSH(ctx, all[i], way, a.install, stdout)
		}
		if program := all[i].Program; program != "" && !installed(program) {
			return cli.Mistyped("there is no program %s on this machine", program)
		}
	}
	if a.install {
		return cli.Mistyped("--install goes with an ssh: address")
	}
	return nil
}

// entry returns the server as lines of the file, without indentation. The first kind that takes what was typed decides
// which settings it goes into.
func (a adding) entry(kinds []servers.Kind) ([]string, error) {
	lines := []string{"name: " + scalar(a.name)}
	chosen := ""
	for _, set := range a.set {
		if name, ok := strings.CutPrefix(set, "kind="); ok {
			chosen = name
		}
	}
	if slices.ContainsFunc(a.where, func(word string) bool { return word == "--set" || strings.HasPrefix(word, "--set=") }) {
		return nil, cli.Mistyped("--set stands before the --: what comes after it is the command of %s", a.name)
	}
	kind, rows := a.taken(kinds, chosen)
	if rows == nil {
		return nil, a.nobodyTakes(kinds)
	}
	if chosen == "" {
		lines = append(lines, "kind: "+kind)
	}
	for _, row := range rows {
		text := scalar(row.Text)
		if row.List != nil {
			text = "[" + scalars(row.List) + "]"
		}
		lines = append(lines, row.Name+": "+text)
	}
	for _, set := range a.set {
		name, value, ok := strings.Cut(set, "=")
		if !ok || name == "" || value == "" || strings.ContainsAny(name, ": \n") {
			return nil, cli.Mistyped("--set %s is not SETTING=VALUE", set)
		}
		if !strings.ContainsAny(value[:1], "[{") && value != "true" && value != "false" {
			value = scalar(value)
		}
		lines = append(lines, name+": "+value)
	}
	return lines, nil
}

// taken returns the kind that takes what was typed, and its settings; nil: none does. chosen is the kind that --set
// names, or "".
func (a adding) taken(kinds []servers.Kind, chosen string) (kind string, rows []servers.Row) {
	alone := slices.ContainsFunc(kinds, a.findsItThere)
	for _, k := range kinds {
		if k.Takes != nil && !alone && (chosen == "" || chosen == k.Name) {
			if rows := k.Takes(a.where, chosen != ""); rows != nil {
				return k.Name, rows
			}
		}
	}
	if len(a.where) == 1 && strings.Contains(a.where[0], "://") {
		return kinds[0].Name, []servers.Row{{Name: "url", Text: a.where[0]}} // the loader says what is wrong with it
	}
	return "", nil
}

// findsItThere reports whether what was typed is an address and the command of a kind that takes only the address.
func (a adding) findsItThere(k servers.Kind) bool {
	return k.Takes != nil && len(a.where) > 1 && k.Takes(a.where, false) == nil && k.Takes(a.where[:1], false) != nil &&
		k.Takes(a.where[1:], false) != nil
}

// nobodyTakes returns the error for what no kind takes.
func (a adding) nobodyTakes(kinds []servers.Kind) error {
	var choices []string
	for _, k := range kinds {
		switch {
		case k.Takes == nil:
		case k.Takes(a.where[:1], false) != nil:
			return cli.Mistyped("an address stands alone: %s is too much", strings.Join(a.where[1:], " "))
		case k.Takes(a.where, true) != nil:
			choices = append(choices, "--set kind="+k.Name)
		}
	}
	if len(a.where) == 1 && !installed(a.where[0]) {
		return cli.Mistyped("%s is no address, as ws://bigpc:4500, unix:PATH, ssh:bigpc and https://api.openai.com/v1 are, "+
			"and no program on this machine", a.where[0])
	}
	return cli.Mistyped("what %s speaks is not known: say it with %s", strings.Join(a.where, " "),
		strings.Join(choices, " or "))
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
