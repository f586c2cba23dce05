package servers

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"switchboard/handoff"
)

var errRefused = DialFault("", &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)})

// withServer plays in a bubble with a fleet of one server, bigpc.
func withServer(t *testing.T, s *fakeServer, play func(t *testing.T, s *fakeServer, f *Fleet)) {
	t.Helper()
	bubble(t, func(t *testing.T) { play(t, s, run(t, Spec{Name: "bigpc", Dial: s.dial})) })
}

// run starts a fleet in the bubble and stops it at the end of the test.
func run(t *testing.T, specs ...Spec) *Fleet {
	t.Helper()
	return runChanged(t, nil, specs...)
}

func runChanged(t *testing.T, changed func(), specs ...Spec) *Fleet {
	t.Helper()
	for i := range specs {
		specs[i].IsThread = isThread
	}
	f, err := New(Config{Specs: specs, Changed: changed})
	must(t, err)
	start(t, f)
	return f
}

// start runs a fleet until the end of the test.
func start(t *testing.T, f *Fleet) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
}

func health(f *Fleet) handoff.Health { return f.now.Load().connectors[0].now.Load().health }

func TestConnectionIsKeptWarm(t *testing.T) {
	withServer(t, &fakeServer{}, func(t *testing.T, s *fakeServer, f *Fleet) {
		synctest.Wait()
		if open, all := s.connections(); open != 1 || all != 1 || health(f) != handoff.HealthUp {
			t.Fatalf("%d of %d connections, %s", open, all, health(f))
		}
		s.drop()
		synctest.Wait()
		if health(f) != handoff.HealthConnecting {
			t.Errorf("after a loss: %s", health(f))
		}
		time.Sleep(redials.First)
		synctest.Wait()
		if open, all := s.connections(); open != 1 || all != 2 || health(f) != handoff.HealthUp {
			t.Errorf("after the first step: %d of %d connections, %s", open, all, health(f))
		}
	})
}

// TestComesBack: a machine that has just come back counts as connecting while its agent starts, and not as down.
func TestComesBack(t *testing.T) {
	withServer(t, &fakeServer{refuse: errRefused}, func(t *testing.T, s *fakeServer, f *Fleet) {
		time.Sleep(time.Minute)
		synctest.Wait()
		if health(f) != handoff.HealthDown {
			t.Fatalf("before: %s", health(f))
		}
		s.set(func() { s.refuse, s.delay = nil, 8*time.Second })
		f.Retry("bigpc")
		time.Sleep(redials.First)
		synctest.Wait()
		if info := f.Known()[0]; info.Health != handoff.HealthConnecting || info.Problem != "" {
			t.Errorf("while it starts: %+v", info)
		}
		time.Sleep(8 * time.Second)
		synctest.Wait()
		if health(f) != handoff.HealthUp {
			t.Errorf("after it has started: %s", health(f))
		}
	})
}

// TestShutdownIsNoLoss: the end of Switchboard is not logged as a change of each server.
func TestShutdownIsNoLoss(t *testing.T) {
	bubble(t, func(t *testing.T) {
		core, logged := observer.New(zap.InfoLevel)
		s := &fakeServer{}
		f, err := New(Config{Specs: []Spec{{Name: "bigpc", Dial: s.dial, IsThread: isThread}}, Log: zap.New(core)})
		must(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.Run(ctx) }()
		synctest.Wait()
		before := logged.Len()
		stop()
		must(t, <-ended)
		for _, entry := range logged.All()[before:] {
			t.Errorf("logged %s %v", entry.Message, entry.ContextMap())
		}
	})
}

func TestDialingBacksOffAndStartsAgain(t *testing.T) {
	withServer(t, &fakeServer{refuse: errRefused}, func(t *testing.T, s *fakeServer, f *Fleet) {
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		tries := s.tried()
		for i := 1; i < len(tries); i++ {
			gap := tries[i].Sub(tries[i-1])
			if low, high := redials.Step(i-1)/2, redials.Step(i-1); gap < low || gap > high {
				t.Errorf("pause %d is %v, want %v to %v", i, gap, low, high)
			}
		}
		if n := len(tries); n < 15 || n > 35 {
			t.Errorf("%d attempts in five minutes", n)
		}
		if v := f.now.Load().connectors[0].now.Load(); v.health != handoff.HealthDown ||
			v.fault.Reason != handoff.ReasonNotRunning {
			t.Errorf("%s: %s", v.health, v.fault.Reason)
		}
		s.set(func() { s.refuse = nil })
		time.Sleep(redials.Longest)
		synctest.Wait()
		if health(f) != handoff.HealthUp {
			t.Fatalf("after it came back: %s", health(f))
		}
		before := len(s.tried())
		s.drop()
		time.Sleep(redials.First)
		synctest.Wait()
		if got := len(s.tried()); got != before+1 {
			t.Errorf("%d attempts within the first step after a success, want 1", got-before)
		}
	})
}

// TestConnectionThatNeverHolds: a server that drops every connection at once is dialled after longer and longer pauses,
// but a request that needs it still causes an attempt at once.
func TestConnectionThatNeverHolds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := &fakeServer{}
		f := run(t, Spec{Name: "bigpc", Dial: func(ctx context.Context) (*Link, error) {
			link, err := s.dial(ctx)
			time.AfterFunc(time.Second, s.drop)
			return link, err
		}})
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if n := len(s.tried()); n < 10 || n > 40 {
			t.Errorf("%d attempts in five minutes", n)
		}
		for health(f) == handoff.HealthUp {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
		}
		if v := f.now.Load().connectors[0].now.Load(); v.health != handoff.HealthDown || v.fault.Reason != handoff.ReasonLost {
			t.Errorf("%s: %s", v.health, v.fault.Reason)
		}
		start := time.Now()
		if _, err := f.Create(t.Context(), handoff.Target{Server: "bigpc"}); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took > redials.First {
			t.Errorf("connecting took %v", took)
		}
	})
}

func TestRequestWaitsForTheAttemptUnderWay(t *testing.T) {
	withServer(t, &fakeServer{delay: 2 * time.Second}, func(t *testing.T, s *fakeServer, f *Fleet) {
		start := time.Now()
		_, err := f.Attach(t.Context(), handoff.Target{Server: "bigpc", Thread: idAuth})
		must(t, err)
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestRequestGivesUpOnASlowAttempt(t *testing.T) {
	withServer(t, &fakeServer{delay: time.Minute}, func(t *testing.T, s *fakeServer, f *Fleet) {
		start := time.Now()
		_, err := f.Attach(t.Context(), handoff.Target{Server: "bigpc", Thread: idAuth})
		fault := handoff.AsError(err)
		if fault.Code != handoff.CodeUnreachable || fault.Subject != "bigpc" {
			t.Errorf("%v", fault)
		}
		if took := time.Since(start); took != waitConnecting {
			t.Errorf("took %v", took)
		}
	})
}

func TestRequestToADownServerTriesAtOnce(t *testing.T) {
	withServer(t, &fakeServer{refuse: errRefused}, func(t *testing.T, s *fakeServer, f *Fleet) {
		time.Sleep(5 * time.Minute)
		start := time.Now()
		_, err := f.Create(t.Context(), handoff.Target{Server: "bigpc"})
		if fault := handoff.AsError(err); fault.Code != handoff.CodeUnreachable || fault.Subject != "bigpc" {
			t.Errorf("%v", fault)
		}
		if took := time.Since(start); took > redials.First {
			t.Errorf("the refusal took %v", took)
		}
		s.set(func() { s.refuse = nil })
		start = time.Now()
		if _, err := f.Create(t.Context(), handoff.Target{Server: "bigpc"}); err != nil {
			t.Errorf("it is back: %v", err)
		}
		if took := time.Since(start); took > redials.First {
			t.Errorf("connecting took %v", took)
		}
	})
}

func TestManyRequestsDoNotHammer(t *testing.T) {
	withServer(t, &fakeServer{refuse: errRefused}, func(t *testing.T, s *fakeServer, f *Fleet) {
		time.Sleep(5 * time.Minute)
		before := len(s.tried())
		for range 100 {
			_, _ = f.Create(t.Context(), handoff.Target{Server: "bigpc"})
		}
		took := time.Since(s.tried()[before])
		if most := int(took/redials.First) + 2; len(s.tried())-before > most {
			t.Errorf("%d attempts in %v", len(s.tried())-before, took)
		}
	})
}

func TestCancelledRequestReturns(t *testing.T) {
	withServer(t, &fakeServer{delay: 2 * time.Second}, func(t *testing.T, s *fakeServer, f *Fleet) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := f.Create(ctx, handoff.Target{Server: "bigpc"}); handoff.AsError(err).Code != handoff.CodeUnreachable {
			t.Errorf("%v", err)
		}
	})
}

func TestNothingIsReachedAfterTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, hung := &fakeServer{}, &fakeServer{delay: time.Hour}
		f, err := New(Config{Specs: []Spec{{Name: "bigpc", Dial: s.dial}, {Name: "far", Dial: hung.dial}}})
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.Run(ctx) }()
		synctest.Wait()
		cancel()
		must(t, <-ended)
		if open, _ := s.connections(); open != 0 {
			t.Errorf("%d connections are still open", open)
		}
		for _, server := range []string{"bigpc", "far"} {
			_, err = f.Attach(t.Context(), handoff.Target{Server: server, Thread: idAuth})
			if fault := handoff.AsError(err); fault.Code != handoff.CodeShutdown {
				t.Errorf("%s: %v", server, fault)
			}
		}
	})
}

func TestChangesAreTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := &fakeServer{}
		var calls atomic.Int64
		fleet := make(chan *Fleet, 1)
		fleet <- runChanged(t, func() {
			calls.Add(1)
			f := <-fleet
			_ = f.Servers(t.Context(), handoff.Grant{}) // no lock is held
			fleet <- f
		}, Spec{Name: "bigpc", Dial: s.dial})
		synctest.Wait()
		if n := calls.Load(); n != 1 {
			t.Errorf("connected: %d calls", n)
		}
		s.set(func() { s.refuse = errRefused })
		s.drop()
		synctest.Wait()
		if n := calls.Load(); n != 2 {
			t.Errorf("lost: %d calls", n)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := calls.Load(); n != 3 {
			t.Errorf("down for an hour: %d calls", n)
		}
	})
}

// TestDownAtTheStart: a machine that is down at the start of Switchboard is logged as a warning, with what to do, since
// a terminal shows warnings. A machine that is lost later is no warning: machines come and go.
func TestDownAtTheStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		core, logs := observer.New(zap.WarnLevel)
		away, lost := &fakeServer{refuse: errRefused}, &fakeServer{}
		f, err := New(Config{Specs: []Spec{{Name: "attic", Dial: away.dial, IsThread: isThread},
			{Name: "bigpc", Dial: lost.dial, IsThread: isThread}}, Log: zap.New(core)})
		must(t, err)
		start(t, f)
		synctest.Wait()
		lost.set(func() { lost.refuse = errRefused })
		lost.drop()
		time.Sleep(time.Hour)
		all := logs.All()
		if len(all) != 1 {
			t.Fatalf("%d warnings: %v", len(all), all)
		}
		if said := all[0].ContextMap(); said["server"] != "attic" || said["health"] != "down" || said["next"] == "" {
			t.Errorf("told is %v", said)
		}
	})
}

// outdated is the error of a kind for a server that is too old. Set once.
var outdated = handoff.Fault(handoff.CodeOutdated, "bigpc runs codex 0.140; 0.150 is needed",
	"it runs codex 0.140; 0.150 is needed")

// TestOutdated: a server that is too old is down, and says what it runs wherever it is asked for.
func TestOutdated(t *testing.T) {
	withServer(t, &fakeServer{refuse: outdated}, func(t *testing.T, s *fakeServer, f *Fleet) {
		synctest.Wait()
		if info := f.Servers(t.Context(), nobody)[0]; info.Health != handoff.HealthDown ||
			info.Problem != "it runs codex 0.140; 0.150 is needed" {
			t.Errorf("%+v", info)
		}
		_, err := f.Create(t.Context(), handoff.Target{Server: "bigpc"})
		if e := handoff.AsError(err); e.Code != handoff.CodeOutdated ||
			e.Spoken() != "bigpc runs codex 0.140; 0.150 is needed." {
			t.Errorf("create: %v", err)
		}
		list, err := f.Sessions(t.Context(), nobody, handoff.SessionQuery{})
		if err != nil || len(list.Errors) != 1 || list.Errors[0].Message != "bigpc runs codex 0.140; 0.150 is needed." {
			t.Errorf("sessions: %+v, %v", list, err)
		}
	})
}

// TestWrongToken: all errors about the server say that its token is wrong, and which setting to correct.
func TestWrongToken(t *testing.T) {
	withServer(t, &fakeServer{refuse: handoff.Fault(handoff.CodeTokenRefused, "bigpc", "HTTP 401")}, func(t *testing.T, s *fakeServer, f *Fleet) {
		synctest.Wait()
		info := f.Servers(t.Context(), nobody)[0]
		if info.Health != handoff.HealthDown || !strings.Contains(info.Problem, "did not accept Switchboard's token") {
			t.Errorf("%+v", info)
		}
		_, err := f.Create(t.Context(), handoff.Target{Server: "bigpc"})
		if e := handoff.AsError(err); e.Code != handoff.CodeTokenRefused ||
			e.Spoken() != "bigpc did not accept Switchboard's token." ||
			!strings.Contains(e.NextStep(), "token_file") {
			t.Errorf("create: %v", err)
		}
		list, err := f.Sessions(t.Context(), nobody, handoff.SessionQuery{})
		if err != nil || len(list.Errors) != 1 || list.Errors[0].Code != handoff.CodeTokenRefused {
			t.Errorf("sessions: %+v, %v", list, err)
		}
	})
}

// TestExclusiveLinkIsClosedFirst: the next connection is dialled only after an exclusive one is closed.
func TestExclusiveLinkIsClosedFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := &fakeServer{}
		var began []time.Time
		const takes = 4 * time.Second
		closing := false
		run(t, Spec{Name: "bigpc", Dial: func(ctx context.Context) (*Link, error) {
			if closing {
				t.Error("dialled while the old connection was being closed")
			}
			began = append(began, time.Now())
			link, err := s.dial(ctx)
			link.Exclusive = true
			link.Conn = slowClose{link.Conn, func() { closing = true; time.Sleep(takes); closing = false }}
			return link, err
		}})
		synctest.Wait()
		s.drop()
		time.Sleep(takes + 2*time.Second)
		synctest.Wait()
		if len(began) != 2 {
			t.Errorf("dialled %d times", len(began))
		}
	})
}

type slowClose struct {
	Conn
	before func()
}

func (c slowClose) Close() error { c.before(); return c.Conn.Close() }

func TestDialErrorOfAnyKind(t *testing.T) {
	withServer(t, &fakeServer{refuse: errors.New("exec: codex not found")}, func(t *testing.T, s *fakeServer, f *Fleet) {
		_, err := f.Create(t.Context(), handoff.Target{Server: "bigpc"})
		if fault := handoff.AsError(err); fault.Code != handoff.CodeUnreachable || fault.Detail != "exec: codex not found" {
			t.Errorf("%v", fault)
		}
	})
}
