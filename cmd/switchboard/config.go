package main

import (
	"net/netip"
	"time"

	"switchboard/sessions"
	"switchboard/web"
)

// settings is the configuration: the file's shape, with what flags and environment put over it. A field's
// doc is its row of the README's table; "unset" says there what nothing means. The last block is made of
// the others by loadSettings.
type settings struct {
	Listen         string           `yaml:"listen" doc:"where the page and the API listen; off loopback it needs keys, and tls or trusted_proxies"`
	PublicURL      string           `yaml:"public_url" doc:"the address of the page for others, https://host; becomes the printed link"`
	TLS            tlsSettings      `yaml:"tls"`
	TrustedProxies []netip.Prefix   `yaml:"trusted_proxies" doc:"networks of the proxies that do TLS before us; only they and loopback may connect"`
	Media          mediaSettings    `yaml:"media"`
	Redis          secret           `yaml:"redis" unset:"a file" doc:"Redis that remembers, redis://[user:password@]host:port/db; rediss:// with TLS"`
	RedisPlaintext bool             `yaml:"redis_allow_plaintext" unset:"false" doc:"allow redis:// to another machine: whoever is on the way can read along and take over"`
	Keys           []keySetting     `yaml:"keys"`
	Limits         limitSettings    `yaml:"limits"`
	Model          modelSettings    `yaml:"model"`
	Speech         speechSettings   `yaml:"speech"`
	Approvals      approvalSettings `yaml:"approvals"`
	Work           workSettings     `yaml:"work"`
	History        historySettings  `yaml:"history"`
	Notify         notifySettings   `yaml:"notify"`
	Servers        []serverSetting  `yaml:"servers"`

	Access []web.Key `yaml:"-"` // every key that lets in; empty on loopback alone, where ownKey makes one
	File   string    `yaml:"-"` // the file that was read, or ""
}

// tlsSettings is the certificate of our own listener.
type tlsSettings struct {
	CertFile string `yaml:"cert_file" doc:"certificate chain, PEM"`
	KeyFile  string `yaml:"key_file" doc:"its private key, PEM"`
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
	Prices  priceSettings     `yaml:"prices"`

	Key secret `yaml:"-"` // what is sent to URL
}

// priceSettings are what model.name costs, in US dollars for a million tokens.
type priceSettings struct {
	TextIn      float64 `yaml:"text_in" unset:"OpenAI's, for gpt-realtime-2.1 there" doc:"what a million tokens of text that the voice model reads cost, in US dollars; with prices the page tells the cost of a call, without them its tokens"`
	TextCached  float64 `yaml:"text_cached" unset:"likewise" doc:"of text that it has read before"`
	TextOut     float64 `yaml:"text_out" unset:"likewise" doc:"of text that it writes"`
	AudioIn     float64 `yaml:"audio_in" unset:"likewise" doc:"of sound that it hears"`
	AudioCached float64 `yaml:"audio_cached" unset:"likewise" doc:"of sound that it has heard before"`
	AudioOut    float64 `yaml:"audio_out" unset:"likewise" doc:"of sound that it speaks"`
}

// serverSetting is one agent server.
type serverSetting struct {
	Name           string            `yaml:"name" doc:"what you call the machine"`
	Aliases        []string          `yaml:"aliases" doc:"what else you call it"`
	Kind           string            `yaml:"kind" doc:"codex, or responses: an agent that Switchboard runs itself on an API like OpenAI's Responses"`
	URL            string            `yaml:"url" doc:"of a codex app-server, ws://host:port or wss://host/path, or of the API, such as https://api.openai.com/v1; or"`
	Unix           string            `yaml:"unix" doc:"of a codex app-server on this machine: the path of its socket; or"`
	Command        []string          `yaml:"command" doc:"program and arguments of an app-server that runs as a child, such as [codex, app-server]"`
	TokenFile      string            `yaml:"token_file" doc:"file with the token for url; or"`
	TokenEnv       string            `yaml:"token_env" doc:"variable with the token for url"`
	KeyFile        string            `yaml:"key_file" doc:"for responses: file with the key for url; or"`
	KeyEnv         string            `yaml:"key_env" doc:"for responses: variable with the key for url"`
	Env            []string          `yaml:"env" unset:"none" doc:"what a child, or commands in a trusted workspace, get beside PATH, HOME, the language, proxies and XDG_* (a codex CODEX_* too): NAME passes a variable on, NAME=value sets one"`
	AllowPlaintext bool              `yaml:"allow_plaintext" unset:"false" doc:"allow ws:// or http:// to another machine: whoever is on the way can read along and take over"`
	Cwd            string            `yaml:"cwd" unset:"the server's own" doc:"directory of new sessions"`
	Projects       map[string]string `yaml:"projects" doc:"names for other directories: {api: /home/me/src/api}"`
	Sandbox        string            `yaml:"sandbox" unset:"the server's own" doc:"of new sessions, or of an agent in a trusted workspace: read-only, workspace-write or danger-full-access"`
	Approval       string            `yaml:"approval" unset:"the server's own" doc:"when they ask: untrusted, on-request or never"`
	Ceiling        string            `yaml:"ceiling" unset:"none" doc:"the loosest sandbox that may run here, also in a session that has its own: read-only, workspace-write or danger-full-access"`
	VoiceApprovals string            `yaml:"voice_approvals" unset:"medium" doc:"the riskiest that you may allow by voice: none, low or medium; the rest takes a tap"`
	Model          string            `yaml:"model" unset:"the server's own" doc:"model of new sessions"`
	Workspace      string            `yaml:"workspace" doc:"for responses: the directory here that the agent reads, and nothing else"`
	Trusted        bool              `yaml:"trusted" unset:"false" doc:"for responses: the agent also changes files of the workspace and runs commands there, in a sandbox"`
	Readable       []string          `yaml:"readable" unset:"none" doc:"for responses: directories that its commands may read beside the workspace and the system's"`
	User           string            `yaml:"user" unset:"none" doc:"for responses, when Switchboard runs as root: the user, by name or number, whom its commands run as; without one it runs none"`
	Limits         commandLimits     `yaml:"limits"`
	Continuation   string            `yaml:"continuation" unset:"replay" doc:"for responses: replay sends a session whole each time; response_ids has the API keep it, and sends what is new"`
	Store          *bool             `yaml:"store" unset:"true with response_ids" doc:"for responses: whether the API keeps responses: its parameter store"`
	Include        []string          `yaml:"include" unset:"none" doc:"for responses: what else the API gives back with a response: its parameter include"`
	Reasoning      reasoningSetting  `yaml:"reasoning"`
	Verbosity      string            `yaml:"verbosity" unset:"the model's own" doc:"for responses: low, medium or high"`
	For            []string          `yaml:"for" unset:"everybody" doc:"principals who may use it; for all others it is not there"`

	Token func() (string, error) `yaml:"-"` // nil without a token; reads it anew each time
}

// reasoningSetting is how the model of an agent of ours thinks.
type reasoningSetting struct {
	Effort    string `yaml:"effort" unset:"the model's own" doc:"for responses: none, minimal, low, medium, high or xhigh, as far as the model has it"`
	Summary   string `yaml:"summary" unset:"none" doc:"for responses: auto, concise or detailed"`
	Encrypted bool   `yaml:"encrypted" unset:"false" doc:"for responses: have reasoning given back encrypted, so that nothing is kept there unless store is true"`
}

// commandLimits bound what one command of an agent of ours may use. Its fields are those of [servers.Limits].
type commandLimits struct {
	Processes int `yaml:"processes" unset:"4096" doc:"for responses: how many processes and threads a command may have at a time"`
	MemoryMiB int `yaml:"memory_mib" unset:"8192" doc:"for responses: memory of all its processes together, in MiB; a command that takes more is ended"`
	TmpMiB    int `yaml:"tmp_mib" unset:"4096" doc:"for responses: what the /tmp of its commands may hold, in MiB; a command that fills it is ended, and /tmp emptied"`
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
	openAIURL     = "wss://api.openai.com/v1/realtime"
	defaultModel  = "gpt-realtime-2.1"
	openAIKey     = "OPENAI_API_KEY"
	ownerKey      = "SWITCHBOARD_KEY"
	ownerName     = "owner"
	localName     = "local" // the server of --codex
	defaultFile   = "switchboard.yaml"
	maxConfigSize = 64 << 10
)
