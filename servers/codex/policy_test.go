package codex

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"switchboard/handoff"
)

// TestCreateGetsWhatIsConfigured: a new thread with another policy than the configured one is not used, and the error
// names the setting.
func TestCreateGetsWhatIsConfigured(t *testing.T) {
	configured := Config{Sandbox: "read-only", Approval: "on-request"}
	for _, c := range []struct {
		cfg               Config
		approval, sandbox string
		names             string // the setting that is named, or "" when the thread is used
	}{
		{configured, `"on-request"`, "readOnly", ""},
		{configured, `"on-request"`, "workspaceWrite", "sandbox"},
		{configured, `"on-request"`, "dangerFullAccess", "sandbox"},
		{configured, `"on-request"`, "externalSandbox", "sandbox"},
		{configured, `"on-request"`, "", "sandbox"},
		{configured, `"never"`, "readOnly", "approval"},
		{configured, `"untrusted"`, "readOnly", "approval"},
		{configured, `{"granular":{}}`, "readOnly", "approval"},
		{Config{Sandbox: "workspace-write"}, `"never"`, "readOnly", "sandbox"},
		{Config{}, `"never"`, "dangerFullAccess", ""},
		{Config{Ceiling: "workspace-write"}, `"never"`, "workspaceWrite", ""},
		{Config{Ceiling: "workspace-write"}, `"untrusted"`, "dangerFullAccess", "ceiling"},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, link := startFake(t, c.cfg)
			a := call(func() (handoff.Attached, error) { return link.Conn.Create(t.Context(), "") })
			f.reply(f.expect("thread/start"),
				fmt.Sprintf(`{"thread":{"id":%q},"approvalPolicy":%s,"sandbox":{"type":%q}}`, thread1, c.approval, c.sandbox))
			if c.names == "" {
				a.get(t)
				if unfit := link.Unfit(); unfit != nil {
					t.Errorf("it is told that %v", unfit)
				}
				return
			}
			f.reply(f.expect("thread/unsubscribe"), `{"status":"unsubscribed"}`)
			if e := a.wantCode(t, handoff.CodeRefused); !strings.HasPrefix(e.Detail, c.names+": ") {
				t.Errorf("%s with %s: %v", c.sandbox, c.approval, e)
			} else if unfit := link.Unfit(); unfit == nil || unfit.Detail != e.Detail {
				t.Errorf("it is told that %v", unfit)
			}
		})
	}
}

// TestCreateUnderCeiling: a new thread is made as loose as the ceiling allows, and no looser.
func TestCreateUnderCeiling(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string // the sandbox that is asked for
	}{
		{Config{}, ``},
		{Config{Ceiling: "read-only"}, `"sandbox":"read-only"`},
		{Config{Ceiling: "workspace-write"}, `"sandbox":"workspace-write"`},
		{Config{Ceiling: "danger-full-access"}, ``},
		{Config{Ceiling: "workspace-write", Sandbox: "read-only"}, `"sandbox":"read-only"`},
		{*(&Config{}).Under("read-only"), `"sandbox":"read-only"`},
		{*(&Config{Sandbox: "danger-full-access"}).Under("workspace-write"), `"sandbox":"workspace-write"`},
		{*(&Config{Ceiling: "read-only"}).Under("workspace-write"), `"sandbox":"read-only"`},
		{*(&Config{Ceiling: "workspace-write"}).Under(""), `"sandbox":"workspace-write"`},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, link := startFake(t, c.cfg)
			a := call(func() (handoff.Attached, error) { return link.Conn.Create(t.Context(), "/src") })
			begin := f.expect("thread/start")
			if got := string(begin.Params); got != `{`+strings.TrimSuffix(`"cwd":"/src",`+c.want, `,`)+`}` {
				t.Errorf("%+v asks for %s", c.cfg, got)
			}
			f.reply(begin, fmt.Sprintf(`{"thread":{"id":%q},"approvalPolicy":"on-request","sandbox":{"type":"readOnly"}}`, thread1))
			a.get(t)
		})
	}
}

// TestCeiling: no turn is started in a thread with a looser sandbox than the ceiling, however it got it. The thread can
// be attached, read, followed and stopped.
func TestCeiling(t *testing.T) {
	const settings = `{"threadId":%q,"threadSettings":{"cwd":"/src","approvalPolicy":"never","sandboxPolicy":{"type":%q}}}`
	synctest.Test(t, func(t *testing.T) {
		f, link := startFake(t, Config{Ceiling: "workspace-write"})
		at := attach(t, f, link, "") // readOnly
		refused := func(err error) {
			t.Helper()
			if e := handoff.AsError(err); e.Code != handoff.CodeRefused || !strings.HasPrefix(e.Detail, "ceiling: ") {
				t.Errorf("%v", err)
			}
			f.quiet()
		}
		f.notify("thread/settings/updated", fmt.Sprintf(settings, thread1, "dangerFullAccess"))
		f.take()
		turn := handoff.Turn{ID: "m1", Input: handoff.TextInput("x")}
		_, err := at.Agent.Start(t.Context(), turn)
		refused(err)
		refused(at.Agent.(handoff.Controls).Steer(t.Context(), turn1, handoff.TextInput("x")))
		stop := callErr(func() error { return at.Agent.(handoff.Controls).Interrupt(t.Context(), turn1) })
		f.reply(f.expect("turn/interrupt"), `{}`)
		stop.get(t)
		f.notify("thread/settings/updated", fmt.Sprintf(settings, thread1, "workspaceWrite"))
		f.take()
		start(t, f, at)
	})
	// The policy in the result of loading the thread again counts too.
	synctest.Test(t, func(t *testing.T) {
		f, link := startFake(t, Config{Ceiling: "read-only"})
		s := tryStart(t, attach(t, f, link, ""))
		f.refuse(f.expect("turn/start"), -32600, "thread not found: "+thread1)
		f.reply(f.expect("thread/resume"), strings.Replace(threadJSON(thread1, idle, ""), "readOnly", "workspaceWrite", 1))
		s.wantCode(t, handoff.CodeRefused)
		f.quiet()
	})
}

func TestPolicyAboveCeiling(t *testing.T) {
	for _, c := range []struct {
		sandbox, ceiling string
		above            bool
	}{
		{"readOnly", "read-only", false},
		{"workspaceWrite", "read-only", true},
		{"dangerFullAccess", "workspace-write", true},
		{"readOnly", "danger-full-access", false},
		{"dangerFullAccess", "danger-full-access", false},
		{"externalSandbox", "workspace-write", true},
		{"externalSandbox", "danger-full-access", true},
		{"", "read-only", true},
		{"dangerFullAccess", "", false},
		{"externalSandbox", "", false},
	} {
		if p := (policy{sandbox: c.sandbox}); p.above(c.ceiling) != c.above {
			t.Errorf("%s over %q", c.sandbox, c.ceiling)
		}
	}
}

// TestNothingOverrides: requests to attach, start, steer or copy have no field of a policy.
func TestNothingOverrides(t *testing.T) {
	for name, params := range map[string]any{
		"resume": threadResumeParams{ThreadID: "t"}, "fork": threadForkParams{ThreadID: "t"},
		"start": turnStartParams{ThreadID: "t", ClientUserMessageID: "c",
			AdditionalContext: map[string]contextEntry{"k": {"v", "untrusted"}}},
		"steer": turnSteerParams{ThreadID: "t"},
	} {
		b, err := json.Marshal(params)
		must(t, err)
		for _, field := range []string{"approval", "sandbox", "cwd", "model", "config", "permission", "environments",
			"Instructions"} {
			if strings.Contains(string(b), `"`+field) {
				t.Errorf("%s sends %s", name, b)
			}
		}
	}
}
