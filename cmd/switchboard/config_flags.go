package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
)

// options are the command line and the environment, as kong reads them. A flag with a setting tag stands for
// that setting of the file and takes its help from there.
type options struct {
	Config   *string `env:"SWITCHBOARD_CONFIG" placeholder:"FILE" help:"configuration; switchboard.yaml if it is there"`
	Listen   *string `env:"SWITCHBOARD_LISTEN" placeholder:"ADDRESS" setting:"listen" help:"${listen}"`
	Redis    *string `env:"REDIS_URL" placeholder:"URL" setting:"redis" help:"${redis}"`
	ModelURL *string `name:"model-url" env:"SWITCHBOARD_MODEL_URL" placeholder:"URL" setting:"model.url" help:"${model_url}"`
	Model    *string `env:"SWITCHBOARD_MODEL" placeholder:"NAME" setting:"model.name" help:"${model_name}"`
	Codex    bool    `help:"add a codex app-server on this machine as server local"`

	Version kong.VersionFlag `help:"say which version this is"`

	Serve  struct{} `cmd:"" default:"1" help:"Run Switchboard. This is the default."`
	Init   struct{} `cmd:"" help:"Write a commented switchboard.yaml to begin with."`
	Add    addVerb  `cmd:"" help:"Add a machine to switchboard.yaml."`
	Doctor struct{} `cmd:"" help:"Check everything that Switchboard needs, and say what to fix, in order."`
	Login  struct {
		Name string `arg:"" optional:"" help:"Whose login it is: a principal of keys. Usually the owner's."`
	} `cmd:"" help:"Print a link that logs a browser in: once, within ten minutes."`
	Key struct {
		Name   string `arg:"" help:"Who the holder is."`
		Revoke bool   `help:"Revoke the keys that were made for this name instead."`
	} `cmd:"" help:"Make a key for programs and print it; only its SHA-256 is kept."`
	Join   joinVerb  `cmd:"" group:"On another machine" help:"Join a Switchboard elsewhere with this machine and its agents."`
	Leave  leaveVerb `cmd:"" group:"On another machine" help:"Leave the Switchboard that was joined."`
	Backup struct {
		File string `arg:"" help:"Where the copy goes; nothing may be there yet."`
	} `cmd:"" help:"Copy what Switchboard remembers to a file, also while it runs."`
	Audit    auditFlags   `cmd:"" help:"Check that nobody has changed the audit of decisions, and show it."`
	Simulate simulateVerb `cmd:"" help:"Run the simulated voice and machines alone, for other people's tests."`
	Health   struct{}     `cmd:"" help:"Say whether the running Switchboard is healthy, for containers."`

	serviceVerbs `group:"Of the running Switchboard"`

	verb  string
	asks  asker           // the verb, if it speaks to a running service; else nil
	given map[string]bool // names of the flags on the command line
}

// serviceVerbs are those that speak to a running service.
type serviceVerbs struct {
	Status   statusVerb   `cmd:"" help:"Say what runs, what waits for you, and what ended lately."`
	Servers  serversVerb  `cmd:"" aliases:"machines" help:"Show your machines and their state."`
	Logs     logsVerb     `cmd:"" help:"Show what was logged of a machine."`
	Sessions sessionsVerb `cmd:"" help:"Show sessions, the newest first."`
	Read     readVerb     `cmd:"" help:"Show what was said in a session."`
	Work     workVerb     `cmd:"" help:"Show work: what runs, waits or is paused, and what ended lately."`
	Handoff  handoffVerb  `cmd:"" help:"Give work to a machine, and follow it to its end."`
	Stop     stopVerb     `cmd:"" help:"Stop work."`
	Invite   inviteVerb   `cmd:"" help:"Print the command with which another machine joins."`
	Remove   removeVerb   `cmd:"" help:"Take a machine out of switchboard.yaml, or forget one that joined."`
	Reload   reloadVerb   `cmd:"" help:"Have the settings read again, without a restart."`
	Rename   renameVerb   `cmd:"" help:"Give a machine that joined another name."`
	MCP      mcpVerb      `cmd:"" name:"mcp" help:"Give an agent on this machine your machines, over standard input and output."`
	Apps     appsVerb     `cmd:"" help:"Show programs elsewhere that were let in, or disconnect one."`
	Answer   answerVerb   `cmd:"" help:"Show the agents' questions, or answer one."`
}

// parseOptions reads the command line. done reports that help or the version was asked for, and printed.
func parseOptions(args []string, stdout, stderr io.Writer) (o *options, done bool, err error) {
	o = &options{given: map[string]bool{}}
	vars := kong.Vars{"version": thisBuild().String()}
	for _, row := range settingRows() {
		if row.flag == "" { // kong searches each help text for each variable, so only those that are used are given
			continue
		}
		vars[strings.NewReplacer(".", "_", "[]", "").Replace(row.path)] = row.doc
	}
	app, err := kong.New(o, kong.Name("switchboard"), kong.Description(about), vars,
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}), kong.Writers(stdout, stderr),
		kong.KindMapper(reflect.String, kong.MapperFunc(readText)), kong.KindMapper(reflect.Int, kong.MapperFunc(readNumber)),
		kong.KindMapper(reflect.Float64, kong.MapperFunc(readNumber)), kong.KindMapper(reflect.Bool, switchMapper{}),
		kong.Exit(func(int) { done = true }))
	if err != nil {
		return nil, false, err
	}
	if len(args) > 0 {
		hideFlags(app, args[0])
	}
	parsed, err := app.Parse(args)
	if done {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, problems{{place{name: "switchboard"}, mistyped(err, args)}}
	}
	o.verb, _, _ = strings.Cut(parsed.Command(), " ")
	o.asks, _ = parsed.Selected().Target.Interface().(asker)
	for _, step := range parsed.Path {
		if step.Flag != nil {
			o.given[step.Flag.Name] = true
		}
	}
	return o, false, nil
}

// mistyped words an error of the command line, and says where the right usage is described.
func mistyped(err error, args []string) string {
	text, help := err.Error(), "--help tells what there is"
	at, ok := errors.AsType[*kong.ParseError](err)
	if ok && at.Context.Selected() != nil {
		help = "`switchboard " + at.Context.Selected().Name + " --help` tells how"
	}
	if missing, ok := strings.CutPrefix(text, `expected "`); ok {
		text = "needs " + strings.TrimSuffix(missing, `"`)
	}
	if what, ok := strings.CutPrefix(text, "unexpected argument "); ok {
		if text = what + " is too much"; len(args) > 0 && strings.HasPrefix(what, args[0]) {
			text, help = "there is no verb "+what, "--help tells what there is"
		}
	}
	if flag, what, ok := strings.Cut(text, ": "); ok && strings.HasPrefix(flag, "-") {
		if strings.HasPrefix(what, "missing value") { // a flag that may be given again
			what = errNoValue.Error()
		}
		text = flag + " " + what
	}
	return text + "; " + help
}

// errNoValue says that a flag lacks its value.
var errNoValue = errors.New("needs a value")

// readText decodes the text of a flag or an argument. It implements [kong.MapperFunc].
func readText(ctx *kong.DecodeContext, target reflect.Value) error {
	if !ctx.Scan.Peek().IsValue() {
		return errNoValue
	}
	target.SetString(ctx.Scan.Pop().String())
	return nil
}

// readNumber decodes the number of a flag. It implements [kong.MapperFunc].
func readNumber(ctx *kong.DecodeContext, target reflect.Value) error {
	if !ctx.Scan.Peek().IsValue() {
		return errNoValue
	}
	text := ctx.Scan.Pop().String()
	if target.Kind() == reflect.Int {
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("needs a whole number, not %q", text)
		}
		target.SetInt(int64(n))
		return nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return fmt.Errorf("needs a number, not %q", text)
	}
	target.SetFloat(n)
	return nil
}

// switchMapper decodes a flag without a value, or with =true or =false.
type switchMapper struct{}

// Decode implements [kong.Mapper].
func (switchMapper) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	on := true
	if ctx.Scan.Peek().Type == kong.FlagValueToken {
		text := ctx.Scan.Pop().String()
		if on = text == "true"; !on && text != "false" {
			return fmt.Errorf("stands alone, or is true or false, not %q", text)
		}
	}
	target.SetBool(on)
	return nil
}

// IsBool implements [kong.BoolMapper].
func (switchMapper) IsBool() bool { return true }

// hideFlags hides flags in the help of a verb that does not use them.
func hideFlags(app *kong.Kong, verb string) {
	var names []string
	switch verb {
	case "init", "add", "login", "key", "audit", "mcp", "join", "leave":
		names = append(names, "listen", "redis", "model-url", "model", "codex", "version")
	case "simulate":
		names = append(names, "config", "listen", "redis", "model-url", "model", "codex", "version")
	default:
		i := slices.IndexFunc(app.Model.Children, func(n *kong.Node) bool {
			_, asks := n.Target.Interface().(asker)
			return asks && (n.Name == verb || slices.Contains(n.Aliases, verb))
		})
		if i >= 0 {
			names = append(names, "redis", "model-url", "model", "codex", "version")
		}
	}
	for _, f := range app.Model.Flags {
		f.Hidden = f.Hidden || slices.Contains(names, f.Name)
	}
}

// An override is a flag or an environment variable that was set. An empty variable counts as unset; an empty flag
// clears the setting of the file.
type override struct {
	path, text string
	at         place
}

// overrides returns the settings that flags and environment override.
func (o *options) overrides() []override {
	var all []override
	for field, value := range reflect.ValueOf(*o).Fields() {
		if path := field.Tag.Get("setting"); path != "" {
			if text, at, ok := o.text(field, value); ok {
				all = append(all, override{path, text, at})
			}
		}
	}
	return all
}

// text returns the value of a field and the flag or variable that set it, and false if none did.
func (o *options) text(field reflect.StructField, v reflect.Value) (string, place, bool) {
	text, _ := v.Interface().(*string)
	flag := cmp.Or(field.Tag.Get("name"), strings.ToLower(field.Name))
	switch {
	case text == nil:
		return "", place{}, false
	case o.given[flag]:
		return *text, place{name: "--" + flag}, true
	default:
		return *text, place{name: field.Tag.Get("env")}, *text != ""
	}
}

// configFile returns the file to read, "" for none.
func (o *options) configFile() (file string, at place) {
	field, _ := reflect.TypeFor[options]().FieldByName("Config")
	if file, at, ok := o.text(field, reflect.ValueOf(o.Config)); ok {
		return file, at
	}
	if _, err := os.Stat(defaultFile); err != nil {
		return "", place{}
	}
	return defaultFile, place{name: defaultFile}
}
