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
	machines "switchboard/servers/simulator"
)

// A plan is what a service is made of: its settings, and what no file says. Set once.
type plan struct {
	settings
	StateDir string
	Again    func() (*settings, error) // reads the settings again; nil: they cannot change
	Traces   string                    // where OpenTelemetry takes them; "": nowhere
	Story    bool                      // of the simulated machines, attic is there until it is asked for work

	// What tests alone set.

	Gone      time.Duration     // how long a machine is away before it is told that work waits for it; 0: an hour
	Documents http.RoundTripper // fetches what programs say of themselves; nil: over the public network alone
	Hurry     float64           // makes what is simulated so many times faster; 0 is as is
	World     *machines.World   // the simulated machines; nil: as Hurry and Story say
}

// plan completes the settings. state is the state directory; look finds a program, as [exec.LookPath] does.
func (s *settings) plan(state string, look func(string) (string, error)) (plan, error) {
	err := s.localCodex(look)
	return plan{settings: *s, StateDir: state, Story: true}, err
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
