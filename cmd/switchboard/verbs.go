package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"switchboard/cmd/switchboard/verbs"
	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/sessions"
)

// reachFlags say which running Switchboard a verb connects to, and with which key.
type reachFlags struct {
	URL     string `name:"url" placeholder:"URL" help:"A Switchboard elsewhere, such as https://bigpc.tail1234.ts.net; it takes a key. Else the one that you run on this machine, which takes none."`
	KeyFile string `name:"key-file" placeholder:"FILE" help:"File with the key to speak as; else SWITCHBOARD_KEY, if it is set."`
	JSON    bool   `name:"json" help:"Print the JSON of the API."`
}

func (f reachFlags) reach() reachFlags { return f }

// An asker is a verb that speaks to a running service.
type asker interface {
	reach() reachFlags
	ask(ctx context.Context, t *verbs.Terminal) error
}

type serversVerb struct {
	reachFlags
	Watch bool `short:"w" help:"Show them again whenever something changes, until Ctrl-C."`
}

// Help shows examples.
func (serversVerb) Help() string {
	return examples("switchboard servers", "switchboard machines --watch", "switchboard servers --json",
		"switchboard servers --url https://bigpc.tail1234.ts.net --key-file ~/.switchboard.key")
}

func (v serversVerb) ask(ctx context.Context, t *verbs.Terminal) error {
	if v.Watch {
		return t.WatchServers(ctx)
	}
	return t.Servers(ctx)
}

type logsVerb struct {
	reachFlags
	Server string `arg:"" name:"machine" help:"The machine."`
}

// Help shows examples.
func (logsVerb) Help() string {
	return examples("switchboard logs bigpc") +
		"\n\nThese are the newest 100 lines since Switchboard was started. They are the owner's, as adding machines is."
}

func (v logsVerb) ask(ctx context.Context, t *verbs.Terminal) error { return t.Logs(ctx, v.Server) }

type sessionsVerb struct {
	reachFlags
	Server string `arg:"" optional:"" name:"machine" help:"The machine to ask; else all."`
	Query  string `short:"q" placeholder:"WORDS" help:"Words of the title or of what was asked first."`
	Limit  int    `placeholder:"N" help:"How many to show, the newest; 10 without it."`
}

// Help shows examples.
func (sessionsVerb) Help() string {
	return examples("switchboard sessions", "switchboard sessions bigpc --query auth", "switchboard sessions --limit 500")
}

func (v sessionsVerb) ask(ctx context.Context, t *verbs.Terminal) error {
	return t.Sessions(ctx, v.Server, v.Query, v.Limit)
}

type readVerb struct {
	reachFlags
	Server  string `arg:"" name:"machine" help:"The machine."`
	Session string `arg:"" help:"The session: its title, as \"switchboard sessions\" shows it, or the beginning of its id."`
	Limit   int    `placeholder:"N" help:"How many lines to show, the newest."`
}

// Help shows examples.
func (readVerb) Help() string {
	return examples(`switchboard read bigpc "auth refactor"`, `switchboard read bigpc auth --limit 200 | less`)
}

func (v readVerb) ask(ctx context.Context, t *verbs.Terminal) error {
	return t.Read(ctx, v.Server, v.Session, v.Limit)
}

type handoffVerb struct {
	reachFlags
	Server string   `arg:"" optional:"" name:"machine" help:"The machine, or machine/project."`
	Prompt []string `arg:"" optional:"" help:"What to do; - reads it from standard input."`
	Thread string   `short:"t" placeholder:"SESSION" help:"The session to go on with: its name, title or id; or new. Else the one that you last used there."`
	Next   bool     `xor:"mode" help:"After the current work there, not into it."`
	Aside  bool     `xor:"mode" help:"Beside it, as a side question that is not kept."`
	Key    string   `name:"idempotency-key" placeholder:"NAME" help:"Your own name for this work: given again with the same words, it is followed and not begun twice."`
	Follow string   `xor:"what" placeholder:"ID" help:"Show work that was given before; see \"switchboard work\"."`
	Stop   string   `xor:"what" placeholder:"ID" help:"Stop it, as \"switchboard stop\" does."`
}

// Help shows examples.
func (handoffVerb) Help() string {
	return examples("switchboard handoff bigpc run the tests",
		`switchboard handoff bigpc --thread "auth refactor" "fix what fails"`,
		"switchboard handoff laptop/api - < task.md > answer.md", "switchboard handoff --follow 2m2vm344-1") +
		"\n\nWhat the agent says goes to standard output, the rest to standard error. Exit codes: 0 it is done, 1 it " +
		"failed, " +
		"2 what was typed is wrong, 3 it was stopped, 4 it was not begun, 5 nobody knows, 130 you left with Ctrl-C, and " +
		"the work goes on."
}

type workVerb struct {
	reachFlags
	Server string `arg:"" optional:"" name:"machine" help:"The machine whose work to show; else all."`
	Limit  int    `default:"10" placeholder:"N" help:"How much finished work to show."`
	Failed bool   `help:"Only what failed, crashed or was lost on the way, or whose tests fail."`
}

// Help shows examples.
func (workVerb) Help() string {
	return examples("switchboard work", "switchboard work bigpc --limit 50", "switchboard work --failed") +
		"\n\nWork is named by its id, by the beginning of it, or by the number at its end: \"switchboard stop 3\" stops " +
		"2m2vm344-3."
}

func (v workVerb) ask(ctx context.Context, t *verbs.Terminal) error {
	return t.Work(ctx, v.Server, v.Limit, v.Failed)
}

type statusVerb struct {
	reachFlags
}

// Help shows examples.
func (statusVerb) Help() string { return examples("switchboard status", "switchboard status --json") }

func (statusVerb) ask(ctx context.Context, t *verbs.Terminal) error { return t.Status(ctx) }

type appsVerb struct {
	reachFlags
	Revoke string `placeholder:"ID" help:"Disconnect this one instead."`
}

// Help shows examples.
func (appsVerb) Help() string {
	return examples("switchboard apps", "switchboard apps --revoke k7s2mfaq3xbd") +
		"\n\nPrograms such as ChatGPT are let in on the page, where mcp.oauth is true. Work that one gave goes on when it " +
		"is disconnected."
}

func (v appsVerb) ask(ctx context.Context, t *verbs.Terminal) error {
	if v.Revoke != "" {
		return t.RevokeApp(ctx, v.Revoke)
	}
	return t.Apps(ctx)
}

type stopVerb struct {
	reachFlags
	What string `arg:"" optional:"" name:"work" help:"The work, as \"switchboard work\" names it, or the machine that it runs on. Else what runs."`
	All  bool   `help:"All of it, where several run."`
}

// Help shows examples.
func (stopVerb) Help() string {
	return examples("switchboard stop", "switchboard stop bigpc", "switchboard stop 2m2vm344-1",
		"switchboard stop --all") + "\n\nWhere several run it asks which, and in a script it stops none. " +
		"What waits behind the work in its session is paused; paused work that is stopped is dropped."
}

func (v stopVerb) ask(ctx context.Context, t *verbs.Terminal) error {
	return t.Stop(ctx, v.What, v.All)
}

type inviteVerb struct {
	reachFlags
	Name string `arg:"" help:"What you will call the machine."`
}

// Help shows examples.
func (inviteVerb) Help() string {
	return examples("switchboard invite mini") +
		"\n\nThe command that it prints works once, within ten minutes, on any machine that reaches this one. With a key, it " +
		"takes one of the owner that says approve: all."
}

func (v inviteVerb) ask(ctx context.Context, t *verbs.Terminal) error { return t.Invite(ctx, v.Name) }

type removeVerb struct {
	reachFlags
	Name string `arg:"" name:"machine" help:"The machine. Its agents go on there, and it does not come back."`
}

// Help shows examples.
func (removeVerb) Help() string { return examples("switchboard remove mini") }

func (v removeVerb) ask(ctx context.Context, t *verbs.Terminal) error { return t.Remove(ctx, v.Name) }

type reloadVerb struct {
	reachFlags
}

// Help shows examples.
func (reloadVerb) Help() string {
	return examples("switchboard reload", "kill -HUP PID   # the same") +
		"\n\nMachines, keys and limits take effect, all or none of them, and work goes on. What needs a restart is named."
}

func (reloadVerb) ask(ctx context.Context, t *verbs.Terminal) error { return t.ShowReload(ctx) }

type renameVerb struct {
	reachFlags
	Name string `arg:"" name:"machine" help:"The machine."`
	To   string `arg:"" name:"name" help:"What you will call it. Its former name still means it."`
}

// Help shows examples.
func (renameVerb) Help() string { return examples("switchboard rename mini studio") }

func (v renameVerb) ask(ctx context.Context, t *verbs.Terminal) error {
	return t.Rename(ctx, v.Name, v.To)
}

type answerVerb struct {
	reachFlags
	Words []string `arg:"" optional:"" name:"answer" help:"The question, unless only one waits, and yes, no, stop or your words. Without any, shows what waits."`
}

// Help shows examples.
func (answerVerb) Help() string {
	return examples("switchboard answer", "switchboard answer q1 yes", `switchboard answer q2 "version 2.4, today"`) +
		"\n\nAt a terminal it shows the question once more before it allows anything; a script names the question by its " +
		"id, such as q1-7f3a90c2. " +
		"With a key, it takes one that says approve: all. What is risky takes a tap on the page, or the first word of the " +
		"command typed at a terminal of the user who runs Switchboard."
}

func (v answerVerb) ask(ctx context.Context, t *verbs.Terminal) error { return t.Answer(ctx, v.Words) }

// Exit codes of work, beside those of the program.
const (
	exitStopped  = 3
	exitNotBegun = 4
	exitUnknown  = 5
	exitLeft     = 130 // by Ctrl-C, as shells have it
)

// examples returns the end of the help of a verb.
func examples(lines ...string) string { return "Examples:\n\n  " + strings.Join(lines, "\n\n  ") }

// errLeft is the error of a verb that was interrupted before it was done.
var errLeft = errors.New("left")

// clientVerb runs a verb against a running service.
func clientVerb(ctx context.Context, o *options, env func(string) string, stdout, stderr io.Writer) error {
	client, err := o.client(env)
	if err != nil {
		return err
	}
	t := &verbs.Terminal{
		Client: *client, Out: stdout, Err: stderr, JSON: o.asks.reach().JSON, Live: terminal(stdout), Name: "switchboard",
	}
	if terminal(os.Stdin) && terminal(stderr) {
		t.Ask = func(ctx context.Context, prompt string) (string, error) { return ask(ctx, os.Stdin, stderr, prompt) }
	}
	err = o.asks.ask(ctx, t)
	if _, ended := errors.AsType[outcomeError](err); err != nil && !ended && ctx.Err() != nil {
		return errLeft
	}
	return err
}

// An outcomeError says that work ended without a result. The verb has printed the outcome.
type outcomeError handoff.Outcome

// Error names the outcome.
func (e outcomeError) Error() string { return "the work has no result: " + string(e) }

// exitCode returns the exit code for the outcome.
func (e outcomeError) exitCode() int {
	switch handoff.Outcome(e) {
	case handoff.OutcomeInterrupted:
		return exitStopped
	case handoff.OutcomeCancelled:
		return exitNotBegun
	case handoff.OutcomeUnknown:
		return exitUnknown
	}
	return exitFailed
}

// ask gives work, follows it or stops it.
func (h handoffVerb) ask(ctx context.Context, t *verbs.Terminal) error {
	var outcome handoff.Outcome
	var err error
	switch named := cmp.Or(h.Follow, h.Stop) != ""; {
	case named && h.Server != "":
		return typed("--follow and --stop take the id of work alone")
	case h.Stop != "":
		return t.Stop(ctx, h.Stop, false)
	case h.Follow != "":
		outcome, err = t.Follow(ctx, h.Follow)
	case h.Server == "" || len(h.Prompt) == 0:
		return typed("needs a machine and what to do there, as in: switchboard handoff bigpc run the tests")
	case !verbs.Sendable(h.Key):
		return typed(fmt.Sprintf("--idempotency-key %q is no name: it begins or ends with a space, or has a control "+
			"character in it", h.Key))
	default:
		order := verbs.Order{Server: h.Server, Thread: h.Thread, Key: h.Key}
		if order.Prompt, err = h.words(ctx, os.Stdin); err != nil {
			return err
		}
		if h.Next {
			order.Mode = "next"
		} else if h.Aside {
			order.Mode = "aside"
		}
		outcome, err = t.Give(ctx, order)
	}
	if err == nil && outcome != handoff.OutcomeResult {
		err = outcomeError(outcome)
	}
	if fault, refused := errors.AsType[*verbs.Fault](err); refused && fault.Code.Unbegun() {
		_, _ = fmt.Fprintln(t.Err, "switchboard:", verbs.Plain(fault.Error())) // for people
		err = outcomeError(handoff.OutcomeCancelled)
	}
	return err
}

// words returns the prompt, as it was typed or read from standard input.
func (h handoffVerb) words(ctx context.Context, in io.Reader) (string, error) {
	if !slices.Equal(h.Prompt, []string{"-"}) {
		return strings.Join(h.Prompt, " "), nil
	}
	text, err := typedIn(ctx, func() (string, error) {
		text, err := io.ReadAll(io.LimitReader(in, handoff.MaxPrompt+1)) // the service refuses what is too long
		return string(text), err
	})
	if err == nil && strings.TrimSpace(text) == "" {
		err = typed("there is nothing on standard input")
	}
	return text, err
}

// typedIn reads what somebody types, until ctx ends. A read at a terminal cannot be cancelled: it then goes on until
// the program ends.
func typedIn(ctx context.Context, read func() (string, error)) (string, error) {
	var text string
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		text, err = read()
	}()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case <-done:
		return text, err
	}
}

// ask prints a prompt and returns the line that somebody types; "" if the input ends.
func ask(ctx context.Context, in io.Reader, out io.Writer, prompt string) (string, error) {
	_, _ = io.WriteString(out, prompt) // without a prompt nobody answers
	text, err := typedIn(ctx, func() (string, error) { return bufio.NewReader(in).ReadString('\n') })
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return strings.TrimSpace(text), err
}

// typed returns the error for a mistake in the command line.
func typed(text string) error { return problems{{place{name: "switchboard"}, text}} }

// client returns a client of the service that --url names, or else of the one that runs with this state directory, or
// else of one at the address of the settings.
func (o *options) client(env func(string) string) (*verbs.Client, error) {
	flags := o.asks.reach()
	key := strings.TrimSpace(env(ownerKey))
	if flags.KeyFile != "" {
		var err error
		if key, err = readSecret(flags.KeyFile); err != nil {
			return nil, err
		}
	}
	if !verbs.Sendable(key) {
		return nil, fmt.Errorf("the key in %s is no key: it has control characters in it", cmp.Or(flags.KeyFile, ownerKey))
	}
	if flags.URL != "" {
		return dialAt(flags.URL, key)
	}
	state, err := sessions.StatePath(env)
	if err != nil {
		return nil, err
	}
	if serving(state) {
		return hereClient(state, key), nil
	}
	if key == "" {
		return nil, fmt.Errorf("no Switchboard of yours runs on this machine (%s): start it with `switchboard`, or name "+
			"another with --url and its key with --key-file", state)
	}
	s, err := loadSettings(o, env)
	if err != nil {
		return nil, err
	}
	return dialAt(baseOf(s.Listen, s.TLS != tlsSettings{}), key)
}

// serving reports whether a service runs with a state directory that belongs to this user. A socket in another user's
// directory must not be sent a key.
func serving(state string) bool {
	if !sessions.OwnPath(state) {
		return false
	}
	c, err := net.DialTimeout("unix", filepath.Join(state, controlFile), controlWithin)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

// dialAt returns a client of the service at an address. It refuses to send the key unencrypted to another machine.
func dialAt(address, key string) (*verbs.Client, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("--url %s is not the address of a Switchboard, such as https://bigpc.tail1234.ts.net",
			cmp.Or(address, `""`))
	case u.Scheme == "http" && !servers.Loopback(u.Hostname()):
		return nil, fmt.Errorf("the key would go to %s in the clear: use https://, or a tunnel to this machine", u.Host)
	case key == "":
		return nil, fmt.Errorf("%s takes a key: make one there with `switchboard key NAME`, and give it here with "+
			"--key-file or %s", u.Host, ownerKey)
	}
	return &verbs.Client{Base: u.Scheme + "://" + u.Host, Key: key, HTTP: &http.Client{
		// The key must not follow a redirect to another address.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}
