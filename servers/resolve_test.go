package servers

import (
	"slices"
	"strings"
	"testing"

	"switchboard/handoff"
)

// testSpecs is a fleet with names that are easily confused.
func testSpecs() []Spec {
	return []Spec{
		{Name: "bigpc", Aliases: []string{"big pc", "the desktop"}, Host: "bigpc.tail1234.ts.net",
			Projects: map[string]string{"shop": "/src/shop", "api": "/src/api"}},
		{Name: "laptop", Host: "10.0.0.7", Projects: map[string]string{"api": "/w/api", "billing": "/w/billing"}},
		{Name: "node1", Aliases: []string{"build one"}, Host: "build.example.com"},
		{Name: "node2", Aliases: []string{"build two"}, Host: "build.example.com"},
		{Name: "Mac-Mini", Host: "mini.local", Projects: map[string]string{"web site": "/site", "laptop": "/lap"}},
		{Name: "server", Aliases: []string{"Büro"}},
		{Name: "staging-eu", Aliases: []string{"eu"}},
		{Name: "staging-us", Aliases: []string{"us"}},
		{Name: "gpu21"},
	}
}

const (
	unknown   = handoff.CodeUnknownServer
	ambiguous = handoff.CodeAmbiguousServer
	malformed = handoff.CodeMalformed
)

// resolveRows are names and what they mean in the fleet of testSpecs. Set once.
var resolveRows = []struct {
	said    string
	server  string
	project string
	code    handoff.Code
	choices string
}{
	// names
	{said: "bigpc", server: "bigpc"},
	{said: "BIGPC", server: "bigpc"},
	{said: " bigpc ", server: "bigpc"},
	{said: "big pc", server: "bigpc"},
	{said: "Big-PC", server: "bigpc"},
	{said: "big_pc.", server: "bigpc"},
	{said: "Big P C", server: "bigpc"},
	{said: "the big pc", server: "bigpc"},
	{said: "my big PC, please", server: "bigpc"},
	{said: "on bigpc", server: "bigpc"},
	{said: "laptop", server: "laptop"},
	{said: "the laptop", server: "laptop"},
	{said: "lap top", server: "laptop"},
	{said: "on my laptop", server: "laptop"},
	{said: "mac mini", server: "Mac-Mini"},
	{said: "macmini", server: "Mac-Mini"},
	{said: "the Mac Mini", server: "Mac-Mini"},
	{said: "server", server: "server"},
	{said: "Server", server: "server"},
	{said: "büro", server: "server"},
	{said: "BÜRO", server: "server"},
	{said: "our Büro", server: "server"},
	// aliases
	{said: "the desktop", server: "bigpc"},
	{said: "desktop", server: "bigpc"},
	{said: "The Desktop!", server: "bigpc"},
	{said: "my desktop", server: "bigpc"},
	{said: "desktop computer", server: "bigpc"},
	{said: "build one", server: "node1"},
	{said: "build 1", server: "node1"},
	{said: "Build-Two", server: "node2"},
	{said: "eu", server: "staging-eu"},
	{said: "EU", server: "staging-eu"},
	// numbers
	{said: "node1", server: "node1"},
	{said: "node 1", server: "node1"},
	{said: "node one", server: "node1"},
	{said: "Node Two", server: "node2"},
	{said: "node-2", server: "node2"},
	{said: "gpu 21", server: "gpu21"},
	{said: "gpu twenty one", server: "gpu21"},
	{said: "GPU twenty-one", server: "gpu21"},
	{said: "g p u twenty one", server: "gpu21"},
	{said: "node3", code: unknown},
	{said: "node three", code: unknown},
	{said: "node 12", code: unknown},
	{said: "node", code: unknown},
	{said: "gpu22", code: unknown},
	// hosts
	{said: "bigpc.tail1234.ts.net", server: "bigpc"},
	{said: "mini.local", server: "Mac-Mini"},
	{said: "mini", server: "Mac-Mini"},
	{said: "the mini", server: "Mac-Mini"},
	{said: "10.0.0.7", server: "laptop"},
	{said: "10.0.0.8", code: unknown},
	{said: "10", code: unknown},
	{said: "build.example.com", code: ambiguous, choices: "node1, node2"},
	{said: "build", code: ambiguous, choices: "node1, node2"},
	{said: "the build machine", code: ambiguous, choices: "node1, node2"},
	// projects
	{said: "bigpc/shop", server: "bigpc", project: "shop"},
	{said: "bigpc/api", server: "bigpc", project: "api"},
	{said: "laptop/api", server: "laptop", project: "api"},
	{said: "Big PC / Shop", server: "bigpc", project: "shop"},
	{said: "shop on bigpc", server: "bigpc", project: "shop"},
	{said: "the shop on the desktop", server: "bigpc", project: "shop"},
	{said: "the shop project on my big pc", server: "bigpc", project: "shop"},
	{said: "api at laptop", server: "laptop", project: "api"},
	{said: "api in laptop", server: "laptop", project: "api"},
	{said: "bigpc shop", server: "bigpc", project: "shop"},
	{said: "on the laptop in the api repo", server: "laptop", project: "api"},
	{said: "shop", server: "bigpc", project: "shop"},
	{said: "the shop project", server: "bigpc", project: "shop"},
	{said: "billing", server: "laptop", project: "billing"},
	{said: "website", server: "Mac-Mini", project: "web site"},
	{said: "web site on mac mini", server: "Mac-Mini", project: "web site"},
	{said: "mac-mini/web-site", server: "Mac-Mini", project: "web site"},
	{said: "mac-mini/laptop", server: "Mac-Mini", project: "laptop"},
	{said: "mini/website", server: "Mac-Mini", project: "web site"},
	{said: "api", code: ambiguous, choices: "api on bigpc, api on laptop"},
	{said: "the API project", code: ambiguous, choices: "api on bigpc, api on laptop"},
	{said: "bigpc/billing", code: unknown, choices: "bigpc, api on bigpc, shop on bigpc"},
	{said: "laptop/bilings", code: unknown, choices: "billing on laptop"},
	{said: "laptop/biling", server: "laptop", project: "billing"},
	{said: "bigpc/", code: unknown},
	{said: "/shop", code: unknown},
	{said: "nowhere/shop", code: unknown},
	{said: "bigpc/shop/api", code: unknown},
	// misheard
	{said: "labtop", code: ambiguous, choices: "laptop, laptop on Mac-Mini"},
	{said: "big pz", server: "bigpc"},
	{said: "bgi pc", server: "bigpc"},
	{said: "bigpcs", server: "bigpc"},
	{said: "on the servr", server: "server"},
	{said: "the dezktop", server: "bigpc"},
	{said: "biling", server: "laptop", project: "billing"},
	{said: "mac minni", server: "Mac-Mini"},
	{said: "staging", code: unknown},
	{said: "staging e", code: unknown, choices: "staging-eu, staging-us"},
	{said: "staging eu", server: "staging-eu"},
	{said: "stop", code: unknown},
	{said: "bgpc", code: unknown, choices: "bigpc"},
	{said: "ship", code: unknown},
	{said: "ap", code: unknown},
	{said: "big", code: unknown},
	// nothing that could be a name
	{said: "", code: malformed, choices: "bigpc, laptop, node1, node2, Mac-Mini, server, staging-eu, staging-us, gpu21"},
	{said: "  ", code: malformed},
	{said: "the", code: unknown},
	{said: "...", code: unknown},
	{said: "/", code: unknown},
	{said: "unknown", code: unknown,
		choices: "bigpc, laptop, node1, node2, Mac-Mini, server, staging-eu, staging-us, gpu21"},
	{said: "localhost", code: unknown},
	{said: "\x00\xff", code: unknown},
	{said: strings.Repeat("bigpc ", 100), code: unknown},
}

func TestResolveServer(t *testing.T) {
	t.Parallel()
	book := newNamebook(testSpecs())
	for _, row := range resolveRows {
		at, fault := book.resolve(row.said)
		switch {
		case row.code == "" && fault != nil:
			t.Errorf("%q: %v, choices %q", row.said, fault, fault.Choices)
		case row.code != "" && (fault == nil || fault.Code != row.code):
			t.Errorf("%q: got %+v and %v, want code %s", row.said, at, fault, row.code)
		case row.code == "" && at != (place{row.server, row.project}):
			t.Errorf("%q: got %+v, want %s/%s", row.said, at, row.server, row.project)
		case fault != nil && row.choices != "" && strings.Join(fault.Choices, ", ") != row.choices:
			t.Errorf("%q: choices %q, want %q", row.said, fault.Choices, row.choices)
		}
	}
	if len(resolveRows) < 80 {
		t.Errorf("only %d rows", len(resolveRows))
	}
}

func TestResolveWithoutNaming(t *testing.T) {
	t.Parallel()
	one := newNamebook([]Spec{{Name: "bigpc"}})
	if at, fault := one.resolve(""); fault != nil || at.server != "bigpc" {
		t.Errorf("the only server: %+v, %v", at, fault)
	}
	none := newNamebook(nil)
	for _, said := range []string{"", "bigpc"} {
		if _, fault := none.resolve(said); fault == nil || len(fault.Choices) != 0 {
			t.Errorf("no servers, %q: %v", said, fault)
		}
	}
	if _, fault := newNamebook(testSpecs()).resolve(""); !strings.Contains(fault.Spoken(), "which machine is meant") {
		t.Errorf("spoken: %s", fault.Spoken())
	}
}

// TestEveryNameFindsItself: every name that the fleet shows is resolved to its place.
func TestEveryNameFindsItself(t *testing.T) {
	t.Parallel()
	specs := testSpecs()
	book := newNamebook(specs)
	for _, s := range specs {
		for _, name := range append([]string{s.Name}, s.Aliases...) {
			for _, form := range []string{name, strings.ToUpper(name), "the " + name, name + "."} {
				if at, fault := book.resolve(form); fault != nil || at != (place{server: s.Name}) {
					t.Errorf("%q: %+v, %v", form, at, fault)
				}
			}
		}
		for project := range s.Projects {
			at := place{s.Name, project}
			for _, form := range []string{s.Name + "/" + project, at.say()} {
				if got, fault := book.resolve(form); fault != nil || got != at {
					t.Errorf("%q: %+v, %v", form, got, fault)
				}
			}
		}
	}
}

func FuzzResolveServer(f *testing.F) {
	for _, s := range testSpecs() {
		f.Add(s.Name)
		f.Add("the " + s.Host)
	}
	f.Add("api on big pc")
	f.Add("a/b/c")
	f.Add("İ\u0307 twenty twenty-one")
	book := newNamebook(testSpecs())
	f.Fuzz(func(t *testing.T, said string) {
		at, fault := book.resolve(said)
		again, faultAgain := book.resolve(said)
		if at != again || (fault == nil) != (faultAgain == nil) {
			t.Fatalf("%q: %+v, then %+v", said, at, again)
		}
		if fault == nil {
			if !slices.Contains(book.servers, at.server) || at.project != "" &&
				!slices.Contains(book.dirs[at.server], at.project) {
				t.Fatalf("%q made up %+v", said, at)
			}
			if got, fault := book.resolve(at.say()); fault != nil || got != at {
				t.Fatalf("%q: %q does not lead back: %+v, %v", said, at.say(), got, fault)
			}
			return
		}
		if fault.Code == handoff.CodeAmbiguousServer && (len(fault.Choices) < 2 || len(fault.Choices) > maxChoices) {
			t.Fatalf("%q: %d choices", said, len(fault.Choices))
		}
		for _, choice := range fault.Choices {
			if _, fault := book.resolve(choice); fault != nil {
				t.Fatalf("%q: choice %q leads nowhere: %v", said, choice, fault)
			}
		}
	})
}

// TestOtherWordsInOtherScripts: words are compared by letters, not bytes, in all scripts. Words that only begin alike
// are different words.
func TestOtherWordsInOtherScripts(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, said string }{
		{"база", "банк"}, {"сервер", "серый"}, {"生产服务器", "生产数据库"}, {"prod", "prop"},
	} {
		b := newNamebook([]Spec{{Name: row.name}, {Name: "laptop"}})
		if at, fault := b.resolve(row.said); fault == nil {
			t.Errorf("%q was taken for %q", row.said, at.server)
		}
		if at, fault := b.resolve(row.name); fault != nil || at.server != row.name {
			t.Errorf("%q: %v %v", row.name, at, fault)
		}
	}
}
