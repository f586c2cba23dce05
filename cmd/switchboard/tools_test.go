package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/realtime/simulator"
	"switchboard/sessions/sessionstest"
)

// codexProgram is the real codex. The wrapper that npm installs is not it: killed, it leaves the server.
func codexProgram(t testing.TB) string {
	t.Helper()
	return codexIn(t, "@openai/codex-*")
}

// oldestCodex is the oldest codex that Switchboard works with.
func oldestCodex(t testing.TB) string {
	t.Helper()
	return codexIn(t, "codex-0.150-*")
}

func codexIn(t testing.TB, packages string) string {
	t.Helper()
	found, err := filepath.Glob("../../.tools/node_modules/" + packages + "/vendor/*/bin/codex")
	if err != nil || len(found) == 0 {
		t.Fatal("a real codex is missing: make test installs it into .tools")
	}
	path, err := filepath.Abs(found[0])
	must(t, err)
	return path
}

// program finds an installed program.
func program(t testing.TB, name, pack string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is missing: install Debian's package %s, as make test does", name, pack)
	}
	return path
}

// spawn runs a program until the test ends; kill ends it at once. What it prints comes line by line.
func spawn(t testing.TB, env []string, dir string, args ...string) (lines <-chan string, kill func()) {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Dir = append(os.Environ(), env...), dir
	out, err := cmd.StdoutPipe()
	must(t, err)
	cmd.Stderr = cmd.Stdout
	must(t, cmd.Start())
	printed, done := make(chan string, 1000), make(chan struct{})
	var newest []string // Owned by the goroutine until done
	var killed atomic.Bool
	go func() {
		defer close(done)
		defer close(printed)
		for s := bufio.NewScanner(out); s.Scan(); {
			newest = append(newest[max(0, len(newest)-20):], s.Text())
			select {
			case printed <- s.Text():
			default: // nobody reads what comes later
			}
		}
		_, _ = io.Copy(io.Discard, out) // after a line that is too long
		if err := cmd.Wait(); !killed.Load() {
			t.Errorf("%s ended by itself: %v", filepath.Base(args[0]), err)
		}
	}()
	kill = func() { killed.Store(true); _ = cmd.Process.Kill(); <-done }
	t.Cleanup(func() {
		kill()
		if t.Failed() {
			t.Logf("%s printed last:\n%s", filepath.Base(args[0]), strings.Join(newest, "\n"))
		}
	})
	return printed, kill
}

// A realRedis is a real Redis on a port of its own. What it was told is on disk and there again after a kill.
type realRedis struct {
	t    testing.TB
	port int
	dir  string
	kill func() // ends it at once
}

// newRedis starts a Redis that ends with the test.
func newRedis(t testing.TB) *realRedis {
	t.Helper()
	r := &realRedis{t: t, port: sessionstest.FreePort(t), dir: t.TempDir()}
	r.begin(r.dir)
	return r
}

// startRedis runs a real Redis and returns its URL.
func startRedis(t testing.TB) string { return newRedis(t).url() }

// stores are what a Switchboard can remember in: a Redis of its own, or a file in its state directory.
var stores = []struct {
	name  string
	begin func(testing.TB) string // gives the URL, "" for the file
}{{"redis", startRedis}, {"sqlite", func(testing.TB) string { return "" }}}

// onBothStores runs a proof on each store, side by side.
func onBothStores(t *testing.T, proof func(t *testing.T, store string)) {
	t.Helper()
	for _, store := range stores {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			proof(t, store.begin(t))
		})
	}
}

// onAStore runs a proof on the file, and its long form on each store. What differs between them is held by the suite of
// sessions, and by the proofs that take a store away or kill Switchboard at any moment.
func onAStore(t *testing.T, proof func(t *testing.T, store string)) {
	t.Helper()
	if soak() {
		onBothStores(t, proof)
		return
	}
	proof(t, "")
}

// begin starts it, also again after a kill, with what is in a directory.
func (r *realRedis) begin(dir string) {
	r.t.Helper()
	var lines <-chan string
	lines, r.kill = spawn(r.t, nil, dir, program(r.t, "redis-server", "redis-server"), "--port", fmt.Sprint(r.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes")
	listens(r.t, lines, "Ready to accept connections")
}

func (r *realRedis) url() string { return fmt.Sprintf("redis://127.0.0.1:%d/0", r.port) }

// listens waits until a program that was spawned says that it listens: another may answer at its address.
func listens(t testing.TB, lines <-chan string, says string) {
	t.Helper()
	var printed []string
	for {
		select {
		case line, ok := <-lines:
			if strings.Contains(line, says) {
				return
			}
			if !ok {
				t.Fatalf("it ended without %q: %s", says, strings.Join(printed, "\n"))
			}
			printed = append(printed, line)
		case <-time.After(patience):
			t.Fatalf("waited in vain for %q: %s", says, strings.Join(printed, "\n"))
		}
	}
}

// scriptedVoice runs a voice model that calls a tool when the caller says "TOOL {arguments}", and repeats
// what it is told otherwise.
func scriptedVoice(t testing.TB) modelSettings { return hurriedVoice(t, 8) }

// hurriedVoice is a scripted voice that speaks so many times faster than people.
func hurriedVoice(t testing.TB, hurry float64) modelSettings {
	t.Helper()
	return runsVoice(t, simulator.Config{Hurry: hurry, Script: toolsAsTyped})
}

// runsVoice runs a simulated voice model until the test ends.
func runsVoice(t testing.TB, c simulator.Config) modelSettings {
	t.Helper()
	l := loopback(t)
	background(t, func(ctx context.Context) error { return simulator.New(c).Serve(ctx, l) })
	return modelSettings{URL: "ws://" + l.Addr().String() + "/v1/realtime", Name: "scripted"}
}

// toolsAsTyped calls a tool when the caller says "TOOL {arguments}", and repeats what it is told otherwise.
func toolsAsTyped(h simulator.Heard) []simulator.Move {
	moves := simulator.Repeat(h) // what came in the meantime is said first
	for _, text := range h.Texts {
		if tool, args, ok := strings.Cut(text, " {"); ok {
			moves = append(moves, simulator.Call{Tool: tool, Arguments: "{" + args})
		}
	}
	return moves
}
