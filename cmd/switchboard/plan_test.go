package main

import (
	"errors"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchboard/servers"
	"switchboard/servers/responses"
	"switchboard/web"
)

func found(string) (string, error)    { return "/bin/codex", nil }
func notFound(string) (string, error) { return "", exec.ErrNotFound }

// TestLocalCodex holds when the codex of this machine is used: named, or with a key for a real voice and
// no other server. Without either nothing real is touched.
func TestLocalCodex(t *testing.T) {
	key := modelSettings{URL: openAIURL, Key: newSecret("sk-0000000000000000")}
	local := localServer()
	other := servers.Spec{Name: "bigpc", Kind: "codex", Own: codexAt("ws://127.0.0.1:4500")}
	for _, tc := range []struct {
		name  string
		s     settings
		look  func(string) (string, error)
		names string
		fails bool
	}{
		{"nothing", settings{}, found, "", false},
		{"a key", settings{Model: key}, found, "local", false},
		{"a key and no codex", settings{Model: key}, notFound, "", false},
		{"a key and a server", settings{Model: key, Servers: []servers.Spec{other}}, found, "bigpc", false},
		{"--codex", settings{Servers: []servers.Spec{local}}, found, "local", false},
		{"--codex and no codex", settings{Servers: []servers.Spec{local}}, notFound, "", true},
		{"a broken PATH", settings{Model: key}, func(string) (string, error) { return "", errors.New("odd") }, "", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := tc.s.plan(t.TempDir(), tc.look)
			if tc.fails {
				if err == nil {
					t.Fatal("accepted")
				}
				return
			}
			must(t, err)
			var names []string
			for _, s := range p.Servers {
				names = append(names, s.Name)
			}
			if got := strings.Join(names, ","); got != tc.names {
				t.Errorf("servers %q, want %q", got, tc.names)
			}
		})
	}
}

// TestMediaIsWhereThePageIs holds the default of the address that sound flows to.
func TestMediaIsWhereThePageIs(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		s          settings
	}{
		{"loopback", "", settings{Listen: "127.0.0.1:8080"}},
		{"a public address", "0.0.0.0:0", settings{Listen: "127.0.0.1:8080", PublicURL: "https://bigpc.example.ts.net"}},
		{"everywhere", "0.0.0.0:0", settings{Listen: "0.0.0.0:8080"}},
		{"set", "10.0.0.1:8443",
			settings{Listen: "127.0.0.1:8080", Media: mediaSettings{UDP: netip.MustParseAddrPort("10.0.0.1:8443")}}},
	} {
		if got := tc.s.media().UDP; got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestWhoseWorkEndsWithUs: a child and an agent of ours go with the process, a server that is dialled does not.
func TestWhoseWorkEndsWithUs(t *testing.T) {
	for own, ends := range map[servers.Settings]bool{
		localServer().Own: true, &responses.Settings{URL: "https://api.openai.com/v1"}: true,
		codexAt("ws://127.0.0.1:4500"): false,
	} {
		var s servers.Spec
		if own.Describe(&s); s.EndsWithUs != ends {
			t.Errorf("%+v: %t", own, s.EndsWithUs)
		}
	}
}

// What a call costs is known for the model that is used by default at OpenAI, and where the prices are given.
func TestPrices(t *testing.T) {
	for _, c := range []struct {
		name string
		m    modelSettings
		want *web.Prices
	}{
		{"by default", modelSettings{URL: openAIURL, Name: defaultModel},
			&web.Prices{TextIn: 4, TextCached: 0.4, TextOut: 24, AudioIn: 32, AudioCached: 0.4, AudioOut: 64}},
		{"another model", modelSettings{URL: openAIURL, Name: "other"}, nil},
		{"another place", modelSettings{URL: "wss://voice.example.com/v1/realtime", Name: defaultModel}, nil},
		{"simulated", modelSettings{Name: defaultModel}, nil},
		{"given", modelSettings{URL: openAIURL, Name: defaultModel, Prices: priceSettings{AudioOut: 20}},
			&web.Prices{AudioOut: 20}},
	} {
		if got := c.m.prices(); !cmp.Equal(got, c.want) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
