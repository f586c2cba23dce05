package realtime

import (
	"context"
	"net/http"
	"net/url"
	"testing"
)

// Clients ask for a model by the names that they know; the server knows its own.
func TestModelAliases(t *testing.T) {
	far := newFarModel(t)
	for asked, want := range map[string]string{"": "gpt-test", "gpt-realtime": "mine", "gpt-mini": "small", "unheard-of": "mine"} {
		f := dialer(t, far.url(), "sk-secret", map[string]string{"gpt-realtime": "mine", "gpt-mini": "small", "*": "mine"})
		dial(t, f, asked)
		if q, err := url.ParseQuery(<-far.query); err != nil || q.Get("model") != want {
			t.Errorf("%q asks for %v, want %s", asked, q, want)
		}
		<-far.header
	}
	dial(t, dialer(t, far.url(), "", nil), "as it is")
	if q := <-far.query; q != "api-version=1&model=as+it+is" {
		t.Errorf("asked for %s", q)
	}
	<-far.header
}

// Azure takes its keys in a header of its own.
func TestKeyForAzure(t *testing.T) {
	far := newFarModel(t)
	for _, c := range []struct{ path, key, bearer, apiKey string }{
		{"/v1/realtime", "k", "Bearer k", ""},
		{"/openai/v1/realtime", "k", "", "k"},
		{"/openai/v1/realtime", "eyJ0.token", "Bearer eyJ0.token", ""},
		{"/openai/v1/realtime", "", "", ""},
	} {
		dial(t, dialer(t, "ws"+far.server.URL[len("http"):]+c.path, c.key, nil), "")
		if h := <-far.header; h.Get("Authorization") != c.bearer || h.Get("Api-Key") != c.apiKey {
			t.Errorf("%+v: %v", c, h)
		}
		<-far.query
	}
	for address, want := range map[string]bool{
		"wss://x.openai.azure.com/v1/realtime": true, "wss://api.openai.com/v1/realtime": false, "wss://azure.com.example.com/": false, "wss://gateway.example.com/openai/realtime": true,
	} {
		u, err := url.Parse(address)
		if err != nil || azure(u) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func dialer(t *testing.T, at, key string, aliases map[string]string) *Front {
	f, err := NewFront(Config{ModelURL: at, Model: "gpt-test", Key: key, Aliases: aliases, Router: &listener{}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- f.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ran })
	return f
}

func dial(t *testing.T, f *Front, model string) {
	t.Helper()
	conn, fault := f.dialModel(t.Context(), model, http.Header{})
	if fault != nil {
		t.Fatal(fault)
	}
	conn.Abandon()
}
