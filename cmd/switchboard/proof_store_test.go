package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchboard/handoff"
)

// An outage takes a store away and gives it back.
type outage struct {
	url        string // of a Redis; "" is the file
	begin, end func()
}

// TestProofStoreGone: the store is away for a while in the middle of work. A Redis is killed, and comes back with
// nothing, or in the long form also with what it knew; the file is locked by another program, as a full disk takes
// nothing. Calls and running work go on and everything is told once; meanwhile nothing new is begun, with a reason that
// is said; afterwards it is, and a restart tells nothing twice.
func TestProofStoreGone(t *testing.T) {
	t.Parallel()
	ways := map[string]func(*testing.T, *site) outage{"redis/empty": redisEmptied, "sqlite": fileLocked}
	if soak() { // else TestProofKeyOfAFullStore has that
		ways["redis/kept"] = redisGone
	}
	for name, store := range ways {
		t.Run(name, func(t *testing.T) { t.Parallel(); proofStoreGone(t, store) })
	}
}

// redisGone kills a Redis, which comes back with what it knew.
func redisGone(t *testing.T, _ *site) outage {
	redis := newRedis(t)
	return outage{url: redis.url(), begin: func() { redis.kill() }, end: func() { redis.begin(redis.dir) }}
}

// redisEmptied kills a Redis, which comes back with nothing.
func redisEmptied(t *testing.T, _ *site) outage {
	redis := newRedis(t)
	return outage{url: redis.url(), begin: func() { redis.kill() }, end: func() { redis.begin(t.TempDir()) }}
}

// fileLocked locks the store's file as a program does that writes to it for long: byte 120 of the shared index is
// the writer's (https://www.sqlite.org/walformat.html, 2.3.1).
func fileLocked(t *testing.T, s *site) outage {
	var file *os.File
	return outage{begin: func() {
		var err error
		file, err = os.OpenFile(filepath.Join(s.state, "switchboard", "switchboard.db-shm"), os.O_RDWR, 0)
		must(t, err)
		until(t, "the lock of the file", func() bool {
			return syscall.FcntlFlock(
				file.Fd(),
				syscall.F_SETLK,
				&syscall.Flock_t{Type: syscall.F_WRLCK, Start: 120, Len: 1},
			) == nil
		})
	}, end: func() { _ = file.Close() }} // gives the lock back
}

func proofStoreGone(t *testing.T, store func(*testing.T, *site) outage) {
	jobs, calls, gone := scale(12, 100), scale(4, 20), scale(5*time.Second, 30*time.Second)
	f := newFarm(t)
	s := newSite(t, f.voice.URL, "", f.at)
	away := store(t, s)
	s.redis = away.url
	c := s.start()
	c.up("bigpc", "laptop")
	w := newShift(t, c, f, calls, 1, "bigpc", "laptop")
	for len(w.phones) < jobs {
		w.phones = append(w.phones, w.phones[:calls]...)
	}
	w.takes = func(job int) int { // they end before, while and after Redis is away
		return scale(2000, 15_000) + job*int(2*gone/time.Millisecond)/jobs
	}
	for i := range jobs {
		w.ask(i)
	}
	until(t, "all work to run", func() bool { // or to be refused: on a busy machine a Redis may take too long for one
		w.look() // each time before it may be forgotten: only so many records are kept
		refused := 0
		for _, r := range w.records {
			if r.Outcome == handoff.OutcomeFailed && f.turns()[r.Prompt] == 0 {
				refused++
			}
		}
		return len(f.turns())+refused == jobs
	})
	killed := time.Now()
	away.begin()
	other := c.call()
	other.say(work("bigpc", "job 9001 takes 0"))
	var refusal string
	until(t, "a refusal", func() bool {
		refusal = f.voice.answer("job 9001 takes 0")
		return refusal != ""
	})
	if !strings.Contains(refusal, `"`+string(handoff.CodeStoreDown)+`"`) {
		t.Errorf("without its store a request was answered with %s", refusal)
	}
	other.hear("did nothing")
	refused := time.Since(killed)
	for time.Since(killed) < gone {
		w.look()
		time.Sleep(250 * time.Millisecond)
	}
	away.end()

	w.run(jobs, 4*gone+time.Minute)
	w.told()
	if n := f.turns()["job 9001 takes 0"]; n != 0 {
		t.Errorf("work was begun %d times without the ledger", n)
	}
	other.say(work("laptop", "job 9002 takes 0"))
	other.hear("job 9002 is done")

	until(t, "everything to be heard to the end", func() bool {
		return !slices.ContainsFunc(c.handoffs(), func(r record) bool { return r.State != handoff.StatusDelivered })
	})
	if code := c.signal(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
	c = s.start()
	c.up("laptop")
	before := f.voice.calls()
	c.call().say(work("laptop", "job 9003 takes 300"))
	until(t, "work after the restart", func() bool { // answered at once, or told when it has ended
		return strings.Contains(f.voice.answer("job 9003 takes 300"), "job 9003 is done") ||
			containing(texts(f.voice.given()), "job 9003 is done") > 0
	})
	for _, g := range f.voice.given() {
		brokeOff := strings.HasPrefix(g.text, "The caller's last call broke off") // which is no outcome
		if g.call > before && !strings.Contains(g.text, "9003") && (!brokeOff || strings.Contains(g.text, "is done")) {
			t.Errorf("told again after a restart: %s", g.text)
		}
	}
	f.check(t)
	t.Logf(
		"%d jobs in %d calls, the store away for %s: %v; refused after %s",
		jobs,
		calls,
		gone,
		w.figures(),
		refused.Round(time.Millisecond),
	)
}

// answer is what a request for work was answered, "" without an answer.
func (v *voiceTap) answer(prompt string) string {
	for _, r := range v.all() {
		if strings.Contains(r.arguments, fmt.Sprintf("%q", prompt)) && len(r.outputs) > 0 {
			return r.outputs[0]
		}
	}
	return ""
}
