package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/realtime/rtc"
	"switchboard/servers"
	"switchboard/servers/codex"
	"switchboard/servers/responses"
	"switchboard/web"
)

// plan fills in what the settings leave open. state is the state directory; look finds a program, as
// [exec.LookPath] does.
func (s *settings) plan(state string, look func(string) (string, error)) (plan, error) {
	if err := s.localCodex(look); err != nil {
		return plan{}, err
	}
	p := plan{
		Listen: s.Listen, PublicURL: s.PublicURL, CertFile: s.TLS.CertFile, KeyFile: s.TLS.KeyFile, Proxies: s.TrustedProxies,
		Redis: s.Redis.Reveal(), History: time.Duration(s.History.Keep), StateDir: state, Media: s.media(),
		Model:   modelPlan{URL: s.Model.URL, Name: s.Model.Name, Key: s.Model.Key.Reveal(), Aliases: s.Model.Aliases, Prices: s.Model.prices()},
		Updates: handoff.SpeechLevel(s.Speech.Updates), AskAgain: time.Duration(s.Approvals.AskAgain), GiveUp: time.Duration(s.Approvals.GiveUp),
		Silence: time.Duration(s.Work.Silence), Patience: time.Duration(s.Work.Patience),
		Notify: notifyPlan{URL: s.Notify.Webhook.Reveal(), Token: s.Notify.Token},
	}
	p.Made = func() ([]web.Key, error) {
		made, err := readMadeKeys(state)
		return s.withMade(made), err
	}
	keys, err := p.Made()
	if err != nil {
		return plan{}, err
	}
	p.Keys = keys
	for _, server := range s.Servers {
		p.Servers = append(p.Servers, server.plan())
	}
	return p, nil
}

// prices are those of the settings, else what OpenAI asks for the model that is used by default
// (developers.openai.com/api/docs/models/gpt-realtime-2.1); nil: nobody knows.
func (m modelSettings) prices() *web.Prices {
	switch given := web.Prices(m.Prices); {
	case given != web.Prices{}:
		return &given
	case m.URL == openAIURL && m.Name == defaultModel:
		return &web.Prices{TextIn: 4, TextCached: 0.40, TextOut: 24, AudioIn: 32, AudioCached: 0.40, AudioOut: 64}
	}
	return nil
}

// localCodex checks that --codex finds its program, and uses a codex that is installed when there is a key
// for a real voice and no other server: with nothing configured, nothing real is touched.
func (s *settings) localCodex(look func(string) (string, error)) error {
	for _, server := range s.Servers {
		if server.Name != localName || len(server.Command) == 0 {
			continue
		}
		if _, err := look(server.Command[0]); err != nil {
			at := place{name: "--codex"}
			return problems{{at, fmt.Sprintf("there is no program %q: install Codex, or name its path in servers.command (%v)", server.Command[0], err)}}
		}
	}
	if len(s.Servers) > 0 || s.Model.Key == (secret{}) {
		return nil
	}
	_, err := look("codex")
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil // the simulated machines are there
	case err != nil:
		return fmt.Errorf("find codex: %w", err)
	}
	s.Servers = append(s.Servers, localServer())
	return nil
}

func (s serverSetting) plan() serverPlan {
	p := serverPlan{
		Spec:     servers.Spec{Name: s.Name, Aliases: s.Aliases, Kind: s.Kind, Dir: cmp.Or(s.Cwd, s.Workspace), Projects: s.Projects, VoiceApprovals: s.VoiceApprovals},
		Settings: s.settings(),
	}
	p.Spec.EndsWithUs = len(s.Command) > 0 || s.Kind == responses.Name
	p.Spec.About = s.about()
	if u, err := url.Parse(s.URL); err == nil && s.URL != "" && !servers.Loopback(u.Hostname()) {
		p.Spec.Host = u.Hostname()
	}
	return p
}

// about is what people are shown of a server: nothing that lets anybody in.
func (s serverSetting) about() handoff.Machine {
	m := handoff.Machine{Model: s.Model, Sandbox: s.Sandbox, Approval: s.Approval, Ceiling: s.Ceiling}
	u, err := url.Parse(s.URL)
	switch {
	case len(s.Command) > 0:
		m.Address = strings.Join(s.Command[:min(len(s.Command), 2)], " ") // what follows may be a secret
		m.Start = m.Address
	case s.Unix != "":
		m.Address = "unix:" + s.Unix
		m.Start = "codex app-server --listen unix://" + s.Unix
	case err == nil && u.Host != "":
		m.Address = u.Scheme + "://" + u.Host
		if s.Kind == codex.Name {
			m.Start = s.startThere(u)
		}
	}
	return m
}

// startThere is the command that starts a codex app-server where an address leads. Which port that has behind a proxy
// nobody knows here; at the other end of a tunnel it may be another one too.
func (s serverSetting) startThere(u *url.URL) string {
	host, port := "127.0.0.1", cmp.Or(u.Port(), "4500")
	switch {
	case u.Scheme == "wss":
		port = "PORT"
	case !servers.Loopback(u.Hostname()):
		host = "0.0.0.0"
	}
	start := "codex app-server --listen ws://" + net.JoinHostPort(host, port)
	if s.TokenFile != "" || s.TokenEnv != "" {
		start += " --ws-auth capability-token --ws-token-file FILE"
	}
	return start
}

// settings is what the kind of a server gets to know of its configuration.
func (s serverSetting) settings() servers.Settings {
	return servers.Settings{
		Name: s.Name, URL: s.URL, Unix: s.Unix, Command: s.Command, Env: s.Env, AllowPlaintext: s.AllowPlaintext, Token: s.Token,
		Dir: s.Cwd, Model: s.Model, Sandbox: s.Sandbox, Approval: s.Approval, Ceiling: s.Ceiling,
		Workspace: s.Workspace, Trusted: s.Trusted, Readable: s.Readable, User: s.User, Limits: servers.Limits(s.Limits), Continuation: s.Continuation,
		Store: s.Store, Include: s.Include, Reasoning: servers.Reasoning(s.Reasoning), Verbosity: s.Verbosity,
	}
}

// media is where WebRTC listens: unless it is set, where the page can be reached, on any free port.
func (s *settings) media() rtc.Config {
	var m rtc.Config
	for _, addr := range s.Media.Advertise {
		m.Advertise = append(m.Advertise, addr.String())
	}
	host, _, _ := net.SplitHostPort(s.Listen) // checked when it was loaded
	public, err := url.Parse(s.PublicURL)
	switch {
	case s.Media.UDP.IsValid():
		m.UDP = s.Media.UDP.String()
	case err == nil && s.PublicURL != "" && !servers.Loopback(public.Hostname()), !servers.Loopback(host):
		m.UDP = "0.0.0.0:0"
	}
	return m
}
