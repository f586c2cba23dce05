package main

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strings"
	"testing"
)

// Three mistakes at once: each is told with its place.
func TestThreeMistakes(t *testing.T) {
	_, err := file(`lisen: 127.0.0.1:8080
servers:
  - name: bigpc
    kind: codex
    url: ws://127.0.0.1:4500
    sandbox: workspace
  - name: laptop
    kind: codex
    command: codex app-server
`).load(t)
	wantProblems(t, err, `switchboard.yaml:1:1: unknown key "lisen"; did you mean "listen"?`,
		`switchboard.yaml:6:14: servers[0].sandbox: "workspace" is unknown; there is read-only, workspace-write, danger-full-access`,
		`switchboard.yaml:9:14: servers[1].command must be a list, not text`)
}

// A problemCase is a file with mistakes, and what is told of it.
type problemCase struct {
	name, text string
	want       []string
}

// shapeProblems are files of a wrong shape.
func shapeProblems() []problemCase {
	return []problemCase{
		{"syntax", "listen: [\n", []string{"switchboard.yaml:1:9: not YAML: …"}},
		{"bad indent", "model:\n  url: a\n name: b\n", []string{"switchboard.yaml:3:2: not YAML: …"}},
		{"a list", "- a\n", []string{"switchboard.yaml:1:1: the file must be names and values, not a list"}},
		{"text", "hello\n", []string{"switchboard.yaml:1:1: the file must be names and values, not text"}},
		{"two documents", "listen: 127.0.0.1:1\n---\nlisten: 127.0.0.1:2\n",
			[]string{"switchboard.yaml:3:7: a second document: everything belongs into one"}},
		{"twice", "redis: redis://127.0.0.1\nredis: redis://127.0.0.2\n", []string{"switchboard.yaml:2:1: redis is there twice"}},
		{"anchor", "redis: &a b\nlisten: *a\n", []string{
			"switchboard.yaml:1:8: redis: anchors, aliases and tags are not used here",
			"switchboard.yaml:2:9: listen: anchors, aliases and tags are not used here"}},
		{"merge", "model:\n  <<: {name: a}\n",
			[]string{`switchboard.yaml:2:3: unknown key "<<"; there is url, name, aliases, key_env, media, prices, reasoning`}},
		{"wrong types", "listen: 8080\ntls: yes\nkeys: {a: b}\nmodel: [a]\nredis:\nservers: text\n", []string{
			"switchboard.yaml:1:9: listen must be text, not 8080; put it in quotes if it is meant as text",
			"switchboard.yaml:2:6: tls must be names and values, not text",
			"switchboard.yaml:3:8: keys must be a list, not names and values",
			"switchboard.yaml:4:8: model must be names and values, not a list",
			"switchboard.yaml:5:7: redis has no value",
			"switchboard.yaml:6:10: servers must be a list, not text"}},
		{"empty text", `redis: ""`, []string{"switchboard.yaml:1:8: redis has no value"}},
		{"bool", "servers:\n  - {name: a, kind: codex, url: ws://127.0.0.1:1, allow_plaintext: maybe}\n", []string{
			"switchboard.yaml:2:68: servers[0].allow_plaintext must be true or false, not \"maybe\""}},
	}
}

// laterProblems are keys of features that do not work yet.
func laterProblems() []problemCase {
	return []problemCase{
		{"later", "speech: {volume: 3}\n", []string{
			`switchboard.yaml:1:10: unknown key "volume"; there is updates, language`}},
		{"child environment", `servers:
  - {name: a, kind: codex, command: [codex], env: [GOOD, SWITCHBOARD_KEY, "A=b", "a b", "SWITCHBOARD_X=1"]}
  - {name: b, kind: codex, url: "ws://127.0.0.1:1", env: [GOOD]}
`, []string{
			`switchboard.yaml:2:58: servers[0].env[1]: SWITCHBOARD_KEY is Switchboard's own, and what an agent runs could read it`,
			`switchboard.yaml:2:82: servers[0].env[3]: must be NAME, which passes a variable on, or NAME=value`,
			`switchboard.yaml:2:89: servers[0].env[4]: SWITCHBOARD_X is Switchboard's own, …`,
			`switchboard.yaml:3:58: servers[1].env: goes with command only`}},
		{"an agent of ours", `servers:
  - {name: a, kind: responses, url: "https://a/v1", cwd: /x, workspace: not-there, continuation: replays, verbosity: low}
  - {name: b, kind: codex, url: "ws://127.0.0.1:1", workspace: ., reasoning: {effort: low}}
  - {name: c, kind: responses, url: "https://a/v1", model: m, workspace: /usr, limits: {processes: many, memory: 1}}
  - {name: d, kind: responses, url: "https://a/v1", model: m, workspace: /usr, trusted: true, user: no-such-user, limits: {tmp_mib: -1}}
`, []string{
			`switchboard.yaml:2:6: servers[0].model: is missing: …`,
			`switchboard.yaml:2:53: servers[0].cwd: is not for servers of kind responses`,
			`switchboard.yaml:2:73: servers[0].workspace: must be a directory on this machine: …`,
			`switchboard.yaml:2:98: servers[0].continuation: "replays" is unknown; did you mean "replay"?`,
			`switchboard.yaml:3:53: servers[1].workspace: is not for servers of kind codex`,
			`switchboard.yaml:3:67: servers[1].reasoning: is not for servers of kind codex`,
			`switchboard.yaml:4:89: servers[2].limits: goes with trusted: true, …`,
			`switchboard.yaml:4:100: servers[2].limits.processes must be …`,
			`switchboard.yaml:4:106: unknown key "memory"; …`,
			`switchboard.yaml:5:101: servers[3].user: there is no user "no-such-user" on this machine`,
			`switchboard.yaml:5:133: servers[3].limits.tmp_mib must be a whole number from 0 …`}},
		{"agents of the protocol", `servers:
  - {name: mac, kind: acp, approval: always}
  - {name: mini, kind: acp, command: [claude-agent-acp], approval: untrusted, mode: plan, cwd: /src}
  - {name: far, kind: acp, ssh: me@far, command: [], env: [KEY]}
`, []string{
			`switchboard.yaml:2:6: servers[0]: needs one of ssh, joined and command`,
			`switchboard.yaml:2:38: servers[0].approval: "always" is unknown; there is untrusted, on-request, never`,
			`switchboard.yaml:3:85: servers[1].mode: goes without approval, which chooses one`,
			`switchboard.yaml:4:6: servers[2].cwd: is missing: …`,
			`switchboard.yaml:4:50: servers[2].command: names no program: …`,
			`switchboard.yaml:4:59: servers[2].env: does not go with ssh`}},
		{"later in lists", `servers: [{name: a, kind: llm, url: "wss://a/v1", socket: a, sock: /a}]
model: {transport: auto}
`, []string{
			`switchboard.yaml:1:27: servers[0].kind: "llm" is unknown; there is codex, responses, acp`,
			`switchboard.yaml:1:51: unknown key "socket"; …`,
			`switchboard.yaml:1:62: unknown key "sock"; …`,
			`switchboard.yaml:2:9: unknown key "transport"; …`}},
	}
}

// grantProblems are mistakes about what a key may do.
func grantProblems() []problemCase {
	const servers = "servers:\n  - {name: bigpc, kind: codex, url: ws://127.0.0.1:4500, for: [ownr, helper]}\n"
	return []problemCase{
		{"names", `keys:
  - {principal: helper, key_env: GOOD, servers: [bigcp, bigpc], tools: [codx], approve: 1}
` + servers, []string{
			`switchboard.yaml:2:50: keys[0].servers[0]: "bigcp" is unknown; did you mean "bigpc"?`,
			`switchboard.yaml:2:73: keys[0].tools[0]: "codx" is unknown; did you mean "codex"?`,
			`switchboard.yaml:2:89: keys[0].approve must be none, voice or all, not 1`,
			`switchboard.yaml:4:64: servers[0].for[0]: "ownr" is unknown; did you mean "owner"?`}},
		{"a name among wrong ones", "keys:\n  - {principal: a, key_env: GOOD, servers: [attic]}\nservers:\n" +
			strings.Repeat("  - {name: bigpc, kind: codex, url: ws://127.0.0.1:4500}\n", 2) +
			"  - {kind: codex, url: ws://127.0.0.1:4500}\n", []string{
			`switchboard.yaml:2:45: keys[0].servers[0]: "attic" is unknown; there is bigpc`,
			`switchboard.yaml:5:12: servers[1].name: "bigpc" is already a name of servers[0]`,
			`switchboard.yaml:6:6: servers[2].name: must be a name of …`}},
		{"which yes", "keys:\n  - {principal: a, key_env: GOOD, approve: yes}\n  - {principal: a, key_env: GOOD, approve: [all]}\n  - {principal: a, key_env: GOOD, approve: ''}\n", []string{
			`switchboard.yaml:2:44: keys[0].approve must be none, voice or all, not "yes"`,
			"switchboard.yaml:3:6: keys[1]: is the key of a, which has an entry already", `switchboard.yaml:3:44: keys[1].approve must be none, voice or all, not a list`,
			"switchboard.yaml:4:6: keys[2]: is the key of a, which has an entry already", `switchboard.yaml:4:44: keys[2].approve has no value`}},
		{"nothing named", "keys:\n  - {principal: helper, key_env: GOOD, servers: [], tools: []}\n", []string{
			`switchboard.yaml:2:49: keys[0].servers: names nothing; leave it out for all`,
			`switchboard.yaml:2:60: keys[0].tools: names nothing; leave it out for all`}},
		{"no such simulated machine", "keys:\n  - {principal: helper, key_env: GOOD, servers: [bigpc, attick]}\n", []string{
			`switchboard.yaml:2:57: keys[0].servers[1]: "attick" is unknown; did you mean "attic"?`}},
		{"limits", "limits: {calls: -1, minutes_per_day: 1.5, handoffs_per_minute: many}\nkeys:\n  - {principal: a, key_env: GOOD, limits: {calls: 1000001}}\n", []string{
			`switchboard.yaml:1:17: limits.calls must be a whole number from 0 to 1000000, not -1`,
			`switchboard.yaml:1:38: limits.minutes_per_day must be a whole number from 0 to 1000000, not 1.5`,
			`switchboard.yaml:1:64: limits.handoffs_per_minute must be a whole number from 0 to 1000000, not "many"`,
			`switchboard.yaml:3:51: keys[0].limits.calls must be a whole number from 0 to 1000000, not 1000001`}},
	}
}

// listenProblems are mistakes about the listener.
func listenProblems() []problemCase {
	return []problemCase{
		{"no port", "listen: 127.0.0.1\n",
			[]string{`switchboard.yaml:1:9: listen: "127.0.0.1" is not host:port, such as 127.0.0.1:8080`}},
		{"port too large", "listen: 127.0.0.1:65536\n", []string{"switchboard.yaml:1:9: listen: …"}},
		{"wildcard", "listen: ':8080'\n", []string{
			"switchboard.yaml:1:9: listen: others can reach :8080, so it needs a key of yours: keys in the file, or SWITCHBOARD_KEY",
			"switchboard.yaml:1:9: listen: others can reach :8080, so keys and speech must not go there in the clear: …"}},
		{"wildcard 6", "listen: '[::]:8080'\nkeys: [{principal: a, key_env: GOOD}]\n",
			[]string{"switchboard.yaml:1:9: listen: others can reach [::]:8080, so keys and speech …"}},
		{"a name", "listen: bigpc:8080\ntrusted_proxies: [10.0.0.1/32]\n",
			[]string{"switchboard.yaml:1:9: listen: others can reach bigpc:8080, so it needs a key …"}},
		{"proxies", "trusted_proxies: [10.0.0.1, all]\n", []string{
			`switchboard.yaml:1:19: trusted_proxies[0] must be a network such as 10.0.0.0/8 or 10.0.0.5/32, not "10.0.0.1"`,
			`switchboard.yaml:1:29: trusted_proxies[1] must be a network …`}},
		{"public url", "public_url: http://bigpc.example.com\n",
			[]string{"switchboard.yaml:1:13: public_url: must be https: …"}},
		{"programs let in where none can come", "listen: 0.0.0.0:8080\ntrusted_proxies: [10.0.0.0/8]\nkeys:\n" +
			"  - {principal: owner, key_env: GOOD}\nmcp:\n  oauth: true\n",
			[]string{"switchboard.yaml:6:10: mcp.oauth: needs public_url, …"}},
		{"programs let in at a plain address", "public_url: http://bigpc.example.com\nmcp: {oauth: true}\n",
			[]string{"switchboard.yaml:1:13: public_url: must be https: …"}},
		{"public path", "public_url: https://bigpc.example.com/page\n",
			[]string{"switchboard.yaml:1:13: public_url: must be scheme and host alone, …"}},
		{"half tls", "tls: {cert_file: a.pem}\n",
			[]string{"switchboard.yaml:1:18: tls.cert_file: needs tls.key_file beside it"}},
		{"other half", "tls: {key_file: a.pem}\n",
			[]string{"switchboard.yaml:1:17: tls.key_file: needs tls.cert_file beside it"}},
		{"no files", "tls:\n  cert_file: a.pem\n  key_file: b.pem\n", []string{"switchboard.yaml:2:3: tls: open …"}},
		{"media", "media: {udp: bigpc, advertise: [here]}\n", []string{
			`switchboard.yaml:1:14: media.udp must be an IP address and port such as 0.0.0.0:8443, not "bigpc"`,
			`switchboard.yaml:1:33: media.advertise[0] must be an IP address such as 203.0.113.7, not "here"`}},
		{"media port", "media: {udp: 0.0.0.0:0}\n", []string{"switchboard.yaml:1:14: media.udp: needs a port"}},
	}
}

// peerProblems are mistakes about several instances.
func peerProblems() []problemCase {
	const redis = "redis: redis://127.0.0.1:6379/0\n"
	return []problemCase{
		{"peers without a store that they could share", "peers: {listen: 10.0.0.5:8090}\n", []string{
			"switchboard.yaml:1:9: peers: needs redis: …"}},
		{"peers nowhere", redis + "peers: {address: bigpc:8090}\n", []string{
			"switchboard.yaml:2:9: peers.listen: is missing: …"}},
		{"peers everywhere", redis + "peers: {listen: '0.0.0.0:8090'}\n", []string{
			"switchboard.yaml:2:17: peers.listen: 0.0.0.0:8090 is no address that others could dial: …"}},
		{"peers everywhere without a host", redis + "peers: {listen: ':8090'}\n", []string{
			"switchboard.yaml:2:17: peers.listen: :8090 is no address that others could dial: …"}},
		{"watched for whom", "keys:\n  - {principal: anna, key_env: GOOD}\nservers:\n  - {name: a, kind: codex, url: 'ws://127.0.0.1:1', watch: all, for: [anna]}\n  - {name: b, kind: codex, url: 'ws://127.0.0.1:1', watch: al}\n", []string{`switchboard.yaml:4:60: servers[0].watch: all is watched for the owner, for whom this machine is not`, `switchboard.yaml:5:60: servers[1].watch: "al" is unknown; …`}},
		{"peers told of everywhere", redis + "peers: {listen: '[::]:8090', address: '[::]:8090'}\n", []string{
			"switchboard.yaml:2:39: peers.address: [::]:8090 is no address that others could dial"}},
		{"peers at no port", redis + "peers: {listen: 10.0.0.5, address: 'bigpc:0'}\n", []string{
			`switchboard.yaml:2:17: peers.listen: "10.0.0.5" is not host:port, such as 10.0.0.5:8090`,
			`switchboard.yaml:2:36: peers.address: "bigpc:0" is not host:port, such as 10.0.0.5:8090`}},
		{"peers and what is one instance's own", redis + `peers: {listen: 10.0.0.5:8090}
mcp: {oauth: true}
servers:
  - {name: a, kind: codex, command: [codex, app-server]}
  - {name: b, kind: acp, command: [claude-agent-acp], cwd: /src}
  - {name: c, kind: responses, url: "https://a/v1", model: m, key_env: GOOD, workspace: /usr}
  - {name: d, kind: codex, url: "ws://127.0.0.1:1"}
  - {name: e, kind: responses, url: "https://a/v1", model: m, key_env: GOOD}
`, []string{
			`switchboard.yaml:3:14: mcp.oauth: needs public_url with peers: …`,
			`switchboard.yaml:5:37: servers[0].command: does not go with peers: …`,
			`switchboard.yaml:6:35: servers[1].command: does not go with peers: …`,
			`switchboard.yaml:7:6: servers[2]: does not go with peers: …`,
			`switchboard.yaml:9:6: servers[4].workspace: must be a directory …`,
			`switchboard.yaml:9:6: servers[4]: does not go with peers: …`}},
	}
}

// mannerProblems are mistakes about how callers are told of things.
func mannerProblems() []problemCase {
	return []problemCase{
		{"speech", "speech: {updates: loud}\n",
			[]string{`switchboard.yaml:1:19: speech.updates: "loud" is unknown; there is milestones, chatty, quiet`}},
		{"speech type", "speech: {updates: true}\n",
			[]string{"switchboard.yaml:1:19: speech.updates must be text, not true; …"}},
		{"media of the model", "model: {media: sideways}\n",
			[]string{`switchboard.yaml:1:16: model.media: "sideways" is unknown; there is direct, through`}},
		{"speech shape", "speech: quiet\n", []string{"switchboard.yaml:1:9: speech must be names and values, not text"}},
		{"prices", "model:\n  prices: {audio_in: 32.5, text_in: -1, text_out: free, audio_out: 2e9}\n", []string{
			"switchboard.yaml:2:37: model.prices.text_in must be a number from 0 to 1000000, not -1",
			`switchboard.yaml:2:51: model.prices.text_out must be a number from 0 to 1000000, not "free"`,
			`switchboard.yaml:2:68: model.prices.audio_out must be a number from 0 to 1000000, not "2e9"`}},
		{"money of a model that nobody knows", "model: {url: 'ws://127.0.0.1:1/v1/realtime', name: m}\nlimits: {dollars_per_day: 5, dollars_per_call: 0}\nkeys:\n  - {principal: a, key_env: GOOD, limits: {dollars_per_call: 1}}\n", []string{
			"switchboard.yaml:2:27: limits.dollars_per_day: nobody knows what m at 127.0.0.1:1 costs: set model.prices",
			"switchboard.yaml:4:62: keys[0].limits.dollars_per_call: nobody knows what m at 127.0.0.1:1 costs: set model.prices"}},
		{"language", "speech: {language: klingon}\n", []string{
			`switchboard.yaml:1:20: speech.language: "klingon" is unknown; there is ar, de, en, es, fr, hi, it, ja, ko, nl, pl, pt, ru, sv, tr, uk, zh`}},
		{"effort", "model: {reasoning: {effort: maximal}}\n", []string{
			`switchboard.yaml:1:29: model.reasoning.effort: "maximal" is unknown; did you mean "minimal"?`}},
		{"instructions", "keys:\n  - {principal: a, key_env: GOOD, instructions: some}\n", []string{
			`switchboard.yaml:2:49: keys[0].instructions must be none, added or all, not "some"`}},
		{"no money", "limits: {dollars_per_day: much, dollars_per_call: -1}\n", []string{
			`switchboard.yaml:1:27: limits.dollars_per_day must be a number from 0 to 1000000, not "much"`,
			"switchboard.yaml:1:51: limits.dollars_per_call must be a number from 0 to 1000000, not -1"}},
		{"no times", "approvals:\n  ask_again: 60\n  give_up: soon\n", []string{
			"switchboard.yaml:2:14: approvals.ask_again must be a time such as 60s or 30m, not 60",
			`switchboard.yaml:3:12: approvals.give_up must be a time such as 60s or 30m, not "soon"`}},
		{"negative times", "approvals: {ask_again: -5s, give_up: 0s}\n", []string{
			`switchboard.yaml:1:24: approvals.ask_again must be a time such as 60s or 30m, not "-5s"`,
			`switchboard.yaml:1:38: approvals.give_up must be a time such as 60s or 30m, not "0s"`}},
		{"no time to wait", "work: {silence: 0s, patience: never}\n", []string{
			`switchboard.yaml:1:17: work.silence must be a time such as 60s or 30m, not "0s"`,
			`switchboard.yaml:1:31: work.patience must be a time such as 60s or 30m, not "never"`}},
		{"asked too late", "approvals: {ask_again: 5m, give_up: 5m}\n", []string{
			"switchboard.yaml:1:24: approvals.ask_again: a question is given up after 5m, before it would be asked again after 5m"}},
		{"asked later than the default", "approvals: {ask_again: 1h30m}\n", []string{
			"switchboard.yaml:1:24: approvals.ask_again: a question is given up after 30m, before it would be asked again after 1h30m"}},
		{"given up too soon", "approvals: {give_up: 20s}\n", []string{
			"switchboard.yaml:1:22: approvals.give_up: a question is given up after 20s, before it would be asked again after 1m"}},
		{"webhook", "notify: {webhook: ntfy.example.com/me}\n", []string{
			"switchboard.yaml:1:19: notify.webhook: must be an address of http or https, such as https://ntfy.example.com/me"}},
		{"webhook of another kind", "notify: {webhook: 'ftp://ntfy.example.com/me'}\n",
			[]string{"switchboard.yaml:1:19: notify.webhook: must be an address of …"}},
		{"webhook type", "notify: {webhook: 8080}\n",
			[]string{"switchboard.yaml:1:19: notify.webhook: must be an address of …"}},
		{"webhook in the clear", "notify: {webhook: 'http://ntfy.example.com/me'}\n", []string{
			"switchboard.yaml:1:19: notify.webhook: http:// to another machine goes in the clear: use https:// or a tunnel, or set allow_plaintext: true"}},
		{"webhook not in the clear", "notify: {webhook: 'https://u:p@ntfy.example.com/me', allow_plaintext: true}\n",
			[]string{
				"switchboard.yaml:1:19: notify.webhook: has a user name in it; a token belongs into token_file or token_env",
				"switchboard.yaml:1:71: notify.allow_plaintext: goes with http:// addresses only"}},
		{"no redis", "redis: http://u:s3cret@cache.example.com\nbogus: 1\n", []string{
			"switchboard.yaml:1:8: redis: the URL is not one of a Redis: write redis://…",
			`switchboard.yaml:2:1: unknown key "bogus"; …`}},
		{"a password in no redis", "redis: redis://u:s3/cret@cache.example.com:6379/0\n", []string{
			"switchboard.yaml:1:8: redis: the URL is not one of a Redis: write redis://…"}},
		{"model without key", "model: {url: 'http://x', key_env: NOT_THERE}\n", []string{
			"switchboard.yaml:1:14: model.url: must be the address of a Realtime server, such as …",
			"switchboard.yaml:1:35: model.key_env: the environment has no NOT_THERE"}},
		{"redis in the clear", "redis: redis://u:s3cret@cache.example.com:6379/0\n", []string{
			"switchboard.yaml:1:8: redis: redis:// to another machine goes in the clear: use rediss:// or a tunnel, or set redis_allow_plaintext: true"}},
		{"by a sentinel in the clear", "redis: redis://127.0.0.1:26379/0?master_name=main\n", []string{
			"switchboard.yaml:1:8: redis: redis:// by a Sentinel may lead to another machine, in the clear: use rediss:// or a tunnel, or set redis_allow_plaintext: true"}},
		{"a cluster in the clear", "redis: redis://127.0.0.1:7000?addr=127.0.0.1:7001\n", []string{
			"switchboard.yaml:1:8: redis: a Cluster (?addr=) is for instances with peers: set them, for one instance too",
			"switchboard.yaml:1:8: redis: redis:// at a Cluster may lead to another machine, in the clear: use rediss:// or a tunnel, or set redis_allow_plaintext: true"}},
		{"redis not in the clear", "redis: rediss://cache.example.com:6379/0\nredis_allow_plaintext: true\n", []string{
			"switchboard.yaml:2:24: redis_allow_plaintext: goes with redis:// addresses only"}},
		{"no redis in the clear", "redis_allow_plaintext: true\n",
			[]string{"switchboard.yaml:1:24: redis_allow_plaintext: goes with redis:// addresses only"}},
		{"webhook missing", "notify:\n  token_env: GOOD\n  allow_plaintext: true\n  allow_private: true\n", []string{
			"switchboard.yaml:2:14: notify.token_env: goes with a webhook only",
			"switchboard.yaml:3:20: notify.allow_plaintext: goes with http:// addresses only", "switchboard.yaml:4:18: notify.allow_private: goes with a webhook only"}},
		{"webhook tokens", "notify: {webhook: 'https://a.example.com', token_env: GOOD, token_file: a}\n", []string{
			"switchboard.yaml:1:10: notify: has both token_file and token_env"}},
		{"webhook token", "notify: {webhook: 'https://a.example.com', token_file: not-there}\n",
			[]string{"switchboard.yaml:1:56: notify.token_file: open …"}},
		{"unknown keys", "approvals: {giveup: 5m}\nnotify: {url: 'https://a.example.com'}\n", []string{
			`switchboard.yaml:1:13: unknown key "giveup"; did you mean "give_up"?`,
			`switchboard.yaml:2:10: unknown key "url"; there is webhook, token_file, token_env, allow_plaintext, allow_private`}},
	}
}

// keyProblems are mistakes about our keys and the key for the voice model.
func keyProblems() []problemCase {
	return []problemCase{
		{"keys", `keys:
  - {principal: a}
  - {principal: b, key_env: GOOD, key_file: b.key}
  - {principal: c, key_env: NOT_THERE}
  - {principal: d, key_file: d.key}
  - {principal: e, key_sha256: abc}
  - {principal: f, key_env: SHORT}
  - {principal: g, key_env: ODD}
  - {key_env: GOOD}
`, []string{
			"switchboard.yaml:2:6: keys[0]: needs one of key_file, key_env and key_sha256",
			"switchboard.yaml:3:6: keys[1]: needs one of key_file, key_env and key_sha256",
			"switchboard.yaml:4:29: keys[2].key_env: the environment has no NOT_THERE",
			"switchboard.yaml:5:30: keys[3].key_file: open …",
			"switchboard.yaml:6:32: keys[4].key_sha256: must be 64 hex digits",
			"switchboard.yaml:7:29: keys[5].key_env: a key has at least 16 characters of A-Z a-z 0-9 _ -",
			"switchboard.yaml:8:29: keys[6].key_env: a key has at least 16 characters of A-Z a-z 0-9 _ -",
			"switchboard.yaml:9:6: keys[7].principal: must be a name of A-Z a-z 0-9 . _ -"}},
		{"one key, two principals", "keys:\n  - {principal: a, key_env: GOOD}\n  - {principal: b, key_env: GOOD}\n", []string{
			"switchboard.yaml:3:6: keys[1]: is the key of a, which has an entry already"}},
		{"model elsewhere", "model: {url: wss://voice.example.com/v1}\n", []string{
			"switchboard.yaml:1:14: model.url: OPENAI_API_KEY goes to api.openai.com alone: name the variable with the key for voice.example.com in model.key_env"}},
		{"model lookalike", "model: {url: wss://api.openai.com.example.com/v1}\n",
			[]string{"switchboard.yaml:1:14: model.url: OPENAI_API_KEY goes to api.openai.com alone: …"}},
		{"model in the clear", "model: {url: ws://api.openai.com/v1/realtime}\n",
			[]string{"switchboard.yaml:1:14: model.url: must be wss: …"}},
		{"model without key", "model: {url: wss://api.openai.com/v1/realtime}\n",
			[]string{"switchboard.yaml:1:14: model.url: OpenAI needs a key: set OPENAI_API_KEY"}},
		{"model http", "model: {url: https://api.openai.com/v1}\n",
			[]string{"switchboard.yaml:1:14: model.url: must be the address of a Realtime server, …"}},
		{"model key", "model: {key_env: NOT_THERE}\n",
			[]string{"switchboard.yaml:1:18: model.key_env: the environment has no NOT_THERE"}},
	}
}

// serverProblems are mistakes about servers.
func serverProblems() []problemCase {
	return []problemCase{
		{"servers", `servers:
  - {kind: codex, url: ws://127.0.0.1:1}
  - {name: a/b, aliases: [a/c], kind: codex, url: ws://127.0.0.1:1}
  - {name: c, url: ws://127.0.0.1:1}
  - {name: d, kind: codec, url: ws://127.0.0.1:1, command: [codex]}
  - {name: e, kind: codex, url: http://127.0.0.1:1}
  - {name: f, kind: codex, url: ws://10.0.0.5:1}
  - {name: g, kind: codex, url: wss://g.example.com, allow_plaintext: true}
  - {name: h, kind: codex, command: [codex], allow_plaintext: true, token_env: GOOD}
  - {name: i, kind: codex, url: ws://127.0.0.1:1, token_env: GOOD, token_file: a}
  - {name: j, kind: codex, url: ws://127.0.0.1:1, token_file: not-there}
  - {name: k, kind: codex, url: ws://127.0.0.1:1, cwd: src, projects: {a: ~/a, b/c: /b, d: {worktree: true}, e: {dir: /e, tree: true}}}
  - {name: l, kind: codex, url: ws://127.0.0.1:1, approval: onrequest, sandbox: read_only}
  - {name: m, kind: codex, url: ws://u:p@127.0.0.1:1}
`, []string{
			"switchboard.yaml:2:6: servers[0].name: must be a name of A-Z a-z 0-9 . _ -; other forms are aliases",
			"switchboard.yaml:3:12: servers[1].name: must be a name of …",
			"switchboard.yaml:3:27: servers[1].aliases[0]: has a slash, which stands between a machine and a project",
			"switchboard.yaml:4:6: servers[2].kind: is missing; there is codex, responses, acp",
			`switchboard.yaml:5:21: servers[3].kind: "codec" is unknown; did you mean "codex"?`,
			"switchboard.yaml:6:33: servers[4].url: must be the address of an app-server, such as ws://127.0.0.1:4500",
			"switchboard.yaml:7:33: servers[5].url: ws:// to another machine goes in the clear: use wss:// or a tunnel, or set allow_plaintext: true",
			"switchboard.yaml:8:71: servers[6].allow_plaintext: goes with ws:// addresses only",
			"switchboard.yaml:9:63: servers[7].allow_plaintext: goes with url only",
			"switchboard.yaml:9:80: servers[7].token_env: goes with url only",
			"switchboard.yaml:10:6: servers[8]: has both token_file and token_env",
			`switchboard.yaml:12:56: servers[10].cwd: "src" must be an absolute path: it is one of that machine`,
			`switchboard.yaml:12:75: servers[10].projects.a: "~/a" must be an absolute path: it is one of that machine`,
			"switchboard.yaml:12:85: servers[10].projects.b/c: a project needs a name without a slash", "switchboard.yaml:12:93: servers[10].projects.d: needs dir, its directory, beside worktree", `switchboard.yaml:12:123: unknown key "tree"; there is dir, worktree`,
			`switchboard.yaml:13:61: servers[11].approval: "onrequest" is unknown; did you mean "on-request"?`,
			`switchboard.yaml:13:81: servers[11].sandbox: "read_only" is unknown; did you mean "read-only"?`,
			"switchboard.yaml:14:33: servers[12].url: has a user name in it; a token belongs into token_file or token_env"}},
		{"policy", `servers:
  - {name: a, kind: codex, url: ws://127.0.0.1:1, ceiling: workspace, voice_approvals: high}
  - {name: b, kind: codex, url: ws://127.0.0.1:1, sandbox: danger-full-access, ceiling: workspace-write}
  - {name: c, kind: codex, url: ws://127.0.0.1:1, sandbox: read-only, ceiling: workspace-write, voice_approvals: none}
`, []string{
			`switchboard.yaml:2:60: servers[0].ceiling: "workspace" is unknown; there is read-only, workspace-write, danger-full-access`,
			`switchboard.yaml:2:88: servers[0].voice_approvals: "high" is unknown; there is none, low, medium`,
			"switchboard.yaml:3:60: servers[1].sandbox: danger-full-access is looser than the ceiling workspace-write, so no new session could run"}},
		{"names twice", `servers:
  - {name: bigpc, aliases: [desk, Desk], kind: codex, url: ws://127.0.0.1:1}
  - {name: BigPC, kind: codex, url: ws://127.0.0.1:2}
  - {name: c, aliases: [DESK], kind: codex, url: ws://127.0.0.1:3}
`, []string{
			`switchboard.yaml:3:12: servers[1].name: "BigPC" is already a name of servers[0]`,
			`switchboard.yaml:4:25: servers[2].aliases[0]: "DESK" is already a name of servers[0]`}},
	}
}

func TestProblems(t *testing.T) {
	key := strings.Repeat("k", 16)
	env := map[string]string{"GOOD": key, "SHORT": "abc", "ODD": key + "!"}
	tests := slices.Concat(shapeProblems(), laterProblems(), listenProblems(), peerProblems(), grantProblems(), mannerProblems(),
		keyProblems(), serverProblems())
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := file(tt.text)
			w.env = env
			_, err := w.load(t)
			wantProblems(t, err, tt.want...)
		})
	}
}

// Mistakes outside the file are told by the flag's or the variable's name, beside those in it.
func TestProblemsOutsideTheFile(t *testing.T) {
	w := file("lisen: a\n")
	w.args = []string{"--listen", "8080"}
	w.env = map[string]string{"SWITCHBOARD_MODEL_URL": "nonsense", "SWITCHBOARD_KEY": "short"}
	_, err := w.load(t)
	wantProblems(t, err, `--listen: listen: "8080" is not host:port, such as 127.0.0.1:8080`,
		`SWITCHBOARD_KEY: a key has at least 16 characters of A-Z a-z 0-9 _ -`,
		"SWITCHBOARD_MODEL_URL: model.url: must be the address of a Realtime server, …",
		`switchboard.yaml:1:1: unknown key "lisen"; did you mean "listen"?`)
	_, err = world{args: []string{"--config", "none.yaml"}}.load(t)
	wantProblems(t, err, "--config: read the configuration: open none.yaml: no such file or directory")
	_, err = world{env: map[string]string{"SWITCHBOARD_CONFIG": "none.yaml"}}.load(t)
	wantProblems(t, err, "SWITCHBOARD_CONFIG: read the configuration: …")
}

// Where the key for the voice model goes.
func TestModelKey(t *testing.T) {
	const openAI = "sk-openai"
	tests := []struct{ text, env, url, key string }{
		{"", "", "", ""},
		{"", openAI, openAIURL, openAI},
		{"model: {name: x}", openAI, openAIURL, openAI},
		{"model: {url: 'wss://api.openai.com:443/v1/realtime?x=y'}", openAI, "wss://api.openai.com:443/v1/realtime?x=y",
			openAI},
		{"model: {key_env: OTHER}", openAI, openAIURL, "other"},
		{"model: {url: 'wss://a.example.com', key_env: OTHER}", openAI, "wss://a.example.com", "other"},
		{"model: {url: 'wss://a.example.com', key_env: OPENAI_API_KEY}", openAI, "wss://a.example.com", openAI},
		{"model: {url: 'ws://127.0.0.1:1'}", openAI, "ws://127.0.0.1:1", ""},
	}
	for _, tt := range tests {
		w := file(tt.text)
		w.env = map[string]string{"OPENAI_API_KEY": tt.env, "OTHER": "other"}
		s, err := w.load(t)
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
		} else if s.Model.URL != tt.url || s.Model.Key.Reveal() != tt.key {
			t.Errorf("%q: %q goes to %q, want %q to %q", tt.text, s.Model.Key.Reveal(), s.Model.URL, tt.key, tt.url)
		}
	}
}

func TestOffLoopback(t *testing.T) {
	for text, env := range map[string]string{
		"listen: 0.0.0.0:8080\ntrusted_proxies: [10.0.0.0/8]\nkeys: [{principal: a, key_env: GOOD}]": "",
		"listen: ':8080'\ntrusted_proxies: [10.0.0.0/8]":                                             goodKey,
		"listen: localhost:8080":            "",
		"listen: '[::1]:8080'":              "",
		"listen: 127.0.0.2:0":               "",
		"listen: '[::ffff:127.0.0.1]:80'":   "",
		"public_url: http://localhost:8080": "",
		"mcp: {oauth: true}":                "",
		"listen: 0.0.0.0:8080\ntrusted_proxies: [10.0.0.0/8]\npublic_url: https://a.example\nmcp: {oauth: true}\nkeys: [{principal: a, key_env: GOOD}]": "",
	} {
		w := file(text)
		w.env = map[string]string{"GOOD": goodKey, "SWITCHBOARD_KEY": env}
		s, err := w.load(t)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if env != "" &&
			(len(s.Access) != 1 || s.Access[0].Principal != "owner" || s.Access[0].Sum != sha256.Sum256([]byte(env))) {
			t.Errorf("%q: keys %+v", text, s.Access)
		}
	}
}

// The loader takes any bytes and answers with settings or problems that have places.
func FuzzConfig(f *testing.F) {
	f.Add([]byte(everything))
	for _, seed := range []string{"a: &a [*a]", "? [a]: b\n", "<<: *x", "servers: [{projects: {a: }}]", "!!binary a",
		"--- |\n a\n...\n---\n", "{a: b, ? }", "a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]\n", strings.Repeat("[", 200),
		strings.Repeat("{a: ", 50), strings.Repeat("- ", 200), strings.Repeat("? ", 200)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := defaults()
		r := &reader{file: "f", env: func(string) string { return "" }, dir: t.TempDir(), places: map[string]place{}}
		r.decode(data, &s)
		s.check(report{reader: r})
		for _, p := range r.found.sorted() {
			if p.text == "" || p.at.name == "" || p.at.name == "f" &&
				(p.at.line < 1 || p.at.line > bytes.Count(data, []byte("\n"))+bytes.Count(data, []byte("\r"))+2) {
				t.Errorf("problem %+v in %q", p, data)
			}
		}
	})
}
