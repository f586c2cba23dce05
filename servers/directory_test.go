package servers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
)

var nobody handoff.Grant

func titles(list handoff.SessionList) string {
	var all []string
	for _, s := range list.Items {
		all = append(all, s.Title)
	}
	return strings.Join(all, ", ")
}

func TestSessionsOfAWholeFleet(t *testing.T) {
	bubble(t, func(t *testing.T) {
		now := time.Now()
		big := &fakeServer{threads: []Thread{
			{ID: "1", Title: "Auth refactor", Dir: "/src/shop", Branch: "auth-refactor", Updated: now.Add(-12 * time.Minute),
				Status: handoff.SessionRunning},
			{ID: "2", Title: "Checkout page polish", Dir: "/src/shop/web", Updated: now.Add(-3 * time.Hour)},
		}}
		lap := &fakeServer{threads: []Thread{{ID: "3", Title: "Release notes 2.4", Dir: "/docs",
			Updated: now.Add(-time.Hour)}}}
		slow, dead := &fakeServer{slow: time.Minute}, &fakeServer{refuse: errRefused}
		broken := &fakeServer{onList: func(context.Context, int) error { return errors.New("boom") }}
		f := run(t, Spec{Name: "bigpc", Kind: "helper", Projects: map[string]string{"shop": "/src/shop"}, Dial: big.dial},
			Spec{Name: "laptop", Dial: lap.dial}, Spec{Name: "slow", Dial: slow.dial},
			Spec{Name: "attic", Dial: dead.dial}, Spec{Name: "broken", Dial: broken.dial})
		synctest.Wait()

		start := time.Now()
		list, err := f.Sessions(t.Context(), nobody, handoff.SessionQuery{})
		if err != nil || titles(list) != "Auth refactor, Release notes 2.4, Checkout page polish" {
			t.Errorf("%s, %v", titles(list), err)
		}
		if took := time.Since(start); took != listTimeout {
			t.Errorf("took %v", took)
		}
		var problems []string
		for _, p := range list.Errors {
			problems = append(problems, p.Server+" "+string(p.Code)+" "+p.Message)
		}
		if got := strings.Join(problems,
			"; "); got != "slow unreachable slow is not answering.; attic unreachable attic is not answering.; broken internal Something went wrong on my side." {
			t.Error(got)
		}
		first := list.Items[0]
		first.Updated = time.Time{}
		if want := (handoff.SessionInfo{ID: "1", Label: "auth refactor", Title: "Auth refactor", Server: "bigpc",
			Directory: "/src/shop",
			Branch:    "auth-refactor", Age: "12 minutes ago", Status: handoff.SessionRunning}); first != want {
			t.Errorf("%+v", first)
		}

		start = time.Now()
		if list, _ := f.Sessions(t.Context(), nobody, handoff.SessionQuery{Server: "attic"}); len(list.Errors) != 1 ||
			time.Since(start) != 0 {
			t.Errorf("a dead server: %+v after %v", list, time.Since(start))
		}
		for query, want := range map[handoff.SessionQuery]string{
			{Server: "the laptop"}:                   "Release notes 2.4",
			{Server: "bigpc", Text: "AUTH"}:          "Auth refactor",
			{Server: "bigpc", Text: "shop polish"}:   "Checkout page polish",
			{Server: "bigpc", Text: "shop payment"}:  "",
			{Server: "bigpc", Text: "auth-ref"}:      "Auth refactor",
			{Server: "shop"}:                         "Auth refactor, Checkout page polish",
			{Server: "bigpc", Limit: 1}:              "Auth refactor",
			{Server: "bigpc", Limit: 1000, Text: ""}: "Auth refactor, Checkout page polish",
		} {
			if list, err := f.Sessions(t.Context(), nobody, query); err != nil || titles(list) != want {
				t.Errorf("%+v: %s, %v", query, titles(list), err)
			}
		}
		if _, err := f.Sessions(t.Context(), nobody,
			handoff.SessionQuery{Server: "nope"}); handoff.AsError(err).Code != handoff.CodeUnknownServer {
			t.Error(err)
		}
	})
}

func TestSessionsAreCutAndCounted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := &fakeServer{}, &fakeServer{}
		for i := range 60 {
			at := time.Now().Add(-time.Duration(i) * time.Minute)
			a.threads = append(a.threads, Thread{ID: fmt.Sprintf("a%02d", i), Title: "Work", Updated: at})
			b.threads = append(b.threads, Thread{ID: fmt.Sprintf("b%02d", i), Title: "Work", Updated: at.Add(-time.Second)})
		}
		f := run(t, Spec{Name: "a", Dial: a.dial}, Spec{Name: "b", Dial: b.dial})
		synctest.Wait()
		var paged []string          // all of them, page by page
		called := map[string]bool{} // on a server, each by a name of its own
		for more := 1; more > 0; {
			list, err := f.Sessions(t.Context(), nobody, handoff.SessionQuery{Limit: 40, Skip: len(paged)})
			must(t, err)
			for _, s := range list.Items {
				if paged = append(paged, s.ID); called[s.Server+" "+s.Label] {
					t.Errorf("two sessions of %s are called %q", s.Server, s.Label)
				}
				called[s.Server+" "+s.Label] = true
			}
			if more = list.More; more != 120-len(paged) {
				t.Fatalf("%d more after %d", more, len(paged))
			}
		}
		for i, id := range paged {
			if want := fmt.Sprintf("%c%02d", "ab"[i%2], i/2); id != want {
				t.Errorf("session %d is %s, want %s", i, id, want)
			}
		}
		if list, err := f.Sessions(t.Context(), nobody, handoff.SessionQuery{Skip: 400}); err != nil || len(list.Items) > 0 {
			t.Errorf("behind the last one: %+v, %v", list, err)
		}
		for limit, want := range map[int]int{0: handoff.DefaultSessions, 7: 7, 40: 40, 4000: handoff.MaxSessions,
			-1: handoff.DefaultSessions} {
			list, err := f.Sessions(t.Context(), nobody, handoff.SessionQuery{Limit: limit})
			if err != nil || len(list.Items) != want || list.More != 120-want {
				t.Errorf("limit %d: %d and %d more, %v", limit, len(list.Items), list.More, err)
			}
			if list.Items[0].ID != "a00" || list.Items[1].ID != "b00" {
				t.Errorf("limit %d begins with %s, %s", limit, list.Items[0].ID, list.Items[1].ID)
			}
		}
	})
}

// A server that has fallen silent gets its full time once. Then its last list is used, and its error comes with it.
func TestSilentServerIsListedAsItWas(t *testing.T) {
	bubble(t, func(t *testing.T) {
		now := time.Now()
		a := &fakeServer{threads: []Thread{{ID: "1", Title: "Auth refactor", Updated: now}}}
		b := &fakeServer{threads: []Thread{{ID: "2", Title: "Release notes", Updated: now.Add(-time.Hour)}}}
		f := run(t, Spec{Name: "a", Dial: a.dial}, Spec{Name: "b", Dial: b.dial})
		synctest.Wait()
		list := func(want time.Duration, errors int) {
			t.Helper()
			start := time.Now()
			got, err := f.Sessions(t.Context(), nobody, handoff.SessionQuery{})
			if took := time.Since(start); err != nil || titles(got) != "Auth refactor, Release notes" ||
				len(got.Errors) != errors || took != want {
				t.Errorf("%s, %+v after %v, %v", titles(got), got.Errors, took, err)
			}
		}
		list(0, 0)
		b.set(func() { b.slow = time.Minute })
		list(listTimeout, 1)
		list(silentTimeout, 1)
		list(silentTimeout, 1)
		time.Sleep(silentFor)
		list(listTimeout, 1)
		b.set(func() { b.slow = 0 })
		time.Sleep(lateTimeout) // what was asked last is given up
		list(0, 0)
		if _, err := f.Resolve(t.Context(), nobody, handoff.Target{Server: "b", Thread: "release"}); err != nil {
			t.Error(err)
		}
		b.set(func() { b.slow = time.Minute })
		if _, err := f.Resolve(t.Context(), nobody, handoff.Target{Server: "b", Thread: "release"}); err == nil ||
			handoff.AsError(err).Code != handoff.CodeUnreachable { // what was listed once may not be what is meant now
			t.Error(err)
		}
	})
}

// A query that no session contains finds sessions whose titles sound like it, on any machine.
func TestSessionsAreSoughtAsSpoken(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := &fakeServer{threads: []Thread{{ID: "1", Title: "Sensor logger loses data"}, {ID: "2", Title: "Auth refactor"}}}
		b := &fakeServer{threads: []Thread{{ID: "3", Title: "Cache invalidation", Dir: "/src/web"}, {ID: "4", Title: "Census"}}}
		f := run(t, Spec{Name: "a", Dial: a.dial}, Spec{Name: "b", Dial: b.dial})
		synctest.Wait()
		for query, want := range map[handoff.SessionQuery]string{
			{Text: "the censor logger"}:              "Sensor logger loses data",
			{Text: "cash invalidation"}:              "Cache invalidation",
			{Text: "cash invalidation", Server: "a"}: "",
			{Text: "sens"}:                           "Sensor logger loses data",
			{Text: "mainframe"}:                      "",
			{Text: " "}:                              "Sensor logger loses data, Auth refactor, Cache invalidation, Census",
		} {
			if list, err := f.Sessions(t.Context(), nobody, query); err != nil || titles(list) != want {
				t.Errorf("%+v: %s, %v", query, titles(list), err)
			}
		}
	})
}

// A list that comes too late for its caller is stored, of the newest threads and of all. A list that was requested
// before a change is not.
func TestSlowLists(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := &fakeServer{slow: 5 * time.Second}
		for i := range 150 {
			a.threads = append(a.threads, Thread{ID: fmt.Sprint(i), Title: fmt.Sprintf("Number %d", i),
				Updated: time.Now().Add(-time.Duration(i) * time.Minute)})
		}
		f := run(t, Spec{Name: "a", Dial: a.dial})
		synctest.Wait()
		find := func(what string) int {
			t.Helper()
			list, err := f.Sessions(t.Context(), nobody, handoff.SessionQuery{Text: what})
			if err != nil || len(list.Errors) != 1 {
				t.Fatal(list, err)
			}
			return len(list.Items)
		}
		for _, step := range []struct {
			what string
			want int
		}{{"number 3", 0}, {"number 149", 0}, {"number 149", 1}} {
			if got := find(step.what); got != step.want {
				t.Errorf("%s: %d, want %d", step.what, got, step.want)
			}
			time.Sleep(6 * time.Second)
		}
		for _, name := range []string{"number 3", "number 149"} { // work waits longer than who looks
			at, err := f.Resolve(t.Context(), nobody, handoff.Target{Server: "a", Thread: name})
			if err != nil || at.Thread != strings.TrimPrefix(name, "number ") {
				t.Errorf("%s: %+v, %v", name, at, err)
			}
		}
		time.Sleep(6 * time.Second)
		if got := find("number 77"); got != 1 {
			t.Errorf("one of the newest: %d", got)
		}
		f.lists.outdate("a") // while the last is on its way
		time.Sleep(6 * time.Second)
		f.lists.mu.Lock()
		defer f.lists.mu.Unlock()
		l, w, underway := f.lists.newest["a"], f.lists.wider["a"], len(f.lists.underway)
		if len(l.threads)+len(w.threads)+underway != 0 {
			t.Errorf("%d, %d and %d are kept", len(l.threads), len(w.threads), underway)
		}
	})
}

// TestOlderSessionsAreNotKnown: if a server lists its newest sessions in time, but not all, and a name may mean an
// older one, the error does not say that there is no such session.
func TestOlderSessionsAreNotKnown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := &fakeServer{}
		for i := range 150 {
			a.threads = append(a.threads, Thread{ID: fmt.Sprint(i), Title: fmt.Sprintf("Number %d", i),
				Updated: time.Now().Add(-time.Duration(i) * time.Minute)})
		}
		a.onList = func(_ context.Context, limit int) error {
			if limit > listWindow {
				time.Sleep(nameTimeout + time.Second)
			}
			return nil
		}
		f := run(t, Spec{Name: "a", Dial: a.dial})
		synctest.Wait()
		list, err := f.Sessions(t.Context(), nobody, handoff.SessionQuery{Text: "number 1"})
		if err != nil || len(list.Items) == 0 || len(list.Errors) != 1 {
			t.Errorf("%d found, %+v, %v", len(list.Items), list.Errors, err)
		}
		meant := handoff.Target{Server: "a", Thread: "number 149"}
		if _, err = f.Resolve(t.Context(), nobody, meant); handoff.CodeOf(err) != handoff.CodeUnreachable {
			t.Errorf("an older one: %v", err)
		}
		time.Sleep(nameTimeout)
		if at, err := f.Resolve(t.Context(), nobody, meant); err != nil || at.Thread != "149" {
			t.Errorf("an older one, later: %+v, %v", at, err)
		}
	})
}

// TestOneListAtATime: a server has at most one request for a list at a time, however many callers want it. Each caller
// gets a list that was requested after its call.
func TestOneListAtATime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var now, most atomic.Int64
		a := &fakeServer{}
		a.onList = func(ctx context.Context, _ int) error {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			select {
			case <-time.After(time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		f := run(t, Spec{Name: "a", Dial: a.dial})
		synctest.Wait()
		var asks sync.WaitGroup
		for range 5 {
			asks.Go(func() {
				if _, err := f.Sessions(t.Context(), nobody, handoff.SessionQuery{}); err != nil {
					t.Error(err)
				}
			})
		}
		for range 3 {
			asks.Go(func() {
				if _, err := f.Test(t.Context(), nobody, "a"); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(500 * time.Millisecond)
		a.set(func() { a.threads = []Thread{{ID: "1", Title: "Brand new", Updated: time.Now()}} })
		if _, err := f.Resolve(t.Context(), nobody, handoff.Target{Server: "a", Thread: "brand new"}); err != nil {
			t.Error(err)
		}
		asks.Wait()
		if most.Load() != 1 {
			t.Errorf("%d requests at once", most.Load())
		}
	})
}

// BenchmarkSessions lists 5,000 sessions of 20 machines, of which one refuses and one has fallen silent.
func BenchmarkSessions(b *testing.B) {
	c := readCorpus(b)
	var silent *fakeServer
	for i := range c.specs {
		s := &fakeServer{}
		for j := range 250 {
			s.threads = append(s.threads, Thread{ID: fmt.Sprintf("%d-%d", i, j), Title: c.sessions[""][(i*97+j*7)%2000].Title,
				Updated: c.now.Add(-time.Duration(j) * time.Minute)})
		}
		switch i {
		case 3:
			s.refuse = errRefused
		case 7:
			silent = s
		}
		c.specs[i].Dial = s.dial
	}
	f, err := New(Config{Specs: c.specs})
	must(b, err)
	ctx, stop := context.WithCancel(b.Context())
	var work sync.WaitGroup
	work.Go(func() { _ = f.Run(ctx) })
	defer work.Wait()
	defer stop()
	all := handoff.SessionQuery{Limit: handoff.MaxSessions, Skip: 1000}
	for range 2 { // the second time it has fallen silent
		_, err = f.Sessions(b.Context(), nobody, all)
		must(b, err)
		silent.set(func() { silent.slow = time.Minute })
	}
	b.ReportAllocs()
	for b.Loop() {
		list, err := f.Sessions(b.Context(), nobody, all)
		if err != nil || len(list.Errors) != 2 || list.More < 3000 {
			b.Fatal(len(list.Items), list.More, list.Errors, err)
		}
	}
}

// Questions that others answer come with the machine, for callers that may see the session, and changes are passed on.
func TestAskedThere(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := &fakeServer{changed: make(chan struct{}, 1)}
		told := 0
		hidden := func(_ handoff.Caller, _ string, threads ...string) bool { return threads[0] == "theirs" }
		f, err := New(Config{Specs: []Spec{{Name: "a", Dial: s.dial}}, Changed: func() { told++ }, Hidden: hidden})
		must(t, err)
		start(t, f)
		synctest.Wait()
		s.set(func() {
			s.asked = []ForeignQuestion{
				{Thread: "theirs", Text: "rm x"}, {Thread: "shared", Title: "Notes", Text: "git push"},
			}
		})
		before := told
		s.changed <- struct{}{}
		synctest.Wait()
		want := []handoff.AskedThere{{Thread: "shared", Title: "Notes", Text: "git push"}}
		if got := f.Servers(t.Context(), nobody)[0].AskedThere; !slices.Equal(got, want) || told != before+1 {
			t.Errorf("asked %+v, told %d times", got, told-before)
		}
	})
}

// A session that is older than the newest ones of its server is found by its title, its branch and its directory, and
// by its title in a request.
func TestFoundBeyondTheWindow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := &fakeServer{}
		for i := range 2*listWindow + 50 {
			s.threads = append(s.threads, Thread{ID: fmt.Sprintf("t%03d", i), Title: "Work", Dir: "/src/shop", Branch: "main",
				Updated: time.Now().Add(-time.Duration(i) * time.Minute)})
		}
		old := &s.threads[2*listWindow+20]
		old.Title, old.Dir, old.Branch = "Flux capacitor", "/src/delorean", "time-travel"
		f := run(t, Spec{Name: "a", Dial: s.dial})
		synctest.Wait()
		for _, text := range []string{"flux capacitor", "delorean", "time-travel", "flux delorean"} {
			list, err := f.Sessions(t.Context(), nobody, handoff.SessionQuery{Text: text})
			if err != nil || len(list.Items) != 1 || list.Items[0].ID != old.ID {
				t.Errorf("%s: %+v, %v", text, list.Items, err)
			}
		}
		for _, said := range []string{"flux capacitor", "the flux capacitor session", "flux capacitor in the delorean folder"} {
			got, err := f.Resolve(t.Context(), nobody, handoff.Target{Server: "a", Thread: said})
			if err != nil || got.Thread != old.ID {
				t.Errorf("%s: %+v, %v", said, got, err)
			}
		}
	})
}

func TestServers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		busy := &fakeServer{threads: []Thread{
			{ID: "1", Title: "Auth refactor", Status: handoff.SessionRunning},
			{ID: "2", Title: "Idle", Status: handoff.SessionIdle},
			{ID: "3", Title: "Push", Status: handoff.SessionWaiting},
		}}
		slow, dead, coming := &fakeServer{slow: time.Minute}, &fakeServer{refuse: errRefused}, &fakeServer{delay: time.Hour}
		f := run(t, Spec{Name: "bigpc", Aliases: []string{"big pc"}, Kind: "helper", Simulated: true,
			Projects: map[string]string{"shop": "/s", "api": "/a"}, Dial: busy.dial},
			Spec{Name: "slow", Dial: slow.dial}, Spec{Name: "attic", Dial: dead.dial}, Spec{Name: "coming", Watch: "none", Dial: coming.dial})
		synctest.Wait()
		start := time.Now()
		got := f.Servers(t.Context(), nobody)
		if took := time.Since(start); took != workTimeout {
			t.Errorf("took %v", took)
		}
		want := []string{
			"{bigpc [big pc] helper up    [api shop] true false false 0.169.0 It edits. [Auth refactor Push] false []}",
			"{slow []  up    [] false true false 0.169.0 It edits. [] false []}",
			"{attic []  down not_running nothing is listening there Start its agent server there. [] false true false   [] false []}",
			"{coming []  connecting    [] false false false   [] false []}",
		}
		for i := range want {
			if got := fmt.Sprint(got[i]); got != want[i] {
				t.Errorf("%s\nwant %s", got, want[i])
			}
		}
	})
}

func TestRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := &fakeServer{slow: waitConnecting + time.Second, threads: []Thread{{ID: idAuth, Title: "Auth refactor", Status: handoff.SessionIdle}}}
		dead := &fakeServer{refuse: errRefused}
		f := run(t, Spec{Name: "bigpc", Dial: s.dial}, Spec{Name: "attic", Dial: dead.dial})
		synctest.Wait()
		for limit, lines := range map[int]int{0: handoff.DefaultReadLines, 3: 3, 1000: 1000, 9999: handoff.MaxReadWhole} {
			got, err := f.Read(t.Context(), nobody, handoff.Target{Server: "big pc", Thread: "auth"}, limit)
			if err != nil || got.ID != idAuth || got.Title != "Auth refactor" || got.Server != "bigpc" ||
				len(got.Lines) != lines || got.Lines[0].Text != "ok" || got.More != 3 {
				t.Errorf("limit %d: %+v, %v", limit, got, err)
			}
		}
		for _, row := range []struct {
			target handoff.Target
			code   handoff.Code
		}{
			{handoff.Target{Server: "bigpc"}, handoff.CodeMalformed},
			{handoff.Target{Server: "bigpc", Thread: "new"}, handoff.CodeMalformed},
			{handoff.Target{Server: "bigpc", Thread: "payment"}, handoff.CodeUnknownSession},
			{handoff.Target{Server: "bigpc", Thread: idAuth2}, handoff.CodeSessionGone},
			{handoff.Target{Server: "attic", Thread: idAuth}, handoff.CodeUnreachable},
		} {
			if _, err := f.Read(t.Context(), nobody, row.target, 1); err == nil || handoff.AsError(err).Code != row.code {
				t.Errorf("%+v: %v, want %s", row.target, err, row.code)
			}
		}
	})
}
