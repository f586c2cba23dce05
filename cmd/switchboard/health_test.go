package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHealthURL(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:8080": "http://127.0.0.1:8080/healthz", "0.0.0.0:1": "http://127.0.0.1:1/healthz",
		":2": "http://127.0.0.1:2/healthz", "[::]:3": "http://[::1]:3/healthz", "localhost:4": "http://localhost:4/healthz",
	} {
		if got := healthURL(&settings{Listen: listen}); got != want {
			t.Errorf("%s: %s, want %s", listen, got, want)
		}
	}
	if got := healthURL(&settings{Listen: ":5", TLS: tlsSettings{"a", "b"}}); got != "https://127.0.0.1:5/healthz" {
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
	over := &settings{Listen: secured.Listener.Addr().String(), TLS: tlsSettings{"cert", "key"}}
	here := &settings{Listen: plain.Listener.Addr().String()}
	for _, s := range []*settings{here, over} {
		if err := health(t.Context(), s); err != nil {
			t.Error(err)
		}
	}
	well = false
	if err := health(t.Context(), here); err == nil || !strings.Contains(err.Error(), "not well") {
		t.Errorf("a sick one: %v", err)
	}
	l := loopback(t)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := health(t.Context(), &settings{Listen: l.Addr().String()}); err == nil || !strings.Contains(err.Error(), "; start it, or name the address") {
		t.Errorf("nobody listens: %v", err)
	}
}
