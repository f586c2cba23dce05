package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestBaseOf(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:8080": "http://127.0.0.1:8080", "0.0.0.0:1": "http://127.0.0.1:1",
		":2": "http://127.0.0.1:2", "[::]:3": "http://[::1]:3", "localhost:4": "http://localhost:4",
	} {
		if got := baseOf(listen, false); got != want {
			t.Errorf("%s: %s, want %s", listen, got, want)
		}
	}
	if got := baseOf(":5", true); got != "https://127.0.0.1:5" {
		t.Error(got)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	well := true
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" || !well {
			http.Error(w, "not well", http.StatusServiceUnavailable)
		}
	})
	plain, secured := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secured.Close()
	for _, base := range []string{plain.URL, secured.URL} {
		if err := health(t.Context(), base); err != nil {
			t.Error(err)
		}
	}
	well = false
	if err := health(t.Context(), plain.URL); err == nil || !strings.Contains(err.Error(), "not well") {
		t.Errorf("a sick one: %v", err)
	}
	l := loopback(t)
	must(t, l.Close())
	if err := health(t.Context(), "http://"+l.Addr().String()); err == nil || !strings.Contains(err.Error(), "; start it, or name the address") {
		t.Errorf("nobody listens: %v", err)
	}
}

// TestHealthFindsWhatRuns: health asks the Switchboard of the state directory, wherever that listens, or the one at the
// address that is named.
func TestHealthFindsWhatRuns(t *testing.T) {
	t.Parallel()
	sh := openShell(t, nil)
	sh.wants(0, nil, "health")
	nobody := loopback(t)
	must(t, nobody.Close())
	sh.wants(exitFailed, []string{"no Switchboard answers"}, "health", "--listen", nobody.Addr().String())
	sh.wants(0, nil, "health", "--listen", strings.TrimPrefix(sh.r.base, "http://"))
	sh.r.stop()
	sh.wants(exitFailed, []string{"no Switchboard answers"}, "health", "--listen", strings.TrimPrefix(sh.r.base, "http://"))
}

// TestListenNext: each reason why a port cannot be listened on has its own advice, also within other errors.
func TestListenNext(t *testing.T) {
	for cause, want := range map[error]string{
		syscall.EADDRINUSE:    "end the program that listens there",
		syscall.EACCES:        "from 1024 on",
		syscall.EADDRNOTAVAIL: "has no such address",
		syscall.EMFILE:        "",
	} {
		err := fmt.Errorf("cannot listen on :80: %w", &net.OpError{Op: "listen", Net: "tcp", Err: os.NewSyscallError("bind", cause)})
		if got := words(err); !strings.HasPrefix(got, err.Error()) || !strings.Contains(got, want) || (got == err.Error()) != (want == "") {
			t.Errorf("%v: %s", cause, got)
		}
	}
}
