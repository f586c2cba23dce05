package main

import (
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"switchboard/servers"
	"switchboard/servers/joined"
	"switchboard/sessions"
	"switchboard/web"
)

// settings is the configuration: the fields of the file, overridden by flags and environment. A field's doc tag is its
// text in the table of settings, and its unset tag says there what an unset field means. loadSettings derives the
// fields after the first block.
type settings struct {
	Listen         string           `yaml:"listen" doc:"where the page and the API listen; off loopback it needs keys, and tls or trusted_proxies"`
	PublicURL      string           `yaml:"public_url" doc:"the address of the page for others, https://host; becomes the printed link"`
	TLS            tlsSettings      `yaml:"tls"`
	TrustedProxies []netip.Prefix   `yaml:"trusted_proxies" doc:"networks of the proxies that do TLS before us; only they and loopback may connect"`
	Media          mediaSettings    `yaml:"media"`
	Redis          secret           `yaml:"redis" unset:"a file" doc:"Redis that remembers, redis://[user:password@]host:port/db; rediss:// with TLS; ?master_name=NAME at a Sentinel; ?addr=host:port, another node, at a Cluster"`
	RedisPlaintext bool             `yaml:"redis_allow_plaintext" unset:"false" doc:"allow redis:// to another machine, or by a Sentinel or a Cluster, which may name one: whoever is on the way can read along and take over"`
	Peers          peerSettings     `yaml:"peers"`
	Keys           []keySetting     `yaml:"keys"`
	Limits         limitSettings    `yaml:"limits"`
	Model          modelSettings    `yaml:"model"`
	Speech         speechSettings   `yaml:"speech"`
	Debug          debugSettings    `yaml:"debug"`
	Approvals      approvalSettings `yaml:"approvals"`
	Work           workSettings     `yaml:"work"`
	History        historySettings  `yaml:"history"`
	Notify         notifySettings   `yaml:"notify"`
	MCP            mcpSettings      `yaml:"mcp"`
	Servers        []servers.Spec   `yaml:"servers"`

	Access []web.Key `yaml:"-"` // every key that lets in; empty on loopback alone, where ownKey makes one
	File   string    `yaml:"-"` // the file that was read, or ""
	Ours   []string  `yaml:"-"` // files that no agent may reach: the configuration, keys and tokens

	Lines *joined.Lines `yaml:"-"` // the lines to machines that joined, by which their servers are reached

	places map[string]place // where each setting was set, by its path
}

// tlsSettings is the certificate of our own listener.
type tlsSettings struct {
	CertFile string `yaml:"cert_file" doc:"certificate chain, PEM"`
	KeyFile  string `yaml:"key_file" doc:"its private key, PEM"`
}

// peerSettings is how the instances that share a Redis reach this one. The zero value means that there are no others.
type peerSettings struct {
	Listen  string `yaml:"listen" unset:"this is the only instance" doc:"where other instances reach this one, host:port; with it, many share one Redis, and any of them takes any request"`
	Address string `yaml:"address" unset:"where it listens" doc:"what the others are told instead, host:port; needed where it listens on all addresses"`
}

func (p peerSettings) set() bool { return p.Listen != "" }

// mcpSettings is how programs elsewhere may use /mcp.
type mcpSettings struct {
	OAuth bool `yaml:"oauth" unset:"false" doc:"a person may let programs elsewhere use /mcp, on a page of its own, by OAuth; for clients that take no key, such as ChatGPT. Needs public_url, unless Switchboard listens on this machine alone and without peers"`
}

// mediaSettings is where WebRTC sound flows.
type mediaSettings struct {
	UDP       netip.AddrPort `yaml:"udp" unset:"where the page can be reached, any port" doc:"address and port where WebRTC listens"`
	Advertise []netip.Addr   `yaml:"advertise" unset:"those of the machine" doc:"addresses that WebRTC clients are told besides"`
}

// modelSettings is the voice model.
type modelSettings struct {
	URL     string            `yaml:"url" unset:"the simulator without a key, else OpenAI" doc:"a server of the Realtime protocol, wss://host/path"`
	Name    string            `yaml:"name" doc:"the voice model; a client's ?model= wins"`
	Aliases map[string]string `yaml:"aliases" doc:"the names that clients ask for, each with the model it means at model.url; \"*\" is any other"`
	KeyEnv  string            `yaml:"key_env" unset:"OPENAI_API_KEY, for OpenAI alone" doc:"variable with the key for model.url"`
	Media   string            `yaml:"media" unset:"direct with OpenAI's, else through" doc:"which way the page's sound takes: direct, to the voice model's server, where that has calls of WebRTC, or through Switchboard; other clients' goes through"`
	Prices  priceSettings     `yaml:"prices"`

	Reasoning reasoningSettings `yaml:"reasoning"`

	Key secret `yaml:"-"` // what is sent to URL
}

// reasoningSettings say how the voice model reasons before it speaks.
type reasoningSettings struct {
	Effort string `yaml:"effort" unset:"the model's own" doc:"how hard the voice model thinks before it answers, if it can: minimal, low, medium, high or xhigh; more is slower and dearer; what a client asks for wins"`
}

// priceSettings are the prices of model.name, in US dollars for a million tokens; at a server that is not OpenAI's,
// those of all its models. The fields are those of [models.Prices].
type priceSettings struct {
	TextIn      float64 `yaml:"text_in" unset:"OpenAI's, for its models" doc:"what a million tokens of text that the voice model reads cost, in US dollars; with prices the page tells the cost of a call, without them its tokens"`
	TextCached  float64 `yaml:"text_cached" unset:"likewise" doc:"of text that it has read before"`
	TextOut     float64 `yaml:"text_out" unset:"likewise" doc:"of text that it writes"`
	AudioIn     float64 `yaml:"audio_in" unset:"likewise" doc:"of sound that it hears"`
	AudioCached float64 `yaml:"audio_cached" unset:"likewise" doc:"of sound that it has heard before"`
	AudioOut    float64 `yaml:"audio_out" unset:"likewise" doc:"of sound that it speaks"`
	ImageIn     float64 `yaml:"image_in" unset:"likewise" doc:"of pictures that it sees"`
	ImageCached float64 `yaml:"image_cached" unset:"likewise" doc:"of pictures that it has seen before"`
}

// defaults returns the settings when nothing is set.
func defaults() settings {
	return settings{
		Listen: "127.0.0.1:8080", Model: modelSettings{Name: defaultModel}, Speech: speechSettings{Updates: "milestones"},
		Limits:    limitSettings{Calls: 4, MinutesPerDay: 240, HandoffsPerMinute: 20},
		Approvals: approvalSettings{AskAgain: span(time.Minute), GiveUp: span(30 * time.Minute)},
		Work:      workSettings{Silence: span(2 * time.Minute), Patience: span(30 * time.Minute)},
		History:   historySettings{Keep: span(sessions.HistoryFor)},
	}
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
// every mistake.
func loadSettings(o *options, env func(string) string) (*settings, error) {
	return loadSettingsFor(o, env, new(joined.Lines))
}

// loadSettingsFor is loadSettings for a process that has these lines to machines that joined.
func loadSettingsFor(o *options, env func(string) string, lines *joined.Lines) (*settings, error) {
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
	d := &decoder{places: map[string]place{}, kinds: kinds}
	dir := "."
	if file != "" {
		d.file, s.File, dir = file, file, filepath.Dir(file)
		d.decode(data, &s)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, problems{{place{name: defaultFile}, err.Error()}}
	}
	for _, over := range o.overrides() {
		setText(&s, over.path, over.text)
		d.places[over.path] = over.at
	}
	if o.Codex {
		d.places[elem("servers", len(s.Servers))] = codexFlag
		s.Servers = append(s.Servers, localServer())
	}
	c := &checker{s: &s, kinds: kinds, places: d.places, env: env, dir: dir}
	if file != "" {
		c.ours = []string{filepath.Join(dir, filepath.Base(file))}
	}
	c.all()
	if found := append(d.found, c.found...); len(found) > 0 {
		return nil, found.sorted()
	}
	s.places, s.Ours = d.places, c.ours
	entries := entriesOf(data)
	for i := range s.Servers {
		s.Servers[i].Entry = entries[s.Servers[i].Name]
	}
	return &s, nil
}

// setText sets the text setting at a path of the file.
func setText(s *settings, path, text string) {
	v := reflect.ValueOf(s).Elem()
	for part := range strings.SplitSeq(path, ".") {
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("yaml") == part {
				v = v.Field(i)
				break
			}
		}
	}
	if v.Kind() == reflect.String {
		v.SetString(text)
		return
	}
	var value secret
	if text != "" {
		value = newSecret(text)
	}
	v.Set(reflect.ValueOf(value))
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
