package realtime

import (
	"bufio"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"switchboard/handoff"
)

// Clients ask for a model by the names that they know; the server knows its own.
func TestModelAliases(t *testing.T) {
	far := newFarModel(t)
	for asked, want := range map[string]string{"": "gpt-test", "gpt-realtime": "mine", "gpt-mini": "small",
		"unheard-of": "mine"} {
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
		"wss://x.openai.azure.com/v1/realtime": true, "wss://api.openai.com/v1/realtime": false,
		"wss://azure.com.example.com/": false, "wss://gateway.example.com/openai/realtime": true,
	} {
		u, err := url.Parse(address)
		if err != nil || azure(u) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func dialer(t *testing.T, at, key string, aliases map[string]string) *Front {
	return runs(t, Config{ModelURL: at, Model: "gpt-test", Key: key, Aliases: aliases, Router: &listener{}})
}

func dial(t *testing.T, f *Front, model string) {
	t.Helper()
	conn, fault := f.provider.dialModel(t.Context(), model, http.Header{})
	if fault != nil {
		t.Fatal(fault)
	}
	conn.Abandon()
}

// TestLongHandshake: a server's answer to the handshake is read up to a bound.
func TestLongHandshake(t *testing.T) {
	const most = 8 << 20
	l := listenLocal(t)
	wrote := make(chan int, 1)
	go func() {
		n := 0
		defer func() { wrote <- n }()
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
			return
		}
		for head := "HTTP/1.1 101 Switching Protocols\r\n"; n < most; head = "X-Long: " + strings.Repeat("x", 1000) + "\r\n" {
			m, err := conn.Write([]byte(head))
			if n += m; err != nil {
				return
			}
		}
	}()
	front := runs(t, Config{ModelURL: "ws://" + l.Addr().String(), Router: &listener{}})
	_, fault := front.provider.dialModel(t.Context(), "", http.Header{})
	if fault == nil || fault.Code != handoff.CodeVoiceUnreachable ||
		!strings.Contains(fault.Detail, handoff.ErrLongHandshake.Error()) {
		t.Errorf("dialled: %v", fault)
	}
	if n := <-wrote; n >= most {
		t.Errorf("all %d bytes of the answer were read", n)
	}
}

// TestProbe: a probe is let in like a call, sends nothing, and refusals keep their meaning.
func TestProbe(t *testing.T) {
	h := newHouse(t)
	for refuse, code := range map[int]handoff.Code{0: "", 401: handoff.CodeVoiceKey, 404: handoff.CodeVoiceModel,
		500: handoff.CodeVoiceUnreachable} {
		h.model.refuse = refuse
		err := Probe(t.Context(), h.front.config)
		if got := handoff.Code(""); err != nil && handoff.AsError(err).Code != code || err == nil && code != got {
			t.Errorf("refused with %d: %v", refuse, err)
		}
	}
	if err := Probe(t.Context(), Config{ModelURL: "ws://127.0.0.1:1/v1/realtime"}); err == nil ||
		handoff.AsError(err).Code != handoff.CodeVoiceUnreachable {
		t.Errorf("nobody there: %v", err)
	}
}
