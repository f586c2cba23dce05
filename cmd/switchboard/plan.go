package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"time"

	"switchboard/handoff"
	"switchboard/realtime/rtc"
	"switchboard/servers"
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
		Model: modelPlan{URL: s.Model.URL, Name: s.Model.Name, Key: s.Model.Key.Reveal(), Aliases: s.Model.Aliases,
			Tariff: s.Model.tariff(), Effort: s.Model.Reasoning.Effort, Direct: s.Model.direct()},
		Updates: handoff.SpeechLevel(
			s.Speech.Updates,
		), Language: s.Speech.Language, AskAgain: time.Duration(s.Approvals.AskAgain),
		GiveUp:  time.Duration(s.Approvals.GiveUp),
		Silence: time.Duration(s.Work.Silence), Patience: time.Duration(s.Work.Patience),
		Notify: notifyPlan{URL: s.Notify.Webhook.Reveal(), Token: s.Notify.Token}, Servers: s.Servers, Lines: s.Lines,
		OAuth: s.MCP.OAuth, Ticks: s.Debug.Ticks, Story: true,
	}
	if s.Peers.set() {
		p.Peers = &peersPlan{s.Peers.Listen, s.Peers.Address}
	}
	p.Keys, p.Settings = s.withMade(nil), s
	return p, nil
}

// The ways of the page's sound.
const (
	mediaDirect  = "direct"
	mediaThrough = "through"
)

// direct reports whether the page's sound goes to the voice model's server itself: where nobody says otherwise, to
// OpenAI's.
func (m modelSettings) direct() bool {
	return m.Media == mediaDirect || m.Media == "" && m.isOpenAI()
}

// localCodex checks that --codex finds its program, and uses a codex that is installed when there is a key
// for a real voice and no other server: with nothing configured, nothing real is touched. Beside other instances it is
// not used: it would end with this one.
func (s *settings) localCodex(look func(string) (string, error)) error {
	for _, server := range s.Servers {
		if server.Name != localName || server.Program == "" {
			continue
		}
		if _, err := look(server.Program); err != nil {
			return problems{{codexFlag, fmt.Sprintf(
				"there is no program %q: install Codex, or name its path in servers.command (%v)", server.Program, err)}}
		}
	}
	if len(s.Servers) > 0 || s.Model.Key == (secret{}) || s.Peers.set() {
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
