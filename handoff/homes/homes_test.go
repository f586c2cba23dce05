package homes

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/handoff/router"
)

func grantOf(user string) handoff.Grant {
	return handoff.Grant{Caller: handoff.Caller{Principal: "many", User: user}}
}

// A life has running homes.
type life struct {
	*Homes
	end func()
}

// live begins a life of the process.
func (w *world) live(ctx context.Context, name string) life {
	s := New(router.Config{Fleet: w, Store: w, IDs: router.NewIDs(name)})
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return life{s, sync.OnceFunc(func() { stop(); <-done })}
}

// ask gives work.
func (s life) ask(t *testing.T, user string) handoff.ID {
	t.Helper()
	id, err := s.Start(t.Context(), grantOf(user), handoff.Request{
		Target: handoff.Target{Server: "s", Thread: handoff.NewThread}, Input: handoff.TextInput("go"),
		Mode: handoff.ModeNext,
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// outcome returns how a caller's work ended.
func (s life) outcome(t *testing.T, user string, id handoff.ID) handoff.Outcome {
	t.Helper()
	rec, err := s.Handoff(grantOf(user), string(id))
	if err != nil {
		t.Fatal(err)
	}
	return rec.Outcome
}

// TestTakenUp: open work of an earlier life is taken up by the homes of its callers, once, as soon as the store
// answers, also in a home that was used meanwhile. A caller without open work has no home.
func TestTakenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		former, ids := w.live(t.Context(), "h"), map[string]handoff.ID{}
		users := []string{}
		for i := range 2 * recovering {
			user := fmt.Sprint("user ", i)
			users, ids[user] = append(users, user), former.ask(t, user)
		}
		synctest.Wait()
		former.end()

		w.goAway(true)
		s := w.live(t.Context(), "i")
		defer s.end()
		synctest.Wait()
		for _, user := range []string{users[0], "nobody"} {
			if _, err := s.Handoff(grantOf(user), string(ids[users[0]])); handoff.CodeOf(err) != handoff.CodeStoreDown {
				t.Errorf("%s is told while the store is away: %v", user, err)
			}
		}
		if err := s.Recovered(t.Context(), time.Second); handoff.CodeOf(err) != handoff.CodeStoreDown {
			t.Errorf("what was left is known: %v", err)
		}
		w.goAway(false)
		if err := s.Recovered(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		if n := len(s.list()); n != len(users) {
			t.Errorf("there are %d homes", n)
		}
		if _, err := s.Handoff(grantOf("nobody"), string(ids[users[0]])); handoff.CodeOf(err) != handoff.CodeNotFound {
			t.Errorf("who left nothing is told: %v", err)
		}
		close(w.let)
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, user := range users {
			if o := s.outcome(t, user, ids[user]); o != handoff.OutcomeResult {
				t.Errorf("the work of %s has ended as %q", user, o)
			}
		}
		for turn, n := range w.followed {
			if n != 2 {
				t.Errorf("%s was followed %d times in two lives", turn, n)
			}
		}
		if w.started != len(users) {
			t.Errorf("%d turns were started of %d", w.started, len(users))
		}
	})
}

// TestSameKeyWhileTheStoreIsAway: work that is asked for again under its key is not begun twice, although the home did
// not know of the first work when it was asked. That work goes on.
func TestSameKeyWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		ask := func(s life) handoff.ID {
			id, err := s.Start(t.Context(), grantOf("alice"), handoff.Request{
				Key: "k", Target: handoff.Target{Server: "s", Thread: handoff.NewThread}, Input: handoff.TextInput("go"),
				Mode: handoff.ModeNext,
			})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return id
		}
		former := w.live(t.Context(), "h")
		first := ask(former)
		former.end()
		w.goAway(true)
		s := w.live(t.Context(), "i")
		defer s.end()
		second := ask(s)
		w.goAway(false)
		close(w.let)
		time.Sleep(time.Minute)
		if o := s.outcome(t, "alice", first); o != handoff.OutcomeResult || w.started != 1 {
			t.Errorf("the first has ended as %q; %d turns were started", o, w.started)
		}
		if o := s.outcome(t, "alice", second); o != handoff.OutcomeFailed {
			t.Errorf("the second has ended as %q", o)
		}
	})
}

// TestHomesEnd: when the homes end, so does all work in them, also work that was given before they ran, or to a home
// that had not taken up its open work yet. Later requests are refused.
func TestHomesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		early := New(router.Config{Fleet: w, Store: w, IDs: router.NewIDs("h")})
		id := life{Homes: early}.ask(t, "early")
		ended, stop := context.WithCancel(t.Context())
		stop()
		if err := early.Run(ended); err != nil {
			t.Fatal(err)
		}
		if o := (life{Homes: early}).outcome(t, "early", id); o == "" {
			t.Error("what was given before the homes ran has no end")
		}

		s, given := w.live(t.Context(), "i"), map[string]handoff.ID{}
		for i := range 2 * recovering {
			s.ask(t, fmt.Sprint("user ", i))
		}
		synctest.Wait()
		s.end()
		w.fill(true)
		s = w.live(t.Context(), "j")
		synctest.Wait()
		for i := range 2 * recovering {
			user := fmt.Sprint("user ", i)
			given[user] = s.ask(t, user)
		}
		synctest.Wait()
		s.end()
		for user, id := range given {
			if o := s.outcome(t, user, id); o == "" {
				t.Errorf("the work of %s has no end", user)
			}
		}
		for _, user := range []string{"user 0", "late"} {
			req := handoff.Request{Target: handoff.Target{Server: "s"}, Input: handoff.TextInput("go")}
			if _, err := s.Start(t.Context(), grantOf(user), req); handoff.CodeOf(err) != handoff.CodeShutdown {
				t.Errorf("work of %s at the end: %v", user, err)
			}
		}
	})
}

// TestWorking: work is under way on a server while it runs, and while a thread is prefetched for it.
func TestWorking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		s := w.live(t.Context(), "h")
		defer s.end()
		s.Prefetch(grantOf("alice"), "key", handoff.Target{Server: "s", Thread: "t"})
		synctest.Wait()
		if !s.Working("s") || s.Working("other") {
			t.Error("what is attached ahead is not on its server alone")
		}
		time.Sleep(time.Minute)
		if s.Working("s") {
			t.Error("it works although nothing came for what was attached ahead")
		}
		s.ask(t, "bob")
		synctest.Wait()
		if !s.Working("s") {
			t.Error("the work is not under way")
		}
		close(w.let)
		synctest.Wait()
		if s.Working("s") {
			t.Error("the work has ended")
		}
	})
}

// TestAwayCallersAreLetGo: homes of callers who come once do not accumulate, and no home with open work ends.
func TestAwayCallersAreLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		s := w.live(t.Context(), "h")
		defer s.end()
		const most = 200
		s.mu.Lock()
		s.most = most
		s.mu.Unlock()
		busy := map[string]func(g handoff.Grant){
			"attends": func(g handoff.Grant) { s.Attend(g, ear{}) },
			"reads":   func(g handoff.Grant) { s.Feed(g).Listen(0) },
			"works":   func(g handoff.Grant) { s.ask(t, g.Caller.User) },
		}
		kept := map[string]*router.Router{}
		for user, occupy := range busy {
			occupy(grantOf(user))
			kept[user] = s.of(grantOf(user).Caller)
		}
		once, often := s.home(grantOf("once").Caller), s.home(grantOf("often").Caller)
		s.ServersChanged()
		seen := s.Feed(grantOf("once")).Last() // by the page of who came once, which is closed then
		time.Sleep(time.Second)                // those are away longest
		come := func(i int) {
			s.home(grantOf("often").Caller)
			s.home(grantOf(fmt.Sprint("caller ", i)).Caller)
		}
		for i := range most + 10 {
			come(i)
		}
		if n := len(s.list()); n < most+10 { // nobody has been away long enough
			t.Errorf("there are %d homes", n)
		}
		for i := range 5 {
			time.Sleep(awayFor / 2)
			come(2*most + i)
		}
		if s.of(grantOf("often").Caller) != often {
			t.Error("the home of who comes often has ended")
		}
		for user, home := range kept {
			if s.of(grantOf(user).Caller) != home {
				t.Errorf("the home of who %s has ended", user)
			}
		}
		if s.home(grantOf("once").Caller) == once {
			t.Error("the home of who came once is kept")
		}
		s.ServersChanged()
		l, missed, complete := s.Feed(grantOf("once")).Listen(seen)
		if l.Stop(); complete && len(missed) == 0 {
			t.Error("a page that comes back to another home is not told what it missed")
		}
		if n := len(s.list()); n > most+len(busy)+1 {
			t.Errorf("there are %d homes", n)
		}
		synctest.Wait() // those that were told to end have ended
		callers := 0.0
		for m := range s.config.Counts.Metrics() {
			if m.Name == "switchboard_callers" {
				callers = m.Value
			}
		}
		if n := len(s.list()); callers < float64(n)-3 || callers > float64(n) { // some have only a home
			t.Errorf("%v callers are counted in %d homes", callers, n)
		}
	})
}

// TestReadsOfNobody: a caller about whom nothing is known leaves nothing behind by asking, nor by giving more work than
// their key may.
func TestReadsOfNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		s := w.live(t.Context(), "h")
		defer s.end()
		synctest.Wait()
		goroutines := runtime.NumGoroutine()
		for i := range 5_000 {
			g := grantOf(fmt.Sprint("name ", i))
			g.Key, g.KeyLimits.HandoffsPerMinute = "k", 1
			_, _ = s.Handoffs(g)
			_, _ = s.Handoff(g, "x")
			_ = s.Questions(g)
			_, _ = s.Stickies(t.Context(), g)
			_ = s.Recall(t.Context(), g.Caller)
			_ = s.Stop(t.Context(), g, "x", handoff.StopOurs)
			_ = s.Decide(t.Context(), g, "x", handoff.DecisionDecline)
			_ = s.Heard(t.Context(), g, "x")
			_, _ = s.Start(t.Context(), g, handoff.Request{Key: "k", Target: handoff.Target{Server: "s"}, Input: handoff.TextInput("x")})
		}
		if n := len(s.list()); n > 1 {
			t.Errorf("there are %d homes", n)
		}
		if n := runtime.NumGoroutine() - goroutines; n > 20 {
			t.Errorf("%d goroutines were left", n)
		}
		close(w.let)
	})
}

// BenchmarkHome measures the memory of an idle home: after its first use, and with a sticky session.
func BenchmarkHome(b *testing.B) {
	const homes = 10_000
	for name, ask := range map[string]func(*Homes, handoff.Grant) error{
		"asked": func(s *Homes, g handoff.Grant) error {
			_, err := s.Handoffs(g)
			return err
		},
		"remembers": func(s *Homes, g handoff.Grant) error {
			return s.PutSticky(context.Background(), g, "bigpc", "thread of "+g.Caller.User, "A session of "+g.Caller.User)
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s := newWorld().live(b.Context(), "h")
				_ = s.Recovered(b.Context(), time.Minute)
				before, goroutines := inUse(), runtime.NumGoroutine()
				for i := range homes {
					if err := ask(s.Homes, grantOf(fmt.Sprint(i))); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric((inUse()-before)/homes, "B/home")
				b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/homes, "goroutines/home")
				s.end()
			}
		})
	}
}

// inUse returns the memory of heap and stacks.
func inUse() float64 {
	time.Sleep(100 * time.Millisecond) // what is begun behind has begun
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse + m.StackInuse)
}

// TestNothingBeginsAtTheEnd: when the homes end, words that wait for a turn are not begun, although the handoff of that
// turn frees the thread. The turn goes on.
func TestNothingBeginsAtTheEnd(t *testing.T) {
	for range 100 {
		w := newWorld()
		s := w.live(t.Context(), "h")
		s.ask(t, "alice")
		eventually(t, "the turn", func() bool { return w.turnsOf("go") == 1 })
		if _, err := s.Start(t.Context(), grantOf("alice"), handoff.Request{
			Key: "next", Target: handoff.Target{Server: "s", Thread: "made 1"}, Input: handoff.TextInput("next"),
			Mode: handoff.ModeNext,
		}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the words to wait", func() bool {
			return slices.ContainsFunc(entriesOf(t, w, "alice"), func(e ledger.Entry) bool { return e.Status == handoff.StatusAccepted })
		})
		s.end()
		if n := w.turnsOf("next"); n != 0 {
			t.Fatalf("%d turns were begun", n)
		}
	}
}

// TestAuditNamesTheHome: the audit record of a decision has the instance and the epoch of the home.
func TestAuditNamesTheHome(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.asks = true
	a := w.open("a")
	a.come(t, "alice")
	a.works(t, "alice", "asks", handoff.StatusStarted)
	eventually(t, "the question", func() bool { return len(a.Questions(grantOf("alice"))) > 0 })
	if err := a.Decide(t.Context(), grantOf("alice"), "q", handoff.DecisionDecline); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if epoch := a.get(grantOf("alice").Caller).epoch; epoch == 0 || len(w.audited) != 1 ||
		w.audited[0].Instance != a.self.ID || w.audited[0].Epoch != epoch {
		t.Errorf("at %s in epoch %d %+v was written down", a.self.ID, epoch, w.audited)
	}
}

// TestRouterThatDoesNotLeave: a home whose earlier router does not end here is not waited for without a bound.
func TestRouterThatDoesNotLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		s := NewShared(router.Config{Fleet: w, Store: w}, Sharing{Self: handoff.Instance{ID: "h"}})
		c := grantOf("one").Caller
		s.cluster.leaving[c] = &home{ended: make(chan struct{})}
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := s.Where(ctx, c); handoff.CodeOf(err) != handoff.CodeStoreDown || time.Since(began) != leavesWithin {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}
