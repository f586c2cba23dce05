package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"time"

	"switchboard/realtime/rtc"
	"switchboard/servers"
	"switchboard/servers/codex"
	machines "switchboard/servers/simulator"
)

// A plan is everything that a service is built from: the settings, and options that no file has. Set once.
type plan struct {
	settings
	StateDir string
	Again    func() (*settings, error) // reads the settings again; nil: they cannot change
	Traces   string                    // the endpoint of OpenTelemetry; "": no traces
	Story    bool                      // the simulated machine attic is up until it gets work, and is lost then

	// What tests alone set.

	Gone      time.Duration     // when callers are notified of a machine that is away; 0: after [goneAfter]
	Documents http.RoundTripper // fetches the client documents of OAuth; nil: only over the public network
	Hurry     float64           // how many times faster the simulators run; 0: as usual
	World     *machines.World   // the simulated machines; nil: made with Hurry and Story
}

// plan returns the plan of a service with these settings. state is the state directory; look finds a program, as
// [exec.LookPath] does.
func (s *settings) plan(state string, look func(string) (string, error)) (plan, error) {
	err := s.localCodex(look)
	return plan{settings: *s, StateDir: state, Story: true}, err
}

// localCodex checks that the program of --codex is installed. If there is a key for a real voice and no server, it adds
// an installed codex as server: with nothing configured, nothing real is used. With peers it adds none, because that
// codex would end with this instance.
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
	_, err := look(codex.Program)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil // the simulated machines are used
	case err != nil:
		return fmt.Errorf("find codex: %w", err)
	}
	s.Servers = append(s.Servers, localServer())
	return nil
}

// media returns where WebRTC listens: unless the settings say it, on loopback or on all addresses, as the page is
// reached, on any free port.
func (s *settings) media() rtc.Config {
	var m rtc.Config
	for _, addr := range s.Media.Advertise {
		m.Advertise = append(m.Advertise, addr.String())
	}
	host, _, _ := net.SplitHostPort(s.Listen) // the settings were checked
	public, err := url.Parse(s.PublicURL)
	switch {
	case s.Media.UDP.IsValid():
		m.UDP = s.Media.UDP.String()
	case err == nil && s.PublicURL != "" && !servers.Loopback(public.Hostname()), !servers.Loopback(host):
		m.UDP = "0.0.0.0:0"
	}
	return m
}
