package servers

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
)

// names lists the servers of a fleet.
func names(f *Fleet) (all []string) {
	for _, m := range f.Machines(handoff.Grant{}) {
		all = append(all, m.Name)
	}
	return all
}

func code(err error) handoff.Code {
	if err == nil {
		return ""
	}
	return handoff.AsError(err).Code
}

// TestChange: servers are added and removed while the fleet runs, and the others keep their connections.
func TestChange(t *testing.T) {
	stays, goes, comes := &fakeServer{}, &fakeServer{}, &fakeServer{}
	bubble(t, func(t *testing.T) {
		told := 0
		f := runChanged(t, func() { told++ }, Spec{Name: "bigpc", Dial: stays.dial}, Spec{Name: "attic", Dial: goes.dial})
		synctest.Wait()
		before := told
		must(t, f.Change([]string{"attic"}, []Spec{{Name: "mini", Aliases: []string{"studio"}, Dial: comes.dial, IsThread: isThread}}))
		synctest.Wait()
		if open, all := stays.connections(); open != 1 || all != 1 {
			t.Errorf("bigpc: %d of %d connections", open, all)
		}
		if open, all := goes.connections(); open != 0 || all != 1 {
			t.Errorf("attic: %d of %d connections", open, all)
		}
		if told == before {
			t.Error("nobody was told")
		}
		for server, want := range map[string]handoff.Code{"mini": "", "studio": "", "attic": handoff.CodeUnknownServer} {
			if _, err := f.Attach(t.Context(), handoff.Target{Server: server, Thread: idAuth}); code(err) != want {
				t.Errorf("%s: %v, want %q", server, err, want)
			}
			if _, err := f.Resolve(t.Context(), handoff.Grant{}, handoff.Target{Server: server}); code(err) != want {
				t.Errorf("resolve %s: %v, want %q", server, err, want)
			}
		}
	})
}

// TestChangeIsWhole: an invalid change is refused as a whole.
func TestChangeIsWhole(t *testing.T) {
	s := &fakeServer{}
	bubble(t, func(t *testing.T) {
		f := run(t, Spec{Name: "bigpc", Dial: s.dial})
		synctest.Wait()
		for _, put := range [][]Spec{
			{{Name: "mini", Dial: s.dial}, {Name: "Big-PC", Dial: s.dial}},
			{{Name: "mini"}},
			{{Name: "mini", Dial: s.dial}, {Name: "mini", Dial: s.dial}},
		} {
			if err := f.Change([]string{"attic"}, put); err == nil {
				t.Errorf("accepted %v", put)
			}
		}
		synctest.Wait()
		if open, all := s.connections(); open != 1 || all != 1 || len(names(f)) != 1 {
			t.Errorf("%d of %d connections, servers %v", open, all, names(f))
		}
	})
}

// TestChangeReplaces: a server that replaces another one is dialled after that is closed, and takes its place.
func TestChangeReplaces(t *testing.T) {
	bubble(t, func(t *testing.T) {
		old, next := &fakeServer{}, &fakeServer{}
		open := 0
		f := run(t, Spec{Name: "bigpc", Dial: old.dial}, Spec{Name: "laptop", Dial: noDial})
		synctest.Wait()
		must(t, f.Change(nil, []Spec{{Name: "bigpc", Dial: func(ctx context.Context) (*Link, error) {
			open, _ = old.connections()
			return next.dial(ctx)
		}}}))
		synctest.Wait()
		if n, _ := next.connections(); n != 1 || open != 0 || names(f)[0] != "bigpc" {
			t.Errorf("%d connections, %d of the former while dialing, servers %v", n, open, names(f))
		}
	})
}

// TestRemovedWhileAsked: a request that waits for a server fails when the server is removed.
func TestRemovedWhileAsked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := &fakeServer{delay: time.Hour}
		f := run(t, Spec{Name: "bigpc", Dial: s.dial})
		asked := make(chan error, 1)
		go func() {
			_, err := f.Attach(t.Context(), handoff.Target{Server: "bigpc", Thread: idAuth})
			asked <- err
		}()
		synctest.Wait()
		must(t, f.Change([]string{"bigpc"}, nil))
		if err := <-asked; code(err) != handoff.CodeUnknownServer {
			t.Errorf("told %v", err)
		}
	})
}

// TestReplacedWhileAsked: a request that waits for a server that is replaced is served by the new one, whether or not
// it had reached the old one.
func TestReplacedWhileAsked(t *testing.T) {
	for name, former := range map[string]*fakeServer{
		"not reached": {delay: time.Hour},
		"asked": {onAttach: func(l *fakeLink, _ string) (handoff.Attached, error) {
			<-l.done
			return handoff.Attached{}, errors.New("lost")
		}, onCreate: func(l *fakeLink) error {
			<-l.done
			return errors.New("lost")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				next := &fakeServer{}
				f := run(t, Spec{Name: "bigpc", Dial: former.dial})
				asked := make(chan error, 2)
				go func() {
					_, err := f.Attach(t.Context(), handoff.Target{Server: "bigpc", Thread: idAuth})
					asked <- err
				}()
				go func() {
					_, err := f.Create(t.Context(), handoff.Target{Server: "bigpc", Thread: handoff.NewThread})
					asked <- err
				}()
				synctest.Wait()
				must(t, f.Change(nil, []Spec{{Name: "bigpc", Aliases: []string{"desk"}, Dial: next.dial}}))
				for range 2 {
					if err := <-asked; err != nil {
						t.Errorf("told %v", err)
					}
				}
			})
		})
	}
}

// TestHold: requests for a thread wait while the server is held. Then they are served, by its replacement if there is
// one.
func TestHold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		former, next, other := &fakeServer{}, &fakeServer{}, &fakeServer{}
		f := run(t, Spec{Name: "bigpc", Dial: former.dial}, Spec{Name: "laptop", Dial: other.dial})
		synctest.Wait()
		used := ""
		former.onAttach = func(*fakeLink, string) (handoff.Attached, error) {
			used = "the former"
			return handoff.Attached{Agent: &fakeAgent{}, Target: handoff.Target{Thread: idAuth}}, nil
		}
		attach := func(server string) chan error {
			asked := make(chan error, 1)
			go func() {
				_, err := f.Attach(t.Context(), handoff.Target{Server: server, Thread: idAuth})
				asked <- err
			}()
			synctest.Wait()
			return asked
		}
		release := f.Hold([]string{"bigpc", "nobody"})
		waits := attach("bigpc")
		if len(waits) > 0 || used != "" {
			t.Error("a thread of what is held was attached")
		}
		if err := <-attach("laptop"); err != nil {
			t.Errorf("laptop, which is not held: %v", err)
		}
		must(t, f.Change(nil, []Spec{{Name: "bigpc", Dial: next.dial}}))
		release()
		if err := <-waits; err != nil || used != "" {
			t.Errorf("after the change: %v, of %s", err, used)
		}
		release = f.Hold([]string{"bigpc"})
		waits = attach("bigpc")
		release()
		if err := <-waits; err != nil {
			t.Errorf("after the release: %v", err)
		}
	})
}

// TestRemovedNamesNoOthers: the error for a removed server does not name servers that are not the caller's.
func TestRemovedNamesNoOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := &fakeServer{}
		f := run(t, Spec{Name: "bigpc", Dial: s.dial}, Spec{Name: "boss", Dial: noDial})
		must(t, f.Change([]string{"bigpc"}, nil))
		_, err := f.Attach(t.Context(), handoff.Target{Server: "bigpc", Thread: idAuth})
		if fault := handoff.AsError(err); fault.Code != handoff.CodeUnknownServer || len(fault.Choices) > 0 {
			t.Errorf("told %v, choices %q", err, fault.Choices)
		}
	})
}

// TestChangeBeforeRun: a server that is replaced before the fleet runs is dialled when it does.
func TestChangeBeforeRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		next := &fakeServer{}
		f, err := New(Config{Specs: []Spec{{Name: "bigpc", Dial: noDial}}})
		must(t, err)
		must(t, f.Change(nil, []Spec{{Name: "bigpc", Dial: next.dial}}))
		start(t, f)
		synctest.Wait()
		if n, _ := next.connections(); n != 1 {
			t.Errorf("%d connections", n)
		}
	})
}

// TestRetry: after Retry, a server that is down is dialled soon.
func TestRetry(t *testing.T) {
	withServer(t, &fakeServer{refuse: errRefused}, func(t *testing.T, s *fakeServer, f *Fleet) {
		time.Sleep(5 * time.Minute)
		s.set(func() { s.refuse = nil })
		for _, name := range []string{"nobody", "bigpc"} {
			f.Retry(name)
		}
		time.Sleep(redials.First)
		synctest.Wait()
		if health(f) != handoff.HealthUp {
			t.Errorf("it is %s", health(f))
		}
	})
}
