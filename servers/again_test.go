package servers

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
)

// TestAttachWaitsForARestart: Attach waits, up to a bound, for a server whose connection was just lost, also while
// dialling fails. It does not wait for one that has been down longer.
func TestAttachWaitsForARestart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		away  time.Duration // since the loss, when somebody asks
		back  time.Duration // since then
		works bool
		least time.Duration
		most  time.Duration
	}{
		"it comes back":             {0, time.Second, true, time.Second, time.Second + 2*redials.First},
		"it does not":               {0, time.Hour, false, waitConnecting, waitConnecting},
		"it went a while ago":       {lostRecently + time.Second, time.Hour, false, 0, redials.First},
		"it was back when asked":    {10 * time.Second, 0, true, 0, redials.First},
		"it comes back a bit later": {10 * time.Second, time.Second, true, time.Second, time.Second + 2*redials.First},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := &fakeServer{}
				f := run(t, Spec{Name: "bigpc", Dial: s.dial})
				synctest.Wait()
				s.set(func() { s.refuse = errRefused })
				s.drop()
				synctest.Wait()
				time.Sleep(c.away)
				timer := time.AfterFunc(c.back, func() { s.set(func() { s.refuse = nil }) })
				defer timer.Stop()
				if c.back == 0 {
					synctest.Wait()
				}
				begin := time.Now()
				_, err := f.Attach(t.Context(), handoff.Target{Server: "bigpc", Thread: idAuth})
				if (err == nil) != c.works || err != nil && handoff.AsError(err).Code != handoff.CodeUnreachable {
					t.Errorf("%v", err)
				}
				if took := time.Since(begin); took < c.least || took > c.most {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

// A forkingLink is a connection that can copy threads.
type forkingLink struct {
	*fakeLink
	id    string // of the copy
	agent *fakeAgent
}

func (l *forkingLink) Fork(_ context.Context, thread string, _ handoff.TurnID) (handoff.Attached, error) {
	if thread == idAuth2 {
		return handoff.Attached{}, handoff.Fault(handoff.CodeSessionGone, "", "no rollout")
	}
	at := handoff.Attached{Agent: l.agent, Target: handoff.Target{Thread: l.id}, Workspace: "/src/shop"}
	if thread == idLost { // in no list
		at.Workspace = "/src/apiary"
	}
	return at, nil
}

func TestFork(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, agent, id := &fakeServer{}, &fakeAgent{}, "copy"
		f := run(t, Spec{Name: "bigpc", Projects: map[string]string{"shop": "/src/shop"}, Dial: func(ctx context.Context) (*Link, error) {
			link, err := s.dial(ctx)
			link.Conn = &forkingLink{link.Conn.(*fakeLink), id, agent}
			return link, err
		}},
			Spec{Name: "laptop", Dial: s.dial})
		synctest.Wait()
		source := handoff.Target{Server: "bigpc", Project: "shop", Thread: idAuth}
		a, err := f.Fork(t.Context(), source, "")
		if want := (handoff.Target{Server: "bigpc", Project: "shop", Thread: "copy"}); err != nil || a.Target != want ||
			a.VoiceApprovals != "medium" {
			t.Errorf("%+v, %v", a, err)
		}
		for _, c := range []struct {
			target handoff.Target
			code   handoff.Code
		}{
			{handoff.Target{Server: "laptop", Thread: idAuth}, handoff.CodeUnsupported},
			{handoff.Target{Server: "bigpc", Thread: idAuth2}, handoff.CodeSessionGone},
			{handoff.Target{Server: "bigpc"}, handoff.CodeMalformed},
			{handoff.Target{Server: "bigpc", Thread: handoff.NewThread}, handoff.CodeMalformed},
			{handoff.Target{Server: "nope", Thread: idAuth}, handoff.CodeUnknownServer},
			{handoff.Target{Server: "bigpc", Thread: "copy"}, handoff.CodeSessionMismatch},
			{handoff.Target{Server: "bigpc", Project: "shop", Thread: idLost}, handoff.CodeSessionElsewhere},
		} {
			if _, err := f.Fork(t.Context(), c.target, ""); err == nil || handoff.AsError(err).Code != c.code {
				t.Errorf("%+v: %v, want %s", c.target, err, c.code)
			}
		}
		if agent.closed != 2 {
			t.Errorf("%d of the two copies that were refused are closed", agent.closed)
		}
	})
}

// TestVoiceApprovals: every attached thread has the voice approvals of its server.
func TestVoiceApprovals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := &fakeServer{}
		f := run(t, Spec{Name: "bigpc", VoiceApprovals: "none", Dial: s.dial}, Spec{Name: "laptop", Dial: s.dial})
		synctest.Wait()
		for server, want := range map[string]string{"bigpc": "none", "laptop": "medium"} {
			a, err := f.Attach(t.Context(), handoff.Target{Server: server, Thread: idAuth})
			b, err2 := f.Create(t.Context(), handoff.Target{Server: server})
			if err != nil || err2 != nil || a.VoiceApprovals != want || b.VoiceApprovals != want {
				t.Errorf("%s: %q and %q, %v, %v", server, a.VoiceApprovals, b.VoiceApprovals, err, err2)
			}
		}
	})
}

// TestRegistered: names that people may say, and what may be approved by voice, are known without a thread.
func TestRegistered(t *testing.T) {
	s := &fakeServer{}
	f, err := New(Config{Specs: []Spec{{Name: "bigpc", Aliases: []string{"the desktop"}, VoiceApprovals: "low",
		Simulated: true, Dial: s.dial}, {Name: "laptop", Dial: s.dial}}})
	must(t, err)
	for server, want := range map[string]handoff.Registered{
		"bigpc":  {Names: []string{"bigpc", "the desktop"}, VoiceApprovals: "low", EndsWithUs: true},
		"laptop": {Names: []string{"laptop"}, VoiceApprovals: "medium"},
		"mini":   {Names: []string{"mini"}},
	} {
		if got := f.Registered(server); !slices.Equal(got.Names, want.Names) || got.VoiceApprovals != want.VoiceApprovals ||
			got.EndsWithUs != want.EndsWithUs {
			t.Errorf("%s: %+v", server, got)
		}
	}
}
