package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"switchboard/cmd/switchboard/cli"
	"switchboard/cmd/switchboard/verbs"
	"switchboard/servers"
	"switchboard/sessions"
)

// options are the flags of all verbs, and the variables that stand for them.
type options struct {
	config, listen, redis, modelURL, model cli.Text
	codex                                  bool
}

// configFile returns the file to read, "" for none, and what named it.
func (o *options) configFile() (file string, at place) {
	if o.config.From != "" {
		return o.config.Text, place{name: o.config.From}
	}
	if _, err := os.Stat(defaultFile); errors.Is(err, fs.ErrNotExist) {
		return "", place{}
	}
	return defaultFile, place{name: defaultFile}
}

// A console is what the verbs share: the flags of all of them, and where they run.
type console struct {
	options
	env            func(string) string
	stdout, stderr io.Writer
}

// commands returns the command line of the program. Each verb has its flags and its help where it is implemented.
func (c *console) commands() *cli.Program {
	dial := verbs.Dialer(c.dial)
	return &cli.Program{
		Name: "switchboard", About: about, Version: thisBuild().String(), Env: c.env,
		Flags: []cli.Flag{
			{Name: "config", Env: "SWITCHBOARD_CONFIG", Value: "FILE", Into: &c.config,
				Help: "configuration; switchboard.yaml if it is there"},
			{Name: "listen", Env: "SWITCHBOARD_LISTEN", Value: "ADDRESS", Into: &c.listen,
				Help: "where the page and the API listen; off loopback it needs keys, and tls or trusted_proxies"},
			{Name: "redis", Env: "REDIS_URL", Value: "URL", Into: &c.redis, Help: "Redis that remembers, " +
				"redis://[user:password@]host:port/db; rediss:// with TLS; ?master_name=NAME at a Sentinel; " +
				"?addr=host:port, another node, at a Cluster"},
			{Name: "model-url", Env: "SWITCHBOARD_MODEL_URL", Value: "URL", Into: &c.modelURL,
				Help: "a server of the Realtime protocol, wss://host/path"},
			{Name: "model", Env: "SWITCHBOARD_MODEL", Value: "NAME", Into: &c.model,
				Help: "the voice model; a client's ?model= wins"},
			{Name: "codex", Into: &c.codex, Help: "add a codex app-server on this machine as server local"},
		},
		Verbs: []*cli.Verb{
			serveVerb(c), initVerb(c), addVerb(c), doctorVerb(c), loginVerb(c), keyVerb(c), backupVerb(c), auditVerb(c),
			simulateVerb(c), healthVerb(c), joinVerb(c), leaveVerb(c),
			verbs.Status(dial), verbs.Servers(dial), verbs.Logs(dial), verbs.Sessions(dial), verbs.Read(dial),
			verbs.Work(dial), verbs.Handoff(dial, os.Stdin), verbs.Stop(dial), verbs.Invite(dial), removeVerb(c),
			verbs.Reload(dial), verbs.Rename(dial), mcpVerb(c), verbs.Apps(dial), verbs.Answer(dial),
			verbs.Worktree(dial),
		},
	}
}

// onlyConfig are the flags of the program that matter to most verbs that need no service.
var onlyConfig = []string{"config"}

// here returns the settings and the state directory of this machine.
func (c *console) here() (*settings, string, error) {
	s, err := loadSettings(&c.options, c.env, nil)
	if err != nil {
		return nil, "", err
	}
	state, err := sessions.StateDir(c.env)
	return s, state, err
}

// say prints a line of a result.
func (c *console) say(format string, args ...any) error {
	_, err := fmt.Fprintf(c.stdout, format+"\n", args...)
	return err
}

// dial connects a terminal to the service that is named. It is a [verbs.Dialer].
func (c *console) dial(to verbs.Reach) (*verbs.Terminal, error) {
	client, err := c.client(to)
	if err != nil {
		return nil, err
	}
	t := &verbs.Terminal{Client: *client, Out: c.stdout, Err: c.stderr, JSON: to.JSON, Live: terminal(c.stdout),
		Name: "switchboard"}
	if terminal(os.Stdin) && terminal(c.stderr) {
		t.Ask = func(ctx context.Context, prompt string) (string, error) { return ask(ctx, os.Stdin, c.stderr, prompt) }
	}
	return t, nil
}

// ask prints a prompt and returns the line that somebody types; "" if the input ends.
func ask(ctx context.Context, in io.Reader, out io.Writer, prompt string) (string, error) {
	_, _ = io.WriteString(out, prompt) // without a prompt nobody answers
	text, err := verbs.Typed(ctx, func() (string, error) { return bufio.NewReader(in).ReadString('\n') })
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return strings.TrimSpace(text), err
}

// client returns a client of the service that is named, or else of the one that runs with this state directory, or
// else of one at the address of the settings.
func (c *console) client(to verbs.Reach) (*verbs.Client, error) {
	key := strings.TrimSpace(c.env(ownerKey))
	if to.KeyFile != "" {
		var err error
		if key, err = readSecret(to.KeyFile); err != nil {
			return nil, err
		}
	}
	if !verbs.Sendable(key) {
		return nil, fmt.Errorf("the key in %s is no key: it has control characters in it", cmp.Or(to.KeyFile, ownerKey))
	}
	if to.URL != "" {
		return dialAt(to.URL, key)
	}
	state, err := sessions.StatePath(c.env)
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
	s, err := loadSettings(&c.options, c.env, nil)
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
		return nil, fmt.Errorf("%s is not the address of a Switchboard, such as https://bigpc.tail1234.ts.net",
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
