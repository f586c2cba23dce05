package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// values are where the flags and arguments of a test go.
type values struct {
	Config         Text
	Name, Query    string
	Limit          int
	Speed          float64
	Watch          bool
	Set, Dirs, All []string
}

// tool returns a program with a verb of every kind of flag.
func tool(v *values, env map[string]string) *Program {
	return &Program{
		Name: "tool", About: "A tool.", Version: "tool v1", Env: func(name string) string { return env[name] },
		Flags: []Flag{{Name: "config", Env: "TOOL_CONFIG", Value: "FILE", Into: &v.Config, Help: "where it is"}},
		Verbs: []*Verb{
			{Name: "serve", Help: "Serve."},
			{Name: "list", Alias: "ls", Group: "Others", Help: "List all.", Uses: []string{},
				Args: []Arg{{Name: "name", Into: &v.Name, Help: "Whose."},
					{Name: "word", Into: &v.All, Optional: true, Help: "What else."}},
				Flags: []Flag{
					{Name: "query", Short: "q", Value: "WORDS", Into: &v.Query, Not: "watch", Help: "Which."},
					{Name: "limit", Value: "N", Into: &v.Limit, Help: "How many."},
					{Name: "speed", Value: "X", Into: &v.Speed, Help: "How fast."},
					{Name: "watch", Short: "w", Into: &v.Watch, Help: "Go on."},
					{Name: "set", Value: "A=B", Into: &v.Set, Help: "May be given again."},
					{Name: "dir", Value: "DIR", Into: &v.Dirs, Commas: true, Help: strings.Repeat("word ", 20)},
					{Name: "secret", Into: new(bool), Hidden: true},
				},
				Examples: []string{"tool list me", "tool ls you"}, More: "That is all."},
		},
	}
}

// TestParse: flags stand anywhere, their values behind = or in the next word, and after -- all are arguments.
func TestParse(t *testing.T) {
	for line, want := range map[string]values{
		"":                            {},
		"--config a":                  {Config: Text{"a", "--config"}},
		"--config=":                   {Config: Text{"", "--config"}},
		"list me":                     {Name: "me"},
		"--config a ls me -w":         {Name: "me", Watch: true, Config: Text{"a", "--config"}},
		"ls --limit 3 me -q=a b c":    {Name: "me", Limit: 3, Query: "a", All: []string{"b", "c"}},
		"ls me -qa --speed=-1.5 -":    {Name: "me", Query: "a", Speed: -1.5, All: []string{"-"}},
		"ls me --watch=false":         {Name: "me"},
		"ls me --set a=b,c --set d=e": {Name: "me", Set: []string{"a=b,c", "d=e"}},
		"ls me --dir a,b --dir c":     {Name: "me", Dirs: []string{"a", "b", "c"}},
		"ls me -- --limit -- x":       {Name: "me", All: []string{"--limit", "--", "x"}},
	} {
		var got values
		verb, text, err := tool(&got, nil).Parse(strings.Fields(line))
		if diff := cmp.Diff(want, got); diff != "" || err != nil || text != "" || (verb.Name == "list") != strings.Contains(line, "me") {
			t.Errorf("%q: %v, %q, %v (-want +got):\n%s", line, verb, text, err, diff)
		}
	}
	for _, args := range [][]string{{}, {"--config", "b"}} { // the line wins over the environment
		var got values
		if _, _, err := tool(&got, map[string]string{"TOOL_CONFIG": "a"}).Parse(args); err != nil ||
			got.Config.From != map[int]string{0: "TOOL_CONFIG", 2: "--config"}[len(args)] {
			t.Errorf("%q: %+v, %v", args, got.Config, err)
		}
	}
}

// TestHelp: the help of a verb shows what it takes, and that of the program all verbs, in lines of at most 80 columns.
func TestHelp(t *testing.T) {
	const program = `Usage: tool <command> [flags]

A tool.

Flags:
  -h, --help           Show context-sensitive help.
      --config=FILE    where it is ($TOOL_CONFIG)
      --version        say which version this is

Commands:
  serve    Serve.

Others
  list (ls)    List all.

Run "tool <command> --help" for more information on a command.
`
	const list = `Usage: tool list <name> [<word> ...] [flags]

List all.

Examples:

    tool list me

    tool ls you

That is all.

Arguments:
  <name>          Whose.
  [<word> ...]    What else.

Flags:
  -h, --help           Show context-sensitive help.

  -q, --query=WORDS    Which.
      --limit=N        How many.
      --speed=X        How fast.
  -w, --watch          Go on.
      --set=A=B        May be given again.
      --dir=DIR        word word word word word word word word word word word
                       word word word word word word word word word
`
	for line, want := range map[string]string{
		"--help": program, "-h": program, "ls -h": list, "list --help --limit 3": list, "--version": "tool v1\n",
	} {
		var got values
		verb, text, err := tool(&got, nil).Parse(strings.Fields(line))
		if diff := cmp.Diff(want, text); diff != "" || verb != nil || err != nil {
			t.Errorf("%q: %v, %v (-want +got):\n%s", line, verb, err, diff)
		}
	}
}
