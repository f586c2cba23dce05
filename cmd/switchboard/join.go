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

	"switchboard/servers/codex"
	"switchboard/servers/joined"
	"switchboard/servers/joined/host"
	"switchboard/servers/transport"
	"switchboard/sessions"
)

type joinVerb struct {
	URL       string   `arg:"" optional:"" name:"url" help:"The Switchboard to join, as \"switchboard invite\" printed it there. Without it, goes on with the one that was joined."`
	Code      string   `arg:"" optional:"" help:"The code of the invitation: it works once, within ten minutes."`
	Service   bool     `help:"Run from now on by itself, also after a restart of this machine: as a systemd user unit, or a launchd agent."`
	Agents    []string `placeholder:"NAME,…" help:"The agents that may be used: codex, claude, opencode. Else those that are installed."`
	Dirs      []string `name:"dir" placeholder:"DIR,…" help:"The directories that they may be used in. Else all."`
	Ceiling   string   `placeholder:"SANDBOX" help:"The loosest sandbox that may run here: read-only, workspace-write or danger-full-access."`
	Stdio     bool     `help:"Serve who comes by ssh, on the standard streams, and end with them; see \"switchboard add NAME ssh:DESTINATION\". The agent goes on."`
	Chosen    bool     `hidden:"" help:"With --stdio: the first line says which agent."`
	NoAnswers bool     `help:"What agents ask here is answered here alone: a yes from elsewhere does not count."`
}

// Help shows examples.
func (joinVerb) Help() string {
	return examples("switchboard join https://bigpc.tail1234.ts.net CODE",
		"switchboard join https://bigpc.tail1234.ts.net CODE --service --ceiling workspace-write --dir ~/src",
		"switchboard join") +
		"\n\nNo port is opened here. What may be done is written to a file, which this verb names; the other side cannot " +
		"loosen it. Agents go on working when the line is lost. \"switchboard leave\" ends all of it."
}

type leaveVerb struct{}

// Help shows examples.
func (leaveVerb) Help() string { return examples("switchboard leave") }

// machineFile is the file machine.yaml, in which the owner of a machine that joined says what is allowed there.
type machineFile struct {
	Agents      []machineAgent `yaml:"agents"`
	Directories []string       `yaml:"directories"`
	Ceiling     string         `yaml:"ceiling"`
	NoAnswers   bool           `yaml:"no_answers"`
}

// machineAgent is an agent in a machineFile.
type machineAgent struct {
	Name    string   `yaml:"name"`
	Kind    string   `yaml:"kind"`
	Command []string `yaml:"command"`
	Env     []string `yaml:"env"`
	Mode    string   `yaml:"mode"`
}

// machineDir returns the directory in which a machine that joined keeps its state.
func machineDir(env func(string) string) (string, error) {
	state, err := sessions.StateDir(env)
	return filepath.Join(state, "machine"), err
}

// policyPath returns the path of the [machineFile].
func policyPath(env func(string) string) (string, error) {
	if dir := env("XDG_CONFIG_HOME"); dir != "" {
		return filepath.Join(dir, "switchboard", "machine.yaml"), nil
	}
	home := env("HOME")
	if home == "" {
		var err error
		if home, err = os.UserHomeDir(); err != nil {
			return "", err
		}
	}
	return filepath.Join(home, ".config", "switchboard", "machine.yaml"), nil
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
	d := &decoder{file: path}
	var file machineFile
	d.decode(text, &file)
	bad := func(setting, format string, args ...any) {
		at, ok := d.places[setting]
		if !ok {
			at = place{path, 1, 1}
		}
		d.add(at, format, args...)
	}
	for setting, none := range map[string]bool{
		"agents":      file.Agents != nil && len(file.Agents) == 0,
		"directories": file.Directories != nil && len(file.Directories) == 0,
	} {
		if none { // ambiguous: an empty list could mean none or all
			bad(setting, "it names none: leave it out where all may be used")
		}
	}
	for i, a := range file.Agents {
		at := elem("agents", i)
		known := slices.Contains(host.Usual(), a.Name)
		switch {
		case !joined.IsAgentName(a.Name):
			bad(at, "an agent needs a name of at most 32 of a-z 0-9 -, beginning with a letter or figure")
		case slices.ContainsFunc(p.Agents, func(other host.Setting) bool { return other.Name == a.Name }):
			bad(at, "another agent is called %s", a.Name)
		case a.Kind != "" && !slices.Contains(host.Kinds, a.Kind):
			bad(at, "kind %q is unknown%s", a.Kind, suggest(a.Kind, host.Kinds))
		case !known && (a.Kind == "" || len(a.Command) == 0) || known && a.Kind == "" && len(a.Command) > 0:
			bad(at, "%s needs a kind (%s) and a command; only %s go without", a.Name, strings.Join(host.Kinds, ", "),
				strings.Join(host.Usual(), ", "))
		case a.Mode != "" && a.Kind == "codex":
			bad(at, "a mode goes with agents of kind acp; for Codex the ceiling says what may run")
		}
		p.Agents = append(p.Agents, host.Setting(a))
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
			bad(elem("directories", i), "%q must be an absolute path", dir)
		}
		p.Dirs = append(p.Dirs, dir)
	}
	if file.Ceiling != "" && !slices.Contains(host.Ceilings, file.Ceiling) {
		bad("ceiling", "%q is unknown%s", file.Ceiling, suggest(file.Ceiling, host.Ceilings))
	}
	p.Ceiling, p.Answers = file.Ceiling, !file.NoAnswers
	if len(d.found) > 0 {
		return p, d.found.sorted()
	}
	return p, nil
}

// policyText returns the text of a new [machineFile], made of the flags.
func (j joinVerb) policyText() (string, error) {
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
	for _, a := range j.Agents {
		if !slices.Contains(host.Usual(), a) {
			return "", typed("--agents " + a + " is none of " + strings.Join(host.Usual(), ", ") + "; another one is named with its command in the file")
		}
		agents = append(agents, "{name: "+a+"}")
	}
	option("agents: ["+strings.Join(agents, ", ")+"]",
		"agents: [{name: codex}, {name: claude, env: [ANTHROPIC_API_KEY]}, {name: newer, kind: codex, command: [/opt/codex, app-server]}]"+
			"   # else those that are installed",
		len(agents) > 0)
	var dirs []string
	for _, dir := range j.Dirs {
		at, err := filepath.Abs(dir)
		if err != nil {
			return "", err
		}
		dirs = append(dirs, scalar(at))
	}
	option("directories: ["+strings.Join(dirs, ", ")+"]", "directories: [/home/me/src]   # else all", len(dirs) > 0)
	if j.Ceiling != "" && !slices.Contains(host.Ceilings, j.Ceiling) {
		return "", typed(fmt.Sprintf("--ceiling %q is unknown%s", j.Ceiling, suggest(j.Ceiling, host.Ceilings)))
	}
	option("ceiling: "+j.Ceiling, "ceiling: workspace-write   # the loosest sandbox; else any", j.Ceiling != "")
	option("no_answers: true", "no_answers: true   # a yes to what agents ask counts only here", j.NoAnswers)
	return text.String(), nil
}

// policy reads the [machineFile], which it first writes if there is none.
func (j joinVerb) policy(path string) (host.Policy, error) {
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
	case len(j.Agents)+len(j.Dirs)+len(j.Ceiling) > 0 || j.NoAnswers:
		if is, err := os.ReadFile(path); err != nil || string(is) != text {
			return host.Policy{}, fmt.Errorf("%s says already what may be done here: change it there", path)
		}
	}
	return readPolicy(path)
}

// do joins a Switchboard, or without an address connects again to the one that this machine joined before.
func (j joinVerb) do(ctx context.Context, env func(string) string, stdout, stderr io.Writer) error {
	if (j.URL == "") != (j.Code == "") {
		return typed("join takes the address and the code, as `switchboard invite` prints them, or neither")
	}
	dir, err := machineDir(env)
	if err != nil {
		return err
	}
	file, err := policyPath(env)
	if err != nil {
		return err
	}
	if j.Stdio {
		return j.stdio(ctx, dir, file, stdout, stderr)
	}
	at, there, err := host.ReadPlace(dir)
	if err != nil {
		return err
	}
	var invitation joined.Invitation
	switch {
	case j.URL == "" && !there:
		return errors.New("this machine has joined no Switchboard: `switchboard invite NAME` there prints the command for it")
	case j.URL == "":
	case there && at.URL != strings.TrimSuffix(j.URL, "/"):
		return fmt.Errorf("this machine has joined %s: `switchboard leave` ends that", at.URL)
	default:
		if invitation, err = joined.ParseInvitation(j.Code); err != nil {
			return typed(err.Error())
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
	if j.URL != "" {
		if at, err = h.Join(ctx, strings.TrimSuffix(j.URL, "/"), invitation); err != nil {
			return err
		}
		say(fmt.Sprintf("%s has joined %s. What may be done here is in %s; `switchboard leave` ends it.", at.Name, at.URL, file))
	}
	if j.Service {
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

// stdio serves a Switchboard that connects by ssh, on the standard streams. The [machineFile] holds, if there is one.
func (j joinVerb) stdio(ctx context.Context, dir, file string, stdout, stderr io.Writer) error {
	if j.URL != "" || j.Service || len(j.Agents)+len(j.Dirs)+len(j.Ceiling) > 0 || j.NoAnswers {
		return typed("--stdio goes alone: what may be done is in " + file)
	}
	policy, err := readPolicy(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := syscall.SetNonblock(0, true); err != nil { // so that closing standard input ends a read
		return err
	}
	in, wanted := os.NewFile(0, "standard input"), host.Wanted{Agent: codex.Name}
	if j.Chosen {
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

// do leaves the Switchboard that this machine joined, and ends its agents and its service.
func (leaveVerb) do(ctx context.Context, env func(string) string, stdout, stderr io.Writer) error {
	dir, err := machineDir(env)
	if err != nil {
		return err
	}
	at, there, err := host.ReadPlace(dir)
	if err != nil {
		return err
	}
	removed, err := removeUnit(ctx, env)
	if err != nil {
		return err
	}
	if !there {
		return errors.New("this machine has joined no Switchboard")
	}
	var ended string
	told := func(line string) { ended = line }
	h, err := host.TakeOver(ctx, host.Config{Dir: dir, Told: told, Log: newLog(stderr)})
	if err != nil {
		return err
	}
	defer func() { _ = h.Close() }() // the end of the process releases the lock, too
	failed := h.Leave(ctx, at)
	line := fmt.Sprintf("%s has left %s; %s", at.Name, at.URL, ended)
	if err := failed; err != nil {
		line += fmt.Sprintf("; %s was not told (%v): `switchboard remove %s` forgets it there", at.URL, err, at.Name)
	}
	if removed != "" {
		line += "; " + removed + " is gone"
	}
	_, err = fmt.Fprintln(stdout, line)
	return err
}
