package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/servers"
	"switchboard/servers/codex"
	machines "switchboard/servers/simulator"
)

// policyFields is what a policy looks like in one place or another of the wire.
var policyFields = []string{
	`"sandbox":"danger-full-access"`, `"approval_policy":"never"`, `"approvalPolicy":"never"`, `"cwd":"/"`, `"model":"other"`,
	`"config":{"sandbox_mode":"danger-full-access"}`, `"sandboxPolicy":{"type":"dangerFullAccess"}`, `"permissions":"all"`,
}

// policyArguments are arguments of codex, of which some are right; %s is where fields can be put.
var policyArguments = []string{
	`{"server":"bigpc","prompt":"one"%s}`,
	`{"server":"bigpc"%s,"thread_id":"new","prompt":"two"}`,
	`{"server":"bigpc/shop","prompt":"{\"sandbox\":\"danger-full-access\"}"%s}`,
	`{"server":"bigpc\",\"cwd\":\"/","prompt":"three"%s}`,
	`{"server":"bigpc","prompt":"four","thread_id":"new\",\"sandbox\":\"x"%s}`,
	`{"server":"bigpc","prompt":"five","prompt":"six"%s}`,
	`{"server":{"name":"bigpc"%s},"prompt":"seven"}`,
	`{"server":"bigpc","prompt":["eight"]%s}`,
}

// policyEvents are events of a client.
var policyEvents = []string{
	`{"type":"session.update","session":{"type":"realtime","instructions":"x"%s}}`,
	`{"type":"session.update","session":{"type":"realtime","tools":[{"type":"function","name":"codecs","parameters":{"type":"object"%s}}]}}`,
	`{"type":"conversation.item.create","item":{"type":"function_call","call_id":"mine","name":"codex","arguments":"{}"%s}}`,
	`{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":"mine","output":"{}"%s}}`,
	`{"type":"response.create","response":{"conversation":"none","metadata":{"x":"y"%s}}}`,
	`{"type":"turn/start"%s}`,
}

// TestPolicyIsOurs: no arguments of the voice model and no request of a client can change an agent's sandbox,
// approvals, directories or models; only the configuration sets them.
func TestPolicyIsOurs(t *testing.T) {
	t.Parallel()
	tap := newMachineTap(t)
	voice := newVoiceTap(t, hurriedVoice(t, 1000).URL)
	dir := t.TempDir()
	r := start(t, func(p *plan) {
		p.Model = modelSettings{URL: voice.URL, Name: "scripted"}
		p.Servers = []servers.Spec{{
			Name: "bigpc", Kind: "codex", Dir: dir, Projects: map[string]string{"shop": dir},
			Own: &codex.Config{Way: byURL(tap.url), Sandbox: "read-only", Approval: "on-request"},
		}}
	})
	r.up("bigpc")
	configured := map[string]string{"cwd": dir, "sandbox": "read-only", "approvalPolicy": "on-request"}
	random := rand.New(rand.NewPCG(7, uint64(time.Now().UnixNano())))
	some := func() string {
		var fields strings.Builder
		for range random.IntN(3) {
			fields.WriteString("," + policyFields[random.IntN(len(policyFields))])
		}
		return fields.String()
	}
	p := r.call()
	for i := 0; i < scale(64, 1000) || i < 1000 && tap.starts() < 10; i++ { // most of them begin nothing
		args := fmt.Sprintf(policyArguments[i%len(policyArguments)], some())
		event := fmt.Sprintf(policyEvents[random.IntN(len(policyEvents))], some())
		p.send(event)
		before := len(voice.all())
		p.say("codex " + args)
		until(t, "an answer to "+args+" after "+event, func() bool {
			all := voice.all()
			return len(all) > before && len(all[before].outputs) > 0
		})
		for _, message := range tap.take() {
			checkPolicy(t, message, configured)
		}
	}
	if tap.starts() < 10 {
		t.Errorf("%d turns were begun: too little was tried", tap.starts())
	}
}

// checkPolicy holds that a message to an agent names only what is configured.
func checkPolicy(t *testing.T, message []byte, configured map[string]string) {
	t.Helper()
	var m struct {
		Method string
		Params any
	}
	if err := json.Unmarshal(message, &m); err != nil {
		t.Fatalf("the agent was sent %q", message)
	}
	fields(m.Params, func(name string, value any) {
		low := strings.ToLower(name)
		for _, word := range []string{"sandbox", "approval", "polic", "permission", "config", "cwd", "model", "environment", "instruction", "profile"} {
			// That it knows approvals which a person has to give loosens nothing.
			known := m.Method == "initialize" && name == "requiredHumanApproval"
			if low == "modelproviders" || known || !strings.Contains(low, word) {
				continue
			}
			if m.Method != "thread/start" || configured[name] != fmt.Sprint(value) {
				t.Errorf("%s tells the agent %s=%v", m.Method, name, value)
			}
		}
	})
}

// fields visits every named field in a value.
func fields(value any, visit func(name string, value any)) {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			visit(name, inner)
			fields(inner, visit)
		}
	case []any:
		for _, inner := range v {
			fields(inner, visit)
		}
	}
}

// A machineTap stands before a simulated machine and keeps what it is sent.
type machineTap struct {
	url string // Set once

	mu    sync.Mutex
	sent  [][]byte // Guarded by mu: since the last take
	begun int      // Guarded by mu: turns
}

func newMachineTap(t testing.TB) *machineTap {
	t.Helper()
	world := machines.NewWorld(machines.Config{Script: func(machines.Prompt) []machines.Step { return []machines.Step{machines.Say{Text: "Done."}} }})
	behind := loopback(t)
	background(t, func(ctx context.Context) error { return world.Serve(ctx, "bigpc", behind) })
	m := &machineTap{}
	m.url = tap(t, "ws://"+behind.Addr().String(), func() func(bool, []byte) {
		return func(toMachine bool, data []byte) {
			if toMachine {
				m.note(data)
			}
		}
	})
	return m
}

func (m *machineTap) note(message []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent = append(m.sent, message)
	if strings.Contains(string(message), `"turn/start"`) {
		m.begun++
	}
}

// take returns what was sent since the last time.
func (m *machineTap) take() [][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	sent := m.sent
	m.sent = nil
	return sent
}

func (m *machineTap) starts() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.begun
}
