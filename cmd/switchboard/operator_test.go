package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/codex"
	"switchboard/servers/transport"
)

// sessions lists sessions as a client gets them.
func (r *running) sessions(query string) handoff.SessionList {
	r.t.Helper()
	var found handoff.SessionList
	r.get("/fleet/sessions?"+query, &found)
	return found
}

// sessionIDs lists the sessions of bigpc.
func sessionIDs(r *running) (ids []string) {
	for _, s := range r.sessions("server=bigpc&limit=40").Items {
		ids = append(ids, s.ID)
	}
	return ids
}

// hand gives work to a machine over the API.
func (r *running) hand(body string) string {
	r.t.Helper()
	status, rec := r.again("/fleet/handoffs", "", body)
	if status/100 != 2 {
		r.t.Fatalf("%s: %d %+v", body, status, rec.Error)
	}
	return rec.ID
}

// TestExecSessions: sessions of `codex exec` are listed and read like others, also those of the real codex.
func TestExecSessions(t *testing.T) {
	t.Parallel()
	c := startCodex(t)
	cmd := exec.CommandContext(t.Context(), codexProgram(t), "exec", "--skip-git-repo-check", "count the lines")
	cmd.Env, cmd.Dir = append(os.Environ(), c.env()...), c.work
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	c.thread("the first words")
	r := start(t, func(p *plan) { c.plan(p, "", "") })
	var found handoff.SessionList
	until(t, "the session", func() bool { found = r.sessions("query=count"); return len(found.Items) == 1 })
	if s := found.Items[0]; s.Label != "count the lines" || s.Directory != c.work {
		t.Errorf("%+v", s)
	}
	var text handoff.Transcript
	r.get("/fleet/sessions/bigpc/"+url.PathEscape("count the lines"), &text)
	if len(text.Lines) < 2 {
		t.Errorf("%+v", text)
	}
}

// TestRealSessionsBehindMany: of the real codex a session is found that is older than hundreds of others.
func TestRealSessionsBehindMany(t *testing.T) {
	t.Parallel()
	c := startCodex(t)
	c.copies(c.thread("the first words"), 250)
	r := start(t, func(p *plan) { c.plan(p, "", "") })
	until(t, "the machine", func() bool { return len(r.sessions("").Items) > 0 })
	for i, asked := range []string{"query=copy+249", "query=branch-249", "query=dir-249", "query=dir-33"} {
		want := fmt.Sprintf("copy %d of that", []int{249, 249, 249, 33}[i])
		until(t, asked+" to be found", func() bool { // codex takes a while to read its files anew
			found := r.sessions(asked)
			return len(found.Items) == 1 && found.Items[0].Title == want
		})
	}
	var text handoff.Transcript
	until(t, "one to be read by its name", func() bool { // a busy machine's list may take too long
		status, body := r.ask(http.MethodGet, "/fleet/sessions/bigpc/"+url.PathEscape("copy 200 of that"), "")
		return status == http.StatusOK && json.Unmarshal(body, &text) == nil
	})
	if text.Title != "copy 200 of that" {
		t.Errorf("read by name: %+v", text)
	}
}

// copies makes older sessions of one that codex has on its disk, as if they had been begun there.
func (c *realCodex) copies(thread string, n int) {
	c.t.Helper()
	c.kill()
	found, err := filepath.Glob(filepath.Join(c.home, "sessions/*/*/*/*"+thread+".jsonl"))
	if err != nil || len(found) != 1 {
		c.t.Fatalf("%v %v", found, err)
	}
	text, err := os.ReadFile(found[0])
	must(c.t, err)
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	var head map[string]any
	must(c.t, json.Unmarshal(first, &head))
	for i := range n {
		at := time.Now().Add(-time.Duration(i+1) * time.Hour).UTC()
		id := fmt.Sprintf("%08x-%04x-7000-8000-%012x", at.UnixMilli()>>16, at.UnixMilli()&0xffff, i)
		meta := head["payload"].(map[string]any)
		meta["id"], meta["session_id"], meta["timestamp"], meta["cwd"] = id, id, at.Format("2006-01-02T15:04:05.000Z"), fmt.Sprintf("/src/dir-%d", i)
		meta["git"] = map[string]any{"branch": fmt.Sprintf("branch-%d", i)}
		line, err := json.Marshal(head)
		must(c.t, err)
		body := bytes.ReplaceAll(rest, []byte("the first words"), fmt.Appendf(nil, "copy %d of that", i))
		body = bytes.ReplaceAll(body, []byte(c.work), fmt.Appendf(nil, "/src/dir-%d", i))
		name := filepath.Join(c.home, "sessions", at.Format("2006/01/02"), "rollout-"+at.Format("2006-01-02T15-04-05")+"-"+id+".jsonl")
		must(c.t, os.MkdirAll(filepath.Dir(name), 0o700))
		write(c.t, name, string(line)+"\n"+strings.ReplaceAll(string(body), thread, id))
		must(c.t, os.Chtimes(name, at, at))
	}
	known, _ := filepath.Glob(filepath.Join(c.home, "*.sqlite*"))
	for _, name := range known { // so that codex looks through its files once more, as after an update
		_ = os.Remove(name)
	}
	c.begin()
}

// TestCutOff: work that was stopped, work whose agent's program was killed, and work whose program ended by itself have
// different outcomes.
func TestCutOff(t *testing.T) {
	t.Parallel()
	c := startCodex(t)
	c.kill() // the services have their own
	pid := filepath.Join(c.home, "pid")
	sh := openShell(t, func(p *plan) {
		p.Servers = []servers.Spec{{Name: "bigpc", Kind: "codex", Dir: c.work, EndsWithUs: true, Own: &codex.Config{Cwd: c.work, Way: &transport.Child{
			Command: []string{"sh", "-c", "echo $$ > " + pid + "; exec " + codexProgram(t) + " app-server"},
			Env:     []string{"CODEX_HOME=" + c.home, "HOME=" + c.home},
		}}}}
	})
	sh.r.up("bigpc") // a child takes its time to begin
	for _, tc := range []struct {
		how       string
		end       func(id string)
		want, not string
	}{
		{"stopped", func(id string) { sh.wants(0, nil, "handoff", "--stop", id) }, "stopped", "crashed"},
		{"killed", func(string) {
			text, err := os.ReadFile(pid)
			var n int
			if _, scan := fmt.Sscan(string(text), &n); err != nil || scan != nil || syscall.Kill(n, syscall.SIGKILL) != nil {
				t.Errorf("no pid: %v %q", err, text)
			}
		}, "crashed: I lost bigpc while it was working, and its work ended with it. Ask for the rest again; the session tells " +
			"how far it came. (its program ended: signal: killed)", "stopped"},
	} {
		before := len(sh.r.handoffs())
		shown, code := sh.begin(t.Context(), "handoff", "bigpc", "--thread", "new", "slow 60 "+tc.how)
		until(t, "it to run", func() bool {
			all := sh.r.handoffs()
			return len(all) > before && all[before].State == handoff.StatusStarted
		})
		tc.end(sh.r.handoffs()[before].ID)
		if got := <-code; got == 0 || !strings.Contains(shown.String(), tc.want) || strings.Contains(shown.String(), tc.not) {
			t.Errorf("%s: exit code %d, %s", tc.how, got, shown)
		}
	}
	if out := sh.wants(0, []string{"Crashed"}, "work"); strings.Count(out, "Stopped") != 1 {
		t.Errorf("work: %s", out)
	}
	if out := sh.wants(0, []string{"slow 60 killed"}, "work", "--failed"); strings.Contains(out, "slow 60 stopped") {
		t.Errorf("work --failed: %s", out)
	}
	sh.wants(0, []string{"Crashed"}, "sessions")
	if out := sh.wants(0, nil, "status", "--json"); !strings.Contains(out, `"outcome":"crashed"`) || !strings.Contains(out, `"outcome":"stopped"`) {
		t.Errorf("status: %s", out)
	}
	if page := items[struct{ Crashed bool }](sh.r, "/fleet/handoffs?failed=true"); len(page) != 1 || !page[0].Crashed {
		t.Errorf("the page is given %+v", page)
	}
}
