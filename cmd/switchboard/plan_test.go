package main

import (
	"errors"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchboard/realtime/models"
	"switchboard/servers"
	"switchboard/servers/responses"
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

// What a call costs is known for the models of OpenAI, and where the prices are given. The page is told that of the
// model which calls have by default.
func TestPrices(t *testing.T) {
	listed, _ := models.Known(defaultModel)
	mini, _ := models.Known("gpt-realtime-mini")
	dearest, given := models.Dearest(), models.Prices{AudioOut: 20}
	elsewhere := "wss://voice.example.com/v1/realtime"
	for _, c := range []struct {
		name        string
		m           modelSettings
		want, other *models.Prices // of the model, and of another one that a client names
	}{
		{"by default", modelSettings{URL: openAIURL, Name: defaultModel}, &listed.Prices, &dearest},
		{"a smaller one", modelSettings{URL: openAIURL + "?x=1", Name: "gpt-realtime-mini"}, &mini.Prices, &dearest},
		{"one that is not listed", modelSettings{URL: openAIURL, Name: "other"}, &dearest, &dearest},
		{"given", modelSettings{URL: openAIURL, Name: defaultModel, Prices: given}, &given, &dearest},
		{"another place", modelSettings{URL: elsewhere, Name: defaultModel}, nil, nil},
		{"given for another place", modelSettings{URL: elsewhere, Name: "m", Prices: given}, &given, &given},
		{"simulated", modelSettings{Name: defaultModel}, nil, nil},
		{"given for a simulated one", modelSettings{Name: defaultModel, Prices: given}, &given, &given},
	} {
		if got := pagePrices(c.m); !cmp.Equal((*models.Prices)(got), c.want) {
			t.Errorf("%s: %+v", c.name, got)
		}
		if got, known := c.m.tariff().Of("gpt-realtime-9"); known != (c.other != nil) || known && got != *c.other {
			t.Errorf("%s, another one: %+v, %v", c.name, got, known)
		}
	}
}

// TestWayOfTheSound: the page's sound goes to OpenAI's models directly, to others where that was asked for.
func TestWayOfTheSound(t *testing.T) {
	for _, c := range []struct {
		url, media string
		direct     bool
	}{
		{openAIURL, "", true}, {openAIURL, mediaThrough, false}, {openAIURL, mediaDirect, true},
		{"wss://voice.example.com/v1/realtime", "", false}, {"wss://voice.example.com/v1/realtime", mediaDirect, true},
		{"wss://a.openai.azure.com/openai/v1/realtime", "", false}, {"", "", false}, {"", mediaDirect, true},
	} {
		if m := (modelSettings{URL: c.url, Media: c.media}); m.direct() != c.direct {
			t.Errorf("%q, media %q: direct is %v", c.url, c.media, m.direct())
		}
	}
}
