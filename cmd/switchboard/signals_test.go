package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestTerminalCloses: when the terminal closes, with the readers of the output, the process lives on, even if it writes
// something, and its child processes do not ignore the signals.
func TestTerminalCloses(t *testing.T) {
	t.Parallel()
	s := newSite(t, "ws://127.0.0.1:1/v1/realtime", "", map[string]string{"stuck": "sleep, '1000'"})
	c := s.start()
	until(t, "the child of the child", func() bool { return len(c.left()) == 2 })
	for n := range 3 { // its settings are read again, and are the same
		must(t, c.cmd.Process.Signal(syscall.SIGHUP))
		until(t, "it to tell so", func() bool { return strings.Count(c.logs.String(), "settings read again") > n })
	}
	must(t, c.cmd.Process.Signal(syscall.SIGPIPE))
	for range 3 {
		resp, err := http.Get(c.base + "/healthz")
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("it does not answer any more: %v", err)
		}
		_ = resp.Body.Close()
	}
	if code := c.signal(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d after SIGTERM", code)
	}
}

// TestNobodyReads: standard output and error are pipes whose reader has gone.
func TestNobodyReads(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	must(t, err)
	s := newSite(t, "ws://127.0.0.1:1/v1/realtime", "", map[string]string{"away": "ws://127.0.0.1:1"})
	cmd := exec.Command(os.Args[0], "--listen", "127.0.0.1:0", "--config", s.config)
	cmd.Env = append(os.Environ(), childEnv+"=1", "XDG_STATE_HOME="+s.state, ownerKey+"="+testKey)
	cmd.Stdout, cmd.Stderr = w, w
	_ = r.Close() // before it begins: the first word finds nobody
	must(t, cmd.Start())
	_ = w.Close()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the process
	until(t, "the file that it keeps", func() bool {
		select {
		case err := <-ended:
			t.Fatalf("it ended: %v", err)
		default:
		}
		_, err := os.Stat(s.state + "/switchboard/audit.jsonl")
		return err == nil
	})
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := <-ended; err != nil {
		t.Errorf("it did not end as it should: %v", err)
	}
}

// TestEndsBeforeItBegan: a signal to end during the start is no failure.
func TestEndsBeforeItBegan(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	env := func(name string) string { return map[string]string{"XDG_STATE_HOME": t.TempDir()}[name] }
	var told strings.Builder
	if code := run(ctx, []string{"--listen", "127.0.0.1:0"}, env, io.Discard, &told); code != 0 {
		t.Errorf("exit code %d: %s", code, told.String())
	}
}
