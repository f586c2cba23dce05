package main

import (
	"cmp"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"switchboard/cmd/switchboard/cli"
	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/servers"
	"switchboard/servers/joined"
	"switchboard/sessions"
	"switchboard/web"
)

// settings is the configuration: the fields of the file, overridden by flags and environment. What each means, and what
// it means that one is unset, stands in the table of web/help/3-settings.md. The fields after the first block follow
// from those.
type settings struct {
	Listen         string         `yaml:"listen"`
	PublicURL      string         `yaml:"public_url"`
	TLS            tlsSettings    `yaml:"tls"`
	TrustedProxies []netip.Prefix `yaml:"trusted_proxies"`
	Media          mediaSettings  `yaml:"media"`
	Redis          secret         `yaml:"redis"`
	RedisPlaintext bool           `yaml:"redis_allow_plaintext"`
	Peers          peerSettings   `yaml:"peers"`
	Keys           []keySetting   `yaml:"keys"`
	Limits         handoff.Limits `yaml:"limits"` // of each caller, or of all callers of a key together; 0: any number
	Model          modelSettings  `yaml:"model"`
	Speech         struct {
		Updates  string `yaml:"updates"`
		Language string `yaml:"language"`
	} `yaml:"speech"`
	Debug struct {
		Ticks bool `yaml:"ticks"`
	} `yaml:"debug"`
	Approvals approvalSettings `yaml:"approvals"`
	Work      workSettings     `yaml:"work"`
	History   struct {
		Keep span `yaml:"keep"`
	} `yaml:"history"`
	Notify notifySettings `yaml:"notify"`
	MCP    struct {
		OAuth bool `yaml:"oauth"`
	} `yaml:"mcp"`
	Servers []servers.Spec `yaml:"servers"`

	Access []web.Key     `yaml:"-"` // every key that lets in; empty on loopback alone, where ownKey makes one
	File   string        `yaml:"-"` // the file that was read, or ""
	Ours   []string      `yaml:"-"` // files that no agent may reach: the configuration, keys and tokens
	Lines  *joined.Lines `yaml:"-"` // the lines to machines that joined, by which their servers are reached

	places map[string]place // where each setting was set, by its path
}

// tlsSettings is the certificate of our own listener.
type tlsSettings struct {
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
}

// peerSettings is how the instances that share a Redis reach this one. The zero value means that there are no others.
type peerSettings struct {
	Listen  string `yaml:"listen"`
	Address string `yaml:"address"`
}

func (p peerSettings) set() bool { return p.Listen != "" }

// mediaSettings is where WebRTC sound flows.
type mediaSettings struct {
	UDP       netip.AddrPort `yaml:"udp"`
	Advertise []netip.Addr   `yaml:"advertise"`
}

// approvalSettings say how long an agent's question waits.
type approvalSettings struct {
	AskAgain span `yaml:"ask_again"`
	GiveUp   span `yaml:"give_up"`
}

// workSettings say how long Switchboard waits for work that gives no sign.
type workSettings struct {
	Silence  span `yaml:"silence"`
	Patience span `yaml:"patience"`
}

// notifySettings are the webhook for people who are in no call.
type notifySettings struct {
	Webhook        secret `yaml:"webhook"`
	TokenFile      string `yaml:"token_file"`
	TokenEnv       string `yaml:"token_env"`
	AllowPlaintext bool   `yaml:"allow_plaintext"`
	AllowPrivate   bool   `yaml:"allow_private"`

	Token func() (string, error) `yaml:"-"` // nil without a token; reads it anew each time
}

// minHistory is the shortest history: until then, a request may be repeated under its idempotency key.
const minHistory = span(ledger.KeyFor)

// A span is a duration above zero, written as 90s, 30m or 1h30m.
type span time.Duration

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return err
	}
	if d <= 0 {
		return errors.New("not after now")
	}
	*s = span(d)
	return nil
}

// String returns the span as a file has it, without zero minutes and seconds at its end.
func (s span) String() string {
	text := time.Duration(s).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// defaults returns the settings when nothing is set.
func defaults() settings {
	s := settings{
		Listen:    "127.0.0.1:8080",
		Model:     modelSettings{Name: defaultModel},
		Limits:    handoff.Limits{Calls: 4, MinutesPerDay: 240, HandoffsPerMinute: 20},
		Approvals: approvalSettings{AskAgain: span(time.Minute), GiveUp: span(30 * time.Minute)},
		Work:      workSettings{Silence: span(2 * time.Minute), Patience: span(30 * time.Minute)},
	}
	s.Speech.Updates, s.History.Keep = "milestones", span(sessions.HistoryFor)
	return s
}

const (
	openAIHost    = "api.openai.com"
	openAIURL     = "wss://" + openAIHost + "/v1/realtime"
	defaultModel  = "gpt-realtime-2.1"
	openAIKey     = "OPENAI_API_KEY"
	ownerKey      = "SWITCHBOARD_KEY"
	ownerName     = "owner"
	localName     = "local" // the server of --codex
	defaultFile   = "switchboard.yaml"
	maxConfigSize = 64 << 10
)

// loadSettings reads the configuration: flag over environment over file over default. Its error is a [problems] with
// every mistake. lines are those of the process to machines that joined; nil: it has none yet.
func loadSettings(o *options, env func(string) string, lines *joined.Lines) (*settings, error) {
	lines = cmp.Or(lines, new(joined.Lines))
	file, at := o.configFile()
	var data []byte
	if file != "" {
		var err error
		if data, err = os.ReadFile(file); err != nil {
			return nil, problems{{at, "read the configuration: " + err.Error()}}
		}
	}
	s, err := settingsOf(o, env, file, data, kinds(nil, lines))
	if err == nil {
		s.Lines = lines
	}
	return s, err
}

// codexFlag is the place of the server that --codex adds.
var codexFlag = place{name: "--codex"}

// settingsOf makes settings of the text of a file ("": no file), flags and environment. kinds are the known kinds of
// servers.
func settingsOf(
	o *options, env func(string) string, file string, data []byte, kinds []servers.Kind,
) (*settings, error) {
	s := defaults()
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return nil, problems{{place{name: defaultFile}, err.Error()}}
	}
	r := &reader{file: file, kinds: kinds, env: env, dir: dir, places: map[string]place{}}
	if file != "" {
		r.decode(data, &s)
		r.ours = []string{filepath.Join(dir, filepath.Base(file))}
	}
	override := func(path string, setting *string, by cli.Text) {
		if by.From != "" {
			*setting, r.places[path] = by.Text, place{name: by.From}
		}
	}
	redis := s.Redis.Reveal()
	override("listen", &s.Listen, o.listen)
	override("redis", &redis, o.redis)
	override("model.url", &s.Model.URL, o.modelURL)
	override("model.name", &s.Model.Name, o.model)
	s.Redis = newSecret(redis)
	if o.codex {
		r.places[elem("servers", len(s.Servers))] = codexFlag
		s.Servers = append(s.Servers, localServer())
	}
	if s.check(report{reader: r}); len(r.found) > 0 {
		return nil, r.found.sorted()
	}
	s.File, s.places, s.Ours = file, r.places, r.ours
	return &s, nil
}

// maxSecret bounds the file of a key.
const maxSecret = 4096

// readSecret reads a key or token from a file: its text without surrounding space.
func readSecret(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // only read from
	data, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(strings.TrimPrefix(string(data), byteOrderMark))
	if text == "" {
		return "", errors.New(path + " is empty")
	}
	if len(data) > maxSecret || strings.ContainsAny(text, "\r\n\x00") {
		return "", errors.New(path + " has more in it than one key")
	}
	return text, nil
}
