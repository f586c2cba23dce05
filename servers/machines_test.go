package servers

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
)

func (l *fakeLink) Archive(_ context.Context, thread string, on bool) error {
	for i, t := range l.server.threads {
		if t.ID == thread && on {
			l.server.threads = append(l.server.threads[:i:i], l.server.threads[i+1:]...)
			return nil
		}
	}
	return handoff.Fault(handoff.CodeSessionGone, thread, "")
}

func (l *fakeLink) Rename(_ context.Context, thread, name string) error {
	for i, t := range l.server.threads {
		if t.ID == thread {
			l.server.threads[i].Title = name
			return nil
		}
	}
	return handoff.Fault(handoff.CodeSessionGone, thread, "")
}

// TestRenameSession: a session is found by its new name at once, and a caller cannot rename a hidden session.
func TestRenameSession(t *testing.T) {
	withServer(t, &fakeServer{threads: []Thread{{ID: idAuth, Title: "Auth refactor"}}}, func(t *testing.T, s *fakeServer, f *Fleet) {
		synctest.Wait()
		at := handoff.Target{Server: "bigpc", Thread: idAuth}
		must(t, f.RenameSession(t.Context(), nobody, at, "  the big\n one "))
		if got, err := f.Resolve(t.Context(), nobody, handoff.Target{Server: "bigpc", Thread: "the big one"}); err != nil || got.Thread != idAuth {
			t.Errorf("found %+v, %v", got, err)
		}
		for _, name := range []string{" ", strings.Repeat("x", maxName+1)} {
			if err := f.RenameSession(t.Context(), nobody, at, name); code(err) != handoff.CodeMalformed {
				t.Errorf("named %q: %v", name, err)
			}
		}
		f.hidden = func(handoff.Caller, string, ...string) bool { return true }
		if err := f.RenameSession(t.Context(), nobody, at, "mine"); code(err) != handoff.CodeUnknownSession {
			t.Errorf("somebody else's: %v", err)
		}
	})
}

// What people see of a machine: its settings, when it was up last, and when it is tried again.
func TestMachines(t *testing.T) {
	bubble(t, func(t *testing.T) {
		up, dead := &fakeServer{}, &fakeServer{refuse: errRefused}
		f := run(t, Spec{Name: "bigpc", Dir: "/src", About: handoff.Machine{Ceiling: "workspace-write",
			Start: "codex app-server"}, Dial: up.dial}, Spec{Name: "attic", VoiceApprovals: "none", Dial: dead.dial})
		synctest.Wait()
		all := f.Machines(nobody)
		if m := all[0]; m.Name != "bigpc" || m.Directory != "/src" || m.Ceiling != "workspace-write" ||
			m.Start != "codex app-server" || m.VoiceApprovals != "medium" || !m.Archives || !m.Renames || !m.Seen.Equal(time.Now()) ||
			!m.NextTry.IsZero() {
			t.Errorf("bigpc: %+v", m)
		}
		if m := all[1]; m.VoiceApprovals != "none" || m.Archives || m.Renames || !m.Seen.IsZero() || !m.NextTry.After(time.Now()) {
			t.Errorf("attic: %+v", m)
		}
		if some := f.Machines(handoff.Grant{Caller: nobody.Caller, Servers: []string{"attic"}}); len(some) != 1 ||
			some[0].Name != "attic" {
			t.Errorf("of one that may use attic alone: %+v", some)
		}
		if _, err := f.Test(t.Context(), nobody, "bigpc"); err != nil {
			t.Errorf("a test of bigpc: %v", err)
		}
		up.set(func() { up.out = true })
		if _, err := f.Test(t.Context(), nobody, "bigpc"); handoff.CodeOf(err) != handoff.CodeNotSignedIn {
			t.Errorf("a test of bigpc where nobody is signed in: %v", err)
		}
		for name, code := range map[string]handoff.Code{"attic": handoff.CodeUnreachable,
			"nothing": handoff.CodeUnknownServer} {
			if _, err := f.Test(t.Context(), nobody, name); err == nil || handoff.AsError(err).Code != code {
				t.Errorf("a test of %s: %v", name, err)
			}
		}
	})
}

// TestUnfit: a server whose agents refuse every session says so and why, in its state and when it is tested, and the
// pages are told when that is noticed.
func TestUnfit(t *testing.T) {
	s := &fakeServer{threads: []Thread{{ID: idAuth}}}
	refused := handoff.Fault(handoff.CodeRefused, "bigpc", "approval: the agent has no mode that asks")
	s.onCreate = func(*fakeLink) error {
		s.unfit.Store(refused)
		return refused
	}
	bubble(t, func(t *testing.T) {
		var told atomic.Int64
		f := runChanged(t, func() { told.Add(1) }, Spec{Name: "bigpc", Dial: s.dial})
		synctest.Wait()
		if info := f.Known()[0]; info.Problem != "" {
			t.Errorf("before: %+v", info)
		}
		before := told.Load()
		if _, err := f.Create(t.Context(), handoff.Target{Server: "bigpc"}); handoff.CodeOf(err) != handoff.CodeRefused {
			t.Fatal(err)
		}
		synctest.Wait()
		if info := f.Known()[0]; info.Health != handoff.HealthUp || info.Problem != refused.Detail || info.Next == "" {
			t.Errorf("its state: %+v", info)
		}
		if told.Load() == before {
			t.Error("nobody is told")
		}
		if _, err := f.Test(t.Context(), nobody, "bigpc"); handoff.AsError(err).Code != handoff.CodeRefused || handoff.AsError(err).Why != refused.Detail {
			t.Errorf("tested: %v", err)
		}
	})
}

// TestUnfitAtJoin: an agent that refuses every session says so as soon as its machine has joined, with the line to
// change, before anybody gives it work. It is found out once; other servers are not asked.
func TestUnfitAtJoin(t *testing.T) {
	for _, joined := range []bool{true, false} {
		t.Run(fmt.Sprint("joined ", joined), func(t *testing.T) { unfitAtJoin(t, joined) })
	}
}

func unfitAtJoin(t *testing.T, joined bool) {
	asked := 0
	s := &fakeServer{}
	s.onCheck = func() {
		asked++
		time.Sleep(time.Second) // it makes a session
		s.unfit.Store(&handoff.Error{Code: handoff.CodeRefused, Subject: "mini", Why: handoff.WhyNoMode, Detail: "approval: x", Next: "Set mode: build."})
	}
	bubble(t, func(t *testing.T) {
		var told atomic.Int64
		f := runChanged(t, func() { told.Add(1) }, Spec{Name: "mini", Joined: joined, Dial: s.dial})
		time.Sleep(2 * time.Second)
		info := f.Known()[0]
		if joined && (asked != 1 || info.Problem != handoff.WhyNoMode || info.Next != "Set mode: build." || told.Load() < 2) || !joined && asked != 0 {
			t.Errorf("joined %v: asked %d times, told %d times: %+v", joined, asked, told.Load(), info)
		}
		s.drop()
		time.Sleep(time.Minute)
		if joined && asked != 1 {
			t.Errorf("it is asked %d times", asked)
		}
	})
}

func TestArchive(t *testing.T) {
	withServer(t, &fakeServer{threads: []Thread{{ID: idAuth, Title: "Auth refactor"}}}, func(t *testing.T, s *fakeServer, f *Fleet) {
		synctest.Wait()
		list := func() int {
			got, err := f.Sessions(t.Context(), nobody, handoff.SessionQuery{})
			must(t, err)
			return len(got.Items)
		}
		if n := list(); n != 1 {
			t.Fatalf("%d sessions", n)
		}
		if err := f.Archive(t.Context(), nobody, handoff.Target{Server: "bigpc", Thread: idAuth}, true); err != nil ||
			list() != 0 {
			t.Errorf("%v, and %d are left", err, list())
		}
		if err := f.Archive(t.Context(), nobody, handoff.Target{Server: "bigpc", Thread: idAuth}, true); err == nil ||
			handoff.AsError(err).Code != handoff.CodeSessionGone {
			t.Errorf("twice: %v", err)
		}
		f.hidden = func(handoff.Caller, string, ...string) bool { return true }
		if err := f.Archive(t.Context(), nobody, handoff.Target{Server: "bigpc", Thread: idAuth}, false); err == nil ||
			handoff.AsError(err).Code != handoff.CodeUnknownSession {
			t.Errorf("somebody else's: %v", err)
		}
	})
}
