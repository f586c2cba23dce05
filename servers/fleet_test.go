package servers

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
)

func noDial(context.Context) (*Link, error) { return nil, errors.New("never dialed") }

func TestNewRefusesNamesThatClash(t *testing.T) {
	t.Parallel()
	_, err := New(Config{Specs: []Spec{
		{Name: "bigpc", Dial: noDial, Projects: map[string]string{"web site": "/a", "Web-Site": "/b", "a/b": "/c"}},
		{Name: "bigpc", Dial: noDial},
		{Name: "Big-PC", Dial: noDial},
		{Name: "laptop", Aliases: []string{"big pc", "node 1", "/"}, Dial: noDial},
		{Name: "node1", Dial: noDial},
		{Name: "---", Dial: noDial},
		{Name: "deaf"},
	}})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		`server "bigpc": is there twice`,
		`server "bigpc": projects "Web-Site" and "web site" sound the same`,
		`server "bigpc": project "a/b" must have a letter`,
		`server "Big-PC": name "Big-PC" is also a name of server "bigpc"`,
		`server "laptop": alias "big pc" is also a name of server "bigpc"`,
		`server "laptop": alias "/" must have a letter`,
		`server "node1": name "node1" is also a name of server "laptop"`,
		`server "---": name "---" must have a letter`,
		`server "deaf": no way to dial it`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
	own := Spec{Name: "bigpc", Aliases: []string{"big pc", "Big PC"}, Dial: noDial}
	if _, err := New(Config{Specs: []Spec{own}}); err != nil {
		t.Errorf("a server may repeat its own name: %v", err)
	}
}

func TestResolveTarget(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := &fakeServer{threads: []Thread{{ID: idAuth, Title: "Auth refactor"}}}
		down := &fakeServer{refuse: errRefused}
		f := run(t,
			Spec{Name: "bigpc", Aliases: []string{"the desktop"}, Projects: map[string]string{"shop": "/shop", "api": "/api"},
				Dial: s.dial},
			Spec{Name: "attic", Dial: down.dial})
		synctest.Wait()
		for _, row := range []struct {
			in, want handoff.Target
			code     handoff.Code
		}{
			{in: handoff.Target{Server: "The Desktop"}, want: handoff.Target{Server: "bigpc"}},
			{in: handoff.Target{Server: "shop"}, want: handoff.Target{Server: "bigpc", Project: "shop"}},
			{in: handoff.Target{Server: "bigpc", Project: "Shop"}, want: handoff.Target{Server: "bigpc", Project: "shop"}},
			{in: handoff.Target{Server: "bigpc/shop", Project: "shop"}, want: handoff.Target{Server: "bigpc", Project: "shop"}},
			{in: handoff.Target{Server: "bigpc/shop", Project: "api"}, code: handoff.CodeMalformed},
			{in: handoff.Target{Server: "bigpc", Project: "nope"}, code: handoff.CodeUnknownServer},
			{in: handoff.Target{Server: "bigpc", Thread: "auth"}, want: handoff.Target{Server: "bigpc", Thread: idAuth}},
			{in: handoff.Target{Server: "bigpc", Thread: "New"},
				want: handoff.Target{Server: "bigpc", Thread: handoff.NewThread}},
			{in: handoff.Target{Server: "bigpc", Thread: "payment"}, code: handoff.CodeUnknownSession},
			{in: handoff.Target{Server: "attic", Thread: idAuth}, want: handoff.Target{Server: "attic", Thread: idAuth}},
			{in: handoff.Target{Server: "attic", Thread: "auth"}, code: handoff.CodeUnreachable},
			{in: handoff.Target{}, code: handoff.CodeMalformed},
		} {
			got, err := f.Resolve(t.Context(), handoff.Grant{}, row.in)
			switch {
			case row.code == "" && (err != nil || got != row.want):
				t.Errorf("%+v: %+v, %v", row.in, got, err)
			case row.code != "" && (err == nil || handoff.AsError(err).Code != row.code):
				t.Errorf("%+v: %+v, %v, want %s", row.in, got, err, row.code)
			}
		}
	})
}

// TestOldListsDoNotDecide: a session that came after the list was taken makes a name ambiguous.
func TestOldListsDoNotDecide(t *testing.T) {
	withServer(t, &fakeServer{threads: []Thread{{ID: idAuth, Title: "Auth refactor"}}}, func(t *testing.T, s *fakeServer, f *Fleet) {
		resolve := func(said string) (handoff.Target, error) {
			return f.Resolve(t.Context(), handoff.Grant{}, handoff.Target{Server: "bigpc", Thread: said})
		}
		if got, err := resolve("auth"); err != nil || got.Thread != idAuth {
			t.Fatalf("%+v, %v", got, err)
		}
		s.set(func() {
			s.threads = []Thread{{ID: idAuth2, Title: "Auth tests"}, {ID: idAuth, Title: "Auth refactor"}}
		})
		if _, err := resolve("auth"); handoff.AsError(err).Code != handoff.CodeAmbiguousSession {
			t.Errorf("%v", err)
		}
		if got, err := resolve("auth tests"); err != nil || got.Thread != idAuth2 {
			t.Errorf("a new session: %+v, %v", got, err)
		}
	})
}

func TestAttachAndCreateFillTheTarget(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := &fakeServer{}
		f := run(t, Spec{Name: "bigpc", Dir: "/home", Projects: map[string]string{"shop": "/shop"}, Dial: s.dial})
		want := handoff.Target{Server: "bigpc", Project: "shop", Thread: idAuth}
		if a, err := f.Attach(t.Context(), want); err != nil || a.Target != want {
			t.Errorf("%+v, %v", a.Target, err)
		}
		if a, err := f.Create(t.Context(),
			handoff.Target{Server: "bigpc", Project: "shop", Thread: handoff.NewThread}); err != nil || a.Target != want {
			t.Errorf("%+v, %v", a.Target, err)
		}
		if _, err := f.Create(t.Context(), handoff.Target{Server: "bigpc"}); err != nil {
			t.Error(err)
		}
		if got := strings.Join(s.dirs, " "); got != "/shop /home" {
			t.Errorf("threads were made in %q", got)
		}
		for _, bad := range []handoff.Target{{Server: "nope", Thread: idAuth},
			{Server: "bigpc", Project: "nope", Thread: idAuth}} {
			if _, err := f.Create(t.Context(), bad); err == nil || handoff.AsError(err).Code != handoff.CodeUnknownServer {
				t.Errorf("%+v: %v", bad, err)
			}
		}
		for _, thread := range []string{"", handoff.NewThread} {
			if _, err := f.Attach(t.Context(), handoff.Target{Server: "bigpc", Thread: thread}); err == nil ||
				handoff.AsError(err).Code != handoff.CodeMalformed {
				t.Errorf("thread %q: %v", thread, err)
			}
		}
	})
}

func TestAttachGivesExactlyTheThread(t *testing.T) {
	bubble(t, func(t *testing.T) {
		agent := &fakeAgent{}
		s := &fakeServer{onAttach: func(*fakeLink, string) (handoff.Attached, error) {
			return handoff.Attached{Agent: agent, Target: handoff.Target{Thread: idAuth2}}, nil
		}}
		f := run(t, Spec{Name: "bigpc", Dial: s.dial})
		_, err := f.Attach(t.Context(), handoff.Target{Server: "bigpc", Thread: idAuth})
		if fault := handoff.AsError(err); fault.Code != handoff.CodeSessionMismatch || fault.Subject != "bigpc" ||
			agent.closed != 1 {
			t.Errorf("%v, given back %d times", err, agent.closed)
		}
	})
}

func TestAttachOutlivesALostConnection(t *testing.T) {
	bubble(t, func(t *testing.T) {
		asked := 0
		s := &fakeServer{onAttach: func(l *fakeLink, thread string) (handoff.Attached, error) {
			if asked++; asked == 1 {
				l.lose()
				return handoff.Attached{}, handoff.Fault(handoff.CodeAgentGone, "", "")
			}
			return handoff.Attached{Agent: &fakeAgent{}, Target: handoff.Target{Thread: thread}}, nil
		}}
		f := run(t, Spec{Name: "bigpc", Dial: s.dial})
		if _, err := f.Attach(t.Context(), handoff.Target{Server: "bigpc", Thread: idAuth}); err != nil || asked != 2 {
			t.Errorf("asked %d times: %v", asked, err)
		}
	})
}

func TestAttachIsRepeatedOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		asked := 0
		s := &fakeServer{}
		s.onAttach = func(l *fakeLink, _ string) (handoff.Attached, error) {
			asked++
			l.lose()
			return handoff.Attached{}, handoff.Fault(handoff.CodeUnreachable, "", "lost")
		}
		f := run(t, Spec{Name: "bigpc", Dial: s.dial})
		_, err := f.Attach(t.Context(), handoff.Target{Server: "bigpc", Thread: idAuth})
		if fault := handoff.AsError(err); fault.Code != handoff.CodeUnreachable || fault.Subject != "bigpc" || asked != 2 {
			t.Errorf("asked %d times: %v", asked, fault)
		}
		asked = 0
		s.onAttach = func(*fakeLink, string) (handoff.Attached, error) {
			asked++
			return handoff.Attached{}, handoff.Fault(handoff.CodeSessionGone, idAuth, "no rollout")
		}
		time.Sleep(time.Second)
		_, err = f.Attach(t.Context(), handoff.Target{Server: "bigpc", Thread: idAuth})
		if fault := handoff.AsError(err); fault.Code != handoff.CodeSessionGone || asked != 1 {
			t.Errorf("a refusal was asked %d times: %v", asked, fault)
		} else if strings.Contains(fault.Spoken(), idAuth) {
			t.Errorf("an id is spoken: %s", fault.Spoken())
		}
	})
}

// TestCreateIsRepeatedOnce: over a connection that was lost meanwhile; a refusal is final.
func TestCreateIsRepeatedOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		losses, asked int
		code          handoff.Code
	}{
		"lost once":  {1, 2, ""},
		"lost twice": {2, 2, handoff.CodeUnreachable},
		"refused":    {0, 1, handoff.CodeRefused},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				losses := c.losses
				s := &fakeServer{onCreate: func(l *fakeLink) error {
					if losses--; losses >= 0 {
						l.lose()
						return handoff.Fault(handoff.CodeUnreachable, "", "lost")
					}
					if c.code == handoff.CodeRefused {
						return handoff.Fault(c.code, "", "")
					}
					return nil
				}}
				f := run(t, Spec{Name: "bigpc", Dial: s.dial})
				_, err := f.Create(t.Context(), handoff.Target{Server: "bigpc"})
				if (err == nil) != (c.code == "") || err != nil && handoff.AsError(err).Code != c.code || len(s.dirs) != c.asked {
					t.Errorf("asked %d times: %v", len(s.dirs), err)
				}
			})
		})
	}
}

func TestAttachToAServerThatGoesAway(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := &fakeServer{}
		s.onAttach = func(l *fakeLink, _ string) (handoff.Attached, error) {
			s.set(func() { s.delay = time.Hour })
			l.lose()
			return handoff.Attached{}, errors.New("lost")
		}
		f := run(t, Spec{Name: "bigpc", Dial: s.dial})
		synctest.Wait()
		start := time.Now()
		_, err := f.Attach(t.Context(), handoff.Target{Server: "bigpc", Thread: idAuth})
		if fault := handoff.AsError(err); fault.Code != handoff.CodeUnreachable || fault.Subject != "bigpc" {
			t.Errorf("%v", fault)
		}
		if took := time.Since(start); took != waitConnecting {
			t.Errorf("took %v", took)
		}
	})
}

// TestStopWhileOpening: who stops while a session is being opened does not wait for it, and it does not stay open.
func TestStopWhileOpening(t *testing.T) {
	for name, open := range map[string]func(f *Fleet, ctx context.Context) error{
		"attach": func(f *Fleet, ctx context.Context) error {
			_, err := f.Attach(ctx, handoff.Target{Server: "bigpc", Thread: idAuth})
			return err
		},
		"create": func(f *Fleet, ctx context.Context) error {
			_, err := f.Create(ctx, handoff.Target{Server: "bigpc"})
			return err
		},
		"fork": func(f *Fleet, ctx context.Context) error {
			_, err := f.Fork(ctx, handoff.Target{Server: "bigpc", Thread: idAPI}, "")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				slow := &slowLink{}
				s := &fakeServer{}
				f := run(t, Spec{Name: "bigpc", Dial: func(ctx context.Context) (*Link, error) {
					l, err := s.dial(ctx)
					if err == nil {
						slow.fakeLink = l.Conn.(*fakeLink)
						l.Conn = slow
					}
					return l, err
				}})
				synctest.Wait()
				ctx, stop := context.WithTimeout(t.Context(), time.Second)
				defer stop()
				began := time.Now()
				if err := open(f, ctx); code(err) != handoff.CodeUnreachable || time.Since(began) != time.Second {
					t.Errorf("%v after %v", err, time.Since(began))
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if slow.agent.closed != 1 {
					t.Errorf("closed %d times", slow.agent.closed)
				}
			})
		})
	}
}

// A slowLink opens sessions in ten seconds. Who gives up before that leaves the session open.
type slowLink struct {
	*fakeLink
	agent fakeAgent
}

func (l *slowLink) open(ctx context.Context, _ string) (handoff.Attached, error) {
	select {
	case <-time.After(10 * time.Second):
		return handoff.Attached{Agent: &l.agent, Target: handoff.Target{Thread: idAuth}}, nil
	case <-ctx.Done():
		return handoff.Attached{}, handoff.Fault(handoff.CodeUnreachable, "bigpc", "given up")
	}
}

func (l *slowLink) Attach(ctx context.Context, id string) (handoff.Attached, error) {
	return l.open(ctx, id)
}

func (l *slowLink) Create(ctx context.Context, dir string) (handoff.Attached, error) {
	return l.open(ctx, dir)
}

func (l *slowLink) Fork(ctx context.Context, id string, _ handoff.TurnID) (handoff.Attached, error) {
	return l.open(ctx, id)
}
