package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"switchboard/handoff"
)

// Times that several instances keep. They are the machine's, unless that is idle.
const (
	adoptedWithin = 8 * time.Second // of a kill, 99 of 100
	servedWithin  = time.Second     // a request while an instance ends, 99 of 100
	faultFor      = 10 * time.Second
)

// A team is three instances as processes of their own over one Redis, each reached by a way of its own.
type team struct {
	t      *testing.T
	f      *farm
	sites  []*site
	ways   []*cutter // to the Redis; none where Sentinels name it
	there  []*child  // Guarded by mu once they run, but for who starts them
	client *http.Client

	mu    sync.Mutex
	ready []string // Guarded by mu: where those are that say so, as a balancer has it
}

const assistantsKey = "assistants-key-0123456789"

// newTeam starts one. url is of the Redis; "": of one that lives as long as the test.
func newTeam(t *testing.T, url string) *team { return newTeamBy(t, url, "") }

// newTeamBy starts one by a voice model; "": the one of its farm.
func newTeamBy(t *testing.T, url, voice string) *team {
	t.Helper()
	w := &team{
		t: t, f: newFarm(t),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}, Timeout: patience},
	}
	t.Cleanup(w.client.CloseIdleConnections)
	own := ""
	if url == "" {
		own = strings.TrimSuffix(strings.TrimPrefix(newRedis(t).url(), "redis://"), "/0")
	}
	for i := range 3 {
		if own != "" {
			way := newCutter(t, fmt.Sprint("redis ", i), own)
			w.ways, url = append(w.ways, way), "redis://"+way.proxy.Listen+"/0"
		}
		s := newSite(t, cmp.Or(voice, w.f.voice.URL), url, map[string]string{"bigpc": w.f.at["bigpc"], "laptop": w.f.at["laptop"]})
		text, err := os.ReadFile(s.config)
		must(t, err)
		write(t, s.config, string(text)+"redis_allow_plaintext: true\npeers: {listen: \"127.0.0.1:0\"}\nkeys:\n"+
			"  - {principal: assistant, key_env: TEST_ASSISTANTS_KEY, names_callers: true, limits: {calls: 2}}\n")
		s.env = []string{"TEST_ASSISTANTS_KEY=" + assistantsKey, "GOMAXPROCS=1"}
		w.sites, w.there = append(w.sites, s), append(w.there, nil)
		w.start(i)
	}
	return w
}

// start starts an instance, and waits until it serves.
func (w *team) start(i int) {
	c := w.sites[i].start()
	w.mu.Lock()
	w.there[i] = c
	w.mu.Unlock()
	c.up("bigpc", "laptop")
}

// balance keeps a list of who is ready, until stop is called.
func (w *team) balance(t *testing.T) (stop func()) {
	return background(t, func(ctx context.Context) error {
		for ctx.Err() == nil {
			all := w.children()
			says := make([]bool, len(all))
			var asked sync.WaitGroup
			for i, c := range all {
				asked.Go(func() {
					limited, cancel := context.WithTimeout(ctx, time.Second)
					defer cancel()
					req, err := http.NewRequestWithContext(limited, http.MethodGet, c.base+"/readyz", nil)
					if err != nil {
						t.Error(err)
						return
					}
					if answer, err := w.client.Do(req); err == nil {
						_ = answer.Body.Close()
						says[i] = answer.StatusCode == http.StatusOK
					}
				})
			}
			asked.Wait()
			var ready []string
			for i, c := range all {
				if says[i] {
					ready = append(ready, c.base)
				}
			}
			w.mu.Lock()
			w.ready = ready
			w.mu.Unlock()
			pause(ctx, 100*time.Millisecond)
		}
		return nil
	})
}

func (w *team) children() []*child {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.there)
}

// any returns where one is that is ready.
func (w *team) any(n int) string {
	for {
		w.mu.Lock()
		ready := w.ready
		w.mu.Unlock()
		if len(ready) > 0 {
			return ready[n%len(ready)]
		}
		time.Sleep(time.Millisecond)
	}
}

// ask asks an instance for a user. The status is 0 where no answer came, -1 where there was no connection.
func (w *team) ask(base, user, method, path, body string) (status int, rec handoff.Record, text string) {
	req, err := http.NewRequestWithContext(context.Background(), method, base+path, strings.NewReader(body))
	if err != nil {
		return 0, rec, err.Error()
	}
	req.Header.Set("Authorization", "Bearer "+assistantsKey)
	req.Header.Set("OpenAI-Safety-Identifier", user)
	req.Header.Set("Idempotency-Key", "the key of "+user)
	answer, err := w.client.Do(req)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return -1, rec, err.Error()
	}
	if err != nil {
		return 0, rec, err.Error()
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, rec, err.Error()
	}
	_ = json.Unmarshal(data, &rec) // an error's has none
	return answer.StatusCode, rec, string(data)
}

// callOf opens a call of a user at an instance, and returns the status of the answer: 101 where it is open, which it is
// until the test ends.
func (w *team) callOf(at int, user string) int {
	w.t.Helper()
	for {
		conn, answer, err := websocket.DefaultDialer.DialContext(w.t.Context(), w.there[at].socket(), http.Header{
			"Authorization": {"Bearer " + assistantsKey}, "OpenAI-Safety-Identifier": {user},
		})
		switch {
		case err == nil:
			w.t.Cleanup(func() { _ = conn.Close() })
		case answer == nil:
			w.t.Fatal(err)
		case answer.StatusCode == http.StatusServiceUnavailable: // it was held up, or takes over at this moment
			pause(w.t.Context(), 50*time.Millisecond)
			continue
		}
		return answer.StatusCode
	}
}

// A teamJob is work of a user of their own.
type teamJob struct {
	user, prompt, id string
	landed           int           // at which instance it was asked for first
	adopted          time.Duration // after the fault, until another instance told of it
	last             string        // the last answer that did not
}

// open has each of some users ask for work, each at one instance after another, until it is taken, and waits for the
// turns.
func (w *team) open(round, users int, random *rand.Rand) []*teamJob {
	w.t.Helper()
	jobs := make([]*teamJob, users)
	var all sync.WaitGroup
	for i := range jobs {
		jobs[i] = &teamJob{
			user: fmt.Sprintf("user-%d-%d", round, i), landed: i % len(w.there),
			prompt: fmt.Sprintf("job %d takes %d", 1000*round+i, 500+random.IntN(12_000)),
		}
		all.Go(func() { w.begin(jobs[i], []string{"bigpc", "laptop"}[i%2]) })
	}
	all.Wait()
	until(w.t, "the turns", func() bool {
		turns := w.f.turns()
		return !slices.ContainsFunc(jobs, func(j *teamJob) bool {
			if turns[j.prompt] > 0 {
				return false
			}
			_, rec, _ := w.ask(w.there[j.landed].base, j.user, http.MethodGet, "/fleet/handoffs/"+j.id, "")
			return !isRefused(rec)
		})
	})
	return jobs
}

// begin asks for a job until it is taken, under one key, as clients do that are told that they may ask again. Asked for
// once more at the next instance it is the same.
func (w *team) begin(j *teamJob, server string) {
	at := j.landed
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		status, rec, text := w.ask(w.there[at].base, j.user, http.MethodPost, "/fleet/handoffs",
			fmt.Sprintf(`{"server":%q,"thread_id":"new","prompt":%q}`, server, j.prompt))
		if status < 300 && status > 0 {
			if j.id != "" && j.id != rec.ID {
				w.t.Errorf("%s of %s is %s, and was %s", j.prompt, j.user, rec.ID, j.id)
			}
			if j.id != "" {
				return
			}
			j.id, at = rec.ID, (at+1)%len(w.there)
			continue
		}
		if j.last = text; status != http.StatusServiceUnavailable && status != http.StatusTooManyRequests {
			break
		}
	}
	w.t.Errorf("%s of %s was not begun: %s", j.prompt, j.user, j.last)
}

// adopt waits until the other instances tell of all work of the one that is faulty since then.
func (w *team) adopt(jobs []*teamJob, faulty int, since time.Time) {
	var all sync.WaitGroup
	for n, j := range jobs {
		all.Go(func() {
			other := w.there[(faulty+1+n%2)%len(w.there)].base
			for time.Since(since) < patience {
				status, rec, text := w.ask(other, j.user, http.MethodGet, "/fleet/handoffs/"+j.id, "")
				if status == http.StatusOK && rec.ID == j.id {
					j.adopted = time.Since(since)
					return
				}
				j.last = fmt.Sprint(status, " ", text)
				time.Sleep(scale(100*time.Millisecond, 20*time.Millisecond)) // only the long form measures
			}
		})
	}
	all.Wait()
}

// refused is the fate of work that was not begun because the Redis did not answer, as its caller was told.
const refused = "refused"

func isRefused(rec handoff.Record) bool {
	return rec.Outcome == handoff.OutcomeFailed && rec.Error != nil && rec.Error.Code == handoff.CodeStoreDown
}

// A stallMeter measures for how long the machine let nothing of this process run: what has to happen within a time is
// not held to it then.
type stallMeter struct {
	mu  sync.Mutex
	gap time.Duration // Guarded by mu: the longest since it was read
}

// tooLong is a stall with which a round shows nothing about times.
const tooLong = 500 * time.Millisecond

func newStallMeter(t *testing.T) *stallMeter {
	m := &stallMeter{}
	background(t, func(ctx context.Context) error {
		const beat = 10 * time.Millisecond
		for last := time.Now(); ctx.Err() == nil; last = time.Now() {
			pause(ctx, beat)
			m.mu.Lock()
			m.gap = max(m.gap, time.Since(last)-beat)
			m.mu.Unlock()
		}
		return nil
	})
	return m
}

// read returns the longest stall since it was last asked.
func (m *stallMeter) read() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	gap := m.gap
	m.gap = 0
	return gap
}

// settle waits until each job has its outcome at any instance, and counts outcomes.
func (w *team) settle(jobs []*teamJob, fates map[string]int, failf func(string, ...any)) {
	w.t.Helper()
	bases := []string{}
	for _, c := range w.children() {
		bases = append(bases, c.base)
	}
	for n, j := range jobs {
		fate := forgotten
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			status, rec, text := w.ask(bases[n%len(bases)], j.user, http.MethodGet, "/fleet/handoffs/"+j.id, "")
			if j.last = text; status == http.StatusOK && rec.Outcome != "" {
				if fate = string(rec.Outcome); isRefused(rec) && w.f.turns()[j.prompt] == 0 {
					fate = refused
				}
				break
			}
		}
		fates[fate]++
		if fate != string(handoff.OutcomeResult) && fate != refused {
			failf("%s of %s, begun at instance %d, ended as %s: %s", j.prompt, j.user, j.landed, fate, j.last)
		}
	}
}

// soakRounds returns how many rounds a proof has, unless somebody says another number.
func soakRounds(t *testing.T, usual int) int {
	if text := os.Getenv("SWITCHBOARD_SOAK_ROUNDS"); text != "" {
		_, err := fmt.Sscan(text, &usual)
		must(t, err)
	}
	return usual
}

// TestProofInstances: one of three instances is killed, stopped for a while, or cut off from the Redis while 40 pieces
// of work are open. The others take over what it had: nothing is lost, and nothing is begun twice.
func TestProofInstances(t *testing.T) {
	t.Parallel()
	w := newTeam(t, "")
	rounds, users := soakRounds(t, scale(3, 100)), scale(12, 40)
	kinds := scale([]string{"killed", "stopped", "cut off"}, []string{"killed", "killed", "stopped", "cut off"})
	random := rand.New(rand.NewPCG(26, 1))
	adopted, fates := map[string][]time.Duration{}, map[string]map[string]int{}
	meter, stalled := newStallMeter(t), 0
	for round := range rounds {
		kind, victim := kinds[round%len(kinds)], round%len(w.there)
		jobs := w.open(round, users, random)
		if round == 0 { // of the key that all share two calls may be open, at whichever instances
			for at, want := range []int{http.StatusSwitchingProtocols, http.StatusSwitchingProtocols, http.StatusTooManyRequests} {
				if got := w.callOf(at, fmt.Sprint("caller-", at)); got != want {
					t.Errorf("call %d gets %d, want %d", at, got, want)
				}
			}
		}
		meter.read()
		since, one := time.Now(), w.there[victim]
		var back func()
		switch kind {
		case "killed":
			one.signal(syscall.SIGKILL)
			back = func() { w.start(victim) }
		case "stopped":
			must(t, one.cmd.Process.Signal(syscall.SIGSTOP))
			back = func() { must(t, one.cmd.Process.Signal(syscall.SIGCONT)) }
		case "cut off":
			w.ways[victim].proxy.Stop()
			back = func() { must(t, w.ways[victim].proxy.Start()) }
		}
		w.adopt(jobs, victim, since)
		gap := meter.read()
		if gap > tooLong {
			stalled++
		}
		if round == 0 {
			until(t, "the call of the instance that was killed to count no more", func() bool {
				return w.callOf(2, "caller-2") == http.StatusSwitchingProtocols
			})
		}
		if kind != "killed" { // who is cut off tells of its work until others have that
			pause(t.Context(), scale(2*time.Second, faultFor)-time.Since(since))
		}
		back()
		one = w.there[victim]
		until(t, "the instance to serve again", func() bool {
			status, _, _ := w.ask(one.base, "somebody", http.MethodGet, "/fleet/handoffs", "")
			return status == http.StatusOK
		})
		if fates[kind] == nil {
			fates[kind] = map[string]int{}
		}
		w.settle(jobs, fates[kind], t.Errorf)
		var slowest time.Duration
		for _, j := range jobs {
			if j.landed == victim && gap <= tooLong {
				adopted[kind] = append(adopted[kind], j.adopted)
			}
			if slowest = max(slowest, j.adopted); j.adopted == 0 {
				t.Errorf("round %d, %s: %s of %s, at instance %d, was not adopted: %s", round, kind, j.prompt, j.user, j.landed, j.last)
			}
		}
		t.Logf("round %d: %d is %s, all adopted within %v; the machine stood still for %v at most", round, victim, kind,
			slowest.Round(time.Millisecond), gap.Round(time.Millisecond))
	}
	double := 0
	for prompt, n := range w.f.turns() {
		if double += max(n-1, 0); n > 1 {
			t.Errorf("%q was begun %d times", prompt, n)
		}
	}
	for kind, all := range adopted {
		slices.Sort(all)
		p99 := all[(len(all)*99+99)/100-1]
		t.Logf("%s: %d adopted, p50 %v, p99 %v, at most %v; outcomes %v", kind, len(all),
			all[len(all)/2].Round(time.Millisecond), p99.Round(time.Millisecond), all[len(all)-1].Round(time.Millisecond), fates[kind])
		if soak() && p99 > adoptedWithin { // else it is the machine's
			t.Errorf("%s: adopted after %v", kind, p99)
		}
	}
	t.Logf("%d rounds, %d begun twice; the times of %d do not count, since the machine stood still", rounds, double, stalled)
}
