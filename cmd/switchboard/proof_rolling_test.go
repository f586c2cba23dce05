package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"switchboard/handoff"
)

// failures collects what failed. It is judged at the end: where an instance missed the Redis for so long that the
// others may have taken it for dead, it is the machine's.
func (w *team) failures() (failf func(string, ...any), judge func()) {
	var mu sync.Mutex
	var failed []string
	var logs []*child
	failf = func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		failed = append(failed, fmt.Sprintf(format, args...))
		logs = append(logs, w.children()...)
	}
	return failf, func() {
		mu.Lock()
		defer mu.Unlock()
		missed := slices.ContainsFunc(append(logs, w.children()...), func(c *child) bool {
			return strings.Contains(c.logs.String(), "the store takes no beats")
		})
		for _, one := range failed {
			if missed {
				w.t.Log("while the Redis was not reached: " + one)
			} else {
				w.t.Error(one)
			}
		}
	}
}

// answered says something, and reports whether the voice model answers before the call ends.
func (p *phone) answered() bool {
	p.t.Helper()
	p.say("Are you there?")
	for late := time.After(patience); ; {
		select {
		case e, open := <-p.events:
			if !open || e.Type == "response.done" {
				return open
			}
		case <-late:
			return false
		}
	}
}

// call opens a call by an instance, once its Redis answers.
func (w *team) call(i int) *phone {
	w.t.Helper()
	var conn *websocket.Conn
	until(w.t, "a call", func() bool {
		header := http.Header{"Authorization": {"Bearer " + testKey}}
		var err error
		conn, _, err = websocket.DefaultDialer.DialContext(w.t.Context(), w.there[i].socket(), header)
		return err == nil
	})
	return newPhone(w.t, conn)
}

// TestProofRollingRestart: three instances are restarted one after another while callers ask for work and read of
// it, as a balancer sends them that looks at /readyz. No request fails, what runs goes on, and a call goes on until
// it is hung up. Whatever the machine does, nothing is cut or lost. What a request takes is held to its bound in the
// restarts during which the machine let this process run: another restart is reported as invalid, and shows nothing of
// that.
func TestProofRollingRestart(t *testing.T) {
	t.Parallel()
	w := newTeam(t, "")
	defer w.balance(t)()
	stop := make(chan struct{})
	var asking sync.WaitGroup
	end := sync.OnceFunc(func() { close(stop); asking.Wait() })
	defer end()
	var mu sync.Mutex
	var took, valid []time.Duration // of this restart, and of the valid ones before
	meter, invalid := newStallMeter(t), 0
	away := 0 // the Redis did not answer
	failf, judge := w.failures()
	defer judge()
	var again atomic.Int64 // another instance was tried
	var jobs []*teamJob
	random := rand.New(rand.NewPCG(26, 2))
	for i := range scale(4, 20) {
		asking.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				case <-time.After(scale(100*time.Millisecond, 200*time.Millisecond)):
				}
				mu.Lock()
				j := &teamJob{user: fmt.Sprintf("user-%d-%d", i, n/20), prompt: fmt.Sprintf("job %d takes %d", 10_000*i+n/20, 1000+random.IntN(6000))}
				mu.Unlock()
				method, path, body := http.MethodGet, "/fleet/handoffs", ""
				if n%20 == 0 { // then it is read of for a while
					method, body = http.MethodPost, fmt.Sprintf(`{"server":"bigpc","thread_id":"new","prompt":%q}`, j.prompt)
				}
				began := time.Now()
				base := w.any(n)
				status, rec, text := w.ask(base, j.user, method, path, body)
				for status < 0 { // as balancers do
					again.Add(1)
					base = w.any(n)
					status, rec, text = w.ask(base, j.user, method, path, body)
				}
				mu.Lock()
				switch took = append(took, time.Since(began)); {
				case strings.Contains(text, `"code":"`+string(handoff.CodeStoreDown)+`"`): // as callers are told
					away++
				case status == 0 || status >= 300:
					failf("%s %s of %s at %s after %v: %d %s", method, path, j.user, base, time.Since(began), status, text)
				}
				if j.id = rec.ID; method == http.MethodPost && j.id != "" {
					jobs = append(jobs, j)
				}
				mu.Unlock()
			}
		})
	}
	for range scale(1, 7) {
		for i := range w.there {
			p := w.call(i) // the owner's, wherever that is
			ended := make(chan int, 1)
			go func() { ended <- w.there[i].signal(syscall.SIGTERM) }()
			until(t, "it to say that it ends", func() bool {
				status, _ := w.there[i].ask(http.MethodGet, "/readyz", "", "Authorization", "")
				return status == http.StatusServiceUnavailable
			})
			if !p.answered() {
				failf("a call by instance %d ended with it", i)
			}
			p.hangUp()
			if code := <-ended; code != 0 {
				t.Errorf("exit code %d", code)
			}
			w.start(i)
			mu.Lock()
			if gap := meter.read(); gap > tooLong {
				invalid++
				t.Logf("the restart of instance %d is invalid: the machine stood still for %v", i, gap.Round(time.Millisecond))
			} else {
				valid = append(valid, took...)
			}
			took = nil
			mu.Unlock()
		}
	}
	end()
	fates := map[string]int{}
	w.settle(jobs, fates, failf)
	w.f.check(t)
	t.Logf("the Redis did not answer %d requests, %d connections were refused; %d restarts were invalid; %d pieces of work: %v",
		away, again.Load(), invalid, len(jobs), fates)
	if len(valid) == 0 {
		t.Log("no restart was valid: nothing is shown of how long requests take")
		return
	}
	slices.Sort(valid)
	p99, most := valid[(len(valid)*99+99)/100-1], valid[len(valid)-1]
	t.Logf("%d requests, p50 %v, p99 %v, at most %v", len(valid), valid[len(valid)/2].Round(time.Millisecond),
		p99.Round(time.Millisecond), most.Round(time.Millisecond))
	if soak() && p99 > servedWithin {
		t.Errorf("a request took %v", p99)
	}
}
