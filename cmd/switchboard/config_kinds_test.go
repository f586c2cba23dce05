package main

import (
	"context"
	"iter"
	"strings"
	"testing"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers"
)

// An abacus is a kind of agent server that exists in this test alone. It has a setting of its own, and is reached by
// the transports that there are and by one that is made up too.
type abacus struct {
	Beads beads  `yaml:"beads"`
	Cwd   string `yaml:"cwd" doc:"where it counts"`

	way  servers.Way
	ways servers.Ways
}

type beads struct {
	Rows  int      `yaml:"rows" doc:"how many rows it has"`
	Color []string `yaml:"color" doc:"of each row"`
}

func (a *abacus) Rows() []any { return append([]any{a}, a.ways.Rows()...) }

func (a *abacus) Check(to servers.Report, files servers.Files) {
	if a.Beads.Rows > 10 {
		to.Bad("beads.rows", "nobody counts on %d rows", a.Beads.Rows)
	}
	for i, color := range a.Beads.Color {
		to.OneOf(elem("beads.color", i), color, "red", "black")
	}
	a.way = a.ways.Choose(to, files)
}

func (a *abacus) Describe(s *servers.Spec) {
	if s.Dir = a.Cwd; a.way != nil {
		a.way.Describe(s)
	}
}

// A pigeon is a transport that exists in this test alone.
type pigeon struct {
	Loft    string `yaml:"loft" doc:"where it flies to"`
	Carries int    `yaml:"carries" doc:"grams"`
}

func (p *pigeon) Check(to servers.Report, files servers.Files) {
	if p.Carries > 75 {
		to.Bad("carries", "is too heavy for it")
	}
	p.Loft = files.Path(p.Loft)
}

func (p *pigeon) Describe(s *servers.Spec) { s.About.Address, s.Remote = "loft:"+p.Loft, true }

func (p *pigeon) Open(_ context.Context, end servers.End) (servers.Wire, error) {
	return nil, handoff.Fault(handoff.CodeUnreachable, end.Server, "no pigeon came back from "+p.Loft)
}

// withAbacus are the kinds of the program and one more, with one more transport.
func withAbacus() []servers.Kind {
	ways := append(transports(nil), servers.Transport{Row: "loft", New: func() servers.Way { return new(pigeon) }, Takes: func(address string) (string, bool) {
		return strings.CutPrefix(address, "loft:")
	}})
	return append(kinds(nil, nil), servers.Kind{
		Name: "abacus", Takes: servers.Taking(ways, func([]string) bool { return false }), New: func() servers.Settings { return &abacus{ways: servers.NewWays(ways)} },
		Dial: func(s servers.Spec, log *zap.Logger) (servers.Dial, iter.Seq[handoff.Metric]) {
			return func(ctx context.Context) (*servers.Link, error) {
				_, err := s.Own.(*abacus).way.Open(ctx, servers.End{Server: s.Name, Dir: s.Dir, Log: log})
				return nil, err
			}, nil
		},
	})
}

// TestAnotherKind: a kind and a transport of it are a package and a line each. Nothing else knows their settings, and
// what is wrong in them is told with file, line and column as of any other, all at once.
func TestAnotherKind(t *testing.T) {
	load := func(text string) (*settings, error) {
		return settingsOf(&options{}, func(string) string { return "" }, "/etc/my.yaml", []byte(text), withAbacus())
	}
	s, err := load(`servers:
  - {name: mini, kind: abacus, loft: roof, carries: 75, beads: {rows: 10, color: [red, black]}, cwd: /src}
  - {name: attic, kind: abacus, unix: /run/abacus.sock}
`)
	must(t, err)
	mini := s.Servers[0]
	kind, _ := kindNamed(withAbacus(), mini.Kind)
	dial, _ := kind.Dial(mini, zap.NewNop())
	if _, err := dial(t.Context()); err == nil || !strings.Contains(err.Error(), "no pigeon came back from /etc/roof") {
		t.Errorf("dialled: %v", err)
	}
	if mini.Dir != "/src" || mini.About.Address != "loft:/etc/roof" ||
		s.Servers[1].About.Address != "unix:/run/abacus.sock" {
		t.Errorf("%+v", s.Servers)
	}
	_, err = load(`servers:
  - name: mini
    kind: abacus
    beads: {rows: 11, colour: red, color: [red, blak]}
    loft: roof
    carries: much
    env: [A]
    sandbox: read-only
  - {name: attic, kind: abacus, loft: roof, url: "ws://127.0.0.1:1"}
  - {name: box, kind: codex, url: "ws://127.0.0.1:1", beads: {rows: 1}}
  - {name: bird, kind: abacus, loft: roof, carries: 76, worms: 3}
`)
	wantProblems(t, err, `/etc/my.yaml:4:19: servers[0].beads.rows: nobody counts on 11 rows`,
		`/etc/my.yaml:4:23: unknown key "colour"; did you mean "color"?`,
		`/etc/my.yaml:4:49: servers[0].beads.color[1]: "blak" is unknown; did you mean "black"?`,
		`/etc/my.yaml:6:14: servers[0].carries must be a whole number from 0 to 1000000, not "much"`,
		`/etc/my.yaml:7:10: servers[0].env: goes with command only`,
		`/etc/my.yaml:8:5: servers[0].sandbox: is not for servers of kind abacus`,
		`/etc/my.yaml:9:6: servers[1]: needs one of url, unix, ssh, joined, command and loft`,
		`/etc/my.yaml:10:55: servers[2].beads: is not for servers of kind codex`,
		`/etc/my.yaml:11:53: servers[3].carries: is too heavy for it`,
		`/etc/my.yaml:11:57: unknown key "worms"; there is name, aliases, kind, projects, voice_approvals, watch, for, beads, cwd, url, token_file, `+
			`token_env, allow_plaintext, unix, ssh, joined, command, env, loft, carries`,
	)
}

// TestAddAnotherKind: `switchboard add` knows the addresses of a new kind and transport too.
func TestAddAnotherKind(t *testing.T) {
	for _, tt := range []struct {
		verb adding
		want string
	}{
		{adding{where: []string{"loft:roof"}}, "name: a|kind: abacus|loft: roof"},
		{adding{where: []string{"unix:/run/a.sock"}, set: []string{"kind=abacus"}}, "name: a|unix: /run/a.sock|kind: abacus"},
		{adding{where: []string{"counts", "beads"}, set: []string{"kind=abacus"}}, "name: a|command: [counts, beads]|kind: abacus"},
		{adding{where: []string{"unix:/run/a.sock"}}, "name: a|kind: codex|unix: /run/a.sock"},
		{adding{where: []string{"https://api.example/v1"}}, "name: a|kind: responses|url: https://api.example/v1"},
		{adding{where: []string{"ftp://example"}}, "name: a|kind: codex|url: ftp://example"},
	} {
		tt.verb.name = "a"
		lines, err := tt.verb.entry(withAbacus())
		if got := strings.Join(lines, "|"); err != nil || got != tt.want {
			t.Errorf("%v: %q, %v; want %q", tt.verb.where, got, err, tt.want)
		}
	}
}
