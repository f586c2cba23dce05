package main

import (
	"slices"
	"strings"
)

// An importRule says what of ours a package may import, and why not more.
type importRule struct {
	pkg     string
	may     []string
	inTests []string // besides: suites and simulators of the same side
	because string
}

// ourImports is the import table: an import line tells which side of the house a file is on.
func ourImports() []importRule {
	return []importRule{
		{"handoff", nil, nil, "it is the language; if it knew one adapter, every adapter would know every other"},
		{"handoff/consent", []string{"handoff"}, nil, "it decides about words alone, and can be read alone"},
		{"handoff/speakable", []string{"handoff"}, nil, "a pure decision; it can be read alone"},
		{"handoff/risk", []string{"handoff"}, nil, "a pure decision; it can be read alone"},
		{"handoff/phase", []string{"handoff"}, nil, "a pure decision; it can be read alone"},
		{"handoff/work", []string{"handoff", "handoff/ledger", "handoff/phase", "handoff/risk", "handoff/wording"}, nil,
			"all decisions about a caller; they can be read without a store, a server or a call"},
		{"handoff/ledger", []string{"handoff"}, nil, "it is what a store keeps, and decides nothing"},
		{"handoff/threads", []string{"handoff"}, nil, "a pure decision; it can be read alone"},
		{"handoff/wording", []string{"handoff", "handoff/speakable"}, nil, "sentences decide nothing"},
		{"handoff/evidence", []string{"handoff", "handoff/risk", "handoff/consent"}, nil, "it judges what was heard, and says nothing"},
		{"handoff/speech", []string{"handoff", "handoff/speakable", "handoff/wording"}, nil, "it says what is said when, to whoever listens"},
		{"handoff/tools", []string{"handoff", "handoff/wording"}, nil, "it declares what it needs of a router; the router never imports it for that"},
		{"handoff/router", []string{"handoff", "handoff/ledger", "handoff/risk", "handoff/work"}, nil,
			"it does what package work decides, and knows no call; no decision needs the router"},
		{"handoff/homes", []string{"handoff", "handoff/ledger", "handoff/router"},
			[]string{"sessions/redis", "sessions/sessionstest"},
			"it gives each caller a router, and knows no more than routers do; several instances are tested over the store that they share"},
		{"handoff/call", []string{"handoff", "handoff/consent", "handoff/evidence", "handoff/speech", "handoff/tools", "handoff/wording"},
			[]string{"handoff/call/calltest", "handoff/homes", "handoff/ledger", "handoff/router"},
			"it is the only room that knows a voice, and asks for work through interfaces; its ladders are whole conversations, so they need a router and a ledger beneath it"},
		{"handoff/call/calltest",
			[]string{"handoff", "handoff/homes", "handoff/ledger", "handoff/router"}, nil,
			"it plays conversations with whatever kind of agent, so it may know none"},
		{"realtime", []string{"handoff", "realtime/events", "realtime/floor", "realtime/filter", "realtime/models", "realtime/outbound", "realtime/recall", "realtime/rtc", "realtime/ticks"}, []string{"realtime/rtc/rtctest", "realtime/simulator"},
			"it must not know servers: the same router serves Realtime now, others later"},
		{"realtime/codec", nil, nil, "it is arithmetic"},
		{"realtime/events", nil, nil, "it knows the wire's words, and decides nothing"},
		{"realtime/floor", []string{"handoff", "realtime/events"}, nil, "a pure decision; it can be read alone"},
		{"realtime/filter", []string{"handoff", "realtime/events"}, nil, "a pure decision; it can be read alone"},
		{"realtime/models", nil, nil, "it is what is published of voice models, and decides nothing"},
		{"realtime/outbound", []string{"handoff"}, nil, "it is what legs share, so it may know none"},
		{"realtime/ticks", nil, nil, "it writes down what it is given"},
		{"realtime/recall", []string{"realtime/events", "realtime/filter"}, nil, "it remembers a conversation, and decides nothing"},
		{"realtime/rtc", []string{"handoff", "realtime/codec", "realtime/events", "realtime/outbound"}, []string{"realtime/rtc/rtctest"}, "it carries a call and must not know what that does"},
		{"realtime/rtc/rtctest", []string{"handoff"}, nil, "it is a browser, and knows the wire alone"},
		{"realtime/simulator", []string{"handoff", "handoff/speakable", "handoff/tools", "handoff/wording", "realtime"}, []string{"realtime/rtc/rtctest"}, "it is a voice model's far end, and knows the wire alone"},
		{"servers", []string{"handoff", "servers/spoken", "servers/trees"}, []string{"servers/serverstest", "servers/simulator"},
			"it must not know voice, nor the kinds of servers: an agent is asked, not spoken to"},
		{"servers/spoken", nil, nil, "it compares names, and knows nothing that has one"},
		{"servers/turns", []string{"handoff"}, nil, "it is bookkeeping that any kind of server needs, so it may know none"},
		{"servers/transport", []string{"handoff", "servers"}, []string{"servers/serverstest", "sessions/sessionstest"}, "it is a way to an agent server that kinds share, so it may know none"},
		{"servers/joined", []string{"handoff", "servers", "servers/transport"}, nil,
			"it is a way to agents on machines that joined, which kinds share, so it may know none"},
		{"servers/joined/host", []string{"handoff", "servers", "servers/acp", "servers/codex", "servers/joined", "servers/joined/mux", "servers/transport", "servers/trees"},
			[]string{"servers/acp/simulator", "servers/serverstest", "servers/simulator"},
			"it is the far end of a line, and knows the service by its key alone, and of the kinds their names"},
		{"servers/joined/mux", []string{"handoff", "servers", "servers/transport"}, nil,
			"it keeps any agent of a protocol, and must not know who is attached"},
		{"servers/trees", []string{"handoff"}, []string{"servers"}, "it knows git, and no way to a machine"},
		{"servers/jsonrpc", []string{"handoff", "servers", "servers/trees"}, nil, "it is a connection that kinds share, so it may know none"},
		{"servers/codex", []string{"handoff", "servers", "servers/jsonrpc", "servers/trees", "servers/turns"},
			[]string{"handoff/risk", "servers/serverstest", "servers/simulator", "servers/transport"},
			"it must not know voice, nor another kind"},
		{"servers/acp", []string{"handoff", "servers", "servers/jsonrpc", "servers/trees", "servers/turns"},
			[]string{"handoff/risk", "servers/acp/simulator", "servers/joined/mux", "servers/serverstest", "servers/simulator", "servers/transport"},
			"it must not know voice, nor another kind"},
		{"servers/acp/simulator", []string{"servers/simulator"}, nil,
			"it is an agent's far end, and knows the wire alone; what a simulated agent can do is said with the same steps everywhere"},
		{"servers/responses", []string{"handoff", "handoff/threads", "servers", "servers/turns", "servers/responses/sandbox",
			"servers/responses/wire", "servers/responses/workspace"},
			[]string{"servers/responses/simulator", "servers/serverstest", "sessions/redis", "sessions/sessionstest", "sessions/sqlite"},
			"it must not know voice, nor another kind"},
		{"servers/responses/simulator", []string{"handoff", "handoff/threads", "servers/responses/wire",
			"servers/responses/workspace", "servers/simulator"}, nil,
			"it is a model's far end, and what agents of this kind work with where nothing is real; what happens on a simulated machine is decided in one place"},
		{"servers/responses/wire", []string{"handoff"}, nil, "it is what both ends of the API read and write, so it may know neither"},
		{"servers/responses/workspace", []string{"handoff", "handoff/risk", "servers/responses/sandbox"}, nil, "it knows a directory, and neither model nor turn; when it asks follows from how risky an act is"},
		{"servers/responses/sandbox", nil, nil, "it knows the kernel, and no agent"},
		{"servers/simulator", []string{"handoff", "servers"}, []string{"servers/serverstest"}, "it is an agent server's far end, and knows the wire alone"},
		{"servers/serverstest", []string{"handoff", "servers"}, nil, "it holds every kind, so it may know none"},
		{"sessions", []string{"handoff", "handoff/ledger"}, nil, "it is what the stores share, so it may know none"},
		{"sessions/redis", []string{"handoff", "handoff/ledger", "handoff/threads", "sessions"}, []string{"sessions/sessionstest"}, "it only remembers, and is not the other store"},
		{"sessions/sqlite", []string{"handoff", "handoff/ledger", "handoff/threads", "sessions"}, []string{"sessions/sessionstest"}, "it only remembers, and is not the other store"},
		{"sessions/sessionstest", []string{"handoff", "handoff/ledger", "handoff/threads", "sessions"}, nil, "it holds every store, so it may know none"},
		{"web", []string{"handoff", "handoff/ledger", "handoff/tools", "realtime", "sessions", "web/rich"}, []string{"web/bundler", "web/webtest"}, "it sees a fleet through handoff's interfaces"},
		{"web/bundler", nil, nil, "it is used where the page is made, and is no part of the program"},
		{"web/webtest", nil, nil, "it is a browser and hands in it, and knows nothing of the service"},
		{"web/mcp", []string{"handoff", "handoff/tools"}, nil, "it is a front over the table of tools, and knows no router, no voice and no page"},
		{"web/guarded", nil, nil, "it knows addresses, and not what is asked there"},
		{"web/oauth", []string{"handoff", "sessions", "web/guarded"}, nil, "it lets programs in whom a person allows, and knows no page and no key"},
		{"web/rich", nil, []string{"handoff"}, "it knows what a page may show of a text, and not whose text it is"},
		{"web/metrics", []string{"handoff"}, nil, "it knows a format, and not what the numbers mean"},
		{"web/peers", []string{"handoff"}, nil, "it carries requests between instances, and knows neither what has the homes nor what is asked"},
		{"web/push", []string{"handoff", "sessions", "web/guarded"}, nil, "it tells browsers and keeps who asked for it, and knows no page and no key"},
		{"web/notify", []string{"handoff", "web/guarded"}, nil, "it delivers notices, and knows no page and no key"},
		{"web/responses", []string{"handoff", "handoff/tools", "sessions"}, nil, "it is a front over runs, as a call is, and knows no voice and no page"},
		{"cmd/switchboard/cli", nil, nil, "it reads command lines, and knows no verb"},
		{"cmd/switchboard/traces", []string{"handoff"}, nil, "it knows a protocol of operators, and not what its spans mean"},
		{"cmd/switchboard/verbs", []string{"handoff", "cmd/switchboard/cli"}, nil, "it is a client of the API like any other, and knows no service"},
		{"cmd/switchboard", []string{"*"}, nil, "it is the only place where concrete types meet"},
	}
}

// timeless lists the rooms whose decisions follow from what they are given alone.
func timeless() []string {
	return []string{"handoff/risk", "handoff/speakable", "realtime/filter", "servers/spoken"}
}

// A libraryRule says who may import a module: nil: nobody. A name that ends in " tests" is that package's test files.
type libraryRule struct {
	module  string
	in      []string
	because string
}

// libraries lists every module that is imported at all.
func libraries() []libraryRule {
	return []libraryRule{
		{"github.com/pion/opus", []string{"realtime/codec"}, "it is a codec, and knows no packets"},
		{"github.com/pion/", []string{"realtime/rtc", "realtime/rtc/rtctest"}, "WebRTC is one way to carry a call"},
		{"github.com/redis/go-redis/", []string{"sessions/redis"}, "a Redis is one place to remember in"},
		{"modernc.org/sqlite", []string{"sessions/sqlite"}, "a file is another"},
		{"github.com/gorilla/websocket", []string{"realtime", "servers/transport", "servers/joined", "servers/joined/host", "realtime/simulator",
			"servers/simulator", "servers/codex tests", "web/peers tests", "cmd/switchboard tests"},
			"sockets belong to the fronts and the far ends"},
		{"github.com/hashicorp/yamux", []string{"servers/joined"}, "many connections share a line in one place"},
		{"github.com/tidwall/", []string{"realtime", "realtime/events", "realtime/filter", "realtime/recall", "realtime/rtc", "realtime/rtc/rtctest", "realtime/simulator"}, "only the relay patches foreign JSON without decoding it"},
		{"github.com/openai/openai-go/v3/live", nil, "it is slow to build; realtime is what clients use"},
		{"github.com/openai/openai-go/v3/packages/ssestream", []string{"servers/responses"}, "a model's answer is read in one place"},
		{"github.com/openai/openai-go/v3/", []string{"cmd/switchboard tests"}, "the tests call us with it; its types take long to build, and few are needed to ask a model"},
		{"github.com/openai/openai-go/v3", nil, "building it takes longer than all of Switchboard, and 2 GB: its subpackages do as well"},
		{"github.com/modelcontextprotocol/go-sdk/oauthex", []string{"web/oauth", "cmd/switchboard tests"}, "how clients find their way in is described there"},
		{"github.com/modelcontextprotocol/go-sdk/", []string{"web/mcp", "web/oauth tests", "cmd/switchboard tests"}, "other agents speak it in one place"},
		{"github.com/goccy/go-yaml", []string{"cmd/switchboard"}, "the file is read once"},
		{"go.opentelemetry.io/proto/otlp/trace/", []string{"cmd/switchboard tests"}, "what is sent is read back by tests; what sends it needs no library"},
		{"google.golang.org/protobuf/encoding/protojson", []string{"cmd/switchboard tests"}, "what is sent is read back by tests"},
		{"golang.org/x/sync/errgroup", []string{"handoff/homes"}, "how many callers are read at a time is bounded there"},
		{"golang.org/x/sync/singleflight", []string{"handoff/homes"}, "a home is taken once, whoever asks for it"},
		{"golang.org/x/sync/semaphore", []string{"web"}, "how much of requests is in memory is bounded there"},
		{"golang.org/x/time/rate", []string{"handoff/router", "web/oauth", "servers/joined"}, "how often work may be given, tokens asked for, and reports made, is counted there"},
		{"github.com/prometheus/client_golang/", []string{"web/metrics", "handoff/router", "cmd/switchboard tests"}, "the format is known in one place; the router has distributions of times"},
		{"github.com/evanw/esbuild/pkg/api", []string{"web/bundler"}, "the page is bundled when it changes, and not by the program"},
		{"github.com/yuin/goldmark", []string{"handoff/speakable", "web/rich"}, "what may be said is decided there, and what may be shown here"},
		{"golang.org/x/sys", []string{"servers/responses/sandbox", "servers/responses/workspace tests", "cmd/switchboard tests"},
			"the kernel is asked in one place; races and a terminal are for tests"},
		{"github.com/elastic/go-seccomp-bpf", []string{"servers/responses/sandbox"}, "the kernel is asked in one place"},
		{"mvdan.cc/sh/v3/syntax", []string{"handoff/risk"}, "command lines are read in one place; nothing of ours runs them"},
		{"github.com/aymanbagabas/go-udiff", []string{"servers/acp", "servers/responses/workspace"},
			"edits are made there, or told as two texts, and shown as what they change"},
		{"github.com/SherClockHolmes/", []string{"web/push"}, "messages to browsers are encrypted in one place"},
		{"github.com/chromedp/", []string{"web/webtest", "web tests", "cmd/switchboard tests"}, "a browser is for tests"},
		{"github.com/Shopify/toxiproxy/", []string{"cmd/switchboard tests"}, "what cuts connections is for tests"},
		{"github.com/rs/zerolog", []string{"cmd/switchboard tests"}, "toxiproxy wants a logger"},
		{"github.com/rogpeppe/go-internal/", []string{"* tests", "handoff/call/calltest"},
			"scripts are for tests, and for the kit that plays them"},
		{"github.com/google/go-cmp/", []string{"* tests"}, "comparing is for tests"},
		{"go.uber.org/zap/zaptest", []string{"* tests"}, "reading logs is for tests"},
		{"go.uber.org/zap", []string{"*"}, "everybody may log"},
	}
}

// importFault says why a file of pkg may not import path, or "".
func importFault(pkg string, test bool, path string) string {
	if ours, ok := strings.CutPrefix(path, "switchboard/"); ok {
		return ourFault(pkg, test, ours)
	}
	if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") { // the standard library
		if !test && slices.Contains(timeless(), pkg) && slices.Contains([]string{"time", "sync", "net", "os", "context"}, first) {
			return "imports " + path + ": its decisions know no time, no socket and no lock"
		}
		return ""
	}
	for _, rule := range libraries() {
		if !strings.HasPrefix(path, rule.module) {
			continue
		}
		for _, in := range rule.in {
			name, forTests := strings.CutSuffix(in, " tests")
			if (name == "*" || name == pkg) && (test || !forTests) {
				return ""
			}
		}
		if rule.in == nil {
			return "imports " + path + ", which nobody may: " + rule.because
		}
		return "imports " + path + ", which is for " + strings.Join(rule.in, ", ") + ": " + rule.because
	}
	return "imports " + path + ", which nobody may yet: add it to the table with its reason"
}

func ourFault(pkg string, test bool, path string) string {
	if test && path == pkg {
		return "" // an external test of the package itself
	}
	for _, rule := range ourImports() {
		if rule.pkg != pkg {
			continue
		}
		if slices.Contains(rule.may, path) || slices.Contains(rule.may, "*") || test && slices.Contains(rule.inTests, path) {
			return ""
		}
		return "imports switchboard/" + path + ": " + rule.because
	}
	return "package " + pkg + " is not in the import table: add it with its reason"
}
