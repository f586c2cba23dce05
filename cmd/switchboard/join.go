package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"switchboard/cmd/switchboard/cli"
	"switchboard/servers/codex"
	"switchboard/servers/joined"
	"switchboard/servers/joined/host"
	"switchboard/servers/transport"
	"switchboard/sessions"
)

// otherMachine is the heading of the verbs for another machine.
const otherMachine = "On another machine"

// joinFlags are the flags and arguments of the verb join.
type joinFlags struct {
	url, code, ceiling                string
	agents, dirs                      []string
	service, stdio, chosen, noAnswers bool
}

// joinVerb is the verb that joins a Switchboard elsewhere.
func joinVerb(c *console) *cli.Verb {
	var j joinFlags
	return &cli.Verb{
		Name: "join", Group: otherMachine, Uses: onlyConfig,
		Help: "Join a Switchboard elsewhere with this machine and its agents.",
		Args: []cli.Arg{
			{Name: "url", Into: &j.url, Optional: true, Help: "The Switchboard to join, as \"switchboard invite\" printed it " +
				"there. Without it, goes on with the one that was joined."},
			{Name: "code", Into: &j.code, Optional: true,
				Help: "The code of the invitation: it works once, within ten minutes."},
		},
		Flags: []cli.Flag{
			{Name: "service", Into: &j.service, Help: "Run from now on by itself, also after a restart of this machine: as a " +
				"systemd user unit, or a launchd agent."},
			{Name: "agents", Value: "NAME,…", Into: &j.agents, Commas: true,
				Help: "The agents that may be used: codex, claude, opencode. Else those that are installed."},
			{Name: "dir", Value: "DIR,…", Into: &j.dirs, Commas: true, Help: "The directories that they may be used in. Else all."},
			{Name: "ceiling", Value: "SANDBOX", Into: &j.ceiling,
				Help: "The loosest sandbox that may run here: read-only, workspace-write or danger-full-access."},
			{Name: "stdio", Into: &j.stdio, Help: "Serve who comes by ssh, on the standard streams, and end with them; see " +
				"\"switchboard add NAME ssh:DESTINATION\". The agent goes on."},
			{Name: "chosen", Into: &j.chosen, Hidden: true, Help: "With --stdio: the first line says which agent."},
			{Name: "no-answers", Into: &j.noAnswers,
				Help: "What agents ask here is answered here alone: a yes from elsewhere does not count."},
		},
		Examples: []string{"switchboard join https://bigpc.tail1234.ts.net CODE",
			"switchboard join https://bigpc.tail1234.ts.net CODE --service --ceiling workspace-write --dir ~/src",
			"switchboard join"},
		More: "No port is opened here. What may be done is written to a file, which this verb names; the other side cannot " +
			"loosen it. Agents go on working when the line is lost. \"switchboard leave\" ends all of it.",
		Run: func(ctx context.Context) error { return j.do(ctx, c.env, c.stdout, c.stderr) },
	}
}

// machineFile is the file machine.yaml, in which the owner of a machine that joined says what is allowed there.
type machineFile struct {
	Agents      []host.Setting `yaml:"agents"`
	Directories []string       `yaml:"directories"`
	Ceiling     string         `yaml:"ceiling"`
	NoAnswers   bool           `yaml:"no_answers"`
}

// machineDir returns the directory in which a machine that joined keeps its state.
func machineDir(env func(string) string) (string, error) {
	state, err := sessions.StateDir(env)
	return filepath.Join(state, "machine"), err
}

// configHome returns the directory in which this user's programs are configured, and the home of the user.
func configHome(env func(string) string) (dir, home string, err error) {
	if home = env("HOME"); home == "" {
		home, err = os.UserHomeDir()
	}
	if dir = env("XDG_CONFIG_HOME"); dir != "" {
		return dir, home, nil
	}
	return filepath.Join(home, ".config"), home, err
}

// policyPath returns the path of the [machineFile].
func policyPath(env func(string) string) (string, error) {
	dir, _, err := configHome(env)
	return filepath.Join(dir, "switchboard", "machine.yaml"), err
}

// readPolicy reads what the owner of this machine allows. Its error has all problems of the file. If there is no file,
// it returns a policy that allows everything, with the error [fs.ErrNotExist].
func readPolicy(path string) (host.Policy, error) {
	p := host.Policy{Answers: true}
	text, err := os.ReadFile(path)
	if err != nil {
		p.AnyAgent = errors.Is(err, fs.ErrNotExist)
		return p, err
	}
	r := report{reader: &reader{file: path, places: map[string]place{}}}
	var file machineFile
	r.decode(text, &file)
	for row, none := range map[string]bool{
		"agents":      file.Agents != nil && len(file.Agents) == 0,
		"directories": file.Directories != nil && len(file.Directories) == 0,
	} {
		if none { // ambiguous: an empty list could mean none or all
			r.Bad(row, "names none; leave it out where all may be used")
		}
	}
	p.Agents = file.Agents
	for i, a := range p.Agents {
		at := elem("agents", i)
		known := slices.Contains(host.Usual(), a.Name)
		switch {
		case !joined.IsAgentName(a.Name):
			r.Bad(at, "an agent needs a name of at most 32 of a-z 0-9 -, beginning with a letter or figure")
		case slices.ContainsFunc(p.Agents[:i], func(other host.Setting) bool { return other.Name == a.Name }):
			r.Bad(at, "another agent is called %s", a.Name)
		case !known && (a.Kind == "" || len(a.Command) == 0) || known && a.Kind == "" && len(a.Command) > 0:
			r.Bad(at, "%s needs a kind (%s) and a command; only %s go without", a.Name, strings.Join(host.Kinds, ", "),
				strings.Join(host.Usual(), ", "))
		case a.Mode != "" && a.Kind == codex.Name:
			r.Bad(at, "a mode goes with agents of kind acp; for Codex the ceiling says what may run")
		}
		r.OneOf(at+".kind", a.Kind, host.Kinds...)
	}
	for i, dir := range file.Directories {
		if rest, ok := strings.CutPrefix(dir, "~/"); ok {
			home, err := os.UserHomeDir()
			if err != nil {
				return p, err
			}
			dir = filepath.Join(home, rest)
		}
		if !filepath.IsAbs(dir) {
			r.Bad(elem("directories", i), "%q must be an absolute path", dir)
		}
		p.Dirs = append(p.Dirs, dir)
	}
	r.OneOf("ceiling", file.Ceiling, host.Ceilings...)
	p.Ceiling, p.Answers = file.Ceiling, !file.NoAnswers
	if len(r.found) > 0 {
		return p, r.found.sorted()
	}
	return p, nil
}

// policyText returns the text of a new [machineFile], made of the flags.
func (j joinFlags) policyText() (string, error) {
	var text strings.Builder
	text.WriteString("# What a Switchboard elsewhere may do on this machine. It cannot loosen this; `switchboard join` reads it " +
		"when it starts.\n")
	option := func(line, unset string, set bool) {
		if !set {
			line = "# " + unset
		}
		text.WriteString(line + "\n")
	}
	var agents []string
	for _, a := range j.agents {
		if !slices.Contains(host.Usual(), a) {
			return "", cli.Mistyped("--agents %s is none of %s; another one is named with its command in the file", a,
				strings.Join(host.Usual(), ", "))
		}
		agents = append(agents, "{name: "+a+"}")
	}
	option("agents: ["+strings.Join(agents, ", ")+"]",
		"agents: [{name: codex}, {name: claude, env: [ANTHROPIC_API_KEY]}, {name: newer, kind: codex, command: [/opt/codex, app-server]}]"+
			"   # else those that are installed",
		len(agents) > 0)
	var dirs []string
	for _, dir := range j.dirs {
		at, err := filepath.Abs(dir)
		if err != nil {
			return "", err
		}
		dirs = append(dirs, scalar(at))
	}
	option("directories: ["+strings.Join(dirs, ", ")+"]", "directories: [/home/me/src]   # else all", len(dirs) > 0)
	if j.ceiling != "" && !slices.Contains(host.Ceilings, j.ceiling) {
		return "", cli.Mistyped("--ceiling %q is unknown%s", j.ceiling, suggest(j.ceiling, host.Ceilings))
	}
	option("ceiling: "+j.ceiling, "ceiling: workspace-write   # the loosest sandbox; else any", j.ceiling != "")
	option("no_answers: true", "no_answers: true   # a yes to what agents ask counts only here", j.noAnswers)
	return text.String(), nil
}

// policy reads the [machineFile], which it first writes if there is none.
func (j joinFlags) policy(path string) (host.Policy, error) {
	text, err := j.policyText()
	if err != nil {
		return host.Policy{}, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return host.Policy{}, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		_, err = f.WriteString(text)
		if err = errors.Join(err, f.Close()); err != nil {
			return host.Policy{}, err
		}
	case !errors.Is(err, fs.ErrExist):
		return host.Policy{}, err
	case len(j.agents)+len(j.dirs)+len(j.ceiling) > 0 || j.noAnswers:
		if is, err := os.ReadFile(path); err != nil || string(is) != text {
			return host.Policy{}, fmt.Errorf("%s says already what may be done here: change it there", path)
		}
	}
	return readPolicy(path)
}

// do joins a Switchboard, or without an address connects again to the one that this machine joined before.
func (j joinFlags) do(ctx context.Context, env func(string) string, stdout, stderr io.Writer) error {
	if (j.url == "") != (j.code == "") {
		return cli.Mistyped("join takes the address and the code, as `switchboard invite` prints them, or neither")
	}
	dir, err := machineDir(env)
	if err != nil {
		return err
	}
	file, err := policyPath(env)
	if err != nil {
		return err
	}
	if j.stdio {
		return j.serveStdio(ctx, dir, file, stdout, stderr)
	}
	at, there, err := host.ReadPlace(dir)
	if err != nil {
		return err
	}
	var invitation joined.Invitation
	switch {
	case j.url == "" && !there:
		return errors.New("this machine has joined no Switchboard: `switchboard invite NAME` there prints the command for it")
	case j.url == "":
	case there && at.URL != strings.TrimSuffix(j.url, "/"):
		return fmt.Errorf("this machine has joined %s: `switchboard leave` ends that", at.URL)
	default:
		if invitation, err = joined.ParseInvitation(j.code); err != nil {
			return cli.Mistake(err.Error())
		}
	}
	policy, err := j.policy(file)
	if err != nil {
		return err
	}
	say := func(line string) { _, _ = fmt.Fprintln(stdout, line) } // losing a line does no harm
	log := newLog(stderr)
	h, err := host.Open(host.Config{Dir: dir, Policy: policy, Version: thisBuild().String(), Told: say, Log: log})
	if err != nil {
		return err
	}
	opened := true
	defer func() {
		if opened {
			_ = h.Close() // the end of the process releases the lock, too
		}
	}()
	if j.url != "" {
		if at, err = h.Join(ctx, strings.TrimSuffix(j.url, "/"), invitation); err != nil {
			return err
		}
		say(fmt.Sprintf("%s has joined %s. What may be done here is in %s; `switchboard leave` ends it.", at.Name, at.URL, file))
	}
	if j.service {
		opened = false
		if err := h.Close(); err != nil { // the service opens it itself
			return err
		}
		return installUnit(ctx, env, say)
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP) // when its terminal closes; the agents go on
	defer stop()
	return h.Run(ctx, at)
}

// serveStdio serves a Switchboard that connects by ssh, on the standard streams. The [machineFile] holds, if there is
// one.
func (j joinFlags) serveStdio(ctx context.Context, dir, file string, stdout, stderr io.Writer) error {
	if j.url != "" || j.service || len(j.agents)+len(j.dirs)+len(j.ceiling) > 0 || j.noAnswers {
		return cli.Mistyped("--stdio goes alone: what may be done is in %s", file)
	}
	policy, err := readPolicy(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := syscall.SetNonblock(0, true); err != nil { // so that closing standard input ends a read
		return err
	}
	in, wanted := os.NewFile(0, "standard input"), host.Wanted{Agent: codex.Name}
	if j.chosen {
		chosen, err := readChosen(in)
		if err != nil {
			return err
		}
		wanted = host.Wanted{Command: chosen.Command, Apart: chosen.Apart}
	}
	config := host.Config{Dir: dir, Policy: policy, Version: thisBuild().String(), Log: newLog(stderr)}
	return host.Pipe(ctx, config, wanted, in,
		stdout, func() error {
			_, err := fmt.Fprintln(stdout, transport.Mark)
			return err
		})
}

// maxChosen bounds the line that names the agent, in bytes.
const maxChosen = 16 << 10

// readChosen reads the line that names the agent, and no byte after it.
func readChosen(in io.Reader) (chosen transport.Chosen, err error) {
	var line []byte
	for one := make([]byte, 1); ; line = append(line, one[0]) {
		if _, err := io.ReadFull(in, one); err != nil {
			return chosen, err
		}
		if one[0] == '\n' {
			return chosen, json.Unmarshal(line, &chosen)
		}
		if len(line) >= maxChosen {
			return chosen, errors.New("the agent that is asked for has too long a command")
		}
	}
}
