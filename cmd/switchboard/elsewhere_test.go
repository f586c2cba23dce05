package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
)

// A client secret outlives a restart, in both stores, and begins calls with its session until then and after.
func TestClientSecretOutlivesARestart(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, store string) {
		dir := t.TempDir()
		begin := func() *running {
			return start(t, func(p *plan) { p.StateDir, p.Redis = dir, newSecret(store) })
		}
		r := begin()
		order := `{"session":{"type":"realtime","instructions":"Speak like a pirate."}}`
		secret := fmt.Sprint(r.made("/v1/realtime/client_secrets", order)["value"])
		for range 2 {
			dialer := websocket.Dialer{Subprotocols: []string{"realtime", "openai-insecure-api-key." + secret}}
			c, resp, err := dialer.DialContext(t.Context(), r.socket(), http.Header{"Origin": {"https://app.example"}})
			if err != nil {
				t.Fatalf("%v, %v", err, resp)
			}
			for bound := false; !bound; {
				var event struct {
					Type    string
					Session struct{ Instructions string }
				}
				must(t, c.ReadJSON(&event))
				if bound = event.Type == "session.created"; bound && event.Session.Instructions != "Speak like a pirate." {
					t.Fatalf("begun with %q", event.Session.Instructions)
				}
			}
			_ = c.Close()
			r.stop()
			r = begin()
		}
	})
}

// A backend makes a secret with OpenAI's own library, and learns what is wrong with an order in its words.
const makeSecret = `
import OpenAI from "openai";
const client = new OpenAI({ apiKey: process.argv[2], baseURL: process.argv[1] + "/v1", maxRetries: 0 });
const session = { type: "realtime", instructions: "Be brief." };
const made = await client.realtime.clientSecrets.create({ expires_after: { anchor: "created_at", seconds: 120 }, session });
const refused = await client.realtime.clientSecrets.create({ expires_after: { anchor: "created_at", seconds: 5 } }).catch((e) => e);
const stranger = await new OpenAI({ apiKey: "wrong", baseURL: process.argv[1] + "/v1", maxRetries: 0 }).realtime.clientSecrets.create({}).catch((e) => e);
console.log(JSON.stringify({ made, refused: [refused.constructor.name, refused.status, refused.param, refused.type], stranger: [stranger.constructor.name, stranger.status] }));
`

// pageElsewhere is a page of another origin with a script, which a tab waits for.
func pageElsewhere(t *testing.T, script []byte) (url string) {
	t.Helper()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/script.js" {
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write(script)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<!doctype html><title>elsewhere</title><script src="/script.js"></script>`))
	}))
	t.Cleanup(page.Close)
	return page.URL
}

// TestSecretByAnotherLibrary: the openai package makes a secret, and tells what is wrong with an order. TestClients has
// what pages do with one.
func TestSecretByAnotherLibrary(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	said := node(t, makeSecret, r.base, testKey)
	var backend struct {
		Made struct {
			Value     string
			ExpiresAt int64 `json:"expires_at"`
			Session   struct{ Type string }
		}
		Refused, Stranger []any
	}
	if err := json.Unmarshal([]byte(said), &backend); err != nil || !strings.HasPrefix(backend.Made.Value, "ek_") || backend.Made.Session.Type != "realtime" || backend.Made.ExpiresAt == 0 {
		t.Fatalf("made %s, %v", said, err)
	}
	if got := fmt.Sprint(backend.Refused, backend.Stranger); got != "[BadRequestError 400 expires_after.seconds invalid_request_error] [AuthenticationError 401]" {
		t.Errorf("refused %s", got)
	}
}
